"""What stands under the bench: forcing any token of the vocabulary, and taking the step or the text away."""

import json

import numpy as np
import streamlit as st

from inference.charts.candidates import candidate_rows, candidates_figure, candidates_table, full_table
from inference.distributions import largest
from inference.equivalent_code import transformers_code
from inference.escaping import markdown_text
from inference.export import sentence_record
from inference.formatting import french, percent, plural
from inference.prefix_cache import PrefixCache
from inference.records import StepTrace
from inference.sentence import forced, next_step
from pages.ui import session
from pages.ui.figures import CHART_BUTTONS, french_decimals

CODE_CAPTION = (
    "Le programme transformers équivalent, du texte de départ à l’arrêt, sans token forcé. Avec les poids d’origine d’un modèle embarqué "
    "quantifié, ses nombres diffèrent un peu de ceux de la page."
)
ENDED = french("Rien à tirer après cet arrêt : revenez en arrière pour revoir une distribution.")
TABLE_ROWS = 30
CHART_ROWS = 15
SEARCH_SHOWN = 40


def token_search(scorer: PrefixCache, source: str, trace: StepTrace | None) -> None:
    """Find a token by its text and force it. Without a trace the text has ended: nothing follows it."""
    popover = st.popover("Forcer un autre token", icon=":material/search:", key=f"search_open_{source}", on_change="rerun")
    if not popover.open:
        return
    if trace is None:
        popover.caption(ENDED)
        return
    bench = session.bench(source)
    with popover:
        wanted = st.text_input("Chercher dans tout le vocabulaire", key=f"search_{source}", placeholder=" tapis")
        if not wanted:
            return
        found = scorer.vocabulary.search(wanted)
        if not found:
            st.caption(french("Aucun token ne contient ce texte : il s’écrit sans doute en plusieurs tokens."))
            return
        title = plural(len(found), "token") + (f", dont voici les {SEARCH_SHOWN} plus probables" if len(found) > SEARCH_SHOWN else "")
        likeliest = np.array(found)[largest(trace.uncut_scores[found], SEARCH_SHOWN)].tolist()

        def describe(token_id: int) -> str:
            return f"{scorer.vocabulary.label(token_id)}  (id {token_id}, {percent(trace.uncut_probs[token_id])})"

        chosen = st.selectbox(title, likeliest, format_func=describe)
        st.button(
            f"Forcer « {markdown_text(scorer.vocabulary.label(chosen))} »",
            type="primary",
            on_click=lambda: bench.change(forced(bench.sentence, scorer, chosen)),
        )


def exports(scorer: PrefixCache, source: str, trace: StepTrace | None) -> None:
    """The table and the chart of the step if there is one, the files, the equivalent program; each made when asked for."""
    popover = st.popover("Tableau et fichiers", icon=":material/download:", key=f"export_open_{source}", on_change="rerun", width="content")
    if not popover.open:
        return
    sentence, params, rules = session.bench(source).sentence, session.params(), session.read_rules()

    def step_csv() -> str:  # computed again: a trace kept until the click would weigh 15 MB for each visitor
        return full_table(next_step(sentence, scorer, params), scorer.vocabulary).to_csv(index=False)

    def text_json() -> str:
        return json.dumps(sentence_record(sentence, scorer, params, rules), ensure_ascii=False, indent=1)

    with popover:
        if trace is None:
            st.caption(ENDED)
        else:
            rows = candidate_rows(trace, scorer.vocabulary, TABLE_ROWS)
            table = candidates_table(rows, trace.params.is_greedy)
            st.dataframe(table, hide_index=True, height=280, column_config=french_decimals(table))
            st.plotly_chart(candidates_figure(rows[:CHART_ROWS]), key=f"bars_{source}", config=CHART_BUTTONS)
            st.download_button("Cette étape, tout le vocabulaire (CSV)", step_csv, "etape.csv", "text/csv", on_click="ignore")
        st.download_button("Le texte et ses étapes (JSON)", text_json, "texte.json", "application/json", on_click="ignore")
        if not scorer.info.is_illustrative:
            st.caption(CODE_CAPTION)
            st.code(
                transformers_code(sentence.prompt, params, rules, scorer.info.hub_id, scorer.info.dtype), language="python", wrap_lines=True
            )
