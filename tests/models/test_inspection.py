"""The insides of a forward pass, against transformers itself, float64 arithmetic by hand, and models cut short."""

import copy

import numpy as np
import pytest
import torch
from tokenizers import Tokenizer, models
from transformers import CONFIG_MAPPING, AutoModelForCausalLM, Gemma3ForCausalLM

from inference.distributions import entropy_bits, largest, softmax
from inference.errors import UserError
from inference.forward_pass import MAX_TOKENS, ForwardPass, Reading, read_logits
from inference.models.hf import HfModel
from inference.models.inspection import inspect
from tests.conftest import PROMPT

LAYERS, HEADS, HIDDEN = 18, 4, 640
EXACT = 1e-6
"""What rounding may do to a float32 in [-1, 1]. Largest differences seen: 0 for attention, 1.1e-7 for cosines, 2.1e-7 for sums."""
SAME = 1e-5
"""Between logits of about 30 computed the same way by two models. They were identical."""
LOGITS = 1e-4
"""Between those computed in another order: fused attention or not, one row of a product or several. Seen: 2.1e-5 and 7.6e-6."""
PROBABILITY = 1e-5
"""Between a float32 network and the same reading by hand in float64: 3.2e-6 at most over the 18 layers, and 1.3e-5 bit of entropy."""

WINDOW = 4
TOKENS = (0, 7, 40, 41, 60, 7, 9, 3, 3, 50, 12, 13)
LAST = len(TOKENS) - 1


@pytest.fixture(scope="module")
def seen(model) -> ForwardPass:
    """The example's prompt, read by the real model."""
    return inspect(model, model.vocabulary.encode(PROMPT))


@pytest.fixture(scope="module")
def eager(model_folder) -> Gemma3ForCausalLM:
    """A model of its own, as transformers loads it to look at attention."""
    return Gemma3ForCausalLM.from_pretrained(model_folder, attn_implementation="eager").eval()


@pytest.fixture(scope="module")
def expected(model, eager):
    """What transformers says of the same prompt, logits at each of its positions."""
    with torch.inference_mode():
        return eager(torch.tensor([model.vocabulary.encode(PROMPT)]), use_cache=False, output_hidden_states=True, output_attentions=True)


def tiny(kind: str, **settings) -> HfModel:
    shape = {
        "vocab_size": 64,
        "hidden_size": 32,
        "intermediate_size": 48,
        "num_hidden_layers": 3,
        "num_attention_heads": 4,
        "num_key_value_heads": 2,
        "max_position_embeddings": 128,
        "bos_token_id": 0,
        "eos_token_id": 1,
        "pad_token_id": 1,
        "initializer_range": 0.3,
    }
    if kind in ("gemma2", "gemma3_text"):
        types = ["sliding_attention", "full_attention", "sliding_attention"]
        shape |= {"head_dim": 8, "query_pre_attn_scalar": 8, "sliding_window": WINDOW, "layer_types": types}
    torch.manual_seed(0)
    model = AutoModelForCausalLM.from_config(CONFIG_MAPPING[kind](**shape | settings), dtype=torch.float32)
    return HfModel(model, Tokenizer(models.WordLevel({"a": 0}, unk_token="a")), kind, "")


def assert_same_reading(reading: Reading, other: Reading, abs: float = PROBABILITY) -> None:
    assert reading.top_ids == other.top_ids
    assert reading.top_probs == pytest.approx(other.top_probs, abs=abs)
    assert reading.entropy_bits == pytest.approx(other.entropy_bits, abs=10 * abs)
    assert reading.favourite_prob == pytest.approx(other.favourite_prob, abs=abs)
    assert reading.favourite_rank == pytest.approx(other.favourite_rank, rel=1e-3)  # thousands of tokens have nearly the same logit


# The real model


def test_the_pass_has_the_shape_of_the_network(model, seen):
    n = len(seen.token_ids)
    assert seen.token_ids == model.vocabulary.encode(PROMPT) and seen.position == n - 1
    assert seen.attentions.shape == (LAYERS, HEADS, n, n) and seen.attentions.dtype == np.float32
    assert len(seen.lens) == LAYERS + 1 and len(seen.neighbours) == len(seen.embedding_norms) == n
    assert seen.logits.shape == (model.vocabulary.size,) and seen.logits.dtype == np.float32
    assert [layer for layer, kind in enumerate(seen.layer_types, 1) if kind == "full"] == [6, 12, 18]
    assert set(seen.layer_types) == {"sliding", "full"} and seen.window == 512
    assert not any(array.flags.writeable for array in (seen.embedding_norms, seen.attentions, seen.logits))


def test_the_last_reading_is_what_the_model_answers(model, seen, eager):
    with torch.inference_mode():
        theirs = eager(torch.tensor([seen.token_ids]), use_cache=False, logits_to_keep=1).logits[0, 0].numpy()
    assert np.abs(seen.logits - theirs).max() < SAME
    assert np.abs(seen.logits - model.prefill(seen.token_ids).scores.logits).max() < LOGITS
    probs = softmax(seen.logits)
    last = seen.lens[-1]
    assert last.top_ids == tuple(largest(seen.logits, 5)) and last.top_probs == tuple(probs[list(last.top_ids)])
    assert last.entropy_bits == entropy_bits(probs)
    assert (last.favourite_rank, last.favourite_prob, last.top_ids[0]) == (1, probs.max(), seen.favourite_id)


@pytest.mark.parametrize("position", range(6))
def test_the_lens_is_held_where_it_is_asked(model, expected, position):
    held, from_the_end = (inspect(model, model.vocabulary.encode(PROMPT), index) for index in (position, position - 6))
    assert held.position == from_the_end.position == position
    assert np.abs(held.logits - expected.logits[0, position].numpy()).max() < LOGITS
    assert held.lens == from_the_end.lens


@pytest.mark.parametrize("layer", [0, 1, 9, 17])
def test_a_layer_is_read_with_the_last_norm_and_the_output_matrix(model, seen, expected, layer):
    """By hand, in float64: h / √(mean h² + ε) · (1 + w), then a product with each row of the table."""
    state = expected.hidden_states[layer][0, -1].numpy().astype(np.float64)
    network = model.model.model
    normed = state / np.sqrt(np.mean(state**2) + network.config.rms_norm_eps) * (1 + network.norm.weight.detach().double().numpy())
    logits = model.model.lm_head.weight.detach().double().numpy() @ normed
    assert_same_reading(seen.lens[layer], read_logits(logits, seen.favourite_id, 5))


def test_the_embedding_is_what_enters_the_first_layer(model, seen):
    """Gemma multiplies the rows of its table by √hidden_size."""
    rows = model.model.lm_head.weight.detach()[list(seen.token_ids)].double().numpy()
    assert seen.embedding_norms == pytest.approx(np.linalg.norm(rows, axis=1) * np.sqrt(HIDDEN), rel=1e-6)


def test_attention_is_transformers_own(seen, expected):
    theirs = torch.stack(expected.attentions)[:, 0].numpy()
    assert np.abs(seen.attentions - theirs).max() < EXACT


def test_a_token_shares_out_the_whole_of_its_attention_and_none_of_it_ahead(seen):
    assert np.abs(seen.attentions.sum(axis=-1, dtype=np.float64) - 1).max() < EXACT
    assert (seen.attentions >= 0).all()
    assert not np.triu(seen.attentions, k=1).any()


def test_neighbours_are_the_largest_cosines_of_the_table(model, seen):
    table = model.model.get_input_embeddings().weight.detach().double().numpy()
    norms = np.linalg.norm(table, axis=1)
    for index in (1, 5):
        token_id = seen.token_ids[index]
        cosines = table @ table[token_id] / (norms * norms[token_id])
        cosines[token_id] = -np.inf
        assert seen.neighbours[index].ids == tuple(largest(cosines, 6))
        assert seen.neighbours[index].cosines == pytest.approx(cosines[list(seen.neighbours[index].ids)], abs=EXACT)


def test_the_model_is_left_as_it_was(model):
    prompt_ids = model.vocabulary.encode(PROMPT)
    implementation = model.model.config._attn_implementation
    before = model.prefill(prompt_ids).scores.logits
    inspect(model, prompt_ids)
    assert model.model.config._attn_implementation == implementation == "sdpa"
    assert np.array_equal(model.prefill(prompt_ids).scores.logits, before)


# Other networks, tiny and random


@pytest.mark.parametrize(
    ("kind", "settings"),
    [
        ("llama", {}),
        ("qwen3", {"head_dim": 8}),
        ("gpt2", {}),
        ("gpt_neox", {}),
        ("gemma3_text", {"tie_word_embeddings": False}),
        ("gemma2", {"final_logit_softcapping": 2.0}),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
def test_reading_a_layer_is_cutting_the_network_after_it(kind, settings):
    whole = tiny(kind, **settings)
    seen = inspect(whole, TOKENS)
    for layer in range(len(seen.lens)):
        cut = copy.deepcopy(whole.model)
        decoder = cut.get_decoder()
        name = "h" if kind == "gpt2" else "layers"
        setattr(decoder, name, getattr(decoder, name)[:layer])
        cut.config.num_hidden_layers = layer
        with torch.inference_mode():
            logits = cut(torch.tensor([TOKENS]), use_cache=False).logits[0, -1].numpy()
        assert_same_reading(seen.lens[layer], read_logits(logits, seen.favourite_id, 5))


def test_a_sliding_layer_attends_no_further_than_its_window():
    seen = inspect(tiny("gemma3_text"), TOKENS)
    assert (seen.layer_types, seen.window) == (("sliding", "full", "sliding"), WINDOW)
    distance = np.subtract.outer(np.arange(len(TOKENS)), np.arange(len(TOKENS)))
    for kind, attention in zip(seen.layer_types, seen.attentions):
        reached = (distance >= 0) & ((distance < WINDOW) | (kind == "full"))
        assert ((attention > 0) == reached).all()


@pytest.mark.parametrize(
    ("kind", "settings", "expected"),
    [("llama", {}, ("full", None)), ("mistral", {"sliding_window": WINDOW}, ("sliding", WINDOW)), ("gpt2", {}, ("full", None))],
)
def test_an_architecture_that_names_no_layer_types_has_them_all_the_same(kind, settings, expected):
    seen = inspect(tiny(kind, **settings), TOKENS)
    assert (set(seen.layer_types), seen.window) == ({expected[0]}, expected[1])
    assert np.tril(seen.attentions, k=-WINDOW).any() == (expected[0] == "full")


def test_bfloat16_is_read_too():
    model = tiny("gemma3_text")
    model.model.bfloat16()
    seen = inspect(model, TOKENS)
    assert {array.dtype for array in (seen.embedding_norms, seen.attentions, seen.logits)} == {np.dtype(np.float32)}
    assert np.abs(seen.attentions.sum(axis=-1) - 1).max() < 2e-2
    assert seen.lens[-1].favourite_rank == 1


def test_a_row_of_zeros_is_near_to_nothing():
    model = tiny("llama")
    with torch.no_grad():
        model.model.get_input_embeddings().weight[5] = 0
    neighbours = inspect(model, (7, 5), neighbours=3).neighbours
    assert 5 not in neighbours[0].ids and neighbours[1].cosines == (0, 0, 0)


# Refusals


def test_an_error_leaves_the_model_as_it_was(monkeypatch):
    model = tiny("llama")

    def fail(*_, **__):
        assert model.model.config._attn_implementation == "eager"
        raise MemoryError

    monkeypatch.setattr(model.model.model.norm, "forward", fail)
    with pytest.raises(MemoryError):
        inspect(model, TOKENS)
    assert model.model.config._attn_implementation == "sdpa"


def test_a_long_text_is_refused_before_it_is_read(monkeypatch):
    model = tiny("llama")
    assert len(inspect(model, [5] * MAX_TOKENS).token_ids) == MAX_TOKENS
    monkeypatch.setattr(model.model, "forward", lambda *_, **__: pytest.fail("it is read all the same"))
    with pytest.raises(UserError, match=r"sur 64 tokens au plus, et ce texte en compte 65\. Raccourcissez-le\."):
        inspect(model, [5] * (MAX_TOKENS + 1))
    with pytest.raises(UserError, match="aucun token"):
        inspect(model, [])
    for outside in (LAST + 1, -len(TOKENS) - 1):
        with pytest.raises(IndexError):
            inspect(model, TOKENS, position=outside)


def attention_stays_fused(model):
    model.model.set_attn_implementation = lambda _: None


def no_last_norm_is_found(model):
    model.model.get_decoder = torch.nn.Identity


def as_it_is(_):
    pass


@pytest.mark.parametrize(
    ("kind", "settings", "spoil"),
    [
        ("llama", {}, attention_stays_fused),
        ("llama", {}, no_last_norm_is_found),
        ("granite", {"logits_scaling": 8.0}, as_it_is),
    ],
)
def test_a_network_that_cannot_be_read_is_refused_in_french(kind, settings, spoil):
    model = tiny(kind, **settings)
    spoil(model)
    with pytest.raises(UserError, match=f"Les couches du modèle « {kind} » ne se laissent pas lire une à une"):
        inspect(model, TOKENS)


# The record


def test_a_reading_is_a_summary_of_the_logits():
    reading = read_logits(np.log([0.125, 0.5, 0.25, 0.125]), favourite_id=3, top=2)
    assert reading.top_ids == (1, 2) and reading.top_probs == pytest.approx((0.5, 0.25))
    assert reading.entropy_bits == pytest.approx(1.75)
    assert (reading.favourite_rank, reading.favourite_prob) == (3, pytest.approx(0.125))
