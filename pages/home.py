"""The bench, on the real model or on the sheet's illustrative figures."""

import streamlit as st

from inference.escaping import markdown_text
from inference.formatting import french
from pages.ui.bench import read_link, show_bench
from pages.ui.markup import lesson
from pages.ui.resources import ILLUSTRATIVE, REAL, SOURCES, is_default_model, scorer_for

SOURCE_NAMES = {REAL: "Modèle réel", ILLUSTRATIVE: "Chiffres de la fiche (illustratifs)"}

read_link(SOURCES)
st.title("Comment un modèle écrit, un token à la fois")
source = st.segmented_control(
    "Source des chiffres",
    SOURCES,
    required=True,
    format_func=SOURCE_NAMES.get,
    key="source",
    label_visibility="collapsed",
    persist_state="session",
)
scorer = scorer_for(source)
if scorer.info.is_illustrative:
    st.badge(french("Illustratif : chiffres écrits à la main, choisis pour être lisibles"), color="orange")
else:
    weights = "poids quantifiés (Q4_K_M), calculs en float32" if is_default_model(scorer) else scorer.info.dtype
    st.caption(f"{french('Modèle :')} {markdown_text(scorer.info.name)}, {weights}, sur cette machine.")
show_bench(scorer, source)
if is_default_model(scorer):
    with st.expander("D’où viennent ces nombres"):
        st.markdown(lesson("precision"))
