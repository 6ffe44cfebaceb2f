"""The settings, and the distribution of the next token under them. Moving a setting runs only this part again."""

import json
import math
from contextlib import nullcontext

import numpy as np
import pandas as pd
import streamlit as st

from inference.charts.candidates import REST, CandidateRow, candidate_rows, candidates_figure, full_table
from inference.distributions import largest
from inference.equivalent_code import transformers_code
from inference.escaping import markdown_text
from inference.export import sentence_record
from inference.formatting import french, number, percent, plural
from inference.link import DEFAULT_PARAMS, holds_text, to_query
from inference.prefix_cache import PrefixCache
from inference.records import SamplingParams, StepTrace, StopRules
from inference.sentence import Sentence, forced, next_step
from pages.ui import session
from pages.ui.controls import sampling_controls
from pages.ui.markup import show
from pages.ui.step_view import step_view

CODE_CAPTION = (
    "Le programme transformers équivalent, du texte de départ à l’arrêt, sans token forcé. Avec les poids d’origine d’un modèle embarqué "
    "quantifié, ses nombres diffèrent un peu de ceux de la page."
)
SHOWN = 15
SEARCH_SHOWN = 40
_PLAIN_CHART = {"displayModeBar": False}


@st.fragment
def show_distribution(scorer: PrefixCache, source: str, sentence: Sentence, rules: StopRules, has_ended: bool) -> None:
    """`sentence` is the text drawn above; when a token was forced from here, everything above is drawn again."""
    if session.bench(source).sentence != sentence:
        st.rerun()
    share_link(sentence, rules, source)
    params = session.read_params()
    settings, distribution = st.columns([1, 2.4], gap="large")
    with settings:
        sampling_controls(scorer.vocabulary.size)
        st.button("Remettre les réglages de départ", on_click=session.write_settings, args=(DEFAULT_PARAMS, rules), width="stretch")
    with distribution:
        if has_ended:
            st.caption("Rien à tirer après cet arrêt : revenez en arrière pour revoir une distribution.")
            return
        is_quick = scorer.knows(sentence.token_ids) or scorer.knows(sentence.token_ids[:-1])
        with nullcontext() if is_quick else st.spinner("Le modèle lit le texte…"):
            trace = next_step(sentence, scorer, params)
        _show_step(scorer, source, trace)
        with st.container(horizontal=True):
            search = st.popover("Forcer un autre token", key="search_open", on_change="rerun")
            downloads = st.popover("Exporter", key="export_open", on_change="rerun")
        if search.open:
            with search:
                _search(scorer, source, trace)
        if downloads.open:
            with downloads:
                _downloads(scorer, sentence, params, rules)


def share_link(sentence: Sentence, rules: StopRules, source: str) -> None:
    """Keep the address equal to the state, so that copying it is sharing it."""
    if not holds_text(sentence.prompt, sentence.choices):
        st.caption("Ce texte est trop long pour tenir dans l’adresse de la page : elle ne garde que les réglages.")
    query = to_query(sentence.prompt, sentence.choices, session.read_params(), rules, source)
    shown = {name: st.query_params.get_all(name) if name == "stop" else st.query_params[name] for name in st.query_params}
    if query != shown:
        st.query_params.from_dict(query)


def _show_step(scorer: PrefixCache, source: str, trace: StepTrace) -> None:
    rows = candidate_rows(trace, scorer.vocabulary, SHOWN)
    show(step_view(trace, rows))
    if not trace.is_exact:
        st.caption(
            french(f"Ce moteur ne dit que ses {plural(trace.scores.known_count, 'token')} les plus probables : les autres manquent ici.")
        )
    view = st.segmented_control(
        "Vue", ("Tableau", "Barres"), default="Tableau", required=True, key="view", label_visibility="collapsed", persist_state="session"
    )
    if view == "Barres":
        st.plotly_chart(candidates_figure(rows), config=_PLAIN_CHART, key="bars")
    else:
        force = st.container()
        event = st.dataframe(
            _readable(rows, trace),
            hide_index=True,
            on_select="rerun",
            selection_mode="single-row",
            key=f"rows_{source}_{hash(tuple(row.token_id for row in rows))}",
            height=35 * (len(rows) + 1) + 3,
        )
        selected = [rows[position].token_id for position in event.selection.rows]
        if selected and selected[0] != REST:
            with force:
                _force_button(scorer, source, selected[0], "force_selected")
        else:
            force.caption("Cochez la ligne d’un token pour le forcer à la place du tirage.")


def _search(scorer: PrefixCache, source: str, trace: StepTrace) -> None:
    wanted = st.text_input("Chercher dans tout le vocabulaire", key=f"search_{source}", placeholder=" tapis")
    if not wanted:
        return
    found = scorer.vocabulary.search(wanted)
    if not found:
        st.caption(french("Aucun token ne contient ce texte : il s’écrit sans doute en plusieurs tokens."))
        return

    def describe(token_id: int) -> str:
        return f"{scorer.vocabulary.label(token_id)}  (id {token_id}, {percent(trace.uncut_probs[token_id])})"

    title = plural(len(found), "token") + (f", dont voici les {SEARCH_SHOWN} plus probables" if len(found) > SEARCH_SHOWN else "")
    likeliest = np.array(found)[largest(trace.uncut_scores[found], SEARCH_SHOWN)].tolist()
    chosen = st.selectbox(title, likeliest, format_func=describe)
    _force_button(scorer, source, chosen, "force_found")


def _force_button(scorer: PrefixCache, source: str, token_id: int, key: str) -> None:
    def force() -> None:
        bench = session.bench(source)
        bench.change(forced(bench.sentence, scorer, token_id))

    st.button(f"Forcer « {markdown_text(scorer.vocabulary.label(token_id))} »", key=key, type="primary", on_click=force)


def _downloads(scorer: PrefixCache, sentence: Sentence, params: SamplingParams, rules: StopRules) -> None:
    """Made when asked for, outside any session: everything they need is in their arguments."""

    def step_csv() -> str:
        return full_table(next_step(sentence, scorer, params), scorer.vocabulary).to_csv(index=False)

    def text_json() -> str:
        return json.dumps(sentence_record(sentence, scorer, params, rules), ensure_ascii=False, indent=1)

    with st.container():
        st.download_button("Cette étape, tout le vocabulaire (CSV)", step_csv, "etape.csv", "text/csv", on_click="ignore")
        st.download_button("Le texte et ses étapes (JSON)", text_json, "texte.json", "application/json", on_click="ignore")
        if not scorer.info.is_illustrative:
            st.caption(CODE_CAPTION)
            st.code(transformers_code(sentence.prompt, params, rules, scorer.info.hub_id, scorer.info.dtype), language="python")


def _readable(rows: list[CandidateRow], trace: StepTrace) -> pd.DataFrame:
    """The rows as text, columns in the order in which the sampler works."""
    columns = {
        "rang": [str(row.rank) if row.rank else "…" for row in rows],
        "token": [row.label for row in rows],
        "id": [str(row.token_id) if row.token_id != REST else "" for row in rows],
        "logit": [_logit(row.logit) for row in rows],
    }
    penalised = trace.stage("repetition_penalty").applied
    scaled = {"logit pénalisé ÷ T" if penalised else "logit ÷ T": [_logit(row.scaled) for row in rows]}
    softmax = {"softmax": [percent(row.uncut) for row in rows]}
    if trace.params.is_greedy:
        if penalised:
            columns["logit pénalisé"] = [_logit(row.scaled) for row in rows]
        return pd.DataFrame(columns | softmax | {"choix": ["◀ le plus probable" if row.chosen else "" for row in rows]})
    cut = {"coupe": [_cut(row) for row in rows]}
    draw = {"tirage": [f"{percent(row.prob)}{' ◀ u' if row.chosen else ''}" if row.kept else "—" for row in rows]}
    in_order = scaled | softmax | cut if trace.params.order == "huggingface" else softmax | cut | scaled
    return pd.DataFrame(columns | in_order | draw)


def _logit(value: float) -> str:
    return "" if math.isnan(value) else number(value, 2)


def _cut(row: CandidateRow) -> str:
    if row.token_id == REST:
        return plural(row.kept, "gardé")
    return "gardé" if row.kept else "coupé"
