"""The models: one protocol, and what implements it. Only this package imports torch or transformers, and only when asked."""

import os

from inference.errors import UserError
from inference.models.base import Model
from inference.models.conversion import Report

os.environ.setdefault("GOMP_SPINCOUNT", "10000")
"""How long torch's threads turn idle before they sleep, when they wait for each other; read when its OpenMP (GNU's) is loaded. By itself
it is thirty times longer: where the server and a browser want the same cores, a decode then takes two to ten times as long. Shorter still,
and a decode loses a tenth on a machine that does nothing else (see `benchmarks/sharing.py`)."""


def open_model(report: Report) -> Model:
    """The model chosen by whoever starts the app, through environment variables; the embedded one by default.

    INFERENCE_MODEL     a local folder, a `.gguf` file or a hub id.
    INFERENCE_REVISION  a branch, tag or commit of a hub id.
    INFERENCE_DTYPE     "float32" (default) or "bfloat16".

    A visitor never reaches these. Raises `UserError`.
    """
    dtype = os.environ.get("INFERENCE_DTYPE") or "float32"
    if dtype not in ("float32", "bfloat16"):
        raise UserError(f"INFERENCE_DTYPE vaut « {dtype} » : choisissez float32 ou bfloat16, puis redémarrez.")
    name = os.environ.get("INFERENCE_MODEL")
    if not name:
        from inference.models import embedded

        return embedded.load(report, dtype=dtype)
    report("load", 0.0)
    from inference.models.hf import load_pretrained

    return load_pretrained(name, os.environ.get("INFERENCE_REVISION"), dtype)
