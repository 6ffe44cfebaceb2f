"""Entry point: the frame all pages share, and the list of pages."""

import streamlit as st

from pages.ui.markup import ASSETS, load_style

st.set_page_config(page_title="Inférence", page_icon=str(ASSETS / "icon.svg"), layout="wide")
load_style()
st.navigation([st.Page("pages/home.py", title="Écrire, un token à la fois", default=True)]).run()
