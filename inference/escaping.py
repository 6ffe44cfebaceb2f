"""The one place where text becomes safe to show. Prompts, tokens, links and model names are all hostile until they went through here."""

import html
import re

_WORD_JOINER = "\u2060"
_SYNTAX = re.compile(r"([\\`*_{}\[\]()#+\-.!|<>~$:&^=])")
_REWRITTEN = re.compile(r"(?=://|@|(?<=www)\.|(?<=:)(?:material|streamlit)|(?<=[-<>~])[-=>])", re.IGNORECASE)
"""Where Streamlit, once Markdown is done, still finds a link, an icon or an arrow."""


def html_text(text: str) -> str:
    """For HTML, attributes included, and for Plotly, which reads a subset of HTML in its labels but not its named quotes."""
    return html.escape(text, quote=False).replace('"', "&#34;").replace("'", "&#39;")


def markdown_text(text: str) -> str:
    """For Streamlit's Markdown: button labels, captions, messages. No emphasis, formula, colour, link, icon or block survives.

    An invisible word joiner goes where a backslash is not enough.
    """
    line = re.sub(r"[\r\n]", " ", text)
    if line[:1].isspace():
        line = _WORD_JOINER + line
    return _SYNTAX.sub(r"\\\1", _REWRITTEN.sub(_WORD_JOINER, line))


def csv_text(text: str) -> str:
    """For a cell of a CSV file: a spreadsheet must not take it for a formula."""
    return f"'{text}" if text[:1] in ("=", "+", "-", "@") else text
