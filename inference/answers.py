"""The probability a model gives to an answer it is shown."""

import math
from collections.abc import Callable
from contextlib import AbstractContextManager
from dataclasses import dataclass

from inference.distributions import log_softmax
from inference.errors import UserError
from inference.formatting import count
from inference.models.base import Model, ModelInfo
from inference.tokens import Vocabulary

Turn = Callable[[], AbstractContextManager[Model]]

MAX_PROMPT_TOKENS = 512
"""A pass of about a second."""
MAX_ANSWER_TOKENS = 12


@dataclass(frozen=True)
class Answer:
    """Each token of an answer against what the model would have bet in its place, the right tokens being there before it.

    prompt_tokens    how many were read before the answer.
    log_probs        of the answer's tokens, in nats.
    favourites       ids of the most likely token at each place, and `favourite_probs`.
    """

    prompt_tokens: int
    token_ids: tuple[int, ...]
    log_probs: tuple[float, ...]
    favourites: tuple[int, ...]
    favourite_probs: tuple[float, ...]

    @property
    def probs(self) -> tuple[float, ...]:
        return tuple(math.exp(log_prob) for log_prob in self.log_probs)

    @property
    def probability(self) -> float:
        """Of the whole answer: the product of its tokens' probabilities."""
        return math.exp(math.fsum(self.log_probs))

    @property
    def is_written(self) -> bool:
        """Whether the model, choosing its favourite each time, would write it."""
        return self.token_ids == self.favourites


def answer_ids(vocabulary: Vocabulary, answer: str) -> tuple[int, ...]:
    """Ids of an answer that goes on after a prompt: a space before it, no opening token."""
    return vocabulary.encode(f" {answer.strip()}")[len(vocabulary.encode("")) :]


def checked_question(vocabulary: Vocabulary, info: ModelInfo, prompt: str, answer: str) -> tuple[tuple[int, ...], tuple[int, ...]]:
    """Ids of a visitor's prompt and answer. Raises `UserError` for an empty answer, and for texts too long."""
    if not answer.strip():
        raise UserError("Écrivez la réponse dont vous voulez la probabilité.")
    prompt_ids, token_ids = vocabulary.encode(prompt), answer_ids(vocabulary, answer)
    longest = min(MAX_PROMPT_TOKENS, info.context_length - MAX_ANSWER_TOKENS)
    for name, length, most in (("Le texte", len(prompt_ids), longest), ("La réponse", len(token_ids), MAX_ANSWER_TOKENS)):
        if length > most:
            raise UserError(f"{name} fait {count(length)} tokens, et cette page en lit {count(most)} au plus. Raccourcissez.")
    return prompt_ids, token_ids


def score_answer(turn: Turn, prompt_ids: tuple[int, ...], token_ids: tuple[int, ...]) -> Answer:
    """The model reads the prompt, then the answer token by token, whatever the server knows already. Raises `UserError`.

    turn  gives the model for one pass: `PrefixCache.model_alone` for a measurement, `model_for_visitor` for a page.
    """
    log_probs, favourites, favourite_probs = [], [], []
    unread, state = prompt_ids, None
    for token_id in token_ids:
        with turn() as model:
            forward = model.prefill(unread, state)
        of_all = log_softmax(forward.scores.logits)
        favourite = int(of_all.argmax())
        log_probs.append(float(of_all[token_id]))
        favourites.append(favourite)
        favourite_probs.append(math.exp(of_all[favourite]))
        unread, state = (token_id,), forward.state
    return Answer(len(prompt_ids), token_ids, tuple(log_probs), tuple(favourites), tuple(favourite_probs))
