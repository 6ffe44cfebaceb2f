"""What all pages share: their list, their style, and the run of the one asked for."""

import streamlit as st

from pages.ui import session
from pages.ui.markup import ASSETS, load_style

PAGES = {
    "Écrire": {"home": "Un token à la fois"},
    "Laboratoires": {
        "forward_pass": "Passe avant",
        "prefill_decode": "Prefill et décodage",
        "memory_floor": "Le plancher mémoire",
        "quantization": "Quantification",
    },
}


def run_page() -> None:
    st.set_page_config(page_title="Inférence", page_icon=str(ASSETS / "icon.svg"), layout="wide")
    load_style()
    page = _navigation()
    session.put("is_framed", True)
    page.run()


def require_frame() -> None:
    """Start again through app.py. Until a first visitor has opened it, Streamlit runs a page it finds in `pages/` on its own."""
    if not session.get("is_framed"):
        _navigation()
        st.rerun()


def _navigation():
    pages = {
        section: [st.Page(f"pages/{name}.py", title=title, default=name == "home") for name, title in titles.items()]
        for section, titles in PAGES.items()
    }
    return st.navigation(pages, position="top")
