"""The one place where text becomes safe to show. Prompts, tokens, links and model names are all hostile until they went through here."""

import html
import re

_MARKDOWN = re.compile(r"([\\`*_{}\[\]()#+\-.!|<>~$:&^=])")


def html_text(text: str) -> str:
    """For HTML, attributes included, and for Plotly, which reads a subset of HTML in its labels."""
    return html.escape(text, quote=True)


def markdown_text(text: str) -> str:
    """For Streamlit's Markdown: button labels, captions, messages. No emphasis, formula, colour, link or icon survives."""
    return _MARKDOWN.sub(r"\\\1", text).replace("\n", " ")
