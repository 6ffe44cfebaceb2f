"""The bench, on the real model or on the sheet's illustrative figures."""

import streamlit as st

from inference.escaping import markdown_text
from inference.formatting import french
from pages.ui.bench import read_link, show_bench
from pages.ui.markup import lesson
from pages.ui.resources import ILLUSTRATIVE, REAL, SOURCES, is_default_model, scorer_for

SOURCE_NAMES = {REAL: "Modèle réel", ILLUSTRATIVE: "Chiffres de la fiche (illustratifs)"}

read_link(SOURCES)
with st.container(horizontal=True, vertical_alignment="center", horizontal_alignment="distribute"):
    st.title("Comment un modèle écrit, un token à la fois", anchor=False, width="content")
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
show_bench(scorer, source)
if scorer.info.is_illustrative:
    st.caption(french("Illustratif : ces chiffres ont été écrits à la main, choisis pour être lisibles ; aucun modèle ne les a calculés."))
else:
    weights = "poids quantifiés (Q4_K_M), calculs en float32" if is_default_model(scorer) else scorer.info.dtype
    st.caption(f"{french('Modèle :')} {markdown_text(scorer.info.name)}, {weights}, sur cette machine.")
if is_default_model(scorer):
    with st.expander("D’où viennent ces nombres"):
        st.markdown(lesson("precision"))
