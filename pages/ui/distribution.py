"""The settings, and the distribution of the next token under them. Moving a setting runs only this part again."""

import json

import pandas as pd
import streamlit as st

from inference.charts.candidates import REST, candidate_rows, candidates_figure, full_table
from inference.charts.draw_strip import draw_strip_figure
from inference.escaping import markdown_text
from inference.export import sentence_record
from inference.formatting import count, number, percent, plural
from inference.link import DEFAULT_PARAMS, to_query
from inference.prefix_cache import PrefixCache
from inference.records import SamplingParams, StepTrace, StopRules
from inference.sampling import run_pipeline
from inference.sentence import Sentence, forced
from pages.ui import session
from pages.ui.controls import sampling_controls
from pages.ui.markup import Html, element, show

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
        elif scorer.knows(sentence.token_ids):
            _show_step(scorer, source, _trace(scorer, sentence, params))
        else:
            with st.spinner("Le modèle lit le texte…", show_time=True):
                trace = _trace(scorer, sentence, params)
            _show_step(scorer, source, trace)
        _downloads(scorer, sentence, params, rules)


def share_link(sentence: Sentence, rules: StopRules, source: str) -> None:
    """Keep the address equal to the state, so that copying it is sharing it."""
    query = to_query(sentence.prompt, sentence.choices, session.read_params(), rules, source)
    shown = {name: st.query_params.get_all(name) if name == "stop" else st.query_params[name] for name in st.query_params}
    if query != shown:
        st.query_params.from_dict(query)


def _trace(scorer: PrefixCache, sentence: Sentence, params: SamplingParams) -> StepTrace:
    return run_pipeline(scorer.scores_after(sentence.token_ids), params, sentence.token_ids, len(sentence.choices))


def _show_step(scorer: PrefixCache, source: str, trace: StepTrace) -> None:
    rows = candidate_rows(trace, scorer.vocabulary, SHOWN)
    show(_summary(trace))
    if trace.u is not None:
        st.plotly_chart(draw_strip_figure(trace, rows), config=_PLAIN_CHART, key="draw_strip")
    view = st.segmented_control(
        "Vue", ("Tableau", "Barres"), default="Tableau", required=True, key="view", label_visibility="collapsed", persist_state="session"
    )
    if view == "Barres":
        st.plotly_chart(candidates_figure(rows), config=_PLAIN_CHART, key="bars")
    else:
        event = st.dataframe(
            _readable(rows, trace),
            hide_index=True,
            on_select="rerun",
            selection_mode="single-row",
            key=f"rows_{source}_{trace.step}",
            height=35 * (len(rows) + 1) + 3,
        )
        selected = [int(rows["token_id"][position]) for position in event.selection.rows]
        if selected and selected[0] != REST:
            _force_button(scorer, source, selected[0], "force_selected")
        else:
            st.caption("Cochez une ligne pour forcer ce token à la place du tirage.")
    with st.popover("Forcer un autre token"):
        _search(scorer, source, trace)


def _search(scorer: PrefixCache, source: str, trace: StepTrace) -> None:
    wanted = st.text_input("Chercher dans tout le vocabulaire", key=f"search_{source}", placeholder=" fauteuil")
    if not wanted:
        return
    found = sorted(scorer.vocabulary.search(wanted), key=lambda token_id: -trace.uncut_scores[token_id])
    if not found:
        st.caption("Aucun token ne contient ce texte.")
        return

    def describe(token_id: int) -> str:
        return f"{scorer.vocabulary.label(token_id)}  (id {token_id}, {percent(trace.uncut_probs[token_id])})"

    title = f"{plural(len(found), 'token')}, du plus probable au moins probable"
    chosen = st.selectbox(title, found[:SEARCH_SHOWN], format_func=describe)
    _force_button(scorer, source, chosen, "force_found")


def _force_button(scorer: PrefixCache, source: str, token_id: int, key: str) -> None:
    def force() -> None:
        bench = session.bench(source)
        bench.change(forced(bench.sentence, scorer, token_id))

    st.button(f"Forcer « {markdown_text(scorer.vocabulary.label(token_id))} »", key=key, type="primary", on_click=force)


def _downloads(scorer: PrefixCache, sentence: Sentence, params: SamplingParams, rules: StopRules) -> None:
    """Made when asked for, outside any session: everything they need is in their arguments."""

    def step_csv() -> str:
        return full_table(_trace(scorer, sentence, params), scorer.vocabulary).to_csv(index=False)

    def text_json() -> str:
        return json.dumps(sentence_record(sentence, scorer, params, rules), ensure_ascii=False, indent=1)

    with st.container(horizontal=True):
        st.download_button("Cette étape, tout le vocabulaire (CSV)", step_csv, "etape.csv", "text/csv", on_click="ignore")
        st.download_button("Le texte et ses étapes (JSON)", text_json, "texte.json", "application/json", on_click="ignore")


def _readable(rows: pd.DataFrame, trace: StepTrace) -> pd.DataFrame:
    """The rows as text, columns in the order in which the sampler works."""
    row = rows.to_dict("list")
    single = [token_id != REST for token_id in row["token_id"]]
    columns = {
        "rang": [str(rank) if rank else "…" for rank in row["rank"]],
        "token": row["label"],
        "id": [str(token_id) if alone else "" for token_id, alone in zip(row["token_id"], single)],
        "logit": [number(value, 2) if alone else "" for value, alone in zip(row["logit"], single)],
    }
    scaled = {"logit ÷ T": [number(value, 2) if alone else "" for value, alone in zip(row["scaled"], single)]}
    softmax = {"softmax": [percent(value) for value in row["uncut"]]}
    if trace.params.is_greedy:
        choice = {"choix": ["◀ le plus probable" if chosen else "" for chosen in row["chosen"]]}
        return pd.DataFrame(columns | softmax | choice)
    cut = {"coupe": [_cut(kept, alone) for kept, alone in zip(row["kept"], single)]}
    draw = {
        "tirage": [
            f"{percent(prob)}{' ◀ u' if chosen else ''}" if kept else "—"
            for prob, chosen, kept in zip(row["prob"], row["chosen"], row["kept"])
        ]
    }
    in_order = scaled | softmax | cut if trace.params.order == "huggingface" else softmax | cut | scaled
    return pd.DataFrame(columns | in_order | draw)


def _cut(kept: int, alone: bool) -> str:
    if alone:
        return "gardé" if kept else "coupé"
    return plural(kept, "gardé")


def _summary(trace: StepTrace) -> Html:
    total = f"{number(float(trace.probs.sum()) * 100, 4)}\u202f%"
    entropy = f"{number(trace.entropy_bits, 2)} bits"
    if trace.params.is_greedy:
        figures = {"Décodage glouton": "ni division, ni coupe, ni tirage", "Entropie": entropy, "Somme": total}
    else:
        figures = {
            "Entropie": entropy,
            "Choix effectifs": number(trace.effective_choices, 1),
            "Tokens gardés": f"{count(trace.kept_count)} sur {count(len(trace.probs))}",
            "Masse retirée": percent(trace.removed_mass),
            "Somme": total,
        }
    pairs = (element("div", element("dt", name), element("dd", value)) for name, value in figures.items())
    return element("dl", *pairs, class_="figures")
