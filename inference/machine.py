"""What a measurement was made on, in one line."""

import os
import platform
from importlib.metadata import version
from pathlib import Path

PACKAGES = ("torch", "transformers")


def describe_machine() -> str:
    """« Intel(R) Xeon(R), 2 cœurs, torch 2.13.0, transformers 5.24.0 »: the processor, the cores this process may use and what computes."""
    cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    packages = [f"{name} {version(name)}" for name in PACKAGES]
    return ", ".join([_processor(), f"{cores} cœur{'s' if cores > 1 else ''}", *packages])


def _processor() -> str:
    try:
        lines = Path("/proc/cpuinfo").read_text(encoding="utf-8").splitlines()
    except OSError:
        lines = []
    names = [line.split(":", 1)[1].strip() for line in lines if line.startswith("model name")]
    return names[0] if names else platform.processor() or platform.machine()


def has_bfloat16() -> bool | None:
    """Whether the processor multiplies bfloat16 numbers by itself; None when the system does not say."""
    try:
        flags = Path("/proc/cpuinfo").read_text(encoding="utf-8").split()
    except OSError:
        return None
    return any(flag in flags for flag in ("avx512_bf16", "amx_bf16", "bf16"))
