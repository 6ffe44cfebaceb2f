"""Hostile text, once escaped, shows as it is and does nothing."""

import html
import re
import string

import pytest
from hypothesis import given
from hypothesis import strategies as st

from inference.escaping import html_text, markdown_text


@pytest.mark.parametrize(
    "text", ["<script>alert(1)</script>", "<img src=x onerror=alert(1)>", '" onclick="alert(1)', "' x='", "&lt;b&gt;", "&"]
)
def test_no_html_special_survives(text):
    assert not re.search(r"[<>\"']|&(?!(?:#\d+|#x[0-9a-fA-F]+|[a-z]+);)", html_text(text))


@given(st.text())
def test_html_shows_the_text_itself(text):
    assert not set("<>\"'") & set(html_text(text))
    assert html.unescape(html_text(text).replace("\r", "")) == text.replace("\r", "")


@pytest.mark.parametrize("text", ["plain", "déjà vu", "␣chat", "⟨0xE2⟩", "😀", ""])
def test_harmless_text_is_left_alone(text):
    assert html_text(text) == text
    assert visible(markdown_text(text)) == text


ESCAPED = re.compile(r"\\([!-/:-@\[-`{-~])")
INVISIBLE = "\u2060"


def visible(markdown: str) -> str:
    """The text that stays once Markdown has read its backslashes, without the joiners that print nothing."""
    return ESCAPED.sub(r"\1", markdown).replace(INVISIBLE, "")


@pytest.mark.parametrize(
    "text",
    [
        "**gras**",
        "*a* _b_ __c__",
        "$x$",
        "$$x$$",
        ":red[x]",
        ":blue-background[x]",
        "[lien](https://exemple.fr)",
        "![image](x.png)",
        "<https://exemple.fr>",
        "[^1]",
        "`code`",
        "```\ncode",
        "~~barré~~",
        "# titre",
        "> citation",
        "- puce",
        "+ puce",
        "1. liste",
        "| a | b |",
        "&lt;",
        "&#60;",
        "\\*",
        "\\",
        "===",
        "<b>x</b>",
        "\\(x\\)",
        ":smile:",
    ],
)
def test_markdown_finds_no_mark_of_its_own(text):
    shown = markdown_text(text)
    assert not re.search(r"[\\`*_{}\[\]()#+\-.!|<>~$:&^=]", ESCAPED.sub("", shown))
    assert visible(shown) == text.replace("\n", " ")


@given(st.text(alphabet=string.printable + "é😀␣\u2060"))
def test_markdown_leaves_no_mark_unescaped_whatever_the_text(text):
    assert not re.search(r"[\\`*_{}\[\]()#+|<>~$&^=]", ESCAPED.sub("", markdown_text(text)))


@pytest.mark.parametrize("line_end", ["\n", "\r", "\r\n", "\n\n", "\r\r"])
def test_markdown_stays_on_one_line(line_end):
    assert not re.search(r"[\r\n]", markdown_text(f"a{line_end}b"))


@pytest.mark.parametrize("indent", ["    ", "\t", " \t", "        "])
def test_an_indent_does_not_make_a_block_of_code(indent):
    assert not re.match(r" {4}| {0,3}\t", markdown_text(f"{indent}x"))


REWRITTEN = (
    r"https?://[-.\w]+",
    r"www\.",
    r"[-.\w+]+@[-\w]+(\.[-\w]+)+",
    r":material[/_]\w+:",
    r":streamlit:",
    r"(^|\s)(<->|->|<-|--|>=|<=|~=)(\s|$)",
)
"""What Streamlit turns into links, icons, arrows and dashes in the text that Markdown leaves: backslashes are gone by then."""


@pytest.mark.parametrize(
    "text",
    [
        "https://exemple.fr",
        "http://exemple.fr/a",
        "[a](https://exemple.fr)",
        "www.exemple.fr",
        "moi@exemple.fr",
        ":material/home:",
        ":material_home:",
        ":streamlit:",
        "->",
        "a <- b",
        "a <-> b",
        "--",
        "a >= b",
        "a <= b",
        "a ~= b",
    ],
)
def test_streamlit_finds_no_link_icon_or_arrow_in_the_text_that_markdown_leaves(text):
    shown = markdown_text(text)
    left = ESCAPED.sub(r"\1", shown)
    assert not any(re.search(pattern, left) for pattern in REWRITTEN)
    assert visible(shown) == text
