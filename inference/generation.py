"""The loop: score the next token, choose it, glue it to the text, start again, until something stops it."""

from collections.abc import Iterator, Sequence
from typing import Protocol

from inference.models.base import ModelInfo
from inference.records import SamplingParams, Scores, StepTrace, Stop, StopRules
from inference.sampling import run_pipeline
from inference.tokens import Vocabulary, replace_surrogates


class Scorer(Protocol):
    """What the loop needs: scores of the token after any run of ids. `PrefixCache` is one."""

    info: ModelInfo
    vocabulary: Vocabulary

    def scores_after(self, token_ids: Sequence[int]) -> Scores: ...


def generate(
    scorer: Scorer, prompt_ids: Sequence[int], params: SamplingParams, rules: StopRules
) -> Iterator[tuple[StepTrace, Stop | None]]:
    """Yield a trace for each token, with what stopped the text on the last one and None before.

    Raises `UserError` from the model: an empty prompt, or one longer than its context.
    """
    token_ids = tuple(prompt_ids)
    generated: tuple[int, ...] = ()
    stop = None
    while stop is None:
        trace = run_pipeline(scorer.scores_after(token_ids + generated), params, token_ids + generated, len(generated))
        generated += (trace.choice.token_id,)
        stop = find_stop(scorer, len(token_ids), generated, rules)
        yield trace, stop


def find_stop(scorer: Scorer, prompt_length: int, generated_ids: Sequence[int], rules: StopRules) -> Stop | None:
    """What ends the text after these tokens, or None. The end token wins over a stop sequence, which wins over a ceiling."""
    if generated_ids and generated_ids[-1] in scorer.info.eos_ids:
        return Stop("end_token")
    sequence = find_stop_sequence(scorer.vocabulary, generated_ids, rules.stop_sequences)
    if sequence is not None:
        return Stop("stop_sequence", sequence)
    if len(generated_ids) >= rules.max_new_tokens:
        return Stop("max_new_tokens")
    if prompt_length + len(generated_ids) >= scorer.info.context_length:
        return Stop("context_length")
    return None


def find_stop_sequence(vocabulary: Vocabulary, generated_ids: Sequence[int], sequences: Sequence[str]) -> str | None:
    """The first of `sequences` that the generated text holds, its end in the last token.

    Bytes are compared, so a sequence may begin and end inside tokens, and span several of them. The prompt does not count.
    """
    if not generated_ids or not sequences:
        return None
    text = b"".join(map(vocabulary.token_bytes, generated_ids))
    last = len(vocabulary.token_bytes(generated_ids[-1]))
    for sequence in sequences:
        wanted = replace_surrogates(sequence).encode("utf-8")
        if wanted in text[max(0, len(text) - last - len(wanted) + 1) :]:
            return sequence
    return None
