"""Fewer bits per weight: packed products against ordinary ones on the same values, whole networks against their weights unpacked."""

import copy
import math
import shutil

import huggingface_hub.constants
import numpy as np
import pytest
import torch
from tokenizers import Tokenizer, models
from torch import nn
from torch.nn.functional import linear
from transformers import AutoModelForCausalLM, PreTrainedTokenizerFast
from transformers.models.auto.configuration_auto import CONFIG_MAPPING

from inference.errors import UserError
from inference.models import quantization
from inference.models.hf import HfModel, load_pretrained, weights_bytes
from inference.models.quantization import Int4Linear, Int8Embedding, Int8Linear, int4_codes, int8_parameters, open_precision, quantize
from tests.conftest import PROMPT

ROUNDING = 2**-8
"""What one rounding to bfloat16, of 8 significant bits, does at most, relative to the number. 8-bit products show 0.99 of it."""
EXACT = 1e-5
"""Of the largest number of a float32 computation."""
NETWORK = 0.04
"""Of the largest logit: bfloat16 activations against float32 ones, or two orders of the same sums. Seen: 0.026, as without quantizing."""

SHAPES = [(16, 32), (96, 64), (256, 640)]
ROWS = [(1,), (2,), (3, 5), (1, 37), (128,)]
TOKENS = (0, 7, 40, 41, 60, 7, 9, 3, 3, 50, 12, 13)
OPENED = ("bfloat16", "int8", "int4")


def random(*shape: int, dtype: torch.dtype = torch.bfloat16) -> torch.Tensor:
    return torch.randn(shape, generator=torch.Generator().manual_seed(math.prod(shape))).to(dtype)


def powers_of_two(*shape: int) -> torch.Tensor:
    return 2.0 ** torch.randint(-9, -3, shape, generator=torch.Generator().manual_seed(0))


def whole_numbers(low: int, high: int, *shape: int) -> torch.Tensor:
    """Both ends included, and reached in the first two columns."""
    numbers = torch.randint(low, high + 1, shape, generator=torch.Generator().manual_seed(1))
    numbers[..., 0], numbers[..., 1] = low, high
    return numbers


def unpacked_8(weight: torch.Tensor) -> torch.Tensor:
    """What the layers and the table are worth in 8 bits, in float64."""
    codes, scale = int8_parameters(weight)
    return codes.double() * scale.double()[:, None]


def unpacked_4(weight: torch.Tensor) -> torch.Tensor:
    codes, step, low = (part.double() for part in int4_codes(weight))
    return (low[..., None] + codes.unflatten(1, (-1, 32)) * step[..., None]).flatten(1)


def assert_rounded(result: torch.Tensor, expected: torch.Tensor, relative: float = ROUNDING) -> None:
    """Each number is the expected one, rounded: sums in another order differ by `EXACT` before that."""
    assert result.dtype == torch.bfloat16 and result.shape == expected.shape
    assert ((result - expected).abs() <= relative * expected.abs() + EXACT * expected.abs().max()).all()


# 8 bits


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16], ids=["float32", "bfloat16"])
@pytest.mark.parametrize("shape", SHAPES)
def test_a_weight_in_8_bits_is_at_most_half_a_scale_away(shape, dtype):
    weight = random(*shape, dtype=dtype)
    codes, scale = int8_parameters(weight)
    assert (codes.dtype, codes.shape, scale.dtype, scale.shape) == (torch.int8, shape, dtype, shape[:1])
    steps = (unpacked_8(weight) - weight.double()).abs() / scale.double()[:, None]
    assert steps.max() <= 0.5 + EXACT


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16], ids=["float32", "bfloat16"])
@pytest.mark.parametrize("shape", SHAPES)
def test_the_largest_of_each_row_takes_the_largest_code(shape, dtype):
    weight = random(*shape, dtype=dtype)
    codes, _ = int8_parameters(weight)
    largest = weight.abs().argmax(dim=1, keepdim=True)
    assert torch.equal(codes.gather(1, largest), (127 * weight.gather(1, largest).sign()).to(torch.int8))
    assert codes.min() >= -127


def test_weights_that_8_bits_can_hold_come_back_as_they_were():
    codes, scale = whole_numbers(-127, 127, 64, 96), powers_of_two(64, 1)
    found, scales = int8_parameters((codes * scale).bfloat16())
    assert torch.equal(found, codes) and torch.equal(scales[:, None], scale)


def test_a_row_of_zeros_stays_one():
    weight = random(4, 32)
    weight[2] = 0
    codes, scale = int8_parameters(weight)
    assert not codes[2].any() and scale.isfinite().all() and (scale > 0).all()


def test_a_table_is_quantized_by_pieces_as_it_would_be_at_once(monkeypatch):
    weight = random(50, 32)
    at_once = int8_parameters(weight)
    monkeypatch.setattr(quantization, "TABLE_ROWS", 8)
    assert all(map(torch.equal, int8_parameters(weight), at_once))


def test_what_is_quantized_is_left_as_it_was_and_the_codes_are_never_trained():
    weight = nn.Parameter(random(16, 32))
    before = weight.detach().clone()
    parameters = (*int8_parameters(weight), *Int4Linear(weight).parameters())
    assert torch.equal(weight, before)
    assert not any(parameter.requires_grad for parameter in parameters)


@pytest.mark.parametrize("rows", ROWS, ids=str)
@pytest.mark.parametrize("shape", SHAPES)
def test_an_8_bit_product_is_the_product_with_the_unpacked_weights(shape, rows):
    weight, x = random(*shape), random(*rows, shape[1])
    assert_rounded(Int8Linear(*int8_parameters(weight))(x), linear(x.double(), unpacked_8(weight)))


@pytest.mark.parametrize("factor", [1.0, 25.25])
def test_a_token_s_row_is_its_codes_times_its_scale_times_the_factor(factor):
    weight, token_ids = random(50, 32), torch.tensor([[3, 49, 0], [3, 3, 7]])
    rows = Int8Embedding(*int8_parameters(weight), factor)(token_ids)
    assert_rounded(rows, unpacked_8(weight)[token_ids] * factor, 2 * ROUNDING)  # one for each product
    assert torch.equal(rows[0, 0], rows[1, 0])


# 4 bits


@pytest.mark.parametrize("shift", [0.0, 1.0, -3.0])
@pytest.mark.parametrize("shape", SHAPES)
def test_a_weight_in_4_bits_is_at_most_half_a_step_away(shape, shift):
    weight = (random(*shape) + shift).bfloat16()
    codes, step, low = int4_codes(weight)
    assert (codes.dtype, codes.shape) == (torch.int32, shape) and step.shape == low.shape == (shape[0], shape[1] // 32)
    groups = codes.unflatten(1, (-1, 32))
    assert (groups.amin(-1) == 0).all() and (groups.amax(-1) == 15).all()
    steps = (unpacked_4(weight) - weight.double()).abs().unflatten(1, (-1, 32)) / step.double()[..., None]
    assert steps.max() <= 0.5 + EXACT


def test_equal_weights_stay_so():
    weight = torch.full((16, 64), 0.75, dtype=torch.bfloat16)
    weight[3] = 0
    codes, _, _ = int4_codes(weight)
    assert codes.min() >= 0 and codes.max() <= 15
    assert unpacked_4(weight).numpy() == pytest.approx(weight.double().numpy(), abs=1e-10)


@pytest.mark.parametrize("rows", ROWS, ids=str)
@pytest.mark.parametrize("shape", SHAPES)
def test_a_4_bit_product_is_the_product_with_weights_that_4_bits_can_hold(shape, rows):
    """Steps are powers of two and minima whole numbers of them, so nothing but the result is rounded."""
    codes, step = whole_numbers(0, 15, shape[0], shape[1] // 32, 32), powers_of_two(shape[0], shape[1] // 32)
    low = whole_numbers(-14, 3, *step.shape, 2)[..., 1] * step
    weight = (low[..., None] + codes * step[..., None]).flatten(1).bfloat16()
    found = int4_codes(weight)
    assert all(map(torch.equal, found, (codes.flatten(1).int(), step, low)))
    x = random(*rows, shape[1])
    assert_rounded(Int4Linear(weight)(x), linear(x.double(), weight.double()))


@pytest.mark.parametrize("rows", ROWS, ids=str)
@pytest.mark.parametrize("shape", SHAPES)
def test_a_4_bit_product_is_the_product_with_the_unpacked_weights(shape, rows):
    """Any weights: the step and the middle of each group are rounded too, so errors add up along a row. Seen: 1.4 roundings."""
    weight, x = random(*shape), random(*rows, shape[1])
    expected = linear(x.double(), unpacked_4(weight))
    result = Int4Linear(weight)(x)
    assert result.dtype == torch.bfloat16
    assert (result - expected).abs().max() <= 2 * ROUNDING * expected.abs().max()


def test_groups_of_32_that_do_not_fill_a_row_are_refused():
    with pytest.raises(RuntimeError):
        int4_codes(random(16, 48))


# Networks, tiny and random


def tiny(kind: str, **settings):
    """In float32: 64 wide, two layers; 4 bits want rows of 32 and columns of 16."""
    shape = {
        "vocab_size": 64,
        "hidden_size": 64,
        "intermediate_size": 96,
        "num_hidden_layers": 2,
        "num_attention_heads": 4,
        "num_key_value_heads": 2,
        "max_position_embeddings": 128,
        "bos_token_id": 0,
        "eos_token_id": 1,
        "pad_token_id": 1,
        "initializer_range": 0.3,
    }
    if kind == "gemma3_text":
        types = ["sliding_attention", "full_attention"]
        shape |= {"head_dim": 16, "query_pre_attn_scalar": 16, "sliding_window": 4, "layer_types": types}
    torch.manual_seed(0)
    return AutoModelForCausalLM.from_config(CONFIG_MAPPING[kind](**shape | settings), dtype=torch.float32).eval()


def quantized(network, bits: int):
    """A copy in bfloat16, then in `bits`."""
    packed = copy.deepcopy(network).bfloat16()
    quantize(packed, bits)
    return packed


def unpacked(network, bits: int):
    """A copy in float32, with the weights the quantized one should have."""
    rounded = copy.deepcopy(network).bfloat16().float()
    head, table = rounded.get_output_embeddings(), rounded.get_input_embeddings()
    with torch.no_grad():
        head.weight.copy_(unpacked_8(head.weight.bfloat16()))  # the table's too, when they are one
        for layer in rounded.get_decoder().modules():
            if isinstance(layer, nn.Linear) and layer.bias is None:
                layer.weight.copy_((unpacked_8 if bits == 8 else unpacked_4)(layer.weight.bfloat16()))
    assert (head.weight is table.weight) == network.config.tie_word_embeddings
    return rounded


def logits_of(network, token_ids=TOKENS) -> torch.Tensor:
    with torch.inference_mode():
        return network(torch.tensor([token_ids]), use_cache=False).logits[0].float()


def assert_near(logits, expected, relative: float = NETWORK) -> None:
    assert abs(logits - expected).max() <= relative * abs(expected).max()


def assert_computes_with_unpacked_weights(network, bits: int) -> None:
    assert_near(logits_of(quantized(network, bits)), logits_of(unpacked(network, bits)))


def stored_bytes(network, bits: int) -> int:
    """From the shapes: matrices of the layers in `bits`, the head's in 8, each with its bfloat16 scales; all else in bfloat16."""
    total = 0
    for name, parameter in network.named_parameters():
        is_head = parameter is network.get_output_embeddings().weight
        rows, columns = (*parameter.shape, 0)[:2]
        if is_head or (columns and bits == 8 and "embed_tokens" not in name):
            total += rows * columns + 2 * rows  # a scale a row
        elif columns and bits == 4 and "embed_tokens" not in name:
            total += rows * columns // 2 + rows * (columns // 32) * 2 * 2  # a step and a middle for 32
        else:
            total += 2 * parameter.numel()
    return total


@pytest.mark.parametrize("bits", [8, 4])
def test_every_layer_of_a_tied_network_is_replaced_and_the_table_stored_once(bits):
    packed = quantized(network := tiny("gemma3_text"), bits)
    assert not any(isinstance(module, (nn.Linear, nn.Embedding)) for module in packed.modules())
    head, table = packed.get_output_embeddings(), packed.get_input_embeddings()
    assert (type(head), type(table)) == (Int8Linear, Int8Embedding)
    assert head.weight is table.weight and head.scale is table.scale
    kinds = [type(module) for module in packed.get_decoder().modules() if isinstance(module, (Int8Linear, Int4Linear))]
    assert kinds == [Int8Linear if bits == 8 else Int4Linear] * 2 * 7  # query, key, value, output, gate, up, down
    assert weights_bytes(packed) == stored_bytes(network, bits)


@pytest.mark.parametrize("bits", [8, 4])
def test_an_untied_network_keeps_its_table_and_has_a_head_in_8_bits(bits):
    packed = quantized(network := tiny("llama"), bits)
    head, table = packed.get_output_embeddings(), packed.get_input_embeddings()
    assert (type(head), type(table)) == (Int8Linear, nn.Embedding)
    assert torch.equal(table.weight, network.get_input_embeddings().weight.bfloat16())
    assert not any(isinstance(module, nn.Linear) for module in packed.modules())
    assert weights_bytes(packed) == stored_bytes(network, bits)


@pytest.mark.parametrize("bits", [8, 4])
@pytest.mark.parametrize(
    ("kind", "settings"),
    [
        ("gemma3_text", {}),
        ("gemma3_text", {"tie_word_embeddings": False}),
        ("llama", {}),
        ("llama", {"tie_word_embeddings": True}),
        ("qwen2", {}),
        ("phi", {}),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
def test_a_network_computes_with_its_unpacked_weights(kind, settings, bits):
    network = tiny(kind, **settings)
    for name, parameter in network.named_parameters():
        if name.endswith("bias"):  # they start at 0
            nn.init.normal_(parameter)
    assert_computes_with_unpacked_weights(network, bits)


def test_layers_with_a_bias_are_left_as_they_were():
    packed = quantized(tiny("qwen2"), 8)
    left = [name.split(".")[-1] for name, module in packed.named_modules() if isinstance(module, nn.Linear)]
    assert left == ["q_proj", "k_proj", "v_proj"] * 2


@pytest.mark.parametrize(("dtype", "bits"), [("float32", 8), ("float32", 4), ("float16", 8), ("bfloat16", 16), ("bfloat16", 2)])
def test_another_dtype_or_number_of_bits_is_refused_before_anything_changes(dtype, bits):
    network = tiny("llama").to(getattr(torch, dtype))
    before = list(network.modules())
    with pytest.raises(ValueError, match=f"not {bits} on torch.{dtype}"):
        quantize(network, bits)
    assert list(network.modules()) == before


# Opened again, from a file


@pytest.fixture
def no_hub(monkeypatch, tmp_path):
    """An empty cache of hub models, and no network."""
    monkeypatch.setattr(huggingface_hub.constants, "HF_HUB_OFFLINE", True)
    monkeypatch.setattr(huggingface_hub.constants, "HF_HUB_CACHE", str(tmp_path / "hub"))
    return tmp_path / "hub"


def save(network, folder) -> None:
    network.save_pretrained(folder)
    tokenizer = Tokenizer(models.WordLevel({f"mot{n}": n for n in range(64)}, unk_token="mot0"))
    PreTrainedTokenizerFast(tokenizer_object=tokenizer).save_pretrained(folder)


@pytest.fixture(scope="module")
def saved(tmp_path_factory):
    """A saved Gemma 3, never written to."""
    folder = tmp_path_factory.mktemp("gemma3") / "minuscule"
    save(tiny("gemma3_text"), folder)
    return folder


@pytest.fixture(scope="module")
def original(saved) -> HfModel:
    return load_pretrained(str(saved), None, "float32")


@pytest.fixture
def folder(saved, tmp_path):
    """A copy of it, to spoil."""
    return shutil.copytree(saved, tmp_path / "minuscule")


@pytest.mark.parametrize("precision", OPENED)
def test_a_model_opened_again_says_what_it_is(original, precision):
    info, architecture = original.info, original.info.architecture
    other = open_precision(original, precision)
    assert isinstance(other, HfModel) and other.vocabulary is original.vocabulary
    assert (other.info.name, other.info.revision, other.info.context_length) == (info.name, info.revision, info.context_length)
    assert (other.info.dtype, other.info.architecture.element_bytes) == (precision, 2)
    assert other.info.weights_bytes == weights_bytes(other.model)
    assert not other.model.training
    assert original.info is info and info.dtype == "float32" and architecture.element_bytes == 4


@pytest.mark.parametrize("precision", OPENED)
def test_reading_on_is_reading_again_whatever_the_precision(original, precision):
    """Past the window of 4 tokens as well."""
    other = open_precision(original, precision)
    forward = other.prefill(TOKENS[:3])
    for length in range(4, len(TOKENS) + 1):
        forward = other.decode(TOKENS[length - 1], forward.state)
        assert_near(forward.scores.logits, other.prefill(TOKENS[:length]).scores.logits)
    along = other.logits_along(TOKENS)
    assert along.shape == (len(TOKENS), 64) and along.dtype == np.float32
    assert_near(forward.scores.logits, along[-1])


def test_a_network_that_4_bits_do_not_fit_is_an_error_in_french(tmp_path):
    save(tiny("llama", intermediate_size=80), tmp_path / "large")
    model = load_pretrained(str(tmp_path / "large"), None, "float32")
    assert open_precision(model, "int8").info.dtype == "int8"
    with pytest.raises(UserError, match="ne se laissent pas ranger en int4"):
        open_precision(model, "int4")


def test_the_revision_that_is_running_is_the_one_opened_again(no_hub):
    """Two revisions of a hub model, as the hub's own cache lays them out; one says the opposite of the other."""
    repository, network = no_hub / "models--personne--modele", tiny("llama")
    for revision, commit in (("v2", "b" * 40), ("main", "a" * 40)):
        save(network, repository / "snapshots" / commit)
        (repository / "refs").mkdir(exist_ok=True)
        (repository / "refs" / revision).write_text(commit)
        with torch.no_grad():
            network.get_output_embeddings().weight.neg_()
    model = load_pretrained("personne/modele", "v2", "float32")
    assert_near(open_precision(model, "bfloat16").logits_along(TOKENS), model.logits_along(TOKENS))


# The real model


@pytest.fixture(scope="module")
def before(model):
    return model.prefill(model.vocabulary.encode(PROMPT)).scores.logits.copy()


@pytest.fixture(scope="module")
def opened(model, before) -> dict[str, HfModel]:
    return {precision: open_precision(model, precision) for precision in OPENED}


def test_the_real_model_weighs_less_and_less(model, opened):
    sizes = [model.info.weights_bytes, *(opened[precision].info.weights_bytes for precision in OPENED)]
    assert sizes == [2 * sizes[1], sizes[1], stored_bytes(model.model, 8), stored_bytes(model.model, 4)]
    assert sizes == [1_072_392_704, 536_196_352, 268_927_232, 231_077_120]


def test_the_real_table_serves_twice_and_is_stored_once(opened):
    for precision in ("int8", "int4"):
        network = opened[precision].model
        assert network.get_output_embeddings().weight is network.get_input_embeddings().weight
        assert not any(isinstance(module, (nn.Linear, nn.Embedding)) for module in network.modules())


@pytest.mark.parametrize("precision", OPENED)
def test_the_real_model_reads_on_as_it_reads_again_and_says_where_the_cat_sleeps(opened, precision):
    other = opened[precision]
    token_ids = other.vocabulary.encode(PROMPT)
    logits = other.prefill(token_ids).scores.logits
    assert_near(other.decode(token_ids[-1], other.prefill(token_ids[:-1]).state).scores.logits, logits)
    if precision != "int4":
        assert other.vocabulary.label(int(logits.argmax())) == "␣lit"


def test_the_real_model_is_left_as_it_was(model, opened, before):
    assert model.info.dtype == "float32" and not any(other.model is model.model for other in opened.values())
    assert np.array_equal(model.prefill(model.vocabulary.encode(PROMPT)).scores.logits, before)
