"""Two things said of language models, put to the test: the same answer to the same question, a text drafted before it is shown."""

from collections.abc import Callable
from dataclasses import dataclass
from itertools import accumulate

from inference.conversation import write
from inference.escaping import markdown_text
from inference.measurement import Progress, Spread, Work, within
from inference.near_ties import CHECKED, NearTie, find_near_ties, read_sentences
from inference.precisions import ReadableModel
from inference.prefix_cache import PrefixCache
from inference.routes import AGAIN, ALONE, BATCH, Arithmetic, routes_of
from inference.temperature_zero import PROMPT, SERVED, Comparison

STORY = "Il était une fois"
WRITTEN = 24


@dataclass(frozen=True, eq=False)
class SameQuestion:
    """again, batch  the logits of one prompt computed a second time alone, and in a batch, against the first time alone.
    positions      of French sentences, where the nearest to a tie were looked for, in `precision`.
    near_ties      those, computed alone and in a batch.
    """

    again: Comparison
    batch: Comparison
    precision: str
    positions: int
    near_ties: tuple[NearTie, ...]

    @property
    def flips(self) -> tuple[NearTie, ...]:
        """The places where the token chosen alone, twice the same, is another in a batch."""
        return tuple(one for one in self.near_ties if one.flipped_by)

    @property
    def unstable(self) -> tuple[NearTie, ...]:
        return tuple(one for one in self.near_ties if one.is_unstable)

    @property
    def changes_alone(self) -> bool:
        """Whether the same question asked twice, alone, was answered in two ways."""
        return self.again.flips or bool(self.unstable)

    @property
    def changes_in_batch(self) -> bool:
        return self.batch.flips or bool(self.flips)


@dataclass(frozen=True)
class Streaming:
    """passes_s  what the pass behind each token took; the first one reads the prompt."""

    token_ids: tuple[int, ...]
    passes_s: tuple[float, ...]

    @property
    def arrivals_s(self) -> tuple[float, ...]:
        """When each token came out, in seconds of calculation since the prompt went in."""
        return tuple(accumulate(self.passes_s))

    @property
    def total_s(self) -> float:
        return self.arrivals_s[-1]

    @property
    def first_share(self) -> float:
        """Of the whole time, what had passed when the first token came out: 1 for a text that is drafted first."""
        return self.passes_s[0] / self.total_s

    @property
    def later(self) -> Spread | None:
        """The passes after the first; None when there are none."""
        return Spread.of(self.passes_s[1:]) if len(self.passes_s) > 1 else None


def measure_streaming(scorer: PrefixCache, tokens: int = WRITTEN) -> Work[Streaming]:
    """Write so many tokens after `STORY`, at most. The text is in the progress as it comes."""
    token_ids, passes_s = [], []
    yield Progress(0.0, "lit l’invite")
    for token_id, pass_s in write(scorer, scorer.vocabulary.encode(STORY), tokens):
        token_ids.append(token_id)
        passes_s.append(pass_s)
        yield Progress(len(token_ids) / tokens, markdown_text(STORY + scorer.vocabulary.text(token_ids)))
    return Streaming(tuple(token_ids), tuple(passes_s))


def measure_same_question(
    scorer: PrefixCache, arithmetic: Arithmetic, open_precision: Callable[[ReadableModel, str], ReadableModel], checked: int = CHECKED
) -> Work[SameQuestion]:
    """One prompt in the running model's own precision; then, in the one servers commonly use, where a batch could change a choice."""
    routes = {name: route for name, route in routes_of(arithmetic).items() if name in (ALONE, BATCH)}
    prompt = scorer.vocabulary.encode(PROMPT)
    logits = {}
    for position, (name, route) in enumerate(((ALONE, ALONE), (AGAIN, ALONE), (BATCH, BATCH))):
        yield Progress(0.05 * position, f"calcule l’invite, {name}")
        with scorer.model_alone() as model:
            logits[name] = routes[route](model, prompt)
    again, batch = (Comparison.of(len(prompt), name, logits[ALONE], logits[name]) for name in (AGAIN, BATCH))

    served = scorer.model
    if scorer.info.dtype != SERVED:
        yield Progress(0.15, f"range les poids en {SERVED}")
        served = open_precision(scorer.model, SERVED)
    sentences = [scorer.vocabulary.encode(sentence)[: scorer.info.context_length] for sentence in read_sentences()]
    positions, near_ties = yield from within(0.2, 1.0, find_near_ties(scorer, served, routes, sentences, checked))
    return SameQuestion(again, batch, served.info.dtype, positions, near_ties)
