"""The program shown on the page runs, and computes what the page computes."""

import contextlib
import io

import numpy as np
import pytest
import torch

from inference.distributions import softmax
from inference.equivalent_code import transformers_code
from inference.generation import generate
from inference.records import SamplingParams, StopRules
from inference.sampling import run_pipeline
from tests.conftest import PROMPT

SETTINGS = [
    SamplingParams(),
    SamplingParams(temperature=0.7, top_p=0.9),
    SamplingParams(1.3, 40, 0.95, 0.02, 1.2),
    SamplingParams(1.3, 40, 0.95, 0.02, 1.2, "llamacpp"),
    SamplingParams(temperature=None, top_k=300_000, top_p=1.0, min_p=0.0, repetition_penalty=1.0),
]


@pytest.fixture(scope="module")
def folder(model_folder, tmp_path_factory):
    """The converted model as `AutoTokenizer` wants it: with a word on its tokenizer's class."""
    folder = tmp_path_factory.mktemp("equivalent")
    for path in model_folder.glob("*.*"):
        (folder / path.name).symlink_to(path)
    (folder / "tokenizer_config.json").write_text('{"tokenizer_class": "GemmaTokenizer"}')
    return str(folder)


def run(code: str) -> tuple[str, dict]:
    """What the program prints, and the names it leaves."""
    names: dict = {}
    with contextlib.redirect_stdout(io.StringIO()) as printed:
        exec(code, names)
    return printed.getvalue(), names


@pytest.mark.parametrize("params", SETTINGS, ids=range(len(SETTINGS)))
def test_its_processors_give_our_distribution(folder, scorer, params):
    _, names = run(transformers_code(PROMPT, params, StopRules(1), folder, "float32"))
    ids = scorer.vocabulary.encode(PROMPT)
    scores = scorer.scores_after(ids)
    theirs = names["processors"](torch.tensor([ids]), torch.from_numpy(scores.logits.astype(np.float64))[None])
    assert softmax(theirs[0].numpy()) == pytest.approx(run_pipeline(scores, params, ids, 0).probs, abs=1e-6)


def test_greedy_prints_our_text_up_to_the_stop_sequence(folder, scorer):
    params, rules = SamplingParams(temperature=0, top_k=5), StopRules(12, ("gentil",))
    printed, _ = run(transformers_code(PROMPT, params, rules, folder, "float32"))
    ours = [trace.choice.token_id for trace, _ in generate(scorer, scorer.vocabulary.encode(PROMPT), params, rules)]
    assert printed == PROMPT + scorer.vocabulary.text(ours) + "\n"


@pytest.mark.parametrize("prompt", ['"""', "'); import os; os.abort() #", "\\", "a\nb\x00", "é😀\u202e"])
def test_a_hostile_prompt_stays_a_string(prompt):
    code = transformers_code(prompt, SamplingParams(), StopRules(stop_sequences=(prompt,)), "a", "float32")
    compile(code, "program", "exec")
    assert f"tokenizer({prompt!r}, return" in code
