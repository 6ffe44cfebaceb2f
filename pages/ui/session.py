"""The visitor's state, and the only file that touches st.session_state."""

import uuid
from dataclasses import dataclass, field

import streamlit as st

from inference.link import DEFAULT_PARAMS
from inference.records import MAX_STOP_LENGTH, SamplingParams, StopRules
from inference.sentence import Sentence, with_branch

MAX_UNDO = 200


@dataclass
class Bench:
    """One visitor's bench: the text, what undo and redo go back to, and the continuations left on the way.

    acknowledged  number of the last event received from the browser.
    notices       French messages to show once, plain text.
    """

    sentence: Sentence
    past: list[Sentence] = field(default_factory=list)
    future: list[Sentence] = field(default_factory=list)
    branches: tuple[Sentence, ...] = ()
    acknowledged: int = 0
    notices: list[str] = field(default_factory=list)

    def change(self, sentence: Sentence) -> None:
        """Go to another text; undo comes back to this one."""
        if sentence != self.sentence:
            self.past = [*self.past, self.sentence][-MAX_UNDO:]
            self.future = []
            self._go(sentence)

    def undo(self) -> None:
        if self.past:
            self.future.append(self.sentence)
            self._go(self.past.pop())

    def redo(self) -> None:
        if self.future:
            self.past.append(self.sentence)
            self._go(self.future.pop())

    def _go(self, sentence: Sentence) -> None:
        self.branches = with_branch(self.branches, self.sentence)
        self.sentence = sentence


def bench(source: str) -> Bench | None:
    """The bench of a source; each source keeps its own text."""
    return st.session_state.get(f"bench_{source}")


def open_bench(source: str, opened: Bench) -> None:
    st.session_state[f"bench_{source}"] = opened


def open_in_bench(prompt: str, source: str) -> None:
    """Have the bench of a source start from another text the next time it is shown."""
    put("wanted_prompt", prompt)
    put("source", source)


def take_wanted_prompt() -> str | None:
    return st.session_state.pop("wanted_prompt", None)


def key(name: str) -> str:
    """The key of the widget that holds a stop rule."""
    return f"setting_{name}"


def params() -> SamplingParams:
    """The settings of the draw, those of both sources and of every page."""
    return st.session_state.get("params", DEFAULT_PARAMS)


def set_params(changed: SamplingParams) -> None:
    st.session_state["params"] = changed


def write_rules(rules: StopRules) -> None:
    """Put stop rules into their widgets. Only before the widgets are drawn, or from a callback."""
    st.session_state[key("max_new_tokens")] = rules.max_new_tokens
    st.session_state[key("stop_sequences")] = list(rules.stop_sequences)


def read_rules() -> StopRules:
    """The stop rules as the widgets stand. A sequence too long is left out: the widget still shows it, the page says so."""
    sequences = (sequence for sequence in st.session_state[key("stop_sequences")] if len(sequence) <= MAX_STOP_LENGTH)
    return StopRules(st.session_state[key("max_new_tokens")], tuple(sequences))


def has_settings() -> bool:
    return "params" in st.session_state


def get(name: str, default=None):
    """The value of any other widget, by its key."""
    return st.session_state.get(name, default)


def put(name: str, value) -> None:
    st.session_state[name] = value


def visitor() -> str:
    """A name for this visit, the same until the page is closed."""
    return st.session_state.setdefault("visitor", uuid.uuid4().hex)
