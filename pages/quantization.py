"""Lab: the same weights on fewer bits."""

from functools import partial

import streamlit as st

from inference.charts import precisions as charts
from inference.charts.candidates import candidate_rows, candidates_figure, candidates_table
from inference.distributions import kl_divergence, softmax
from inference.escaping import markdown_text
from inference.formatting import mebibytes, milliseconds, number, percent
from inference.machine import has_bfloat16
from inference.passages import read_passages
from inference.precisions import PROMPTS, measure
from inference.sampling import run_pipeline
from pages.ui import session
from pages.ui.lab import bet, chart, measured, open_lab, sources, verdict, warn_if_unsteady
from pages.ui.resources import REAL, concrete, describe_model, is_default_model, scorer_for

SHOWN = 10
OTHERS = ("bfloat16", "int8", "int4")
NATIVE = {True: "bfloat16 oui", False: "bfloat16 non", None: "bfloat16 inconnu"}

lab = open_lab("quantization")
scorer = scorer_for(REAL)
reference = scorer.info.dtype
names = tuple(name for name in OTHERS if name != reference)
choice = bet(lab)
result = None
if choice:
    st.markdown(lab.text.part("mesure", count=len(names) + 1, passages=len(read_passages()), reference=reference))
    open_precision, open_block = concrete("quantization").open_precision, concrete("bandwidth").open_block
    chunks, disk = concrete("weights").weight_chunks, concrete("embedded").cache_folder()
    work = partial(measure, scorer, names, open_precision, open_block, chunks, disk)
    result = measured(lab, describe_model(scorer), work, lasts="une minute")
if result:
    by_name = {one.name: one for one in result}
    largest, smallest = result[0], result[-1]
    changes = 1 - smallest.top1_agreement
    warn_if_unsteady(one.decode for one in result)
    verdict(choice, lab.text.choices()[0 if changes < 0.05 else 1 if changes < 0.2 else 2])
    st.markdown(
        lab.text.part(
            "conclusion",
            reference=reference,
            smallest=smallest.name,
            largest_bytes=mebibytes(largest.weights_bytes),
            smallest_bytes=mebibytes(smallest.weights_bytes),
            largest_decode=milliseconds(largest.decode.median_s),
            smallest_decode=milliseconds(smallest.decode.median_s),
            changes=percent(changes),
            positions=len(smallest.same_favourite),
            int8_changes=percent(1 - by_name["int8"].top1_agreement),
        )
    )
    loads = [one.load_s and milliseconds(one.load_s) for one in (largest, smallest)]
    if all(loads):
        st.markdown(lab.text.part("chargement", reference=reference, smallest=smallest.name, largest_load=loads[0], smallest_load=loads[1]))
    chart(lab, "cout", charts.cost_figure(result), charts.precisions_table(result))
    st.markdown(lab.text.part("comment"))
    if is_default_model(scorer):
        st.markdown(lab.text.part("origine", reference=reference))

    st.subheader("La vitesse", anchor=False)
    chart(lab, "vitesse", charts.speed_figure(result), charts.precisions_table(result))
    fastest = min(result, key=lambda one: one.decode.median_s)
    nearest = min(result, key=lambda one: one.decode.median_s / one.floor_s)
    st.markdown(
        lab.text.part(
            "vitesse",
            fastest=fastest.name,
            fastest_decode=milliseconds(fastest.decode.median_s),
            reference=reference,
            byte_ratio=number(largest.weights_bytes / fastest.weights_bytes, 1),
            time_ratio=number(largest.decode.median_s / fastest.decode.median_s, 1),
            nearest=nearest.name,
            ratio=number(nearest.decode.median_s / nearest.floor_s, 2),
        )
    )
    st.markdown(lab.text.part(NATIVE[has_bfloat16()]))

    st.subheader("Côte à côte", anchor=False)
    st.markdown(lab.text.part("côte à côte"))
    with st.container(horizontal=True):
        prompt = st.selectbox("Texte", PROMPTS, key="exemple", bind="query-params")
        first = st.selectbox("Précision", list(by_name), index=0, key="precision", bind="query-params")
        second = st.selectbox("Comparée à", list(by_name), index=len(by_name) - 1, key="comparee", bind="query-params")
    pair = (first, second)
    scores = tuple(by_name[name].examples[PROMPTS.index(prompt)] for name in pair)
    frame = charts.side_by_side_table(pair, scores, scorer.vocabulary.label)
    chart(lab, "cote_a_cote", charts.side_by_side_figure(pair, frame), frame)
    probs = [softmax(one.logits) for one in scores]
    st.markdown(lab.text.part("écart", kl=number(kl_divergence(*probs), 4)))

    params, prompt_ids = session.params(), scorer.vocabulary.encode(prompt)
    traces = [run_pipeline(one, params, prompt_ids, 0) for one in scores]
    chosen = [markdown_text(scorer.vocabulary.label(trace.choice.token_id)) for trace in traces]
    is_same = traces[0].choice.token_id == traces[1].choice.token_id
    draw = f"le même u = {number(traces[0].u, 4)}" if traces[0].u is not None else "aucun tirage, à T = 0"
    st.markdown(
        lab.text.part("même choix" if is_same else "autre choix", draw=draw, first=first, second=second, chosen=chosen[0], other=chosen[1])
    )
    for column, place, name, trace in zip(st.columns(2), ("gauche", "droite"), pair, traces, strict=True):
        with column:
            st.markdown(f"**{name}**")
            rows = candidate_rows(trace, scorer.vocabulary, SHOWN)
            chart(lab, place, candidates_figure(rows), candidates_table(rows, params.is_greedy))
sources(lab)
