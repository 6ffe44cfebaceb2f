"""How near the floor of this machine's memory the model decodes, measured."""

from collections.abc import Callable
from dataclasses import dataclass

from inference.measurement import Progress, Spread, Work, timed
from inference.memory_floor import floor_s, mbu
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
    prompt = prompt_of(PROMPT_TOKENS, scorer.vocabulary.encode)
    yield Progress(0.0, "prépare le bloc de mémoire à lire")
    read = open_block()
    with scorer.model_alone() as model:
        state = model.prefill(prompt).state
        model.decode(prompt[-1], state)  # the first pass after a rest is slower
    reads_s, decodes_s = [], []
    for position in range(rounds):
        yield Progress(position / rounds, f"lecture et décodage, {position + 1} sur {rounds}")
        with scorer.model_alone() as model:
            read_s, read_bytes = timed(read)
            decode_s, _ = timed(lambda model=model: model.decode(prompt[-1], state))
        reads_s.append(read_s)
        decodes_s.append(decode_s)
    return DecodeFloor(read_bytes, Spread.of(reads_s), scorer.info.weights_bytes, Spread.of(decodes_s), tuple(reads_s), tuple(decodes_s))
