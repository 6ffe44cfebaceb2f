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
        "temperature_zero": "Température zéro",
        "batching": "Par lots",
        "speculative": "Décodage spéculatif",
        "context_weights": "Contexte et poids",
        "inference_compute": "Calcul à l’inférence",
        "strategies": "Stratégies",
        "costs": "Coûts",
        "misconceptions": "Idées reçues",
    },
    "Repères": {"glossary": "Glossaire", "further_reading": "Pour aller plus loin"},
}
TITLES = {name: title for titles in PAGES.values() for name, title in titles.items()}


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


def link_to(name: str) -> None:
    """A link to a page by its name."""
    st.page_link(f"pages/{name}.py", label=TITLES[name], icon=":material/arrow_forward:")


def _navigation():
    pages = {
        section: [st.Page(f"pages/{name}.py", title=title, default=name == "home") for name, title in titles.items()]
        for section, titles in PAGES.items()
    }
    return st.navigation(pages, position="top")
