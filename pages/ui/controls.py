"""The widgets of the bench. Each holds one setting, under the key `session.key` gives it."""

import streamlit as st

from inference.formatting import decimal, french
from inference.records import MAX_NEW_TOKENS, MAX_SEED, MAX_STOP_LENGTH, MAX_STOP_SEQUENCES
from inference.tokens import visible
from pages.ui import session

ORDER_NAMES = {"huggingface": "Hugging Face : température d’abord", "llamacpp": "llama.cpp : température en dernier"}
_TOP_K_STOPS = (0, 1, 2, 3, 5, 10, 20, 40, 50, 100, 200, 500, 1_000, 5_000, 20_000)
_TEMPERATURE_STOPS = [round(0.05 * position, 2) for position in range(41)]
_TOP_P_STOPS = [*(round(0.05 * position, 2) for position in range(20)), 0.98, 0.99, 1.0]
_MIN_P_STOPS = [0.0, 0.01, 0.02, 0.05, *(round(0.1 * position, 1) for position in range(1, 11))]
_PENALTY_STOPS = [round(0.1 * position, 1) for position in range(5, 21)]
_KEEP = {"persist_state": "session"}


def sampling_controls(vocab_size: int) -> None:
    """Temperature, cuts, penalty, order and seed."""
    _stage_slider("Température", "temperature", _TEMPERATURE_STOPS, _TEMPERATURE_HELP)
    _stage_slider("Top-k", "top_k", [stop for stop in _TOP_K_STOPS if stop < vocab_size], _TOP_K_HELP)
    _stage_slider("Top-p", "top_p", _TOP_P_STOPS, _TOP_P_HELP)
    _stage_slider("Min-p", "min_p", _MIN_P_STOPS, _MIN_P_HELP)
    _stage_slider("Pénalité de répétition", "repetition_penalty", _PENALTY_STOPS, _PENALTY_HELP)
    st.selectbox(
        "Ordre des étapes", list(ORDER_NAMES), format_func=lambda order: french(ORDER_NAMES[order]), key=session.key("order"), **_KEEP
    )
    st.number_input("Graine", 0, MAX_SEED, step=1, key=session.key("seed"), help=french(_SEED_HELP), **_KEEP)


def _stage_slider(label: str, name: str, stops: list[float], help_text: str) -> None:
    """A slider over `stops`, plus the value an address asked for; « non » where the stage is off."""
    off = session.NEUTRAL[name]

    def shown(value: float) -> str:
        return "non" if value == off and name != "temperature" else decimal(value)

    options = sorted({*stops, session.get(session.key(name))})
    st.select_slider(label, options, format_func=shown, key=session.key(name), help=french(help_text), **_KEEP)


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


_TEMPERATURE_HELP = (
    "Divise tous les logits. Sous 1 le favori écrase les autres, au-dessus les outsiders remontent. "
    "0 : décodage glouton, sans division ni tirage."
)
_TOP_K_HELP = "Garde les k tokens les plus probables. « non » : l’étape est désactivée."
_PENALTY_HELP = "Divise le logit des tokens déjà présents dans le texte (le multiplie s’il est négatif). « non » : désactivée."
_TOP_P_HELP = (
    "Parmi les tokens encore en lice, ramenés à 100 %, garde le plus petit groupe dont les probabilités cumulées atteignent p, celui "
    "qui franchit p compris. "
    "« non » : désactivé. 0 : le favori seul."
)
_MIN_P_HELP = "Garde les tokens au moins « min-p » fois aussi probables que le favori. « non » : désactivé."
_SEED_HELP = "Fixe le nombre u de chaque étape. Elle fige le tirage au sort, pas l’arithmétique."
