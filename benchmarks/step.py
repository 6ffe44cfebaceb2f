"""One step of ours against a bare forward pass and against transformers' `generate`; the memory floor; precisions; the pipeline."""

import statistics

import numpy as np
import torch

from benchmarks.report import in_turn, machine, ratio, spread_ms, timed
from inference.distributions import kl_divergence, softmax
from inference.generation import generate
from inference.models import embedded
from inference.models.hf import snapshot
from inference.prefix_cache import PrefixCache
from inference.records import SamplingParams, StopRules
from inference.sampling import run_pipeline

PROMPT = "Le chat dort sur le"
STEPS = 40
ROUNDS = 9
FRENCH = (
    "La Révolution française est une période de bouleversements sociaux et politiques de grande envergure en France. "
    "Le matin, elle ouvrait la fenêtre et regardait la mer sans penser à rien. Pour faire des crêpes, il faut de la farine, "
    "des œufs, du lait et un peu de patience. L’eau bout à cent degrés au niveau de la mer."
)
DEFAULTS = SamplingParams(temperature=1.0, top_p=0.9)
SETTINGS = {
    "temperature 0.7": SamplingParams(temperature=0.7),
    "temperature 2, top-p 0.95": SamplingParams(temperature=2.0, top_p=0.95),
    "top-k 50, top-p 0.9": SamplingParams(top_k=50, top_p=0.9),
    "every stage, llama.cpp order": SamplingParams(0.8, 40, 0.95, 0.05, 1.1, "llamacpp"),
    "temperature 1.3, top-p 0.999": SamplingParams(temperature=1.3, top_p=0.999),
}


def one_step(model) -> None:
    """A step (scores, pipeline, draw) against the same decode called bare, on the same state, in turn."""
    scorer = PrefixCache(model)
    prompt_ids = scorer.vocabulary.encode(PROMPT)
    state = model.prefill(prompt_ids).state
    scorer.scores_after(prompt_ids)
    fresh = iter(range(1_000, 200_000))

    def ours() -> None:
        context = (*prompt_ids, next(fresh))
        run_pipeline(scorer.scores_after(context), DEFAULTS, context, 1)

    @torch.inference_mode()
    def bare() -> None:
        model.model(torch.tensor([[next(fresh)]]), cache=snapshot(state.payload), use_cache=True)

    times = in_turn({"ours": ours, "bare": bare}, 60)
    print(f"one step: {spread_ms(times['ours'])}; bare model(...): {spread_ms(times['bare'])}; ratio {ratio(times['ours'], times['bare'])}")


def whole_text(model) -> None:
    """Forty greedy tokens by our loop and by `generate`, in turn."""
    prompt_ids = model.vocabulary.encode(PROMPT)
    ids = torch.tensor([prompt_ids])
    greedy, rules = SamplingParams(temperature=0), StopRules(STEPS)

    def ours() -> None:
        for _ in generate(PrefixCache(model), prompt_ids, greedy, rules):
            pass

    def theirs() -> None:
        model.model.generate(ids, attention_mask=torch.ones_like(ids), max_new_tokens=STEPS, min_new_tokens=STEPS, do_sample=False)

    times = in_turn({"ours": ours, "theirs": theirs}, ROUNDS)
    for name, seconds in times.items():
        print(f"{STEPS} tokens, {name}: {STEPS / statistics.median(seconds):.1f} tokens/s, {spread_ms(seconds)}")
    print(f"tokens/s, ours over generate: {ratio(times['theirs'], times['ours'])}")


def memory_floor(models: dict) -> None:
    """Decode time against the time it takes to read the weights once, at the bandwidth measured by summing 512 MiB on all threads."""
    block = torch.ones(128 * 2**20)

    def read() -> None:
        block.sum()

    states = {dtype: model.prefill(model.vocabulary.encode(PROMPT)).state for dtype, model in models.items()}
    times = in_turn({"read": read} | {dtype: lambda dtype=dtype: models[dtype].decode(740, states[dtype]) for dtype in models}, 25)
    bandwidth = block.nbytes / min(times["read"])
    print(f"read bandwidth: {bandwidth / 1e9:.1f} GB/s (best of {len(times['read'])})")
    for dtype, model in models.items():
        floor = model.info.weights_bytes / bandwidth
        against = statistics.median(times[dtype]) / floor
        print(f"{dtype}: decode {spread_ms(times[dtype])}, floor {floor * 1e3:.1f} ms, {against:.2f} × the floor")


def precision(models: dict) -> None:
    """KL divergence to float32 at every position of a French text read token by token."""
    reference, other = models["float32"], models["bfloat16"]
    ids = reference.vocabulary.encode(FRENCH)
    forwards = {dtype: model.prefill(ids[:1]) for dtype, model in models.items()}
    divergences, agreements = [], []
    for token_id in ids[1:]:
        forwards = {dtype: models[dtype].decode(token_id, forward.state) for dtype, forward in forwards.items()}
        p, q = (softmax(forwards[dtype].scores.logits) for dtype in (reference.info.dtype, other.info.dtype))
        divergences.append(kl_divergence(p, q))
        agreements.append(p.argmax() == q.argmax())
    print(
        f"bfloat16 against float32 on {len(divergences)} positions: KL mean {np.mean(divergences):.5f}, max {np.max(divergences):.5f} nat;"
        f" same favourite {np.mean(agreements):.1%}"
    )


def pipeline(model) -> None:
    scorer = PrefixCache(model)
    ids = scorer.vocabulary.encode(PROMPT)
    scores = scorer.scores_after(ids)
    for name, params in SETTINGS.items():
        seconds = [timed(lambda params=params: run_pipeline(scores, params, ids, 3)) for _ in range(40)]
        print(f"pipeline over {len(scores.logits)} logits, {name}: {spread_ms(seconds)}")


def main() -> None:
    print(machine())
    models = {dtype: embedded.load(dtype=dtype) for dtype in ("float32", "bfloat16")}
    one_step(models["float32"])
    whole_text(models["float32"])
    memory_floor(models)
    precision(models)
    pipeline(models["float32"])


if __name__ == "__main__":
    main()
