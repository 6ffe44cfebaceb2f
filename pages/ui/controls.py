"""The widgets of the bench. Each holds one setting, under the key `session.key` gives it."""

import streamlit as st

from inference.records import MAX_NEW_TOKENS, MAX_SEED, MAX_STOP_LENGTH, MAX_STOP_SEQUENCES
from inference.tokens import visible
from pages.ui import session

ORDER_NAMES = {"huggingface": "Hugging Face : température d’abord", "llamacpp": "llama.cpp : température en dernier"}
_TOP_K_STOPS = (0, 1, 2, 3, 5, 10, 20, 40, 50, 100, 200, 500, 1_000, 5_000, 20_000)
_KEEP = {"persist_state": "session"}


def sampling_controls(vocab_size: int) -> None:
    """Temperature, cuts, penalty, order and seed."""
    st.slider("Température", 0.0, 2.0, step=0.05, format="%.3g", key=session.key("temperature"), help=_TEMPERATURE_HELP, **_KEEP)
    top_k = session.get(session.key("top_k"))
    st.select_slider(
        "Top-k",
        sorted({*(stop for stop in _TOP_K_STOPS if stop < vocab_size), top_k}),
        format_func=lambda value: str(value) if value else "non",
        key=session.key("top_k"),
        help="Garde les k tokens les plus probables. « non » : l’étape est désactivée.",
        **_KEEP,
    )
    st.slider("Top-p", 0.0, 1.0, step=0.01, format="%.3g", key=session.key("top_p"), help=_TOP_P_HELP, **_KEEP)
    st.slider("Min-p", 0.0, 1.0, step=0.01, format="%.3g", key=session.key("min_p"), help=_MIN_P_HELP, **_KEEP)
    st.slider(
        "Pénalité de répétition",
        0.5,
        2.0,
        step=0.05,
        format="%.3g",
        key=session.key("repetition_penalty"),
        help="Divise le logit des tokens déjà présents dans le texte (le multiplie s’il est négatif). 1 : désactivée.",
        **_KEEP,
    )
    st.selectbox("Ordre des étapes", list(ORDER_NAMES), format_func=ORDER_NAMES.get, key=session.key("order"), **_KEEP)
    st.number_input("Graine", 0, MAX_SEED, step=1, key=session.key("seed"), help=_SEED_HELP, **_KEEP)


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


_TEMPERATURE_HELP = (
    "Divise tous les logits. Sous 1 le favori écrase les autres, au-dessus les outsiders remontent. "
    "0 : décodage glouton, sans division ni tirage."
)
_TOP_P_HELP = (
    "Garde le plus petit groupe de tokens dont les probabilités cumulées atteignent p, celui qui franchit p compris. "
    "1 : désactivé. 0 : le favori seul."
)
_MIN_P_HELP = "Garde les tokens au moins « min-p » fois aussi probables que le favori. 0 : désactivé."
_SEED_HELP = "Fixe le nombre u de chaque étape. Elle fige le tirage au sort, pas l’arithmétique."
