"""Raw HTML, in this one file. Everything else builds elements, and text in them is always escaped."""

from pathlib import Path

import streamlit as st

from inference.escaping import html_text
from inference.formatting import french

ASSETS = Path(__file__).parents[2] / "assets"


class Html(str):
    """Markup that is already safe."""


def element(tag: str, *children: str, **attributes: str | None) -> Html:
    """`element("span", label, class_="chip")`: children that are not `Html`, and every attribute value, are escaped."""
    written = "".join(
        f' {name.rstrip("_").replace("_", "-")}="{html_text(value)}"' for name, value in attributes.items() if value is not None
    )
    inner = "".join(child if isinstance(child, Html) else html_text(child) for child in children)
    return Html(f"<{tag}{written}>{inner}</{tag}>")


def lesson(name: str) -> str:
    """The French prose of `assets/lessons/`, in Markdown."""
    return french((ASSETS / "lessons" / f"{name}.md").read_text(encoding="utf-8"))


def show(markup: Html) -> None:
    st.html(markup)


def load_style() -> None:
    st.html(ASSETS / "style.css")
