"""What to read, what each shows, and the page that replays it."""

import streamlit as st

from inference.formatting import french
from inference.library import read_readings
from pages.ui.frame import link_to, require_frame

LANGUAGES = {"fr": "en français", "en": "en anglais"}

require_frame()
with st.container(key="lab"):
    st.title("Pour aller plus loin", anchor=False)
st.markdown(
    french(
        "Ce que chaque lecture montre, dans nos mots, et la page qui le rejoue ici. « La fiche » est le cours « Inférence » dont cette "
        "application est née ; « les documents », les deux définitions qui l’accompagnaient. Les adresses demandent un accès au réseau."
    )
)
for section, readings in read_readings().items():
    st.subheader(section, anchor=False)
    for reading in readings:
        what, link = st.columns([4, 1])
        title = f"[{reading.title}]({reading.url})" if reading.url else reading.title
        what.markdown(f"**{title}**, {reading.authors}, {reading.year}, {LANGUAGES[reading.language]}  \n{reading.shows}")
        with link:
            link_to(reading.page)
