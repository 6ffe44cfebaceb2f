"""Fixtures shared by every test. The real model is converted once a session, into a folder of its own."""

from pathlib import Path

import pytest

from inference.models import embedded
from inference.models.scripted import ScriptedModel
from inference.prefix_cache import PrefixCache

ROOT = Path(__file__).parent.parent
PROMPT = "Le chat dort sur le"


@pytest.fixture(scope="session")
def model_folder(tmp_path_factory) -> Path:
    """The embedded model, converted by the code under test."""
    return embedded.prepare(folder=tmp_path_factory.mktemp("cache") / embedded.default_folder().name)


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
