"""The floor of a decode step: it reads the weights once from memory, so it cannot take less than their bytes over the bandwidth.

The key-value cache, read as well, is left out: it is small beside the weights while the text is short. The weights are supposed to fit
in that memory. Source: kipply 2022, « Transformer Inference Arithmetic », sections « latency calculations » and « batch sizes ».

Parameters are counted as numbers, sizes in bytes, bandwidths in bytes/s, times in seconds. Whatever has to be positive and is not
raises ValueError.
"""

import json
import math
from dataclasses import dataclass
from pathlib import Path


@dataclass(frozen=True)
class Source:
    """Where a figure comes from: a French label and an https address. Raises ValueError when either is missing."""

    label: str
    url: str

    def __post_init__(self):
        if not self.label or not self.url.startswith("https://"):
            raise ValueError(f"a source has a label and an https address, not {self.label!r} and {self.url!r}")


@dataclass(frozen=True)
class Hardware:
    """What a machine can do at best, as its maker states it.

    flops_per_s      dense matrix products, without structured sparsity; None when the maker publishes none.
    flops_precision  the number format it is quoted for, None with it.
    """

    name: str
    bandwidth_bytes_per_s: float
    flops_per_s: float | None
    flops_precision: str | None
    source: Source

    def __post_init__(self):
        _require_positive(bandwidth_bytes_per_s=self.bandwidth_bytes_per_s)
        if self.flops_per_s is not None:
            _require_positive(flops_per_s=self.flops_per_s)
        if (self.flops_per_s is None) != (not self.flops_precision):
            raise ValueError(f"{self.name}: FLOP/s and the precision they are quoted for go together")


@dataclass(frozen=True)
class ModelSize:
    """How many parameters a model has, and how many of them one token goes through: all of them unless it is a mixture of experts."""

    name: str
    parameters: float
    active_parameters: float
    source: Source

    def __post_init__(self):
        _require_positive(parameters=self.parameters, active_parameters=self.active_parameters)
        if self.active_parameters > self.parameters:
            raise ValueError(f"{self.name} has more active parameters than parameters")

    @property
    def active_share(self) -> float:
        return self.active_parameters / self.parameters


@dataclass(frozen=True)
class Published:
    """The same division, done by somebody else.

    floor_s  the time they print, rounded as they round it.
    says     what the source says, in our own French words.
    """

    name: str
    parameters: float
    bits: float
    bandwidth_bytes_per_s: float
    floor_s: float
    says: str
    source: Source

    def __post_init__(self):
        _require_positive(
            parameters=self.parameters, bits=self.bits, bandwidth_bytes_per_s=self.bandwidth_bytes_per_s, floor_s=self.floor_s
        )


@dataclass(frozen=True)
class Presets:
    """What `assets/hardware.json` holds, in the order of the file."""

    hardware: tuple[Hardware, ...]
    models: tuple[ModelSize, ...]
    published: tuple[Published, ...]


def read_presets(path: Path) -> Presets:
    """Raises ValueError when a number is not positive, or a source not at an https address."""
    kinds = {"hardware": Hardware, "models": ModelSize, "published": Published}
    file = json.loads(path.read_text(encoding="utf-8"))
    sections = {
        section: tuple(kind(**{**entry, "source": Source(**entry["source"])}) for entry in file[section]) for section, kind in kinds.items()
    }
    return Presets(**sections)


def weights_read_bytes(parameters: float, bits: float, active_share: float = 1.0) -> float:
    """Bytes of weights one decode step reads, at batch size 1.

    bits          per parameter, scales of a quantized format included: 16, 8, 4.5…
    active_share  in (0, 1]: what one token goes through in a mixture of experts. A batch reads more, as its tokens go to different
                  experts; a large one reads everything.
    """
    _require_positive(parameters=parameters, bits=bits, active_share=active_share)
    if active_share > 1:
        raise ValueError(f"active_share is at most 1, not {active_share!r}")
    return parameters * active_share * bits / 8


def floor_s(bytes_read: float, bandwidth_bytes_per_s: float) -> float:
    """The least time a step that reads `bytes_read` can take."""
    _require_positive(bytes_read=bytes_read, bandwidth_bytes_per_s=bandwidth_bytes_per_s)
    return bytes_read / bandwidth_bytes_per_s


def achieved_bytes_per_s(bytes_read: float, step_s: float) -> float:
    """The bandwidth a measured step made use of."""
    _require_positive(bytes_read=bytes_read, step_s=step_s)
    return bytes_read / step_s


def mbu(bytes_read: float, step_s: float, bandwidth_bytes_per_s: float) -> float:
    """Model bandwidth utilization: achieved over peak bandwidth, so floor over measured time. 1 is the floor itself.

    Source: Databricks 2023, « LLM Inference Performance Engineering: Best Practices ».
    """
    _require_positive(bandwidth_bytes_per_s=bandwidth_bytes_per_s)
    return achieved_bytes_per_s(bytes_read, step_s) / bandwidth_bytes_per_s


def critical_batch_size(bytes_read: float, active_parameters: float, hardware: Hardware) -> float | None:
    """The batch size from which computing takes longer than reading; None when the hardware's peak FLOP/s is not known.

    A token costs 2 FLOP per active parameter, a multiplication and an addition, done at the precision the peak is quoted for, whatever
    the weights are stored in. The batch reads `bytes_read` once for all its tokens: in a mixture of experts, all the weights rather
    than what one token needs, for a batch of that size.
    """
    _require_positive(bytes_read=bytes_read, active_parameters=active_parameters)
    if hardware.flops_per_s is None:
        return None
    token_s = 2 * active_parameters / hardware.flops_per_s
    return floor_s(bytes_read, hardware.bandwidth_bytes_per_s) / token_s


def _require_positive(**values: float) -> None:
    for name, value in values.items():
        if isinstance(value, bool) or not isinstance(value, (int, float)) or not 0 < value < math.inf:
            raise ValueError(f"{name} is a positive number, not {value!r}")
