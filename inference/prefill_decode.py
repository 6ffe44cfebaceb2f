"""How long a model takes to read a prompt and to write after it, measured."""

from collections.abc import Sequence
from dataclasses import dataclass

from inference.errors import UserError
from inference.measurement import Progress, Spread, Work, timed
from inference.models.base import State
from inference.passages import prompt_of
from inference.prefix_cache import PrefixCache

LENGTHS = (16, 64, 128, 256, 512, 1024)
REPEATS = 3
DECODES = 8
COMPARED_PROMPT = 128
COMPARED_TOKENS = 12


@dataclass(frozen=True)
class LengthTiming:
    """One prompt length.

    ttft         time to first token: the prefill of the whole prompt, on an empty cache.
    itl          inter-token latency: one decode after that prompt.
    cache_bytes  of the key and value tensors once the prompt is read, summed over the real tensors.
    """

    tokens: int
    ttft: Spread
    itl: Spread
    cache_bytes: int

    @property
    def input_tps(self) -> float:
        """Input tokens read per second."""
        return self.tokens / self.ttft.median_s

    @property
    def output_tps(self) -> float:
        """Output tokens written per second."""
        return 1 / self.itl.median_s


@dataclass(frozen=True)
class Generation:
    """One text written with and without the cache: seconds of each token, the first one being the prefill."""

    prompt_tokens: int
    cached_s: tuple[float, ...]
    recomputed_s: tuple[float, ...]

    @property
    def speedup(self) -> float:
        """How many times faster the tokens after the first are with the cache."""
        return sum(self.recomputed_s[1:]) / sum(self.cached_s[1:])


@dataclass(frozen=True)
class PrefillDecode:
    timings: tuple[LengthTiming, ...]
    generation: Generation

    @property
    def spreads(self) -> tuple[Spread, ...]:
        return tuple(spread for timing in self.timings for spread in (timing.ttft, timing.itl))


def measure(scorer: PrefixCache, lengths: Sequence[int] = LENGTHS, repeats: int = REPEATS, decodes: int = DECODES) -> Work[PrefillDecode]:
    """Lengths beyond the model's context are left out. The tokens decoded are the model's favourites. Raises `UserError`."""
    fitting = [length for length in lengths if length + decodes <= scorer.info.context_length]
    compared = min(COMPARED_PROMPT, scorer.info.context_length - COMPARED_TOKENS)
    if not fitting or compared < 1:
        raise UserError("Le contexte de ce modèle est trop court pour cette mesure.")
    weight = repeats * sum(fitting) + (COMPARED_TOKENS + 1) * compared  # tokens to prefill: what takes the time
    done = 0
    _read(scorer, prompt_of(min(fitting), scorer.vocabulary.encode))  # the first pass after a rest is slower
    timings = []
    for length in fitting:
        prompt = prompt_of(length, scorer.vocabulary.encode)
        ttft_s = []
        for _ in range(repeats):
            yield Progress(done / weight, f"prefill de {length} tokens")
            seconds, (favourite, state) = _read(scorer, prompt)
            ttft_s.append(seconds)
            done += length
        yield Progress(done / weight, f"décodage après {length} tokens")
        cache_bytes = state.nbytes
        itl_s, _ = _write(scorer, favourite, state, decodes)
        timings.append(LengthTiming(length, Spread.of(ttft_s), Spread.of(itl_s), cache_bytes))

    prompt = prompt_of(compared, scorer.vocabulary.encode)
    yield Progress(done / weight, "la même suite avec cache")
    first_s, (favourite, state) = _read(scorer, prompt)
    itl_s, written = _write(scorer, favourite, state, COMPARED_TOKENS - 1)
    recomputed_s = []
    for tokens in range(COMPARED_TOKENS):
        done += compared
        yield Progress(done / weight, f"la même suite sans cache, token {tokens + 1} sur {COMPARED_TOKENS}")
        seconds, _ = _read(scorer, prompt + written[:tokens])
        recomputed_s.append(seconds)
    return PrefillDecode(tuple(timings), Generation(compared, (first_s, *itl_s), tuple(recomputed_s)))


def _read(scorer: PrefixCache, token_ids: tuple[int, ...], state: State | None = None) -> tuple[float, tuple[int, State]]:
    """Seconds of one pass, then the favourite after it and the state."""
    with scorer.model_alone() as model:
        seconds, forward = timed(lambda: model.prefill(token_ids, state))
    return seconds, (int(forward.scores.logits.argmax()), forward.state)


def _write(scorer: PrefixCache, token_id: int, state: State, tokens: int) -> tuple[list[float], tuple[int, ...]]:
    """Seconds of each of so many decodes, and the tokens read: `token_id`, then the favourites."""
    seconds, written = [], []
    for _ in range(tokens):
        written.append(token_id)
        elapsed, (token_id, state) = _read(scorer, (token_id,), state)
        seconds.append(elapsed)
    return seconds, tuple(written)
