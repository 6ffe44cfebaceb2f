"""Lab: three misconceptions, each bet on, then measured on the spot."""

from functools import partial

import streamlit as st

from inference.charts import context_weights as context_charts
from inference.charts import misconceptions as charts
from inference.charts.temperature_zero import changes
from inference.conversation import measure_memory
from inference.escaping import markdown_text
from inference.facts import read_facts
from inference.formatting import count, mebibytes, milliseconds, percent, plural, scientific, tiny
from inference.misconceptions import STORY, WRITTEN, measure_same_question, measure_streaming
from inference.routes import BATCHES
from inference.temperature_zero import PROMPT, SERVED
from pages.ui.frame import link_to
from pages.ui.lab import Lab, bet, chart, measured, open_lab, sources, table, verdict
from pages.ui.resources import REAL, concrete, describe_model, scorer_for

lab = open_lab("misconceptions")
scorer = scorer_for(REAL)
vocabulary, model = scorer.vocabulary, describe_model(scorer)
true, false, depends = lab.text.choices()


def question(name: str) -> Lab:
    """One of the three, with a bet and a measurement of its own."""
    return Lab(f"{lab.name}_{name}", lab.text)


learns = question("apprend")
st.subheader(lab.text.part("apprend"), anchor=False)
choice = bet(learns)
if choice:
    fact = read_facts()[0]
    st.markdown(lab.text.part("apprend, mesure"))
    memory = measured(
        learns, model, lambda: measure_memory(scorer, fact, concrete("weights").weight_chunks), lasts="une dizaine de secondes"
    )
    if memory:
        verdict(choice, false if memory.is_unchanged else true)
        before, after = memory.alone
        st.markdown(
            lab.text.part(
                "apprend, conclusion",
                weights=mebibytes(scorer.info.weights_bytes),
                passes=memory.passes,
                changed="les deux sont les mêmes" if memory.is_unchanged else "les deux diffèrent",
                answer=fact.answer,
                inside=percent(memory.inside.probability),
                before=scientific(before.probability),
                after=scientific(after.probability),
                reads=", ".join(count(turn.read_tokens) for turn in memory.turns),
            )
        )
        table(learns, "empreintes", context_charts.fingerprints_table(memory))
        link_to("context_weights")

zero = question("zero")
st.subheader(lab.text.part("zéro"), anchor=False)
choice = bet(zero)
if choice:
    st.markdown(lab.text.part("zéro, mesure", rows=BATCHES[-1], served=SERVED))
    arithmetic, open_precision = concrete("batched"), concrete("quantization").open_precision
    same = measured(zero, model, lambda: measure_same_question(scorer, arithmetic, open_precision), lasts="une dizaine de secondes")
    if same:
        if same.changes_alone:
            verdict(choice, false)
            st.markdown(lab.text.part("zéro, même seul"))
        elif same.changes_in_batch:
            verdict(choice, false)
            st.markdown(lab.text.part("zéro, lot fautif"))
        else:
            st.info(lab.text.part("zéro, tient"))
        st.markdown(
            lab.text.part("zéro, conclusion", prompt=PROMPT, again=changes(same.again.differing), vocabulary=count(same.again.vocabulary))
        )
        if same.batch.differing:
            differing, largest = changes(same.batch.differing), tiny(same.batch.largest)
            favourite = "change" if same.batch.flips else "reste le même"
            st.markdown(lab.text.part("zéro, lot", rows=BATCHES[-1], differing=differing, largest=largest, favourite=favourite))
        else:
            st.markdown(lab.text.part("zéro, lot égal", rows=BATCHES[-1]))
        st.markdown(
            lab.text.part(
                "zéro, endroits",
                precision=same.precision,
                positions=count(same.positions),
                checked=len(same.near_ties),
                flips=plural(len(same.flips), "choix change", "choix changent") if same.flips else "aucun choix ne change",
            )
        )
        if same.unstable:
            st.markdown(lab.text.part("zéro, instables", places=plural(len(same.unstable), "endroit")))
        if same.flips:
            table(zero, "bascules", charts.flips_table(same.flips, vocabulary.text, vocabulary.label))
        link_to("temperature_zero")

word = question("mot")
st.subheader(lab.text.part("mot à mot"), anchor=False)
choice = bet(word)
if choice:
    st.markdown(lab.text.part("mot à mot, mesure", prompt=STORY, tokens=WRITTEN))
    work = partial(measure_streaming, scorer)
    streaming = measured(word, model, work, lasts="trois secondes", timings=lambda result: filter(None, [result.later]))
    if streaming:
        text = markdown_text(STORY + vocabulary.text(streaming.token_ids))
        first, later = milliseconds(streaming.passes_s[0]), streaming.later
        if later is None:
            st.info(lab.text.part("mot à mot, un seul", text=text, first=first))
        else:
            share = streaming.first_share
            verdict(choice, false if share < 0.5 else depends if share < 0.9 else true)
            st.markdown(
                lab.text.part(
                    "mot à mot, conclusion",
                    text=text,
                    tokens=len(streaming.token_ids),
                    total=milliseconds(streaming.total_s),
                    first=first,
                    share=percent(share),
                    median=milliseconds(later.median_s),
                )
            )
        chart(word, "sorties", charts.streaming_figure(streaming, vocabulary.label), charts.streaming_table(streaming, vocabulary.label))
        link_to("prefill_decode")
sources(lab)
