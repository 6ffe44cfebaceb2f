"""Raw HTML, CSS and JavaScript, in this one file. Text in what the others build is always escaped."""

from collections.abc import Callable, Sequence
from pathlib import Path

import streamlit as st

from inference.formatting import french

ASSETS = Path(__file__).parents[2] / "assets"


def lesson(name: str) -> str:
    """The French prose of `assets/lessons/`, in Markdown."""
    return french((ASSETS / "lessons" / f"{name}.md").read_text(encoding="utf-8"))


def load_style() -> None:
    st.html(ASSETS / "style.css")


_BENCH_CODE = ("format", "sampler", "settings", "dom", "step_view", "controls", "tour", "bench")
"""The bench's modules, in the order in which they need one another; together they are the one module Streamlit takes."""


def mount_bench(data: dict, scores: dict | None, key: str, on_events_change: Callable[[], None]) -> None:
    """Draw the bench from `data`, which `pages/ui/bench.py` describes, and `scores`, by which a slider moves it.

    Three components, since Streamlit sends a message over 10 kB only once to a browser: the code never changes and the scores only
    with the text, so moving a setting costs neither.
    """
    _component("bench", ["mount"], css=_bench_file("bench.css"))(data=data, key=key, on_events_change=on_events_change)
    if scores is not None:
        _component("bench_scores", ["scores"])(data=scores, key=f"{key}_scores")
    _component("bench_code", _BENCH_CODE)(key=f"{key}_code")


@st.cache_resource(show_spinner=False)
def _component(name: str, scripts: Sequence[str], css: str | None = None) -> Callable:
    return st.components.v2.component(name, css=css, js="\n".join(_bench_file(f"{script}.js") for script in scripts))


def _bench_file(name: str) -> str:
    return (ASSETS / "bench" / name).read_text(encoding="utf-8")
