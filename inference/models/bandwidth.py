"""How fast this machine reads memory, by reading some."""

from collections.abc import Callable

import torch

BLOCK_BYTES = 256 * 2**20
"""Far more than any cache holds, so that each reading comes from memory."""


def open_block() -> Callable[[], int]:
    """A function that reads a block of memory once, by summing it on all of torch's threads, and returns how many bytes it read."""
    block = torch.ones(BLOCK_BYTES // 4)

    def read() -> int:
        block.sum()
        return block.nbytes

    return read
