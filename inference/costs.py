"""What text costs at so much per million tokens: a request, a conversation read again at each turn, a price that falls.

Counts are of tokens, prices in dollars per million tokens, costs in dollars, times in seconds. Nothing is measured here.
"""

import json
import math
from dataclasses import dataclass
from pathlib import Path

from inference.memory_floor import Source

BATCH_SHARE = 0.5
"""Of the price, for whoever lets a day pass before the answer: the Batch APIs of OpenAI and Anthropic, both 2024."""
COUNTED = 1000
"""Requests, or conversations, that figures shown are for: one alone costs too little to be read."""


@dataclass(frozen=True)
class Prices:
    """What a provider asks for a million tokens.

    input         read, and neither found in its cache nor written there.
    cache_write   read and put in its cache; many ask no more than for `input`.
    cached_input  found in its cache, where an earlier request has put them.
    output        written.

    Raises ValueError for a price that is negative or not finite.
    """

    input: float
    cache_write: float
    cached_input: float
    output: float

    def __post_init__(self):
        for name, price in vars(self).items():
            if isinstance(price, bool) or not isinstance(price, (int, float)) or not 0 <= price < math.inf:
                raise ValueError(f"{name} is a price, not {price!r}")


@dataclass(frozen=True)
class PriceExample:
    """What somebody asked one day: never what they ask now.

    key   for addresses: ASCII letters and digits.
    date  of the source, in French.
    """

    key: str
    name: str
    date: str
    prices: Prices
    source: Source


@dataclass(frozen=True)
class Fall:
    """What an equal quality cost, before and after, per million tokens."""

    before: float
    after: float
    years: float
    source: Source

    @property
    def factor(self) -> float:
        return self.before / self.after

    @property
    def yearly_factor(self) -> float:
        """By how much the price was divided each year, had it fallen evenly."""
        return self.factor ** (1 / self.years)


@dataclass(frozen=True)
class Turn:
    """One turn of a conversation.

    reread_tokens  of the input, those the turn before had read too: what a cache may hold.
    new_tokens     of the input, the others: the answer before this turn and the new message.
    """

    reread_tokens: int
    new_tokens: int
    output_tokens: int

    @property
    def input_tokens(self) -> int:
        return self.reread_tokens + self.new_tokens


def read_examples(path: Path) -> tuple[tuple[PriceExample, ...], Fall]:
    """What `assets/prices.json` holds. Raises ValueError when a price cannot be, or a source has no https address."""
    file = json.loads(path.read_text(encoding="utf-8"))
    examples = tuple(
        PriceExample(**{**entry, "prices": Prices(**entry["prices"]), "source": Source(**entry["source"])}) for entry in file["examples"]
    )
    return examples, Fall(**{**file["fall"], "source": Source(**file["fall"]["source"])})


def tokens_cost(tokens: int, price: float) -> float:
    return tokens * price / 1e6


def request_cost(input_tokens: int, output_tokens: int, prices: Prices) -> float:
    """Of a request alone, without a cache."""
    return tokens_cost(input_tokens, prices.input) + tokens_cost(output_tokens, prices.output)


def conversation(system_tokens: int, message_tokens: int, answer_tokens: int, turns: int) -> tuple[Turn, ...]:
    """Messages all as long, answers too. Each turn reads the system prompt, what was said before, then the new message."""
    told, read = [], 0
    for turn in range(turns):
        input_tokens = system_tokens + (turn + 1) * message_tokens + turn * answer_tokens
        told.append(Turn(read, input_tokens - read, answer_tokens))
        read = input_tokens
    return tuple(told)


def conversation_input_tokens(system_tokens: int, message_tokens: int, answer_tokens: int, turns: int) -> int:
    """All the tokens such a conversation makes the model read: a sum of 1, 2, … n, hence the square of the turns."""
    return system_tokens * turns + message_tokens * turns * (turns + 1) // 2 + answer_tokens * turns * (turns - 1) // 2


def turn_cost(turn: Turn, prices: Prices, is_cached: bool) -> float:
    """With a cache, what was read before costs `cached_input`, and what is new is written there for `cache_write`."""
    if not is_cached:
        return request_cost(turn.input_tokens, turn.output_tokens, prices)
    read = tokens_cost(turn.reread_tokens, prices.cached_input) + tokens_cost(turn.new_tokens, prices.cache_write)
    return read + tokens_cost(turn.output_tokens, prices.output)


def seen_at_s(tokens: int, ttft_s: float, itl_s: float, is_streamed: bool) -> list[float]:
    """When each token of an answer is seen: as soon as it is written when streamed, all with the last one otherwise.

    ttft_s  from the question to the first token; itl_s from each token to the next.
    """
    written = [ttft_s + position * itl_s for position in range(tokens)]
    return written if is_streamed else written[-1:] * tokens
