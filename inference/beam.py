"""Beam search: instead of one text, the few most likely ones go on together, and every path that was looked at is kept to be shown.

Conventions are those of transformers' `generate(num_beams=width, length_penalty=…, early_stopping=False)`, token for token (see tests).
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass

from inference.distributions import largest, log_softmax
from inference.measurement import Progress, Work
from inference.models.base import State
from inference.prefix_cache import PrefixCache

KEPT, FINISHED, DROPPED = "kept", "finished", "dropped"


@dataclass(frozen=True)
class Path:
    """Tokens written after a prompt, and the model's own log-probability of each, in nats."""

    token_ids: tuple[int, ...] = ()
    log_probs: tuple[float, ...] = ()

    @property
    def log_prob(self) -> float:
        """Of the whole path."""
        return math.fsum(self.log_probs)

    def score(self, length_penalty: float) -> float:
        """log p / lengthᵖ, what finished texts are compared by. Log-probabilities being negative, a penalty above 0 helps long texts
        and one below 0 short ones; 0 compares the texts' own probabilities, 1 their mean per token."""
        return self.log_prob / len(self.token_ids) ** length_penalty

    def then(self, token_id: int, log_prob: float) -> "Path":
        return Path((*self.token_ids, token_id), (*self.log_probs, log_prob))


@dataclass(frozen=True)
class Candidate:
    """A path that was looked at, and its fate: it goes on, it is a finished text, or it is dropped."""

    path: Path
    fate: str


@dataclass(frozen=True)
class BeamSearch:
    """steps     for each token, the likeliest paths of that length, by decreasing log-probability.
    finished  at most `width` texts, by decreasing score.
    """

    width: int
    length_penalty: float
    steps: tuple[tuple[Candidate, ...], ...]
    finished: tuple[Path, ...]

    @property
    def best(self) -> Path:
        return self.finished[0]

    def leaves(self, token_ids: Sequence[int]) -> int | None:
        """The step, from 1, at which this text is no longer followed; None when it is to the end, its own or the search's."""
        for step, candidates in enumerate(self.steps[: len(token_ids)], start=1):
            if tuple(token_ids[:step]) not in {one.path.token_ids for one in candidates if one.fate != DROPPED}:
                return step
        return None


def beam_search(scorer: PrefixCache, prompt_ids: Sequence[int], width: int, length_penalty: float, max_new_tokens: int) -> Work[BeamSearch]:
    """Write up to `max_new_tokens` after the prompt, the `width` likeliest paths going on at each token. A pass a path: their states are
    snapshots, so a path that branches costs nothing more.

    It ends when every path has reached the ceiling, or when `width` texts are finished and the best path that goes on scores no better
    than the worst of them. Raises `UserError` from the model.
    """
    end_ids = scorer.info.eos_ids
    looked_at = width * max(2, 1 + len(end_ids))  # enough for `width` paths to go on, whatever number of end tokens come first
    live: list[tuple[Path, State | None]] = [(Path(), None)]
    steps: list[tuple[Candidate, ...]] = []
    finished: list[Path] = []
    while True:
        reached: list[tuple[Path, State]] = []
        for rank, (path, state) in enumerate(live):
            doing = f"faisceau, token {len(steps) + 1} sur {max_new_tokens}, chemin {rank + 1} sur {len(live)}"
            yield Progress((len(steps) + rank / len(live)) / max_new_tokens, doing)
            with scorer.model_alone() as model:
                forward = model.decode(path.token_ids[-1], state) if state else model.prefill(prompt_ids)
            log_probs = log_softmax(forward.scores.logits)
            reached += [(path.then(int(i), float(log_probs[i])), forward.state) for i in largest(log_probs, looked_at)]
        reached.sort(key=lambda one: one[0].log_prob, reverse=True)

        is_last = len(steps) + 1 == max_new_tokens
        live, candidates = [], []
        for rank, (path, state) in enumerate(reached[:looked_at]):
            fate = DROPPED
            if is_last or path.token_ids[-1] in end_ids:
                if rank < width:
                    fate = FINISHED
                    finished.append(path)
            elif len(live) < width:
                fate = KEPT
                live.append((path, state))
            candidates.append(Candidate(path, fate))
        steps.append(tuple(candidates))
        finished = sorted(finished, key=lambda path: path.score(length_penalty), reverse=True)[:width]
        is_full = len(finished) == width
        if not live or (is_full and live[0][0].score(length_penalty) <= finished[-1].score(length_penalty)):
            return BeamSearch(width, length_penalty, tuple(steps), tuple(finished))
