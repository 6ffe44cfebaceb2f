"""Lab: the same weights, more answers."""

import streamlit as st

from inference.charts import inference_compute as charts
from inference.estimators import Interval, student_t
from inference.formatting import decimal, french, number, percent, plural
from inference.inference_compute import BEST, MAX_TOKENS, PASS, ROUNDS, SAMPLES, TIMED, VOTE, measure
from inference.questions import read_questions
from pages.ui.lab import bet, chart, measured, open_lab, sources, table, verdict, warn_if_unsteady
from pages.ui.resources import REAL, concrete, describe_model, scorer_for
from pages.ui.session import open_in_bench

TEMPERATURES = (0.7, 1.0)
ALL = "tous les thèmes"


def points(gain: Interval) -> str:
    """« +15,8 points (intervalle à 95 % : de +9,7 à +22,0) »."""
    value, low, high = (f"{'+' if one > 1e-9 else ''}{number(one * 100, 1)}" for one in (gain.value, gain.low, gain.high))
    interval = f" (intervalle à 95 % : de {low} à {high})" if gain.has_width else ""
    return f"{value} {'points' if abs(gain.value) >= 0.02 else 'point'}{interval}"


lab = open_lab("inference_compute")
scorer = scorer_for(REAL)


def in_words(gain: Interval) -> str:
    """What an interval lets one say."""
    if not gain.has_width:
        return lab.text.part("sans intervalle")
    return lab.text.part("mieux" if gain.low > 0 else "moins bien" if gain.high < 0 else "zéro")


questions = read_questions()
choice = bet(lab)
result = None
if choice:
    with st.container(horizontal=True):
        temperature = st.segmented_control(
            "Température", TEMPERATURES, default=1.0, format_func=decimal, required=True, key="temperature", bind="query-params"
        )
        themes = (ALL, *dict.fromkeys(question.theme for question in questions))
        theme = st.selectbox("Questions", themes, key="theme", bind="query-params", width=260)
    asked = tuple(question for question in questions if theme in (ALL, question.theme))
    st.markdown(lab.text.part("mesure", samples=SAMPLES, questions=len(asked), max_tokens=MAX_TOKENS))
    settings = f"{describe_model(scorer)}, T = {decimal(temperature)}, {theme}"
    lasts = "une à deux minutes" if theme == ALL else "une vingtaine de secondes"
    result = measured(lab, settings, lambda: measure(scorer, concrete("sampled").Branches, temperature, asked), lasts)
if result:
    gain, vote_over_greedy, best_over_greedy = result.gain(VOTE), result.gain_over_greedy(VOTE), result.gain_over_greedy(BEST)
    warn_if_unsteady([*result.sample_times.values(), result.greedy_time])
    verdict(choice, lab.text.choices()[0 if gain.value < 0.03 else 1 if gain.value <= 0.1 else 2])
    st.markdown(
        lab.text.part(
            "conclusion",
            temperature=decimal(result.temperature),
            samples=SAMPLES,
            one=percent(result.accuracy(VOTE, 1).value),
            vote=percent(result.accuracy(VOTE, SAMPLES).value),
            gain=points(gain),
            best=percent(result.accuracy(BEST, SAMPLES).value),
        )
    )
    st.markdown(
        lab.text.part(
            "glouton",
            greedy=percent(result.greedy_accuracy.value),
            tokens=number(result.tokens(SAMPLES) / result.greedy_tokens, 0),
            samples=SAMPLES,
            vote=points(vote_over_greedy),
            vote_says=in_words(vote_over_greedy),
            best=points(best_over_greedy),
            best_says=in_words(best_over_greedy),
        )
    )
    chart(lab, "justesse", charts.accuracy_figure(result), charts.accuracy_table(result))
    lost = sum(one.right > 0 and not any(map(one.question.is_right, one.leaders)) for one in result.answered)
    says = lab.text.part("vote perdu", lost=plural(lost, "question")) if lost else lab.text.part("vote jamais perdu")
    st.markdown(lab.text.part("pass", samples=SAMPLES, passed=percent(result.accuracy(PASS, SAMPLES).value), lost=says))
    count = len(result.answered)
    st.markdown(lab.text.part("estimation", samples=SAMPLES, questions=count, t=number(student_t(count - 1), 2)))

    st.subheader("Ce que cela coûte", anchor=False)
    one_time, time = result.sample_times[1].median_s, result.sample_times[SAMPLES].median_s
    st.markdown(
        lab.text.part(
            "coût",
            samples=SAMPLES,
            tokens=number(result.tokens(SAMPLES), 0),
            one_tokens=number(result.tokens(1), 1),
            time=f"{number(time, 2)} s",
            one_time=f"{number(one_time, 2)} s",
            ratio=number(time / one_time, 1),
        )
    )
    unit = st.segmented_control(
        "Compté en", (charts.TOKENS, charts.SECONDS), default=charts.TOKENS, required=True, key="cout", bind="query-params"
    )
    chart(lab, "cout", charts.cost_figure(result, unit), charts.accuracy_table(result))
    st.markdown(lab.text.part("temps", timed=TIMED, rounds=ROUNDS))

    st.subheader("Question par question", anchor=False)
    st.markdown(lab.text.part("question par question"))
    table(lab, "questions", charts.questions_table(result))
    by_sentence = {one.question.asked: one for one in result.answered}
    shown = by_sentence[st.selectbox("De près", list(by_sentence), key="de_pres", bind="query-params")]
    answers = charts.answers_table(shown)
    chart(lab, "reponses", charts.answers_figure(answers), answers)
    st.markdown(lab.text.part("banc"))
    if st.button(french("Ouvrir cette question dans « Un token à la fois »")):
        open_in_bench(shown.question.prompt, REAL)
        st.switch_page("pages/home.py", query_params={})  # None would clear the address, which Streamlit refuses while widgets hold it

    st.subheader("Ce qu’il faut en retenir", anchor=False)
    st.markdown(lab.text.part("retenir"))
sources(lab)
