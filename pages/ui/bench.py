"""The bench: a text being written, and all that happens between the forward pass and the next token."""

import json

import pandas as pd
import streamlit as st

from inference.charts.candidates import REST, candidate_rows, candidates_figure, full_table
from inference.charts.draw_strip import draw_strip_figure
from inference.distributions import softmax
from inference.errors import InvalidParameter, UserError
from inference.escaping import markdown_text
from inference.export import sentence_record
from inference.formatting import count, number, percent, plural
from inference.generation import find_stop
from inference.link import DEFAULT_PARAMS, from_query, to_query
from inference.prefix_cache import PrefixCache
from inference.records import SamplingParams, StepTrace, Stop, StopRules
from inference.sampling import run_pipeline
from inference.sentence import Choice, Sentence, open_sentence
from pages.ui import session
from pages.ui.controls import sampling_controls, stop_controls
from pages.ui.html import element, show
from pages.ui.tokens_view import sentence_view

DEFAULT_PROMPT = "Le chat dort sur le"
SHOWN = 15
SEARCH_SHOWN = 40
PLAY_INTERVAL_S = 0.7
_PLAIN_CHART = {"displayModeBar": False}


def read_link(sources: tuple[str, ...]) -> str:
    """Once a visit: put the address's settings into their widgets, and return the source it names."""
    if not session.has_settings():
        link = from_query({name: st.query_params.get_all(name) for name in st.query_params}, sources)
        session.write_settings(link.params, link.rules)
        session.put("link", link)
        session.put("source", link.source)
    return session.get("source")


def show_bench(scorer: PrefixCache, source: str) -> None:
    """Everything below the page's title. Only this part runs again when a setting moves or a token is written."""
    if session.bench(source) is None:
        session.open_bench(source, _opening(scorer, source))
    playing = session.bench(source).playing
    st.fragment(_draw, run_every=PLAY_INTERVAL_S if playing else None)(scorer, source)


def _opening(scorer: PrefixCache, source: str) -> session.Bench:
    """The text the address asked for, or the example. What cannot be had costs only itself, and the page says so."""
    link = session.get("link")
    notices = list(link.problems)
    if link.source != source:
        return session.Bench(open_sentence(DEFAULT_PROMPT, scorer))
    try:
        sentence = open_sentence(DEFAULT_PROMPT if link.prompt is None else link.prompt, scorer)
    except UserError as error:
        return session.Bench(open_sentence(DEFAULT_PROMPT, scorer), notices=[*notices, str(error)])
    place = st.empty()
    for position, (token_id, forced) in enumerate(link.token_ids):
        if token_id >= scorer.vocabulary.size or len(sentence.token_ids) >= scorer.info.context_length:
            notices.append("La suite de ce lien ne va pas avec ce modèle : elle s’arrête là où elle n’a plus de sens.")
            break
        place.progress(position / len(link.token_ids), "Relecture de la suite du lien…")
        sentence = sentence.with_choice(_choice(scorer, sentence, token_id, forced))
    place.empty()
    return session.Bench(sentence, notices=notices)


def _draw(scorer: PrefixCache, source: str) -> None:
    bench = session.bench(source)
    params, rules = session.read_params(), _rules()
    if bench.playing:
        _play(scorer, bench, params, rules)
    stop = find_stop(scorer, len(bench.sentence.prompt_ids), bench.sentence.generated_ids, rules)
    _share(bench, params, rules, source)

    _prompt_form(scorer, bench)
    show(sentence_view(bench.sentence, scorer.vocabulary))
    _buttons(scorer, bench, stop)
    while bench.notices:
        st.warning(markdown_text(bench.notices.pop(0)))
    if stop:
        st.info(_stop_text(stop, rules, scorer))

    settings, distribution = st.columns([1, 2.4], gap="large")
    with settings:
        sampling_controls(scorer.vocabulary.size)
        stop_controls()
        st.button("Remettre les réglages de départ", on_click=_reset_settings, width="stretch")
    with distribution:
        if stop and stop.kind in ("end_token", "context_length"):
            st.caption("Rien à tirer après cet arrêt : revenez en arrière pour revoir une distribution.")
        else:
            with st.spinner("Le modèle lit le texte…", show_time=True):
                scores = scorer.scores_after(bench.sentence.token_ids)
            trace = run_pipeline(scores, params, bench.sentence.token_ids, len(bench.sentence.choices))
            _distribution(scorer, source, trace)
    _downloads(scorer, bench, params, rules)


def _prompt_form(scorer: PrefixCache, bench: session.Bench) -> None:
    with st.form("prompt_form", border=False), st.container(horizontal=True, vertical_alignment="bottom"):
        prompt = st.text_input("Texte de départ", bench.sentence.prompt, placeholder=DEFAULT_PROMPT)
        if st.form_submit_button("Écrire la suite"):
            try:
                bench.change(open_sentence(prompt, scorer))
            except UserError as error:
                bench.notices.append(str(error))


def _buttons(scorer: PrefixCache, bench: session.Bench, stop: Stop | None) -> None:
    sentence = bench.sentence
    with st.container(horizontal=True):
        st.button(
            "Token suivant",
            type="primary",
            icon=":material/skip_next:",
            shortcut="Alt+N",
            disabled=stop is not None,
            on_click=_next,
            args=(scorer, bench),
        )
        st.button(
            "Retour",
            icon=":material/skip_previous:",
            shortcut="Alt+B",
            disabled=not sentence.choices,
            on_click=bench.change,
            args=(sentence.rewound(len(sentence.choices) - 1),),
        )
        if st.button(
            "Pause" if bench.playing else "Jouer",
            icon=":material/pause:" if bench.playing else ":material/play_arrow:",
            shortcut="Alt+P",
            disabled=stop is not None and not bench.playing,
        ):
            bench.playing = not bench.playing
            st.rerun()
        st.button(
            "Recommencer",
            icon=":material/replay:",
            disabled=not sentence.choices,
            on_click=bench.change,
            args=(sentence.rewound(0),),
        )
        st.button("Annuler", icon=":material/undo:", shortcut="Alt+Z", disabled=not bench.past, on_click=bench.undo)
        st.button("Rétablir", icon=":material/redo:", shortcut="Alt+Y", disabled=not bench.future, on_click=bench.redo)


def _distribution(scorer: PrefixCache, source: str, trace: StepTrace) -> None:
    rows = candidate_rows(trace, scorer.vocabulary, SHOWN)
    show(_figures(trace, scorer))
    if trace.u is not None:
        st.plotly_chart(draw_strip_figure(trace, rows), config=_PLAIN_CHART, key="draw_strip")
    view = st.segmented_control("Vue", ("Tableau", "Barres"), default="Tableau", required=True, key="view", label_visibility="collapsed")
    if view == "Barres":
        st.plotly_chart(candidates_figure(rows), config=_PLAIN_CHART, key="bars")
    else:
        event = st.dataframe(
            _readable(rows, trace),
            hide_index=True,
            on_select="rerun",
            selection_mode="single-row",
            key=f"rows_{source}_{trace.step}",
            height=36 * (len(rows) + 1),
        )
        selected = [int(rows["token_id"][position]) for position in event.selection.rows]
        if selected and selected[0] != REST:
            _force_button(scorer, source, selected[0], "force_selected")
        else:
            st.caption("Cochez une ligne pour forcer ce token à la place du tirage.")
    with st.popover("Forcer un autre token"):
        wanted = st.text_input("Chercher dans tout le vocabulaire", key=f"search_{source}", placeholder=" fauteuil")
        found = scorer.vocabulary.search(wanted) if wanted else []
        found.sort(key=lambda token_id: -trace.uncut_scores[token_id])
        if found:
            chosen = st.selectbox(
                f"{plural(len(found), 'token')}, du plus probable au moins probable",
                found[:SEARCH_SHOWN],
                format_func=lambda token_id: (
                    f"{scorer.vocabulary.label(token_id)}  (id {token_id}, {percent(trace.uncut_probs[token_id])})"
                ),
            )
            _force_button(scorer, source, chosen, "force_found")
        elif wanted:
            st.caption("Aucun token ne contient ce texte.")


def _force_button(scorer: PrefixCache, source: str, token_id: int, key: str) -> None:
    st.button(
        f"Forcer « {markdown_text(scorer.vocabulary.label(token_id))} »",
        key=key,
        type="primary",
        on_click=_force,
        args=(scorer, source, token_id),
    )


def _readable(rows: pd.DataFrame, trace: StepTrace) -> pd.DataFrame:
    """The rows as a reader wants them, in the order the sampler works."""
    columns = {
        "rang": [str(rank) if rank else "…" for rank in rows["rank"]],
        "token": rows["label"],
        "id": ["" if token_id == REST else str(token_id) for token_id in rows["token_id"]],
        "logit": ["" if token_id == REST else number(value, 2) for token_id, value in zip(rows["token_id"], rows["logit"])],
    }
    scaled = {"logit ÷ T": ["" if token_id == REST else number(value, 2) for token_id, value in zip(rows["token_id"], rows["scaled"])]}
    softmax_column = {"softmax": [percent(value) for value in rows["uncut"]]}
    cut = {
        "coupe": [("gardé" if row.kept else "coupé") if row.token_id != REST else plural(row.kept, "gardé") for row in rows.itertuples()]
    }
    if trace.params.is_greedy:
        columns |= softmax_column
        columns["choix"] = ["◀ le plus probable" if chosen else "" for chosen in rows["chosen"]]
    else:
        columns |= scaled | softmax_column | cut if trace.params.order == "huggingface" else softmax_column | cut | scaled
        columns["tirage"] = [f"{percent(row.prob)}{' ◀ u' if row.chosen else ''}" if row.kept else "—" for row in rows.itertuples()]
    return pd.DataFrame(columns)


def _figures(trace: StepTrace, scorer: PrefixCache):
    figures = {
        "Entropie": f"{number(trace.entropy_bits, 2)} bits",
        "Choix effectifs": number(trace.effective_choices, 1),
        "Tokens gardés": f"{count(trace.kept_count)} sur {count(scorer.vocabulary.size)}",
        "Masse retirée": percent(trace.removed_mass),
        "Somme": f"{number(float(trace.probs.sum()) * 100, 4)}\u202f%",
    }
    if trace.params.is_greedy:
        figures = {"Décodage glouton": "ni division, ni coupe, ni tirage"} | {"Entropie": figures["Entropie"], "Somme": figures["Somme"]}
    return element("dl", *(element("div", element("dt", name), element("dd", value)) for name, value in figures.items()), class_="figures")


def _downloads(scorer: PrefixCache, bench: session.Bench, params: SamplingParams, rules: StopRules) -> None:
    sentence = bench.sentence

    def step_csv() -> str:
        trace = run_pipeline(scorer.scores_after(sentence.token_ids), params, sentence.token_ids, len(sentence.choices))
        return full_table(trace, scorer.vocabulary).to_csv(index=False)

    def trace_json() -> str:
        return json.dumps(sentence_record(sentence, scorer, params, rules), ensure_ascii=False, indent=1)

    with st.container(horizontal=True):
        st.download_button("Cette étape, tout le vocabulaire (CSV)", step_csv, "etape.csv", "text/csv", on_click="ignore")
        st.download_button("Le texte et ses étapes (JSON)", trace_json, "texte.json", "application/json", on_click="ignore")


def _play(scorer: PrefixCache, bench: session.Bench, params: SamplingParams, rules: StopRules) -> None:
    if find_stop(scorer, len(bench.sentence.prompt_ids), bench.sentence.generated_ids, rules):
        bench.playing = False
        st.rerun()
    _write(scorer, bench, params)


def _next(scorer: PrefixCache, bench: session.Bench) -> None:
    _write(scorer, bench, session.read_params())


def _write(scorer: PrefixCache, bench: session.Bench, params: SamplingParams) -> None:
    sentence = bench.sentence
    try:
        trace = run_pipeline(scorer.scores_after(sentence.token_ids), params, sentence.token_ids, len(sentence.choices))
    except UserError as error:
        bench.playing = False
        bench.notices.append(str(error))
        return
    chosen = trace.choice.token_id
    bench.change(sentence.with_choice(Choice(chosen, float(trace.model_probs[chosen]))))


def _force(scorer: PrefixCache, source: str, token_id: int) -> None:
    bench = session.bench(source)
    bench.change(bench.sentence.with_choice(_choice(scorer, bench.sentence, token_id, forced=True)))


def _choice(scorer: PrefixCache, sentence: Sentence, token_id: int, forced: bool) -> Choice:
    return Choice(token_id, float(softmax(scorer.scores_after(sentence.token_ids).logits)[token_id]), forced)


def _reset_settings() -> None:
    session.write_settings(DEFAULT_PARAMS, StopRules())


def _rules() -> StopRules:
    try:
        return session.read_rules()
    except InvalidParameter as error:
        st.warning(markdown_text(str(error)))
        return StopRules(session.get(session.key("max_new_tokens")))


def _share(bench: session.Bench, params: SamplingParams, rules: StopRules, source: str) -> None:
    query = to_query(bench.sentence.prompt, bench.sentence.choices, params, rules, source)
    if query != {name: st.query_params.get_all(name) if name == "stop" else st.query_params[name] for name in st.query_params}:
        st.query_params.from_dict(query)


def _stop_text(stop: Stop, rules: StopRules, scorer: PrefixCache) -> str:
    if stop.kind == "end_token":
        return "Arrêt : le modèle a choisi le token de fin. Pour lui, le texte est terminé."
    if stop.kind == "stop_sequence":
        return f"Arrêt : le texte contient la séquence d’arrêt « {markdown_text(stop.sequence)} »."
    if stop.kind == "context_length":
        return f"Arrêt : le contexte du modèle est plein ({plural(scorer.info.context_length, 'token')})."
    return f"Arrêt : le plafond de {plural(rules.max_new_tokens, 'token')} est atteint. Relevez-le pour continuer."
