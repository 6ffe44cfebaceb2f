"""The terms of the field, each with the page where it is seen at work."""

import streamlit as st

from inference.escaping import markdown_text
from inference.formatting import french, plural
from inference.library import read_glossary, search
from pages.ui.frame import link_to, require_frame

require_frame()
terms = read_glossary()
with st.container(key="lab"):
    st.title("Glossaire", anchor=False)
st.markdown(french(f"{plural(len(terms), 'terme')}, en français et en anglais, chacun avec la page où on le voit à l’œuvre."))
wanted = st.text_input(
    "Chercher un terme", type="search", placeholder="logit, cache, beam…", live=True, max_chars=100, key="terme", bind="query-params"
)
found = search(terms, wanted)
if not found:
    st.info(french(f"Aucun terme ne contient « {markdown_text(wanted)} »."))
for term in found:
    definition, link = st.columns([4, 1])
    definition.markdown(f"**{term.fr}** · *{term.en}*  \n{term.definition}")
    with link:
        link_to(term.page)
