"""Reading a GGUF file: its metadata and where its tensors lie.

The `gguf` package's reader builds a million small arrays for a vocabulary of 262,144 entries and takes seventeen seconds; the format
is simple enough to walk in a third of one. Dequantizing stays that package's work.
Specification: https://github.com/ggml-org/ggml/blob/master/docs/gguf.md
"""

import mmap
import struct
from dataclasses import dataclass
from math import prod
from pathlib import Path
from typing import Any

import numpy as np
from gguf import GGML_QUANT_SIZES, GGMLQuantizationType, dequantize

_SCALARS = {0: "B", 1: "b", 2: "H", 3: "h", 4: "I", 5: "i", 6: "f", 7: "?", 10: "Q", 11: "q", 12: "d"}
_STRING, _ARRAY = 8, 9


@dataclass(frozen=True)
class GgufTensor:
    """One tensor: `shape` as torch writes it, `data` its stored bytes, (rows, bytes per row)."""

    name: str
    shape: tuple[int, ...]
    type: GGMLQuantizationType
    data: np.ndarray

    def rows(self, start: int, stop: int) -> np.ndarray:
        """Rows start to stop, dequantized, (stop - start, columns) float32; a vector is one row."""
        return dequantize(self.data[start:stop], self.type)


class GgufFile:
    """The metadata and the tensors of a file, mapped and not yet read.

    Arrays of the metadata, that is the vocabulary, are skipped. Raises ValueError or struct.error on what is no GGUF file.
    """

    def __init__(self, path: Path):
        with path.open("rb") as file:
            self._bytes = mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ)
        self._at = 4
        if self._bytes[:4] != b"GGUF" or self._scalar("I") not in (2, 3):
            raise ValueError(f"{path.name}: not a GGUF file of version 2 or 3")
        tensor_count, metadata_count = self._scalar("Q"), self._scalar("Q")
        self.metadata: dict[str, Any] = {}
        for _ in range(metadata_count):
            key = self._string()
            self.metadata[key] = self._value(self._scalar("I"))
        table = [self._tensor_entry() for _ in range(tensor_count)]
        alignment = self.metadata.get("general.alignment", 32)
        start = -(-self._at // alignment) * alignment
        self.tensors = [self._tensor(start, *entry) for entry in table]

    def _scalar(self, code: str):
        (value,) = struct.unpack_from(f"<{code}", self._bytes, self._at)
        self._at += struct.calcsize(f"<{code}")
        return value

    def _string(self) -> str:
        length = self._scalar("Q")
        self._at += length
        return self._bytes[self._at - length : self._at].decode("utf-8")

    def _value(self, kind: int):
        if kind == _STRING:
            return self._string()
        if kind != _ARRAY:
            return self._scalar(_SCALARS[kind])
        element, count = self._scalar("I"), self._scalar("Q")
        if element in _SCALARS:
            self._at += count * struct.calcsize(f"<{_SCALARS[element]}")
        else:
            for _ in range(count):
                self._string()
        return None

    def _tensor_entry(self) -> tuple[str, tuple[int, ...], int, int]:
        name = self._string()
        shape = tuple(reversed([self._scalar("Q") for _ in range(self._scalar("I"))]))
        return name, shape, self._scalar("I"), self._scalar("Q")

    def _tensor(self, start: int, name: str, shape: tuple[int, ...], type_id: int, offset: int) -> GgufTensor:
        kind = GGMLQuantizationType(type_id)
        block_size, block_bytes = GGML_QUANT_SIZES[kind]
        row_bytes = shape[-1] // block_size * block_bytes
        rows = prod(shape[:-1])
        data = np.frombuffer(self._bytes, np.uint8, rows * row_bytes, start + offset)
        return GgufTensor(name, shape, kind, data.reshape(rows, row_bytes))
