"""What a model is, for the rest of the library: something that reads tokens and scores the next one."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Protocol

from inference.errors import UserError
from inference.formatting import count
from inference.records import Scores
from inference.tokens import Vocabulary


@dataclass(frozen=True)
class Architecture:
    """The shape of a decoder, as far as its key-value cache depends on it.

    sliding_layers  how many of the `layers` attend only to the last `window` tokens; the others attend to all.
    element_bytes   of one number of the cache.
    """

    layers: int
    sliding_layers: int
    window: int
    query_heads: int
    kv_heads: int
    head_size: int
    element_bytes: int


@dataclass(frozen=True)
class ModelInfo:
    """What a model says of itself.

    name            as shown to the visitor.
    revision        what makes two files of the same name different: a hash or a commit.
    dtype           "float32", "bfloat16"… or "" when there are no weights.
    context_length  longest text, in tokens, prompt included.
    hub_id          where anyone gets the model, as transformers names it; the embedded one's original weights.
    weights_bytes   of all parameters, tied tensors counted once: what a decode step reads in a dense model with tied embeddings.
    architecture    None when there are no layers to speak of.
    is_illustrative True when the figures were written by hand rather than computed.
    """

    name: str
    revision: str
    dtype: str
    context_length: int
    eos_ids: frozenset[int]
    hub_id: str = ""
    weights_bytes: int = 0
    architecture: Architecture | None = None
    is_illustrative: bool = False


@dataclass(frozen=True, eq=False)
class State:
    """What a model must remember of the tokens it has read: held by the caller, never by the model, never written to again.

    payload  the model's own business: key and value tensors, say. An engine that keeps its cache to itself puts nothing here.
    """

    token_ids: tuple[int, ...]
    payload: Any = None
    nbytes: int = 0


@dataclass(frozen=True, eq=False)
class Forward:
    """The result of one forward pass: scores of the token that follows `state.token_ids`."""

    scores: Scores
    state: State


def checked_ids(info: ModelInfo, token_ids: Sequence[int], state: State | None) -> tuple[int, ...]:
    """All the tokens read once `token_ids` follow those of `state`. Raises `UserError` when there are none to read, or too many."""
    if not token_ids:
        raise UserError("Le texte ne contient aucun token. Écrivez au moins un caractère.")
    read = (state.token_ids if state else ()) + tuple(token_ids)
    if len(read) > info.context_length:
        raise UserError(f"Le texte dépasse le contexte du modèle, {count(info.context_length)} tokens. Raccourcissez-le.")
    return read


class Model(Protocol):
    """Prefill reads a whole prompt in one pass; decode reads one token more. Both leave the state they were given usable.

    Both raise `UserError` when there is nothing to read or more than `info.context_length`, and are called by one thread at a time.
    """

    info: ModelInfo
    vocabulary: Vocabulary

    def prefill(self, token_ids: Sequence[int], state: State | None = None) -> Forward:
        """Read one token or more, after those of `state` if given."""

    def decode(self, token_id: int, state: State) -> Forward:
        """Read one token more."""

    def truncate(self, state: State, length: int) -> State | None:
        """The state after the first `length` tokens, without computing anything; None when it cannot be had any more."""
