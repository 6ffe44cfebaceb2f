"""The French passages on which speed and precision are measured: written for the purpose, of several kinds, the same for everyone."""

import json
from collections.abc import Callable
from itertools import cycle, islice
from pathlib import Path

PASSAGES = Path(__file__).parents[1] / "assets" / "texts" / "passages.json"


def read_passages() -> tuple[str, ...]:
    return tuple(json.loads(PASSAGES.read_text(encoding="utf-8")))


def prompt_of(length: int, encode: Callable[[str], list[int]]) -> tuple[int, ...]:
    """A prompt of exactly `length` tokens, what starts a text included: the passages one after the other, again and again."""
    return tuple(islice(_endless(encode), length))


def _endless(encode: Callable[[str], list[int]]):
    first, *others = encode("\n".join(read_passages()))
    yield first
    yield from cycle(others)
