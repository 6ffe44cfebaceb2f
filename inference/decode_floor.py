"""How near the floor of this machine's memory the model decodes, measured."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass

from inference.measurement import Progress, Spread, Work, timed
from inference.memory_floor import floor_s, mbu
from inference.models.base import Model
from inference.passages import prompt_of
from inference.prefix_cache import PrefixCache

ROUNDS = 25
PROMPT_TOKENS = 16


@dataclass(frozen=True)
class DecodeFloor:
    """A decode step against a reading of memory, taken in turn so that the machine's drift hits them alike.

    read           of a block of `read_bytes`.
    decode         of one token after a short prompt, so that the key-value cache weighs nothing.
    weights_bytes  what a decode reads.
    """

    read_bytes: int
    read: Spread
    weights_bytes: int
    decode: Spread
    reads_s: tuple[float, ...]
    decodes_s: tuple[float, ...]

    @property
    def bandwidth_bytes_per_s(self) -> float:
        """Of the fastest reading: what the machine can do, not what it did while something else was running."""
        return self.read_bytes / self.read.low_s

    @property
    def floor_s(self) -> float:
        return floor_s(self.weights_bytes, self.bandwidth_bytes_per_s)

    @property
    def ratio(self) -> float:
        """Measured over floor: 1 is the floor itself."""
        return self.decode.median_s / self.floor_s

    @property
    def mbu(self) -> float:
        """Model bandwidth utilization: 1 at the floor."""
        return mbu(self.weights_bytes, self.decode.median_s, self.bandwidth_bytes_per_s)


def measure(scorer: PrefixCache, open_block: Callable[[], Callable[[], int]], rounds: int = ROUNDS) -> Work[DecodeFloor]:
    """`open_block` makes the function that reads a block of memory and says how many bytes it read."""
    name = scorer.info.dtype
    read_bytes, reads_s, decodes_s = yield from time_in_turn(scorer, {name: scorer.model}, open_block, rounds)
    return DecodeFloor(
        read_bytes,
        Spread.of(reads_s),
        scorer.info.weights_bytes,
        Spread.of(decodes_s[name]),
        tuple(reads_s),
        tuple(decodes_s[name]),
    )


def time_in_turn(
    scorer: PrefixCache, models: Mapping[str, Model], open_block: Callable[[], Callable[[], int]], rounds: int
) -> Work[tuple[int, list[float], dict[str, list[float]]]]:
    """Bytes of the block, seconds of each of its readings, and of each decode by name: in each round one reading, then one decode of
    every model, with everybody else kept out of the scorer's."""
    yield Progress(0.0, "prépare le bloc de mémoire à lire")
    read = open_block()
    *prompt, next_id = prompt_of(PROMPT_TOKENS + 1, scorer.vocabulary.encode)
    with scorer.model_alone():
        states = {name: model.prefill(prompt).state for name, model in models.items()}
        for name, model in models.items():
            model.decode(next_id, states[name])  # the first pass after a rest is slower
    reads_s, decodes_s = [], {name: [] for name in models}
    for position in range(rounds):
        yield Progress(position / rounds, f"lecture et décodage, {position + 1} sur {rounds}")
        with scorer.model_alone():
            read_s, read_bytes = timed(read)
            reads_s.append(read_s)
            for name, model in models.items():
                decodes_s[name].append(timed(lambda name=name, model=model: model.decode(next_id, states[name]))[0])
    return read_bytes, reads_s, decodes_s
