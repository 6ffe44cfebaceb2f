"""What a text weighs in the cache: the formulas by hand, then against the tensors of real networks."""

import pytest
import torch
from tokenizers import Tokenizer, models
from transformers import CONFIG_MAPPING, AutoModelForCausalLM

from inference.kv_cache import cache_bytes, grouped_bytes, multi_head_bytes
from inference.models.base import Architecture
from inference.models.hf import HfModel
from inference.passages import prompt_of

SHAPE = Architecture(layers=3, sliding_layers=2, window=4, query_heads=8, kv_heads=2, head_size=16, element_bytes=2)
WINDOW = 4
AROUND_THE_WINDOW = (1, WINDOW - 1, WINDOW, WINDOW + 1, 20)


@pytest.mark.parametrize(
    ("tokens", "multi_head", "grouped", "kept"),
    [
        # per token: 2 × 3 layers × 8 heads × 16 × 2 bytes = 1 536; a quarter of it with 2 heads; 128 bytes a layer.
        (0, 0, 0, 0),
        (1, 1536, 384, 128 * (1 + 2)),
        (3, 4608, 1152, 128 * (3 + 6)),
        (4, 6144, 1536, 128 * (4 + 6)),
        (10, 15360, 3840, 128 * (10 + 6)),
    ],
)
def test_formulas_by_hand(tokens, multi_head, grouped, kept):
    assert (multi_head_bytes(SHAPE, tokens), grouped_bytes(SHAPE, tokens), cache_bytes(SHAPE, tokens)) == (multi_head, grouped, kept)


def test_without_groups_nor_windows_the_three_agree():
    shape = Architecture(layers=5, sliding_layers=0, window=4, query_heads=3, kv_heads=3, head_size=7, element_bytes=4)
    assert multi_head_bytes(shape, 100) == grouped_bytes(shape, 100) == cache_bytes(shape, 100) == 2 * 5 * 3 * 7 * 4 * 100


# The embedded model


def test_the_embedded_model_says_its_shape(model):
    """Gemma 3 270M: one layer in six is full; the file's 4 heads share one."""
    assert model.info.architecture == Architecture(
        layers=18, sliding_layers=15, window=512, query_heads=4, kv_heads=1, head_size=256, element_bytes=4
    )


@pytest.mark.parametrize("reads", [(1, 15), (511, 1, 1), (513, 87, 1)], ids=str)
def test_the_formula_weighs_what_the_tensors_weigh(model, reads):
    """Read in one pass, in two, then token by token: 511, 512, 513 and 600 tokens are about and past the window."""
    token_ids = prompt_of(sum(reads), model.vocabulary.encode)
    state, tokens = None, 0
    for read in reads:
        state = model.prefill(token_ids[tokens : tokens + read], state).state
        tokens += read
        assert state.nbytes == cache_bytes(model.info.architecture, tokens)


# Other networks, tiny and random


def random_model(kind: str, dtype=torch.float32, **settings) -> HfModel:
    shape = {
        "vocab_size": 64,
        "hidden_size": 32,
        "intermediate_size": 48,
        "num_hidden_layers": 3,
        "num_attention_heads": 4,
        "max_position_embeddings": 128,
        "bos_token_id": 0,
        "eos_token_id": 1,
        "pad_token_id": 1,
    }
    network = AutoModelForCausalLM.from_config(CONFIG_MAPPING[kind](**shape | settings), dtype=dtype)
    return HfModel(network, Tokenizer(models.WordLevel({"a": 0}, unk_token="a")), kind, "")


def test_a_shape_is_read_from_the_configuration():
    llama, gpt2 = random_model("llama", num_key_value_heads=2), random_model("gpt2")
    assert llama.info.architecture == Architecture(3, 0, 128, query_heads=4, kv_heads=2, head_size=8, element_bytes=4)
    assert gpt2.info.architecture == Architecture(3, 0, 128, query_heads=4, kv_heads=4, head_size=8, element_bytes=4)


@pytest.mark.parametrize(
    ("kind", "settings"),
    [
        ("llama", {"num_key_value_heads": 2}),
        ("llama", {"num_key_value_heads": 1, "dtype": torch.bfloat16}),
        ("gpt2", {}),
        ("gpt_neox", {}),
        ("gpt_bigcode", {}),  # one head of keys and values
        ("qwen3", {"num_key_value_heads": 2, "head_dim": 16}),
        ("qwen2", {"num_key_value_heads": 2, "sliding_window": WINDOW, "use_sliding_window": True, "max_window_layers": 1}),
        ("gemma2", {"num_key_value_heads": 2, "head_dim": 8, "sliding_window": WINDOW}),
        ("mistral", {"num_key_value_heads": 2, "sliding_window": None}),
        ("mistral", {"num_key_value_heads": 2, "sliding_window": WINDOW}),
    ],
)
def test_it_does_so_for_other_networks(kind, settings):
    model = random_model(kind, **settings)
    for tokens in AROUND_THE_WINDOW:
        state = model.prefill([5] * tokens).state
        weights = state.nbytes, model.decode(5, state).state.nbytes
        assert weights == (cache_bytes(model.info.architecture, tokens), cache_bytes(model.info.architecture, tokens + 1)), tokens
