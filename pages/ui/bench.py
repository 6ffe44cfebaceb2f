"""The bench: a text being written token by token, the settings, and the distribution of the next token under them.

It is drawn by `assets/bench/`, in the browser, which recomputes the distribution while a slider moves. The truth stays here: each
action of the visitor arrives as an event, and the whole state goes back.
"""

import json
from contextlib import nullcontext

import streamlit as st
from streamlit.delta_generator import DeltaGenerator

from inference.charts.bench import exact_step, live_scores, live_settings
from inference.drawing import uniform
from inference.errors import UserError
from inference.escaping import markdown_text
from inference.formatting import french, plural
from inference.generation import find_stop
from inference.link import DEFAULT_PARAMS, from_query, holds_text, to_query
from inference.prefix_cache import PrefixCache
from inference.records import SamplingParams, StepTrace, Stop, StopRules
from inference.sentence import Sentence, forced, next_step, open_sentence, written
from inference.tokens import visible
from pages.ui import session
from pages.ui.controls import stop_controls
from pages.ui.markup import ASSETS, mount_bench
from pages.ui.step_tools import exports, token_search

DEFAULT_PROMPT = "Le chat dort sur le"
SHOWN = 13
"""Rows of candidates; `assets/bench/step_view.js` has as many."""
SHOWN_BRANCHES = 5
MAX_EVENTS = 50
_TOUR = json.loads((ASSETS / "lessons" / "tour.json").read_text(encoding="utf-8"))


def read_link(sources: tuple[str, ...]) -> None:
    """Once a visit: take the state the address asks for; `show_bench` does the rest."""
    if not session.has_settings():
        link = from_query({name: st.query_params.get_all(name) for name in st.query_params}, sources)
        session.set_params(link.params)
        session.write_rules(link.rules)
        session.put("link", link)
        session.put("source", link.source)


@st.fragment
def show_bench(scorer: PrefixCache, source: str) -> None:
    """Everything below the page's title; each action of the visitor runs only this part again."""
    progress = st.empty()  # always there, so that what follows keeps its place, and its focus, from one run to the next
    if session.bench(source) is None:
        session.open_bench(source, _opening(scorer, source, progress))
    bench = session.bench(source)
    _take_wanted_prompt(scorer, bench)
    _prompt_form(scorer, bench, source)
    mounted = st.container()
    with st.container(horizontal=True):
        with st.popover("Arrêts", icon=":material/stop_circle:"):
            stop_controls()
        rules = session.read_rules()
        stop = _stop(scorer, bench.sentence, rules)
        try:
            trace = None if stop and stop.kind in ("end_token", "context_length") else _trace(scorer, bench.sentence, progress)
        except UserError as error:
            mounted.error(markdown_text(french(str(error))))
            return
        token_search(scorer, source, trace)
        exports(scorer, source, trace)
    data = _data(scorer, bench, source, rules, stop, trace)
    scores = trace and _live_scores(scorer, source, bench.sentence.token_ids)
    with mounted:
        mount_bench(data, scores, key=_key(source), on_events_change=lambda: _receive(scorer, source))


def _take_wanted_prompt(scorer: PrefixCache, bench: session.Bench) -> None:
    """Start from the text another page has sent here, as if it had been typed."""
    prompt = session.take_wanted_prompt()
    if prompt is not None:
        try:
            bench.change(open_sentence(prompt, scorer))
        except UserError as error:
            bench.notices.append(str(error))


def _trace(scorer: PrefixCache, sentence: Sentence, progress: DeltaGenerator) -> StepTrace:
    """The step after this text; says so when the model has much to read first."""
    is_quick = scorer.knows(sentence.token_ids) or scorer.knows(sentence.token_ids[:-1])
    with nullcontext() if is_quick else progress, nullcontext() if is_quick else st.spinner("Le modèle lit le texte…"):
        return next_step(sentence, scorer, session.params())


def _opening(scorer: PrefixCache, source: str, progress: DeltaGenerator) -> session.Bench:
    """The text the address asked for, or the example. What cannot be had costs only itself, and the page says so."""
    link = session.get("link")
    if link.source != source:
        return session.Bench(open_sentence(DEFAULT_PROMPT, scorer))
    notices = list(link.problems)
    try:
        sentence = open_sentence(DEFAULT_PROMPT if link.prompt is None else link.prompt, scorer)
    except UserError as error:
        return session.Bench(open_sentence(DEFAULT_PROMPT, scorer), notices=[*notices, str(error)])
    for position, (token_id, by_hand) in enumerate(link.token_ids):
        if token_id >= scorer.vocabulary.size or len(sentence.token_ids) >= scorer.info.context_length:
            notices.append("La suite de ce lien ne va pas avec ce modèle : elle s’arrête là où elle n’a plus de sens.")
            break
        progress.progress(position / len(link.token_ids), "Relecture de la suite du lien…")
        sentence = forced(sentence, scorer, token_id, by_hand)
    progress.empty()
    return session.Bench(sentence, notices=notices)


def _prompt_form(scorer: PrefixCache, bench: session.Bench, source: str) -> None:
    key, drawn = f"prompt_{source}", f"drawn_prompt_{source}"
    if session.get(key) is None or session.get(drawn) != bench.sentence.prompt:  # undone, redone, from a link, or back from elsewhere
        session.put(key, bench.sentence.prompt)
        session.put(drawn, bench.sentence.prompt)

    def submit() -> None:
        try:
            bench.change(open_sentence(session.get(key), scorer))
        except UserError as error:
            bench.notices.append(str(error))

    with st.form(f"form_{source}", border=False), st.container(horizontal=True, vertical_alignment="bottom"):
        st.text_input("Texte de départ", key=key, placeholder=DEFAULT_PROMPT)
        st.form_submit_button("Écrire la suite", on_click=submit)


def _key(source: str) -> str:
    return f"component_{source}"


@st.cache_data(max_entries=512, show_spinner=False)
def _live_scores(_scorer: PrefixCache, source: str, token_ids: tuple[int, ...]) -> dict:
    """Made once for all visitors."""
    return {"key": _step_key(source, token_ids)} | live_scores(_scorer.scores_after(token_ids), token_ids, _scorer.vocabulary)


def _step_key(source: str, token_ids: tuple[int, ...]) -> str:
    return f"{source} {hash(token_ids)}"


def _data(scorer: PrefixCache, bench: session.Bench, source: str, rules: StopRules, stop: Stop | None, trace: StepTrace | None) -> dict:
    """The whole state, ready for JSON: what `receive` in `assets/bench/bench.js` draws."""
    sentence, params = bench.sentence, session.params()
    notices, bench.notices = bench.notices, []
    if not holds_text(sentence.prompt, sentence.choices):
        notices.append("Ce texte est trop long pour tenir dans l’adresse de la page : elle ne garde que les réglages.")
    query = to_query(sentence.prompt, sentence.choices, params, rules, source)
    link = session.get("link")
    labels = scorer.vocabulary.labels_in_text(sentence.token_ids)
    prompt_length = len(sentence.prompt_ids)
    return {
        "acknowledged": bench.acknowledged,
        "settings": live_settings(params),
        "defaults": live_settings(DEFAULT_PARAMS),
        "chips": [{"label": label, "prompt": True} for label in labels[:prompt_length]]
        + [
            {"label": label, "prompt": False, "probability": choice.probability, "forced": choice.forced}
            for label, choice in zip(labels[prompt_length:], sentence.choices)
        ],
        "branches": [_branch_text(branch, scorer) for _, branch in _branches(bench)],
        "undo": bool(bench.past),
        "redo": bool(bench.future),
        "stop": french(_stop_text(stop, rules, scorer)) if stop else None,
        "notices": [french(notice) for notice in notices],
        "illustrative": scorer.info.is_illustrative,
        "query": [[name, value] for name, values in query.items() for value in ([values] if isinstance(values, str) else values)],
        "tour": _TOUR,
        "opening": {"tour": link.tour, "projector": link.is_projected},
        "step": trace and _step(trace, scorer, _step_key(source, sentence.token_ids)),
    }


def _step(trace: StepTrace, scorer: PrefixCache, key: str) -> dict:
    return {
        "key": key,
        "settings": live_settings(trace.params),
        "u": uniform(trace.params.seed, trace.step),
        "exact": exact_step(trace, scorer.vocabulary, SHOWN),
    }


def _branches(bench: session.Bench) -> list[tuple[int, Sentence]]:
    """The latest continuations that are not on the screen already, with their places in `bench.branches`."""
    elsewhere = [(place, branch) for place, branch in enumerate(bench.branches) if not branch.begins(bench.sentence)]
    return elsewhere[: -SHOWN_BRANCHES - 1 : -1]


def _branch_text(branch: Sentence, scorer: PrefixCache) -> str:
    """The end of a branch, short enough for a button; its spaces stay spaces, all else that does not print is spelled out."""
    text = visible(scorer.vocabulary.text(branch.token_ids).encode("utf-8")).replace("␣", " ")
    return f"…{text[-39:]}" if len(text) > 40 else text


def _receive(scorer: PrefixCache, source: str) -> None:
    """Carry out the events the browser sent and that were not carried out yet. A malformed one is ignored: our page sends none."""
    bench = session.bench(source)
    events = getattr(session.get(_key(source)), "events", None)
    for event in events[:MAX_EVENTS] if isinstance(events, list) else ():
        try:
            if event["seq"] > bench.acknowledged:
                bench.acknowledged = int(event["seq"])
                session.set_params(SamplingParams(**event["settings"]))
                _carry_out(event, scorer, bench)
        except UserError as error:
            bench.notices.append(str(error))
        except (LookupError, TypeError, ValueError, OverflowError):
            continue


def _carry_out(event: dict, scorer: PrefixCache, bench: session.Bench) -> None:
    name, sentence = event["name"], bench.sentence
    if name == "next" and _stop(scorer, sentence, session.read_rules()) is None:
        bench.change(written(sentence, scorer, session.params()))
    elif name == "force" and 0 <= int(event["id"]) < scorer.vocabulary.size:
        bench.change(forced(sentence, scorer, int(event["id"])))
    elif name == "rewind":
        bench.change(sentence.rewound(max(0, int(event["length"]))))
    elif name == "branch":
        place = [place for place, _ in _branches(bench)][int(event["position"])]
        bench.change(bench.branches[place])
    elif name == "undo":
        bench.undo()
    elif name == "redo":
        bench.redo()


def _stop(scorer: PrefixCache, sentence: Sentence, rules: StopRules) -> Stop | None:
    return find_stop(scorer, len(sentence.prompt_ids), sentence.generated_ids, rules)


def _stop_text(stop: Stop, rules: StopRules, scorer: PrefixCache) -> str:
    if stop.kind == "end_token":
        return "Arrêt : le modèle a choisi le token de fin. Pour lui, le texte est terminé."
    if stop.kind == "stop_sequence":
        return f"Arrêt : le texte contient la séquence d’arrêt « {visible(stop.sequence.encode('utf-8', 'replace'))} »."
    if stop.kind == "context_length":
        return f"Arrêt : le contexte du modèle est plein ({plural(scorer.info.context_length, 'token')})."
    return f"Arrêt : le plafond de {plural(rules.max_new_tokens, 'token')} est atteint. Relevez-le pour continuer."
