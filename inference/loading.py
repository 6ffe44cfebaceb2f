"""How long weights take from the disk to memory."""

import os
import tempfile
from collections.abc import Iterable
from pathlib import Path

from inference.measurement import Progress, Work, timed

BUFFER_BYTES = 2**24


def time_load(chunks: Iterable[bytes | memoryview], expected_bytes: int, folder: Path, doing: str) -> Work[float]:
    """Seconds to read all the bytes from a file. Raises OSError where there is no room for them.

    The file is made for that in `folder`, and removed. The system is first told to forget it, where it can be: else it would only be
    copied from memory. `expected_bytes`, about how many there are, only serves the progress.
    """
    folder.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryFile(dir=folder, buffering=0) as file:
        for chunk in chunks:
            yield Progress(min(1.0, file.tell() / max(1, expected_bytes)), doing)
            _write(file, chunk)
        os.fsync(file.fileno())
        if hasattr(os, "posix_fadvise"):
            os.posix_fadvise(file.fileno(), 0, 0, os.POSIX_FADV_DONTNEED)
        file.seek(0)
        yield Progress(1.0, doing)
        return timed(lambda: _read(file))[0]


def _write(file, chunk: bytes | memoryview) -> None:
    """All of it: an unbuffered file may take a part at a time."""
    rest = memoryview(chunk)
    while rest:
        rest = rest[file.write(rest) :]


def _read(file) -> None:
    buffer = bytearray(BUFFER_BYTES)
    while file.readinto(buffer):
        pass
