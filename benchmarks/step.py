"""One step of ours against a bare forward pass and against transformers' `generate`; the pipeline behind a slider."""

import statistics

import torch

from benchmarks.report import in_turn, machine, ratio, spread_ms, timed
from inference.generation import generate
from inference.models import embedded
from inference.models.hf import snapshot
from inference.prefix_cache import PrefixCache
from inference.records import SamplingParams, StopRules
from inference.sampling import run_pipeline

PROMPT = "Le chat dort sur le"
STEPS = 40
ROUNDS = 9
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


def pipeline(model) -> None:
    scorer = PrefixCache(model)
    ids = scorer.vocabulary.encode(PROMPT)
    scores = scorer.scores_after(ids)
    for name, params in SETTINGS.items():
        seconds = [timed(lambda params=params: run_pipeline(scores, params, ids, 3)) for _ in range(40)]
        print(f"pipeline over {len(scores.logits)} logits, {name}: {spread_ms(seconds)}")


def main() -> None:
    print(machine())
    model = embedded.load()
    one_step(model)
    whole_text(model)
    pipeline(model)


if __name__ == "__main__":
    main()
