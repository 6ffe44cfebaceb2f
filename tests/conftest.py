"""Fixtures shared by every test. The real model is converted once a session, into a folder of its own."""

import os
import threading
from pathlib import Path

import pytest

from inference.models import embedded
from inference.models.base import Forward
from inference.models.scripted import ScriptedModel
from inference.prefix_cache import PrefixCache

ROOT = Path(__file__).parent.parent
PROMPT = "Le chat dort sur le"


@pytest.fixture(scope="session")
def model_folder(tmp_path_factory) -> Path:
    """The embedded model, converted by the code under test; the processes that share the tests share it too, and convert it once."""
    own = tmp_path_factory.getbasetemp()
    session = own.parent if "PYTEST_XDIST_WORKER" in os.environ else own
    return embedded.prepare(folder=session / "cache" / embedded.default_folder().name)


@pytest.fixture(scope="session")
def model(model_folder):
    """The embedded model in float32, an `HfModel`."""
    return embedded.load(folder=model_folder)


@pytest.fixture(scope="session")
def scorer(model) -> PrefixCache:
    return PrefixCache(model)


@pytest.fixture(scope="session")
def scripted() -> ScriptedModel:
    return ScriptedModel(ROOT / "assets" / "scenarios" / "chat.json")


@pytest.fixture(scope="session")
def tiny():
    """A random Llama that reads bytes, 256 at most: an `HfModel`, in a few milliseconds. Tests without it need not wait for torch."""
    import torch
    from tokenizers import Tokenizer, models, pre_tokenizers
    from transformers import LlamaConfig, LlamaForCausalLM

    from inference.models.hf import HfModel

    letters = sorted(pre_tokenizers.ByteLevel.alphabet())
    tokenizer = Tokenizer(models.BPE(vocab={letter: token_id for token_id, letter in enumerate(letters)}, merges=[]))
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    config = LlamaConfig(
        vocab_size=len(letters),
        hidden_size=32,
        intermediate_size=48,
        num_hidden_layers=2,
        num_attention_heads=4,
        num_key_value_heads=2,
        max_position_embeddings=256,
        initializer_range=0.5,
    )
    torch.manual_seed(0)
    return HfModel(LlamaForCausalLM(config), tokenizer, "tiny", "")


def follow(work) -> tuple[list, object]:
    """All that a generator yields, then what it returns: the progress of a measurement, and its result."""
    progress = []
    while True:
        try:
            progress.append(next(work))
        except StopIteration as end:
            return progress, end.value


def answers(scorer: PrefixCache, token_ids) -> bool:
    """Whether a visitor gets an answer."""
    visitor = threading.Thread(target=scorer.scores_after, args=(token_ids,), daemon=True)
    visitor.start()
    visitor.join(5)
    return not visitor.is_alive()


class Noted:
    """A model that notes each pass as (tokens already in the state, tokens read)."""

    def __init__(self, model):
        self._model = model
        self.info = model.info
        self.vocabulary = model.vocabulary
        self.passes: list[tuple[tuple[int, ...], tuple[int, ...]]] = []

    def prefill(self, token_ids, state=None) -> Forward:
        self.passes.append((state.token_ids if state else (), tuple(token_ids)))
        return self._model.prefill(token_ids, state)

    def decode(self, token_id, state) -> Forward:
        return self.prefill((token_id,), state)

    def truncate(self, state, length):
        return self._model.truncate(state, length)


@pytest.fixture
def noted(tiny) -> Noted:
    return Noted(tiny)
