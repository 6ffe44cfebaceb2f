"""What the server already knows: scores of every prefix seen lately, and the states to go on from.

One cache serves all visitors. A class that steps through the same sentence pays for each token once; going back, branching and
moving a slider cost no forward pass at all.
"""

import threading
from collections import OrderedDict
from collections.abc import Iterator, Sequence
from contextlib import contextmanager

from inference.models.base import Forward, Model, State
from inference.records import Scores
from inference.turns import Turns

TokenIds = tuple[int, ...]

ENTRY_BYTES = 1_000
"""What an entry weighs besides its value and its key, so that a model without states cannot fill the memory with them."""


class PrefixCache:
    """A `Scorer` over a model, bounded in memory: the least recently used scores and states go first.

    Only one thread is in the model at a time; the others wait their turn, visitors before measurements, then find the answer if it was
    the same question.
    Scores depend on the tokens alone, up to rounding: a prefix read in one pass and the same prefix read token by token differ by
    a few 1e-5 in their logits (see tests), and whoever comes first decides which of the two everybody sees.
    """

    def __init__(self, model: Model, max_score_bytes: int = 512 * 2**20, max_state_bytes: int = 512 * 2**20):
        self.model = model
        self.info = model.info
        self.vocabulary = model.vocabulary
        self._scores = _ByteBoundedLru(max_score_bytes)
        self._states = _ByteBoundedLru(max_state_bytes)
        self._turns = Turns()

    def scores_after(self, token_ids: Sequence[int]) -> Scores:
        """Scores of the token after `token_ids`, for a visitor's page. Raises `UserError` when there are none, or more than the model's
        context."""
        self._turns.announce_visitor()
        token_ids = tuple(token_ids)
        known = self._scores.get(token_ids)
        if known is not None:
            return known
        with self._turns.visitor():
            known = self._scores.get(token_ids)
            if known is not None:
                return known
            forward = self._forward(token_ids)
            self._scores.put(token_ids, forward.scores, forward.scores.logits.nbytes)
            self._keep(forward.state)
            return forward.scores

    def knows(self, token_ids: Sequence[int]) -> bool:
        """Whether `scores_after` would answer at once."""
        return self._scores.get(tuple(token_ids)) is not None

    @contextmanager
    def model_alone(self) -> Iterator[Model]:
        """The model for a measurement, with everybody else waiting. Hold it for one pass at a time: visitors come in between."""
        with self._turns.measurement():
            yield self.model

    @contextmanager
    def model_for_visitor(self) -> Iterator[Model]:
        """The model for what a visitor's page waits for and `scores_after` does not give, before any measurement."""
        with self._turns.visitor():
            yield self.model

    def _forward(self, token_ids: TokenIds) -> Forward:
        state = self._longest_state(token_ids[:-1])
        if state is None:
            return self.model.prefill(token_ids)
        rest = token_ids[len(state.token_ids) :]
        return self.model.decode(rest[0], state) if len(rest) == 1 else self.model.prefill(rest, state)

    def _keep(self, state: State) -> None:
        """Keep a state, and let go of the one it grew from if this one can be cut back to it: a text then weighs once, not at each
        of its tokens."""
        self._states.put(state.token_ids, state, state.nbytes)
        parent = state.token_ids[:-1]
        if self._states.get(parent) is not None and self.model.truncate(state, len(parent)) is not None:
            self._states.discard(parent)

    def _longest_state(self, token_ids: TokenIds) -> State | None:
        """The state that covers most of `token_ids`: one that was kept, or one cut back to the tokens it shares with them."""
        best, best_length, source = None, 0, None
        for state in self._states.values():
            shared = _shared_length(state.token_ids, token_ids)
            if shared > best_length:
                usable = state if shared == len(state.token_ids) else self.model.truncate(state, shared)
                if usable is not None:
                    best, best_length, source = usable, shared, state.token_ids
        if source is not None:
            self._states.get(source)  # it was useful: it goes last
        return best


def _shared_length(a: TokenIds, b: TokenIds) -> int:
    if a == b[: len(a)]:
        return len(a)
    return next((i for i, (x, y) in enumerate(zip(a, b, strict=False)) if x != y), min(len(a), len(b)))


class _ByteBoundedLru:
    """A thread-safe dictionary that forgets what was used longest ago once its values exceed `max_bytes` together."""

    def __init__(self, max_bytes: int):
        self._max_bytes = max_bytes
        self._bytes = 0
        self._entries: OrderedDict[TokenIds, tuple[object, int]] = OrderedDict()
        self._lock = threading.Lock()

    def get(self, key: TokenIds):
        with self._lock:
            if key not in self._entries:
                return None
            self._entries.move_to_end(key)
            return self._entries[key][0]

    def discard(self, key: TokenIds) -> None:
        with self._lock:
            _, freed = self._entries.pop(key, (None, 0))
            self._bytes -= freed

    def put(self, key: TokenIds, value, nbytes: int) -> None:
        nbytes += ENTRY_BYTES + 8 * len(key)
        with self._lock:
            _, replaced = self._entries.pop(key, (None, 0))
            self._entries[key] = (value, nbytes)
            self._bytes += nbytes - replaced
            while self._bytes > self._max_bytes and len(self._entries) > 1:
                _, (_, freed) = self._entries.popitem(last=False)
                self._bytes -= freed

    def values(self) -> list:
        with self._lock:
            return [value for value, _ in self._entries.values()]
