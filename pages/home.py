"""The bench, on the real model or on the sheet's illustrative figures."""

import streamlit as st

from inference.escaping import markdown_text
from inference.formatting import french
from inference.lab_text import read_lab
from pages.ui.bench import read_link, show_bench
from pages.ui.frame import PAGES, link_to
from pages.ui.markup import lesson
from pages.ui.resources import ILLUSTRATIVE, REAL, SOURCES, is_default_model, scorer_for

PATH_COLUMNS = 3
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
    st.caption(
        french(
            "Illustratif : ces chiffres ont été écrits à la main, choisis pour être lisibles ; aucun modèle ne les a calculés. La fiche "
            "« Inférence » est le cours dont cette application est née : elle en vérifie les phrases, une à une, sur un vrai modèle."
        )
    )
else:
    weights = "poids quantifiés (Q4_K_M), calculs en float32" if is_default_model(scorer) else scorer.info.dtype
    st.caption(f"{french('Modèle :')} {markdown_text(scorer.info.name)}, {weights}, sur cette machine.")
if is_default_model(scorer):
    with st.expander("D’où viennent ces nombres"):
        st.markdown(lesson("precision"))

st.subheader("Le parcours", anchor=False)
st.markdown(french("Le banc montre ce qu’est un token. Les laboratoires, dans l’ordre, montrent ce qu’il coûte et ce qui le change."))
labs = list(PAGES["Laboratoires"])
for start in range(0, len(labs), PATH_COLUMNS):
    for column, name in zip(st.columns(PATH_COLUMNS), labs[start : start + PATH_COLUMNS], strict=False):
        with column:
            link_to(name)
            st.caption(read_lab(name).asks)
