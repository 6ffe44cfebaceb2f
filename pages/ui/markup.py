"""Raw HTML, CSS and JavaScript, in this one file. Text in what the others build is always escaped."""

from collections.abc import Callable
from pathlib import Path

import streamlit as st

from inference.formatting import french

ASSETS = Path(__file__).parents[2] / "assets"


def lesson(name: str) -> str:
    """The French prose of `assets/lessons/`, in Markdown."""
    return french((ASSETS / "lessons" / f"{name}.md").read_text(encoding="utf-8"))


def load_style() -> None:
    st.html(ASSETS / "style.css")


_BENCH_SCRIPTS = ("format", "sampler", "settings", "dom", "step_view", "controls", "tour", "bench")
"""The bench's modules, in the order in which they need one another; together they are the one module Streamlit takes."""


@st.cache_resource(show_spinner=False)
def _bench_component() -> Callable:
    scripts = "\n".join((ASSETS / "bench" / f"{name}.js").read_text(encoding="utf-8") for name in _BENCH_SCRIPTS)
    return st.components.v2.component("bench", css=(ASSETS / "bench" / "bench.css").read_text(encoding="utf-8"), js=scripts)


def mount_bench(data: dict, key: str, on_events_change: Callable[[], None]) -> None:
    """Draw the bench from `data`, which `pages/ui/bench.py` describes."""
    _bench_component()(data=data, key=key, on_events_change=on_events_change)
