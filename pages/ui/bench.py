"""The bench: a text being written token by token, and under it the distribution of the next one."""

import streamlit as st

from inference.errors import UserError
from inference.escaping import markdown_text
from inference.formatting import french, plural
from inference.generation import find_stop
from inference.link import from_query
from inference.prefix_cache import PrefixCache
from inference.records import Stop, StopRules
from inference.sentence import Sentence, forced, open_sentence, written
from pages.ui import session
from pages.ui.controls import stop_controls
from pages.ui.distribution import show_distribution
from pages.ui.markup import show
from pages.ui.tokens_view import sentence_view

DEFAULT_PROMPT = "Le chat dort sur le"
PLAY_INTERVAL_S = 0.7


def read_link(sources: tuple[str, ...]) -> None:
    """Once a visit: put what the address asks for into the widgets; `show_bench` does the rest."""
    if not session.has_settings():
        link = from_query({name: st.query_params.get_all(name) for name in st.query_params}, sources)
        session.write_settings(link.params, link.rules)
        session.put("link", link)
        session.put("source", link.source)


def show_bench(scorer: PrefixCache, source: str) -> None:
    """Everything below the page's title. Writing a token runs only this part again; moving a setting, only the distribution."""
    if session.bench(source) is None:
        session.open_bench(source, _opening(scorer, source))
    playing = session.bench(source).playing
    st.fragment(_draw, run_every=PLAY_INTERVAL_S if playing else None)(scorer, source)


def _opening(scorer: PrefixCache, source: str) -> session.Bench:
    """The text the address asked for, or the example. What cannot be had costs only itself, and the page says so."""
    link = session.get("link")
    if link.source != source:
        return session.Bench(open_sentence(DEFAULT_PROMPT, scorer))
    notices = list(link.problems)
    try:
        sentence = open_sentence(DEFAULT_PROMPT if link.prompt is None else link.prompt, scorer)
    except UserError as error:
        return session.Bench(open_sentence(DEFAULT_PROMPT, scorer), notices=[*notices, str(error)])
    place = st.empty()
    for position, (token_id, by_hand) in enumerate(link.token_ids):
        if token_id >= scorer.vocabulary.size or len(sentence.token_ids) >= scorer.info.context_length:
            notices.append("La suite de ce lien ne va pas avec ce modèle : elle s’arrête là où elle n’a plus de sens.")
            break
        place.progress(position / len(link.token_ids), "Relecture de la suite du lien…")
        sentence = forced(sentence, scorer, token_id, by_hand)
    place.empty()
    return session.Bench(sentence, notices=notices)


def _draw(scorer: PrefixCache, source: str) -> None:
    bench = session.bench(source)
    rules = session.read_rules()
    if bench.playing:
        _play(scorer, bench, rules)
    sentence = bench.sentence
    stop = _stop(scorer, sentence, rules)

    _prompt_form(scorer, bench, source)
    show(sentence_view(sentence, scorer.vocabulary))
    if sentence.choices:
        st.caption(french("Sous chaque token écrit : la probabilité que lui donnait le modèle, avant tout réglage."))
    _buttons(scorer, bench, stop)
    while bench.notices:
        st.warning(markdown_text(french(bench.notices.pop(0))))
    if stop:
        st.info(french(_stop_text(stop, rules, scorer)))
    show_distribution(scorer, source, sentence, rules, has_ended=stop is not None and stop.kind in ("end_token", "context_length"))


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


def _buttons(scorer: PrefixCache, bench: session.Bench, stop: Stop | None) -> None:
    sentence = bench.sentence
    with st.container(horizontal=True):
        st.button(
            "Token suivant",
            type="primary",
            icon=":material/skip_next:",
            shortcut="Alt+N",
            disabled=stop is not None,
            on_click=_write,
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
            "Recommencer", icon=":material/replay:", disabled=not sentence.choices, on_click=bench.change, args=(sentence.rewound(0),)
        )
        st.button("Annuler", icon=":material/undo:", shortcut="Alt+Z", disabled=not bench.past, on_click=bench.undo)
        st.button("Rétablir", icon=":material/redo:", shortcut="Alt+Y", disabled=not bench.future, on_click=bench.redo)
        with st.popover("Arrêts", icon=":material/stop_circle:"):
            stop_controls()


def _play(scorer: PrefixCache, bench: session.Bench, rules: StopRules) -> None:
    if _stop(scorer, bench.sentence, rules) is None:
        _write(scorer, bench)
    else:
        bench.playing = False
        st.rerun()


def _write(scorer: PrefixCache, bench: session.Bench) -> None:
    try:
        bench.change(written(bench.sentence, scorer, session.read_params()))
    except UserError as error:
        bench.playing = False
        bench.notices.append(str(error))


def _stop(scorer: PrefixCache, sentence: Sentence, rules: StopRules) -> Stop | None:
    return find_stop(scorer, len(sentence.prompt_ids), sentence.generated_ids, rules)


def _stop_text(stop: Stop, rules: StopRules, scorer: PrefixCache) -> str:
    if stop.kind == "end_token":
        return "Arrêt : le modèle a choisi le token de fin. Pour lui, le texte est terminé."
    if stop.kind == "stop_sequence":
        return f"Arrêt : le texte contient la séquence d’arrêt « {markdown_text(stop.sequence)} »."
    if stop.kind == "context_length":
        return f"Arrêt : le contexte du modèle est plein ({plural(scorer.info.context_length, 'token')})."
    return f"Arrêt : le plafond de {plural(rules.max_new_tokens, 'token')} est atteint. Relevez-le pour continuer."
