"""Any causal model of transformers: loading it safely from a folder, and the states it hands out. Tiny random models, and the real one."""

import json
import os
import shutil
import socket
import subprocess
import sys

import huggingface_hub.constants
import numpy as np
import pytest
import torch
from tokenizers import Tokenizer, decoders, models, normalizers, pre_tokenizers, processors
from transformers import Gemma3ForCausalLM, Gemma3TextConfig, LlamaConfig, LlamaForCausalLM, PreTrainedTokenizerFast

import inference.models
from inference.errors import UserError
from inference.generation import generate
from inference.models import embedded, hf, open_model
from inference.models.hf import HfModel, load_pretrained
from inference.prefix_cache import PrefixCache
from inference.records import SamplingParams, Stop, StopRules
from tests.conftest import PROMPT, ROOT

TEXT = "Le chat dort, été 😀"
CONTEXT_LENGTH = 64
SPARE_ROWS = 7
WINDOW = 8


def assert_close(logits: np.ndarray, expected: np.ndarray) -> None:
    """Rounding is all that may tell two ways of reading the same tokens apart: here, a ten-thousandth of the largest logit."""
    assert np.abs(logits - expected).max() < 1e-4 * np.abs(expected).max()


def byte_level_tokenizer() -> Tokenizer:
    letters = sorted(pre_tokenizers.ByteLevel.alphabet())
    vocab = {piece: token_id for token_id, piece in enumerate(["<s>", "</s>", *letters, "Ġc", "ha", "Ġcha", "Ġchat", "Le"])}
    merges = [("Ġ", "c"), ("h", "a"), ("Ġc", "ha"), ("Ġcha", "t"), ("L", "e")]
    tokenizer = Tokenizer(models.BPE(vocab=vocab, merges=merges))
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    tokenizer.decoder = decoders.ByteLevel()
    return with_special_tokens(tokenizer)


def sentencepiece_tokenizer() -> Tokenizer:
    """Spaces as « ▁ », and bytes for the characters it does not know."""
    pieces = ["<s>", "</s>", "<unk>", *(f"<0x{byte:02X}>" for byte in range(256)), *"▁Lechatdorsu,", "▁c", "ha", "▁cha", "▁chat", "Le"]
    vocab = {piece: token_id for token_id, piece in enumerate(dict.fromkeys(pieces))}
    merges = [("▁", "c"), ("h", "a"), ("▁c", "ha"), ("▁cha", "t"), ("L", "e")]
    tokenizer = Tokenizer(models.BPE(vocab=vocab, merges=merges, byte_fallback=True, unk_token="<unk>"))
    tokenizer.normalizer = normalizers.Replace(" ", "▁")
    tokenizer.decoder = decoders.Sequence([decoders.Replace("▁", " "), decoders.ByteFallback(), decoders.Fuse()])
    return with_special_tokens(tokenizer)


def with_special_tokens(tokenizer: Tokenizer) -> Tokenizer:
    tokenizer.add_special_tokens(["<s>", "</s>"])
    tokenizer.post_processor = processors.TemplateProcessing(single="<s> $A", special_tokens=[("<s>", 0)])
    return tokenizer


def tiny_model(kind: str, vocab_size: int):
    shape = {
        "vocab_size": vocab_size,
        "hidden_size": 32,
        "intermediate_size": 48,
        "num_hidden_layers": 2,
        "num_attention_heads": 4,
        "num_key_value_heads": 2,
        "max_position_embeddings": CONTEXT_LENGTH,
        "bos_token_id": 0,
        "eos_token_id": 1,
        "pad_token_id": 1,
        "initializer_range": 0.5,
    }
    torch.manual_seed(0)
    if kind == "llama":
        return LlamaForCausalLM(LlamaConfig(**shape))
    layers = ["sliding_attention", "full_attention"]
    return Gemma3ForCausalLM(
        Gemma3TextConfig(**shape, head_dim=8, query_pre_attn_scalar=8, sliding_window=WINDOW, layer_types=layers, tie_word_embeddings=False)
    )


def save_model(folder, tokenizer: Tokenizer, kind: str = "llama"):
    tiny_model(kind, tokenizer.get_vocab_size() + SPARE_ROWS).save_pretrained(folder)
    PreTrainedTokenizerFast(tokenizer_object=tokenizer, bos_token="<s>", eos_token="</s>").save_pretrained(folder)
    return folder


@pytest.fixture(scope="module")
def saved(tmp_path_factory):
    """A saved Llama, never written to."""
    return save_model(tmp_path_factory.mktemp("llama"), byte_level_tokenizer())


@pytest.fixture
def folder(saved, tmp_path):
    """A copy of it, to spoil."""
    return shutil.copytree(saved, tmp_path / "model")


@pytest.fixture(autouse=True)
def offline(monkeypatch):
    """No hub; and an error that is not ours, should anything try to reach one."""

    def refuse(*_):
        raise AssertionError("the network was used")

    monkeypatch.setattr(huggingface_hub.constants, "HF_HUB_OFFLINE", True)
    monkeypatch.setattr(socket.socket, "connect", refuse)


def edit_config(folder, **values) -> None:
    path = folder / "config.json"
    path.write_text(json.dumps(json.loads(path.read_text()) | values))


# Loading


@pytest.mark.parametrize("kind", ["llama", "gemma3"])
@pytest.mark.parametrize("tokenizer", [byte_level_tokenizer(), sentencepiece_tokenizer()], ids=["byte-level", "sentencepiece"])
def test_a_saved_model_loads_and_writes_what_transformers_writes(tmp_path, tokenizer, kind):
    model = load_pretrained(str(save_model(tmp_path, tokenizer, kind)), None, "float32")
    prompt_ids = model.vocabulary.encode(TEXT)
    steps = list(generate(PrefixCache(model), prompt_ids, SamplingParams(temperature=0), StopRules(max_new_tokens=12)))
    expected = model.model.generate(torch.tensor([prompt_ids]), do_sample=False, max_new_tokens=12)[0, len(prompt_ids) :]
    assert [trace.choice.token_id for trace, _ in steps] == expected.tolist()
    assert steps[-1][1] in (Stop("max_new_tokens"), Stop("end_token"))


@pytest.mark.parametrize("tokenizer", [byte_level_tokenizer(), sentencepiece_tokenizer()], ids=["byte-level", "sentencepiece"])
def test_its_tokenizer_reads_prompts_and_gives_them_back(tmp_path, tokenizer):
    vocabulary = load_pretrained(str(save_model(tmp_path, tokenizer)), None, "float32").vocabulary
    ids = vocabulary.encode(TEXT)
    assert ids == tuple(tokenizer.encode(TEXT).ids)
    assert vocabulary.text(ids) == TEXT
    labels = vocabulary.labels_in_text(ids)
    assert labels[:3] == ["<s>", "Le", "␣chat"]
    assert labels[-4:] == ["⟨0xF0⟩", "⟨0x9F⟩", "⟨0x98⟩", "⟨0x80⟩ = 😀"]


def test_rows_without_a_token_have_a_label_and_no_text(saved):
    vocabulary = load_pretrained(str(saved), None, "float32").vocabulary
    known = byte_level_tokenizer().get_vocab_size()
    assert vocabulary.size == known + SPARE_ROWS
    assert [vocabulary.label(token_id) for token_id in range(known, vocabulary.size)] == [f"⟨id {known + n}⟩" for n in range(SPARE_ROWS)]
    assert vocabulary.text(range(known, vocabulary.size)) == ""


def test_a_model_says_what_it_is(saved):
    model = load_pretrained(str(saved), None, "float32")
    assert (model.info.name, model.info.dtype, model.info.context_length) == (saved.name, "float32", CONTEXT_LENGTH)
    assert model.info.eos_ids == {1}
    assert not model.info.is_illustrative
    assert model.info.weights_bytes == 4 * sum(parameter.numel() for parameter in model.model.parameters())


def test_bfloat16_halves_the_weights_and_its_logits_leave_as_float32(saved):
    model = load_pretrained(str(saved), None, "bfloat16")
    assert model.info.dtype == "bfloat16"
    assert model.info.weights_bytes == 2 * sum(parameter.numel() for parameter in model.model.parameters())
    with torch.inference_mode():
        expected = LlamaForCausalLM.from_pretrained(saved, dtype=torch.bfloat16)(torch.tensor([[0, 5, 6]])).logits[0, -1]
    logits = model.prefill((0, 5, 6)).scores.logits
    assert logits.dtype == np.float32
    assert np.array_equal(logits, expected.float().numpy())


def test_logits_are_of_the_vocabulary_and_read_only(saved):
    model = load_pretrained(str(saved), None, "float32")
    scores = model.prefill((0,)).scores
    assert scores.logits.shape == (model.vocabulary.size,)
    assert scores.is_complete
    assert not scores.logits.flags.writeable


@pytest.mark.parametrize("name", ["nulle-part", "personne/nulle-part", "./nulle/part", "a/b/c", "nulle-part.gguf", "é è"])
def test_a_name_that_leads_nowhere_is_refused_in_french(monkeypatch, tmp_path, name):
    monkeypatch.chdir(tmp_path)
    with pytest.raises(UserError, match=f"Impossible de charger le modèle « {name} ». Vérifiez INFERENCE_MODEL"):
        load_pretrained(name, None, "float32")


@pytest.mark.parametrize(
    ("file", "content"),
    [
        ("config.json", b"{"),
        ("config.json", b'{"model_type": "inconnu"}'),
        ("config.json", b'{"model_type": "t5"}'),
        ("tokenizer.json", b"{"),
        ("tokenizer.json", b"{}"),
        ("tokenizer.json", None),
        ("model.safetensors", None),
        ("model.safetensors", b""),
        ("model.safetensors", b"not safetensors at all"),
    ],
)
def test_a_spoiled_folder_is_refused_in_french(folder, file, content):
    (folder / file).unlink()
    if content is not None:
        (folder / file).write_bytes(content)
    with pytest.raises(UserError, match="Impossible de charger"):
        load_pretrained(str(folder), None, "float32")


def test_weights_cut_short_are_refused_in_french(folder):
    weights = folder / "model.safetensors"
    weights.write_bytes(weights.read_bytes()[:-1000])
    with pytest.raises(UserError, match="Impossible de charger"):
        load_pretrained(str(folder), None, "float32")


@pytest.mark.parametrize("change", [{"num_hidden_layers": 3}, {"intermediate_size": 64}], ids=["a layer is missing", "a shape differs"])
def test_weights_that_do_not_fill_the_model_are_refused_rather_than_made_up(folder, change):
    edit_config(folder, **change)
    with pytest.raises(UserError, match="Impossible de charger"):
        load_pretrained(str(folder), None, "float32")


def test_a_prompt_is_never_cut_nor_padded_by_settings_left_in_the_tokenizer(tmp_path):
    tokenizer = byte_level_tokenizer()
    whole = tuple(tokenizer.encode(TEXT).ids)
    tokenizer.enable_truncation(4)
    tokenizer.enable_padding(length=CONTEXT_LENGTH)
    vocabulary = load_pretrained(str(save_model(tmp_path, tokenizer)), None, "float32").vocabulary
    assert vocabulary.encode(TEXT) == whole


# Nothing hostile runs


class Trap:
    """Unpickling it makes a folder."""

    def __init__(self, marker):
        self.marker = marker

    def __reduce__(self):
        return os.mkdir, (str(self.marker),)


def test_pickled_weights_are_refused_and_never_opened(folder, tmp_path):
    marker = tmp_path / "unpickled"
    (folder / "model.safetensors").unlink()
    torch.save({"weight": Trap(marker)}, folder / "pytorch_model.bin")
    with pytest.raises(UserError, match="safetensors ou GGUF"):
        load_pretrained(str(folder), None, "float32")
    assert not marker.exists()
    torch.load(folder / "pytorch_model.bin", weights_only=False)
    assert marker.exists(), "the trap does not work: the test proves nothing"


@pytest.mark.parametrize("model_type", ["llama", "inconnu"])
def test_code_that_comes_with_a_model_never_runs(folder, tmp_path, model_type):
    marker = tmp_path / "executed"
    (folder / "hostile.py").write_text(f"import os\nos.mkdir({str(marker)!r})\n")
    classes = {"AutoConfig": "hostile.Config", "AutoModelForCausalLM": "hostile.Model", "AutoTokenizer": ["hostile.Slow", "hostile.Fast"]}
    edit_config(folder, auto_map=classes, model_type=model_type)
    settings = folder / "tokenizer_config.json"
    settings.write_text(json.dumps(json.loads(settings.read_text()) | {"auto_map": classes}))
    try:
        loaded = isinstance(load_pretrained(str(folder), None, "float32"), HfModel)
    except UserError:
        loaded = False
    assert loaded == (model_type == "llama")
    assert not marker.exists()


# The model chosen by whoever starts the app


@pytest.fixture
def environment(monkeypatch):
    for name in ("INFERENCE_MODEL", "INFERENCE_REVISION", "INFERENCE_DTYPE"):
        monkeypatch.delenv(name, raising=False)
    return monkeypatch


def test_the_environment_names_a_model_and_its_dtype(environment, saved):
    environment.setenv("INFERENCE_MODEL", str(saved))
    environment.setenv("INFERENCE_DTYPE", "bfloat16")
    reports = []
    model = open_model(lambda *report: reports.append(report))
    assert (model.info.name, model.info.dtype) == (saved.name, "bfloat16")
    assert reports == [("load", 0.0)]


def test_the_environment_names_a_revision(environment):
    environment.setenv("INFERENCE_MODEL", "personne/modele")
    environment.setenv("INFERENCE_REVISION", "v2")
    environment.setattr(hf, "load_pretrained", lambda *arguments: arguments)
    assert open_model(lambda *_: None) == ("personne/modele", "v2", "float32")


@pytest.mark.parametrize("dtype", ["", "float32", "bfloat16"])
def test_without_a_name_the_embedded_model_opens(environment, dtype):
    def report(step, fraction):
        raise AssertionError("nothing to report")

    environment.setenv("INFERENCE_DTYPE", dtype)
    environment.setattr(embedded, "load", lambda report, dtype: (report, dtype))
    assert open_model(report) == (report, dtype or "float32")


@pytest.mark.parametrize("dtype", ["float16", "int8", "Float32"])
def test_an_unknown_dtype_is_refused_in_french_before_anything_loads(environment, dtype):
    environment.setenv("INFERENCE_DTYPE", dtype)
    environment.setattr(embedded, "load", lambda *_, **__: pytest.fail("it loads all the same"))
    with pytest.raises(UserError, match=f"INFERENCE_DTYPE vaut « {dtype} » : choisissez float32 ou bfloat16"):
        open_model(lambda *_: None)


def test_each_dtype_that_is_offered_exists():
    assert set(hf.DTYPES) == {"float32", "bfloat16"}
    assert inference.models.open_model is open_model


# States


@pytest.fixture(scope="module", params=["llama", "gemma3"])
def reader(request) -> HfModel:
    """A model that reads; this Gemma 3 has a window of 8 tokens, which the texts below outgrow."""
    tokenizer = byte_level_tokenizer()
    return HfModel(tiny_model(request.param, tokenizer.get_vocab_size()), tokenizer, request.param, "")


TOKENS = (0, 7, 40, 41, 200, 7, 99, 3, 3, 150, 12, 13, 14, 60, 61, 7, 40, 41, 120, 5)


def tensors(state) -> list[torch.Tensor]:
    return [tensor for layer in state.payload.layers for tensor in (layer.keys, layer.values)]


@pytest.mark.parametrize("cut", [1, 5, WINDOW, 12, len(TOKENS) - 1])
def test_reading_in_two_passes_equals_reading_in_one(reader, cut):
    whole = reader.prefill(TOKENS)
    rest = reader.prefill(TOKENS[cut:], reader.prefill(TOKENS[:cut]).state)
    assert_close(rest.scores.logits, whole.scores.logits)
    assert rest.state.token_ids == whole.state.token_ids == TOKENS


def test_reading_token_by_token_equals_reading_at_once(reader):
    forward = reader.prefill(TOKENS[:1])
    for length in range(2, len(TOKENS) + 1):
        forward = reader.decode(TOKENS[length - 1], forward.state)
        assert_close(forward.scores.logits, reader.prefill(TOKENS[:length]).scores.logits)
        assert forward.state.token_ids == TOKENS[:length]


def test_the_scores_along_a_text_are_those_after_each_of_its_beginnings(reader):
    logits = reader.logits_along(TOKENS)
    assert logits.shape == (len(TOKENS), reader.vocabulary.size) and logits.dtype == np.float32
    for length, row in enumerate(logits, 1):
        assert_close(row, reader.prefill(TOKENS[:length]).scores.logits)
    for wrong in ((), [5] * (CONTEXT_LENGTH + 1)):
        with pytest.raises(UserError):
            reader.logits_along(wrong)


@pytest.mark.parametrize("length", [3, WINDOW - 1, WINDOW, 15])
def test_reading_on_leaves_the_state_as_it_was(reader, length):
    state = reader.prefill(TOKENS[:length]).state
    before = [tensor.clone() for tensor in tensors(state)]
    first = reader.decode(50, state)
    reader.prefill(TOKENS, state)
    again = reader.decode(50, state)
    assert np.array_equal(first.scores.logits, again.scores.logits)
    assert state.token_ids == TOKENS[:length]
    assert all(map(torch.equal, before, tensors(state)))


def test_two_branches_of_a_state_do_not_mix(reader):
    state = reader.prefill(TOKENS[:10]).state
    left, right = reader.decode(50, state), reader.decode(51, state)
    onward = reader.decode(52, left.state)
    assert_close(onward.scores.logits, reader.prefill((*TOKENS[:10], 50, 52)).scores.logits)
    assert_close(reader.decode(52, right.state).scores.logits, reader.prefill((*TOKENS[:10], 51, 52)).scores.logits)


@pytest.mark.parametrize("read", [5, WINDOW - 1, WINDOW, len(TOKENS)])
def test_a_truncated_state_reads_on_as_if_the_rest_had_never_been(reader, read):
    state = reader.prefill(TOKENS[:read]).state
    before = [tensor.clone() for tensor in tensors(state)]
    for length in (1, read // 2, read - 1):
        back = reader.truncate(state, length)
        if back is None:
            assert reader.info.name == "gemma3" and read >= WINDOW, "only a window that has moved on forgets"
        else:
            assert back.token_ids == TOKENS[:length]
            assert_close(reader.decode(50, back).scores.logits, reader.prefill((*TOKENS[:length], 50)).scores.logits)
    assert all(map(torch.equal, before, tensors(state)))


def test_a_state_knows_how_much_memory_it_holds(reader):
    state = reader.prefill(TOKENS[:5]).state
    assert state.nbytes == sum(tensor.numel() * tensor.element_size() for tensor in tensors(state)) > 0


def test_a_text_fills_the_context_and_goes_no_further(reader):
    full = reader.prefill([5] * CONTEXT_LENGTH)
    almost = reader.prefill([5] * (CONTEXT_LENGTH - 1))
    assert reader.decode(5, almost.state).state.token_ids == full.state.token_ids
    for too_long in (
        lambda: reader.decode(5, full.state),
        lambda: reader.prefill([5] * (CONTEXT_LENGTH + 1)),
        lambda: reader.prefill([5, 5], almost.state),
    ):
        with pytest.raises(UserError, match=f"Le texte dépasse le contexte du modèle, {CONTEXT_LENGTH} tokens. Raccourcissez-le."):
            too_long()


def test_an_empty_text_is_refused_rather_than_read(reader):
    with pytest.raises(UserError):
        reader.prefill(())


def test_the_embedded_model_reads_on_as_it_reads_at_once(model):
    prompt_ids = model.vocabulary.encode(PROMPT)
    whole = model.prefill(prompt_ids)
    start = model.prefill(prompt_ids[:3])
    before = [tensor.clone() for tensor in tensors(start.state)]
    assert_close(model.prefill(prompt_ids[3:], start.state).scores.logits, whole.scores.logits)
    forward = start
    for token_id in prompt_ids[3:]:
        forward = model.decode(token_id, forward.state)
    assert_close(forward.scores.logits, whole.scores.logits)
    assert_close(model.decode(prompt_ids[3], model.truncate(whole.state, 3)).scores.logits, model.prefill(prompt_ids[:4]).scores.logits)
    assert all(map(torch.equal, before, tensors(start.state)))


def test_verified_tokens_score_as_if_read_one_by_one(reader):
    start = reader.prefill(TOKENS[:6])
    logits, state = reader.verify(TOKENS[6:11], start.state)
    assert logits.shape == (5, reader.vocabulary.size) and state.token_ids == TOKENS[:11]
    for length, row in enumerate(logits, 7):
        assert_close(row, reader.prefill(TOKENS[:length]).scores.logits)
    assert_close(reader.decode(50, state).scores.logits, reader.prefill((*TOKENS[:11], 50)).scores.logits)


def test_threads_that_wait_for_each_other_soon_sleep():
    """Torch's own library says so when it is loaded. Spinning for long, they are several times slower where the cores are shared."""
    environment = {name: value for name, value in os.environ.items() if not name.startswith(("OMP_", "GOMP_"))}
    run = subprocess.run(
        [sys.executable, "-c", "import inference.models.hf"],
        env=environment | {"OMP_DISPLAY_ENV": "verbose"},
        capture_output=True,
        text=True,
        check=True,
        cwd=ROOT,
    )
    assert "GOMP_SPINCOUNT = '10000'" in run.stderr
