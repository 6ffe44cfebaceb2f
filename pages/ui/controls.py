"""The stop rules. Each widget holds one, under the key `session.key` gives it."""

import streamlit as st

from inference.records import MAX_NEW_TOKENS, MAX_STOP_LENGTH, MAX_STOP_SEQUENCES
from inference.tokens import visible
from pages.ui import session

_KEEP = {"persist_state": "session"}


def stop_controls() -> None:
    """The caller's ceiling and the stop sequences."""
    st.number_input("Plafond de tokens", 1, MAX_NEW_TOKENS, step=1, key=session.key("max_new_tokens"), **_KEEP)
    sequences = session.get(session.key("stop_sequences"))
    st.multiselect(
        "Séquences d’arrêt",
        list(dict.fromkeys([".", "\n", " et", *sequences])),
        format_func=lambda sequence: f"« {visible(sequence.encode('utf-8', 'replace'))} »",
        accept_new_options=True,
        max_selections=MAX_STOP_SEQUENCES,
        key=session.key("stop_sequences"),
        placeholder="aucune",
        help=f"Le texte s’arrête dès qu’il en contient une. De 1 à {MAX_STOP_LENGTH} caractères ; elle peut couvrir plusieurs tokens.",
        **_KEEP,
    )
    if any(len(sequence) > MAX_STOP_LENGTH for sequence in sequences):
        st.warning(f"Une séquence d’arrêt fait de 1 à {MAX_STOP_LENGTH} caractères : les plus longues sont ignorées.")
