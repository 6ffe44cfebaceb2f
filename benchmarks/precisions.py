"""Each precision against its own memory floor, and against llama.cpp on the same file, in turn in one run.

llama.cpp comes with the package xllamacpp, which the app does not need: `pip install xllamacpp` first, or it is left out and said so.
"""

import argparse
import statistics
import tempfile
from pathlib import Path

from benchmarks.report import finish, machine, ratio, spread_ms, timed
from inference.models import embedded
from inference.models.bandwidth import open_block
from inference.models.quantization import BITS, open_precision
from inference.models.weights import weight_chunks
from inference.passages import prompt_of
from inference.precisions import measure
from inference.prefix_cache import PrefixCache

PROMPT_TOKENS = 16
LLAMA_TOKENS = 8
GGUF_BYTES = 253_113_024


class LlamaCpp:
    """llama.cpp's own server, in this process, on two threads; it writes one token after another and times itself."""

    def __init__(self, path: Path, threads: int):
        import xllamacpp

        params = xllamacpp.CommonParams()
        params.model.path = str(path)
        params.n_parallel, params.n_ctx, params.warmup, params.cpuparams.n_threads = 1, 512, True, threads
        self.server = xllamacpp.Server(params)

    def seconds_per_token(self, prompt: str) -> float:
        request = {"prompt": prompt, "n_predict": LLAMA_TOKENS, "ignore_eos": True, "temperature": 0, "timings_per_token": True}
        answer = self.server.handle_completions(request)
        return answer["timings"]["predicted_per_token_ms"] / 1e3


def speeds(rounds: int) -> None:
    """One decode of each, one reading of memory and a few tokens of llama.cpp, in turn."""
    reference = embedded.load()
    models = {"float32": reference} | {name: open_precision(reference, name) for name in BITS}
    prompt = prompt_of(PROMPT_TOKENS, reference.vocabulary.encode)
    states = {name: model.prefill(prompt).state for name, model in models.items()}
    read = open_block()
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "model.gguf"
        embedded.join_gguf(path)
        try:
            llama = LlamaCpp(path, threads=2)
        except ImportError:
            llama = None
            print("llama.cpp: left out, xllamacpp is not installed")
        times: dict[str, list[float]] = {name: [] for name in [*models, "llama.cpp", "read"]}
        for round_number in range(rounds + 1):
            found = {name: timed(lambda model=model, name=name: model.decode(prompt[0], states[name])) for name, model in models.items()}
            found["read"] = timed(read)
            if llama:
                found["llama.cpp"] = llama.seconds_per_token("Le chat dort sur le")
            if round_number:
                for name, seconds in found.items():
                    times[name].append(seconds)
    bandwidth = read() / min(times["read"])
    print(f"read bandwidth: {bandwidth / 1e9:.1f} GB/s (best of {rounds})")
    sizes = {name: model.info.weights_bytes for name, model in models.items()} | ({"llama.cpp": GGUF_BYTES} if llama else {})
    for name, size in sizes.items():
        floor_s = size / bandwidth
        median_s = statistics.median(times[name])
        text = f"{name}: {size / 1e6:.0f} MB, decode {spread_ms(times[name])}, floor {floor_s * 1e3:.1f} ms, {floor_s / median_s:.0%} of it"
        print(text + (f"; over llama.cpp {ratio(times[name], times['llama.cpp'])}" if llama and name != "llama.cpp" else ""))


def losses() -> None:
    """The lab's own measurement: divergence and agreement on the French passages."""
    for one in finish(
        measure(PrefixCache(embedded.load()), tuple(BITS), open_precision, open_block, weight_chunks, embedded.cache_folder())
    ):
        stored = "as it was" if one.store_s is None else f"stored in {one.store_s:.1f} s"
        loaded = "no room to load" if one.load_s is None else f"loaded in {one.load_s:.2f} s"
        print(
            f"{one.name}: {stored}, {loaded}, prefill of 128 {one.prefill.median_s * 1e3:.0f} ms, KL mean {one.kl_nats.mean():.5f}, "
            f"max {one.kl_nats.max():.4f} nat, same favourite {one.top1_agreement:.1%} of {len(one.kl_nats)}"
        )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=int, default=15)
    arguments = parser.parse_args()
    print(machine())
    speeds(arguments.rounds)
    losses()


if __name__ == "__main__":
    main()
