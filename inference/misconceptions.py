"""Two things said of language models, put to the test: the same answer to the same question, a text drafted before it is shown."""

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np

from inference.conversation import write
from inference.escaping import markdown_text
from inference.measurement import Progress, Work, within
from inference.precisions import ReadableModel
from inference.prefix_cache import PrefixCache
from inference.temperature_zero import AGAIN, ALONE, BATCH, PROMPT, SERVED, Arithmetic, Comparison, read_sentences, routes_of

CHECKED = 12
"""Places, those where two tokens are nearest to a tie, that are computed alone and in a batch."""
STORY = "Il était une fois"
WRITTEN = 24


@dataclass(frozen=True)
class Flip:
    """A text after which the token chosen at temperature 0 is one when computed alone, another in a batch."""

    token_ids: tuple[int, ...]
    alone: int
    in_batch: int


@dataclass(frozen=True, eq=False)
class SameQuestion:
    """again, batch  the logits of one prompt computed a second time alone, and in a batch, against the first time alone.
    positions      of French sentences, where the nearest to a tie were looked for, in `precision`.
    checked        how many of them were computed both ways; `flips` are those that came out differently.
    """

    again: Comparison
    batch: Comparison
    precision: str
    positions: int
    checked: int
    flips: tuple[Flip, ...]


@dataclass(frozen=True)
class Streaming:
    """arrivals_s  when each token came out, in seconds since the prompt went in."""

    token_ids: tuple[int, ...]
    arrivals_s: tuple[float, ...]

    @property
    def total_s(self) -> float:
        return self.arrivals_s[-1]

    @property
    def first_share(self) -> float:
        """Of the whole time, what had passed when the first token came out: 1 for a text that is drafted first."""
        return self.arrivals_s[0] / self.total_s

    @property
    def waits_s(self) -> tuple[float, ...]:
        """For each token, the time since the one before it; for the first, since the prompt."""
        return tuple(np.diff(self.arrivals_s, prepend=0.0).tolist())


def measure_streaming(scorer: PrefixCache, tokens: int = WRITTEN) -> Work[Streaming]:
    """Write so many tokens after `STORY`, at most. The text is in the progress as it comes."""
    token_ids, arrivals_s = [], []
    yield Progress(0.0, "lit l’invite")
    start_s = time.perf_counter()
    for token_id, ended_s in write(scorer, scorer.vocabulary.encode(STORY), tokens):
        token_ids.append(token_id)
        arrivals_s.append(ended_s - start_s)
        yield Progress(len(token_ids) / tokens, markdown_text(STORY + scorer.vocabulary.text(token_ids)))
    return Streaming(tuple(token_ids), tuple(arrivals_s))


def measure_same_question(
    scorer: PrefixCache, arithmetic: Arithmetic, open_precision: Callable[[ReadableModel, str], ReadableModel], checked: int = CHECKED
) -> Work[SameQuestion]:
    """One prompt in the running model's own precision; then, in the one servers commonly use, where a batch could change a choice."""
    routes = routes_of(arithmetic)
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
    positions, places = yield from within(0.2, 0.6, _nearest_to_a_tie(scorer, served, checked))
    flips = []
    for position, token_ids in enumerate(places):
        choices = []
        for name in (ALONE, BATCH):
            yield Progress(0.6 + 0.4 * position / len(places), f"calcule l’endroit {position + 1} sur {len(places)}, {name}")
            with scorer.model_alone():
                choices.append(int(routes[name](served, token_ids).argmax()))
        if choices[0] != choices[1]:
            flips.append(Flip(token_ids, *choices))
    return SameQuestion(again, batch, served.info.dtype, positions, len(places), tuple(flips))


def _nearest_to_a_tie(scorer: PrefixCache, model: ReadableModel, wanted: int) -> Work[tuple[int, Sequence[tuple[int, ...]]]]:
    """How many places there are in the French sentences, and the texts that end at the `wanted` where the first two tokens are nearest."""
    found, sentences = [], read_sentences()
    for position, sentence in enumerate(sentences):
        yield Progress(position / len(sentences), f"cherche des presque ex æquo, phrase {position + 1} sur {len(sentences)}")
        token_ids = scorer.vocabulary.encode(sentence)[: scorer.info.context_length]
        with scorer.model_alone():
            second, first = np.partition(model.logits_along(token_ids), -2, axis=1)[:, -2:].T
        found += [(gap, token_ids[:length]) for length, gap in enumerate((first - second).tolist(), start=1)]
    return len(found), [token_ids for _, token_ids in sorted(found)[:wanted]]
