"""The visitor's state, and the only file that touches st.session_state."""

from dataclasses import dataclass, field

import streamlit as st

from inference.records import MAX_STOP_LENGTH, SamplingParams, StopRules
from inference.sentence import Sentence

MAX_UNDO = 200

NEUTRAL = {"temperature": 1.0, "top_k": 0, "top_p": 1.0, "min_p": 0.0, "repetition_penalty": 1.0}
"""Where a slider stands when its stage is off."""


@dataclass
class Bench:
    """One visitor's bench: the text, what undo and redo go back to, and whether the loop plays by itself.

    notices  French messages to show once, plain text.
    """

    sentence: Sentence
    past: list[Sentence] = field(default_factory=list)
    future: list[Sentence] = field(default_factory=list)
    playing: bool = False
    notices: list[str] = field(default_factory=list)

    def change(self, sentence: Sentence) -> None:
        """Go to another text; undo comes back to this one."""
        if sentence != self.sentence:
            self.past = [*self.past, self.sentence][-MAX_UNDO:]
            self.future = []
            self.sentence = sentence

    def undo(self) -> None:
        self.future.append(self.sentence)
        self.sentence = self.past.pop()

    def redo(self) -> None:
        self.past.append(self.sentence)
        self.sentence = self.future.pop()


def bench(source: str) -> Bench | None:
    """The bench of a source; each source keeps its own text."""
    return st.session_state.get(f"bench_{source}")


def open_bench(source: str, opened: Bench) -> None:
    st.session_state[f"bench_{source}"] = opened


def key(name: str) -> str:
    """The key of the widget that holds a setting."""
    return f"setting_{name}"


def write_settings(params: SamplingParams, rules: StopRules) -> None:
    """Put settings into their widgets. Only before the widgets are drawn, or from a callback."""
    for name, neutral in NEUTRAL.items():
        value = getattr(params, name)
        st.session_state[key(name)] = neutral if value is None else value
    st.session_state[key("order")] = params.order
    st.session_state[key("seed")] = params.seed
    st.session_state[key("max_new_tokens")] = rules.max_new_tokens
    st.session_state[key("stop_sequences")] = list(rules.stop_sequences)


def read_params() -> SamplingParams:
    """The settings as the widgets stand; a slider at its neutral value is a stage that is off."""
    values = {name: st.session_state[key(name)] for name in NEUTRAL}
    stages = {name: None if value == NEUTRAL[name] and name != "temperature" else value for name, value in values.items()}
    return SamplingParams(**stages, order=st.session_state[key("order")], seed=st.session_state[key("seed")])


def read_rules() -> StopRules:
    """The stop rules as the widgets stand. A sequence too long is left out: the widget still shows it, the page says so."""
    sequences = (sequence for sequence in st.session_state[key("stop_sequences")] if len(sequence) <= MAX_STOP_LENGTH)
    return StopRules(st.session_state[key("max_new_tokens")], tuple(sequences))


def has_settings() -> bool:
    return key("seed") in st.session_state


def get(name: str, default=None):
    """The value of any other widget, by its key."""
    return st.session_state.get(name, default)


def put(name: str, value) -> None:
    st.session_state[name] = value
