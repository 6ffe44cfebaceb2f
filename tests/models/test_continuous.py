"""Several texts in one pass, against the same texts alone: tiny random networks, with and without sliding layers."""

import gc
import weakref
from functools import cache

import numpy as np
import pytest
import torch
from transformers import Gemma3ForCausalLM, Gemma3TextConfig

from inference.errors import UserError
from inference.models.continuous import BLOCK_TOKENS, PaddedRows, PagedEngine
from inference.models.hf import HfModel
from inference.serving import Request, Service, serve
from tests.conftest import follow

WINDOW = 24
ROUNDING = 1e-4
"""Logits of these networks go up to tens; rows of a batch differ from lone ones by a few 1e-6."""
LENGTHS = ((3, 9), (40, 6), (17, 12), (8, 1), (29, 8), (5, 22))
"""Tokens of the prompts and of what follows; some texts outgrow the window."""
LONGEST = 64


@pytest.fixture(scope="module")
def gemma(tiny) -> HfModel:
    """Two sliding layers and a full one, with the vocabulary of `tiny`."""
    config = Gemma3TextConfig(
        vocab_size=256,
        hidden_size=32,
        intermediate_size=48,
        num_hidden_layers=3,
        num_attention_heads=4,
        num_key_value_heads=1,
        head_dim=8,
        query_pre_attn_scalar=8,
        sliding_window=WINDOW,
        layer_types=["sliding_attention", "sliding_attention", "full_attention"],
        max_position_embeddings=256,
        initializer_range=0.5,
    )
    torch.manual_seed(0)
    model = HfModel.__new__(HfModel)
    model.__dict__.update(tiny.__dict__)
    model.model = Gemma3ForCausalLM(config).eval()
    return model


@pytest.fixture(params=["tiny", "gemma"])
def network(request) -> HfModel:
    return request.getfixturevalue(request.param)


def prompts() -> list[tuple[int, ...]]:
    random = np.random.default_rng(0)
    return [tuple(random.integers(2, 256, length).tolist()) for length, _ in LENGTHS]


def requests_of(gap_s: float) -> tuple[Request, ...]:
    return tuple(
        Request(number, number * gap_s, prompt, tokens) for number, (prompt, (_, tokens)) in enumerate(zip(prompts(), LENGTHS, strict=True))
    )


@cache
def alone(network: HfModel, prompt: tuple[int, ...], tokens: int) -> tuple[int, ...]:
    """What the model writes, greedily, with the whole text read again at each token: nothing is kept."""
    text = list(prompt)
    for _ in range(tokens):
        with torch.inference_mode():
            text.append(int(network.model(torch.tensor([text]), use_cache=False).logits[0, -1].argmax()))
    return tuple(text[len(prompt) :])


def served(engine: PagedEngine, requests, slots: int, run=lambda step: (1.0, step())) -> Service:
    """At one second a pass, when `run` does not say otherwise."""
    return follow(serve(engine, requests, slots, run))[1]


# Rows of a tensor


def test_each_row_writes_what_its_prompt_alone_would(network):
    rows = PaddedRows(network, prompts())
    made = [rows.step() for _ in range(10)]
    for row, prompt in enumerate(prompts()):
        assert tuple(one.tokens[row] for one in made) == alone(network, prompt, 10)


def test_a_row_s_logits_are_those_of_its_prompt_alone(network):
    rows, seen = PaddedRows(network, prompts()), []
    hook = network.model.register_forward_hook(lambda module, args, output: seen.append(output.logits[:, -1].clone()))
    try:
        rows.step()
        rows.step()
    finally:
        hook.remove()
    for row, prompt in enumerate(prompts()):
        first = network.prefill(prompt)
        second = network.decode(int(first.scores.logits.argmax()), first.state)
        for logits, forward in zip(seen, (first, second), strict=True):
            assert np.abs(logits[row].numpy() - forward.scores.logits).max() < ROUNDING


def test_padding_is_read_with_the_prompts_and_not_after(network):
    rows = PaddedRows(network, prompts())
    assert [(made.rows, made.positions) for made in (rows.step(), rows.step())] == [(6, 6 * 40), (6, 6)]


# Continuous batching


@pytest.mark.parametrize(("slots", "gap_s"), [(1, 0.0), (3, 0.0), (4, 2.5), (6, 0.0)])
def test_among_others_a_text_is_the_one_written_alone(network, slots, gap_s):
    service = served(PagedEngine(network, slots, LONGEST), requests_of(gap_s), slots)
    assert [one.token_ids for one in service.served] == [alone(network, one.prompt, one.tokens) for one in requests_of(gap_s)]


def test_slots_are_never_more_than_asked_and_are_taken_again_at_once(network):
    service = served(PagedEngine(network, 3, LONGEST), requests_of(0.0), 3)
    assert max(step.made.rows for step in service.steps) == 3
    assert [one.start_s for one in service.served] == [0, 0, 0, 6, 7, 9]  # after the 6, 1 and 9 tokens of those before
    assert service.steps[0].made.positions == 3 + 40 + 17


def test_blocks_grow_with_the_text_and_are_given_back(network):
    engine = PagedEngine(network, 3, LONGEST)
    service = served(engine, requests_of(0.0), 3)
    allocators = engine._processor.cache.cache_allocators
    for step in service.steps:
        assert set(step.made.allotted) == set(step.made.tokens)
        for held in step.made.allotted.values():
            for kind, blocks in held.blocks.items():
                kept = min(held.tokens, WINDOW) if kind == "sliding_attention" else held.tokens
                assert blocks == -(-kept // BLOCK_TOKENS)
            assert held.nbytes == sum(blocks * allocators[kind].bytes_per_block for kind, blocks in held.blocks.items())
            assert held.used_bytes <= held.nbytes
    assert engine.free_share == 1


def test_a_block_weighs_its_keys_and_values(tiny):
    """2 layers, 2 heads of 8 numbers, keys and values, 4 bytes each; 16 tokens a block, of which 3 are used."""
    engine = PagedEngine(tiny, 1, LONGEST)
    engine.add(Request(0, 0.0, (1, 2, 3), 2))
    held = engine.step().allotted[0]
    assert (held.tokens, held.nbytes, held.used_bytes) == (3, 2 * 2 * 2 * 8 * 4 * 16, 2 * 2 * 2 * 8 * 4 * 3)


@pytest.mark.parametrize("steps", [0, 1, 7])
def test_closed_half_way_the_cache_is_gone_and_the_model_as_it_was(network, steps):
    weights = {name: (parameter.data_ptr(), parameter.clone()) for name, parameter in network.model.named_parameters()}
    before = network.prefill(prompts()[0]).scores.logits
    engine = PagedEngine(network, 3, LONGEST)
    for request in requests_of(0.0):
        engine.add(request)
    for _ in range(steps):
        engine.step()
    held = weakref.ref(engine._processor.cache.cache_tensor)
    assert held().nbytes == engine.cache_bytes
    engine.close()
    gc.collect()
    assert held() is None
    assert network.model.config._attn_implementation == "sdpa"
    assert not hasattr(network.model, "_cached_continuous_batching_manager")
    assert {name: parameter.data_ptr() for name, parameter in network.model.named_parameters()} == {
        name: pointer for name, (pointer, _) in weights.items()
    }
    assert all(torch.equal(parameter, weights[name][1]) for name, parameter in network.model.named_parameters())
    assert np.array_equal(network.prefill(prompts()[0]).scores.logits, before)


def test_visitors_who_read_between_two_steps_change_nothing(network):
    engine, requests = PagedEngine(network, 3, LONGEST), requests_of(0.0)

    def run(step):
        expected = network.prefill((5, 6, 7)).scores.logits
        made = step()
        assert np.array_equal(network.prefill((5, 6, 7)).scores.logits, expected)
        return 1.0, made

    service = served(engine, requests, 3, run)
    assert [one.token_ids for one in service.served] == [alone(network, one.prompt, one.tokens) for one in requests]


def test_the_cache_is_no_larger_than_its_slots_need(network):
    """Never a share of the machine's memory, which is what transformers takes when it is not told."""
    shape = network.model.config
    per_token = 2 * shape.num_hidden_layers * shape.num_key_value_heads * shape.head_dim * 4
    asked = 3 * (LONGEST // BLOCK_TOKENS + 1) * BLOCK_TOKENS * per_token
    assert asked <= PagedEngine(network, 3, LONGEST).cache_bytes <= 2 * asked


def test_a_model_whose_attention_would_be_changed_for_everyone_is_refused(tiny):
    tiny.model.set_attn_implementation("eager")
    try:
        with pytest.raises(UserError, match="ne se prête pas"):
            PagedEngine(tiny, 2, LONGEST)
        assert tiny.model.config._attn_implementation == "eager"
    finally:
        tiny.model.set_attn_implementation("sdpa")


# The real model


def test_the_real_model_writes_the_same_among_others(model):
    """Margins of these texts are far above rounding; the same test would be wrong at a near-tie."""
    texts = ("Le chat dort sur le", "La capitale de la France est", "Deux et deux font")
    requests = tuple(Request(number, 0.0, tuple(model.vocabulary.encode(text)), 4 + number) for number, text in enumerate(texts))
    engine = PagedEngine(model, 2, 32)
    service = served(engine, requests, 2)
    engine.close()
    for one in service.served:
        forward, written = model.prefill(one.request.prompt), []
        for _ in range(one.request.tokens):
            first, second = np.sort(forward.scores.logits)[-2:][::-1]
            assert first - second > 1e-3
            written.append(int(forward.scores.logits.argmax()))
            forward = model.decode(written[-1], forward.state)
        assert one.token_ids == tuple(written)
