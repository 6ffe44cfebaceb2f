"""What all visitors share: the models, and what they have already computed."""

import gc
import importlib
import logging
import threading
import time
from collections.abc import Sequence
from dataclasses import dataclass, field
from types import ModuleType

import streamlit as st

from inference import answers
from inference.answers import Answer
from inference.errors import UserError
from inference.escaping import markdown_text
from inference.formatting import number
from inference.forward_pass import ForwardPass
from inference.models import embedded, open_model
from inference.models.scripted import ScriptedModel
from inference.prefix_cache import PrefixCache
from pages.ui.markup import ASSETS

REAL, ILLUSTRATIVE = "modele", "fiche"
SOURCES = (REAL, ILLUSTRATIVE)

STEPS = {
    "wait": "un autre processus prépare déjà le modèle : on l’attend",
    "join": "réunir les quatre paquets et vérifier leur empreinte",
    "tokenizer": "construire le tokenizer",
    "weights": "convertir les poids en float32",
    "load": "charger le modèle en mémoire",
    "first": "première passe avant",
}
_SHARES = {"wait": 0.0, "join": 0.05, "tokenizer": 0.2, "weights": 0.5, "load": 0.75, "first": 0.97, "done": 1.0}
"""Where each step begins on the progress bar of a first start."""


@dataclass
class _Loading:
    """A model on its way, seen by every visitor who waits for it."""

    started_s: float = field(default_factory=time.monotonic)
    step: str = "load"
    fraction: float = 0.0
    scorer: PrefixCache | None = None
    error: Exception | None = None
    finished: threading.Event = field(default_factory=threading.Event)

    def report(self, step: str, fraction: float) -> None:
        self.step, self.fraction = step, fraction

    def run(self) -> None:
        try:
            model = open_model(self.report)
            self.report("first", 0.0)
            scorer = PrefixCache(model)
            scorer.scores_after(scorer.vocabulary.encode("Bonjour"))
            _leave_to_rest()
            self.scorer = scorer
        except UserError as error:
            self.error = error
        except Exception as error:
            logging.exception("the model could not be loaded")
            self.error = error
        finally:
            self.finished.set()

    @property
    def progress(self) -> float:
        following = list(_SHARES)[list(_SHARES).index(self.step) + 1]
        return _SHARES[self.step] + self.fraction * (_SHARES[following] - _SHARES[self.step])


def _leave_to_rest() -> None:
    """Take everything alive now, torch and its modules above all, out of what the garbage collector visits.

    Streamlit collects after each script run, holding every visitor up; walking a million objects that never die took most of a
    slider's response time.
    """
    gc.collect()
    gc.freeze()


@st.cache_resource(show_spinner=False)
def _loading() -> _Loading:
    loading = _Loading()
    threading.Thread(target=loading.run, daemon=True, name="model-loading").start()
    return loading


@st.cache_resource(show_spinner=False)
def _illustrative() -> PrefixCache:
    return PrefixCache(ScriptedModel(ASSETS / "scenarios" / "chat.json"))


def scorer_for(source: str) -> PrefixCache:
    """The scorer of a source. Waits for the real model with its progress on the page; stops the script if it cannot be had."""
    return _illustrative() if source == ILLUSTRATIVE else _wait(_loading())


def describe_model(scorer: PrefixCache) -> str:
    """« Gemma 3 270M en float32 »: what a measurement was made with."""
    return f"{scorer.info.name} en {scorer.info.dtype}"


def concrete(name: str) -> ModuleType:
    """A module of `inference.models` that needs torch, which takes seconds to load: pages ask for it once there is a model to use it on."""
    return importlib.import_module(f"inference.models.{name}")


@st.cache_resource(max_entries=256, show_spinner=False)
def _scored(_scorer: PrefixCache, revision: str, dtype: str, prompt_ids: tuple[int, ...], token_ids: tuple[int, ...]) -> Answer:
    return answers.score_answer(_scorer.model_for_visitor, prompt_ids, token_ids)


def score_answer(scorer: PrefixCache, prompt_ids: tuple[int, ...], token_ids: tuple[int, ...]) -> Answer:
    """The probability of an answer, computed once for all visitors. Raises `UserError`."""
    return _scored(scorer, scorer.info.revision, scorer.info.dtype, prompt_ids, token_ids)


@st.cache_resource(max_entries=64, show_spinner=False)
def _inspected(_scorer: PrefixCache, revision: str, dtype: str, token_ids: tuple[int, ...], position: int) -> ForwardPass:
    with _scorer.model_for_visitor() as model:
        return concrete("inspection").inspect(model, token_ids, position)


def inspect(scorer: PrefixCache, token_ids: Sequence[int], position: int) -> ForwardPass:
    """A pass through the model seen from inside, made once for all visitors. Raises `UserError`."""
    return _inspected(scorer, scorer.info.revision, scorer.info.dtype, tuple(token_ids), position)


def is_default_model(scorer: PrefixCache) -> bool:
    """Whether this is the embedded model in the precision we chose for it."""
    return (scorer.info.revision, scorer.info.dtype) == (embedded.REVISION, "float32")


def _wait(loading: _Loading) -> PrefixCache:
    if not loading.finished.is_set():
        place = st.empty()
        while not loading.finished.wait(0.2):
            elapsed = number(time.monotonic() - loading.started_s, 0)
            place.progress(loading.progress, f"Préparation du modèle, {elapsed} s : {STEPS[loading.step]}…")
        place.empty()
    if loading.scorer is not None:
        return loading.scorer
    if isinstance(loading.error, UserError):
        st.error(markdown_text(str(loading.error)))
    else:
        st.error("Le modèle n’a pas pu être chargé. Réessayez ; si cela dure, le journal du serveur dit pourquoi.")
    st.button("Réessayer", on_click=_forget, args=(loading,))
    st.stop()


def _forget(loading: _Loading) -> None:
    """Let the next run load again, unless another visitor has already asked for it."""
    if _loading() is loading:
        _loading.clear()
