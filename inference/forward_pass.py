"""One pass through a network, seen from inside: embeddings, attention, and what each layer would already answer. A record of numbers;
a concrete model fills it in."""

from dataclasses import dataclass

import numpy as np

from inference.distributions import entropy_bits, largest, softmax
from inference.errors import UserError
from inference.formatting import count

MAX_TOKENS = 64
"""Longest text that is followed: attention makes n × n cells per head, and a screen shows no more of them."""


MAX_TOKEN_CHARACTERS = 64
"""Longer than any token of the vocabularies we know."""


@dataclass(frozen=True)
class Neighbours:
    """The other rows of the embedding table that point most nearly where a token's own does, by decreasing cosine, in [-1, 1].

    The table has a row for every entry of the vocabulary, special and unused ones included.
    """

    ids: tuple[int, ...]
    cosines: tuple[float, ...]


@dataclass(frozen=True)
class Reading:
    """The next token as read off one layer, at one position, with the network's own last norm and output matrix: the logit lens
    (nostalgebraist, « interpreting GPT: the logit lens », 2020).

    Only the last layer was trained to be read so; what the others give shows where the answer forms, not what they « think ».

    top_ids, top_probs  the most likely tokens, by decreasing probability at temperature 1.
    entropy_bits        of the whole distribution.
    favourite_prob      of the token the network prefers in the end.
    favourite_rank      1 when no token is more likely than that one.
    """

    top_ids: tuple[int, ...]
    top_probs: tuple[float, ...]
    entropy_bits: float
    favourite_prob: float
    favourite_rank: int


@dataclass(frozen=True, eq=False)
class ForwardPass:
    """A pass over n tokens, at most `MAX_TOKENS`, through L layers of H query heads. Arrays are read-only.

    embedding_norms  (n,) float32: length of the vectors that enter the first layer. They are what the network sees, not the rows of
                     its table: Gemma has multiplied them by √hidden_size, GPT-2 has added a position to them.
    neighbours       per token, over the table itself; a scale changes no cosine.
    layer_types      per layer: "sliding" where a token attends to the last `window` tokens, itself included, or "full".
    window           None when every layer is full.
    attentions       (L, H, n, n) float32: row i is how token i shares its attention, 0 after i. A row sums to 1 up to the rounding of
                     the model's dtype.
    position         in [0, n): where the lens is held. It reads the token that follows that position.
    lens             L + 1 readings: of the embedding, then after each layer. The last one is what the model answers.
    logits           (vocab_size,) float32: the model's own, at `position`.
    """

    token_ids: tuple[int, ...]
    embedding_norms: np.ndarray
    neighbours: tuple[Neighbours, ...]
    layer_types: tuple[str, ...]
    window: int | None
    attentions: np.ndarray
    position: int
    lens: tuple[Reading, ...]
    logits: np.ndarray

    def __post_init__(self):
        for array in (self.embedding_norms, self.attentions, self.logits):
            array.flags.writeable = False

    @property
    def favourite_id(self) -> int:
        """The token the network prefers in the end; the smaller id of two equals."""
        return int(self.logits.argmax())


def settles_at(lens: tuple[Reading, ...]) -> int:
    """The first layer from which the favourite is ahead and stays so; 0 for the embedding."""
    behind = [layer for layer, reading in enumerate(lens) if reading.favourite_rank > 1]
    return behind[-1] + 1 if behind else 0


def checked_text(text: str) -> str:
    """No more of a text than is needed to see that it is too long. Raises `UserError` when there is nothing in it."""
    if not text.strip():
        raise UserError("Écrivez un texte à suivre.")
    return text[: MAX_TOKENS * MAX_TOKEN_CHARACTERS]


def check_length(length: int) -> None:
    """Raises `UserError` for a text too long to be followed."""
    if length > MAX_TOKENS:
        raise UserError(
            f"Une passe avant se suit ici sur {count(MAX_TOKENS)} tokens au plus, et ce texte en compte {count(length)}. Raccourcissez-le."
        )


def read_logits(logits: np.ndarray, favourite_id: int, top: int) -> Reading:
    """What logits (vocab_size,) say, `top` tokens of it and the place of `favourite_id`."""
    probs = softmax(logits)
    top_ids = largest(logits, top)
    return Reading(
        top_ids=tuple(top_ids.tolist()),
        top_probs=tuple(probs[top_ids].tolist()),
        entropy_bits=entropy_bits(probs),
        favourite_prob=float(probs[favourite_id]),
        favourite_rank=1 + int(np.count_nonzero(logits > logits[favourite_id])),
    )
