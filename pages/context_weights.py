"""Lab: what the weights know, what the context says."""

import streamlit as st

from inference.answers import checked_question
from inference.charts import context_weights as charts
from inference.context_weights import measure
from inference.errors import UserError
from inference.escaping import markdown_text
from inference.facts import BEFORE, END, LEANING, MIDDLE, NOTHING, REPEATED, START, STATED, VAGUE, WITHOUT, ask, read_facts
from inference.formatting import count, french, mebibytes, percent, plural, scientific
from pages.ui.lab import bet, chart, measured, open_lab, sources, table, verdict
from pages.ui.resources import REAL, concrete, describe_model, score_answer, scorer_for

MAX_PASSAGE = 1500
LINKED = {"bind": "query-params", "persist_state": "session"}

lab = open_lab("context_weights")
scorer = scorer_for(REAL)
facts = read_facts()
example = facts[0]


def label(token_id: int) -> str:
    return scorer.vocabulary.label(token_id)


choice = bet(lab)
if not choice:
    sources(lab)
    st.stop()
st.markdown(lab.text.part("mesure", facts=len(facts), documents=len(example.documents)))
result = measured(lab, describe_model(scorer), lambda: measure(scorer, facts, concrete("weights").weight_chunks), lasts="une minute")
if result:
    answers = result.answers[example.name]
    median = {document: percent(result.median(document)) for document in result.documents}
    stated = result.median(STATED)
    verdict(choice, lab.text.choices()[0 if stated < 0.01 else 1 if stated < 0.1 else 2])
    is_first = answers[STATED].favourites[0] == answers[STATED].token_ids[0]
    st.markdown(
        lab.text.part(
            "conclusion",
            nothing=percent(answers[NOTHING].probability),
            stated=percent(answers[STATED].probability),
            sentence=example.stated,
            token=markdown_text(label(answers[STATED].token_ids[0])),
            token_nothing=percent(answers[NOTHING].probs[0]),
            token_stated=percent(answers[STATED].probs[0]),
            rank=" : il est devenu le favori" if is_first else ", sans devenir le favori",
            facts=len(facts),
            median_nothing=median[NOTHING],
            median_stated=median[STATED],
            written_nothing=result.written(NOTHING),
            written_stated=result.written(STATED),
        )
    )
    chart(lab, "documents", charts.documents_figure(result), charts.documents_table(result))
    st.markdown(
        lab.text.part(
            "formulation",
            repeated=median[REPEATED],
            stated=median[STATED],
            written_repeated=plural(result.written(REPEATED), "réponse écrite", "réponses écrites"),
            written_stated=result.written(STATED),
            facts=len(facts),
        )
    )
    if result.median(LEANING) > stated:
        st.markdown(lab.text.part("ensemble", leaning=median[LEANING], stated=median[STATED]))
    alone, said = (answers[document].probability for document in (BEFORE, STATED))
    if alone > said:
        st.markdown(lab.text.part("reprise", alone=percent(alone), stated=percent(said)))
    st.markdown(
        lab.text.part(
            "vague",
            sentence=example.vague,
            before=example.before,
            vague=percent(answers[VAGUE].probability),
            nothing=percent(answers[NOTHING].probability),
            alone=percent(answers[BEFORE].probability),
            leaning=percent(answers[LEANING].probability),
            median_nothing=median[NOTHING],
            median_vague=median[VAGUE],
            median_alone=median[BEFORE],
            median_leaning=median[LEANING],
            facts=len(facts),
        )
    )
    st.markdown(
        lab.text.part(
            "enfouie",
            tokens=answers[WITHOUT].prompt_tokens - answers[NOTHING].prompt_tokens,
            start=median[START],
            middle=median[MIDDLE],
            end=median[END],
            stated=median[STATED],
            without=median[WITHOUT],
        )
    )
    st.markdown(lab.text.part("portée", facts=len(facts)))

    st.subheader("Votre passage", anchor=False)
    st.markdown(lab.text.part("le vôtre"))
    at_most = french(f"Passage ({count(MAX_PASSAGE)} caractères au plus)")
    passage = st.text_area(at_most, example.stated, max_chars=MAX_PASSAGE, key="passage", **LINKED)
    question = st.text_input("Question", example.question, max_chars=200, key="question", **LINKED)
    with st.container(horizontal=True):
        opening = st.text_input("Début de la réponse", example.opening, max_chars=200, key="debut", **LINKED)
        answer = st.text_input("La bonne réponse", example.answer, max_chars=60, key="reponse", **LINKED)
    try:
        ways = {"avec le passage": passage.strip(), "sans": ""}
        asked = {
            way: checked_question(scorer.vocabulary, scorer.info, ask(document, question.strip(), opening.strip()), answer)
            for way, document in ways.items()
        }
        with st.spinner("Le modèle lit le passage…"):
            own = {way: score_answer(scorer, *ids) for way, ids in asked.items()}
    except UserError as error:
        st.error(markdown_text(french(str(error))))
    else:
        chances = {way: percent(one.probability) for way, one in own.items()}
        st.markdown(lab.text.part("votre réponse", without=chances["sans"], with_passage=chances["avec le passage"]))
        chart(lab, "votre_passage", charts.tokens_figure(own, label), charts.tokens_table(own, label))

    st.subheader("Les poids, avant et après", anchor=False)
    memory = result.memory
    st.markdown(lab.text.part("empreintes", size=mebibytes(scorer.info.weights_bytes), passes=memory.passes))
    table(lab, "conversation", charts.turns_table(memory.turns))
    table(lab, "empreintes", charts.fingerprints_table(memory))
    st.markdown(lab.text.part("inchangé") if memory.is_unchanged else lab.text.part("changé"))
    before, after = memory.alone
    st.markdown(
        lab.text.part(
            "retenu",
            answer=example.answer,
            inside=percent(memory.inside.probability),
            before=scientific(before.probability),
            after=scientific(after.probability),
            same="le même nombre jusqu’au dernier chiffre" if before == after else "ce ne sont pas exactement les mêmes nombres",
        )
    )
sources(lab)
