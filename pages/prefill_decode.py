"""Lab: reading a prompt against writing after it, and what the cache changes."""

import streamlit as st

from inference.charts import prefill_decode as charts
from inference.formatting import count, mebibytes, milliseconds, number, plural
from inference.kv_cache import multi_head_bytes
from inference.prefill_decode import DECODES, LENGTHS, REPEATS, measure
from pages.ui.lab import bet, chart, measured, open_lab, sources, verdict
from pages.ui.resources import REAL, describe_model, scorer_for

BET_TOKENS = 512

lab = open_lab("prefill_decode")
scorer = scorer_for(REAL)
choice = bet(lab)
result = None
if choice:
    st.markdown(lab.text.part("mesure", shortest=LENGTHS[0], longest=count(LENGTHS[-1]), repeats=REPEATS, decodes=DECODES))
    result = measured(lab, describe_model(scorer), lambda: measure(scorer), lasts="une demi-minute", timings=lambda result: result.spreads)
if result:
    timings, generation, shape = result.timings, result.generation, scorer.info.architecture
    shortest, longest = timings[0], timings[-1]
    asked = next((timing for timing in timings if timing.tokens == BET_TOKENS), longest)
    equivalent = asked.ttft.median_s / asked.itl.median_s
    verdict(choice, lab.text.choices()[0 if equivalent > 250 else 1 if equivalent > 35 else 2])
    st.markdown(
        lab.text.part(
            "conclusion",
            tokens=asked.tokens,
            ttft=milliseconds(asked.ttft.median_s),
            itl=milliseconds(asked.itl.median_s),
            equivalent=plural(round(equivalent), "token écrit", "tokens écrits"),
            input_tps=count(round(asked.input_tps)),
            output_tps=number(asked.output_tps, 1),
            ratio=number(asked.input_tps / asked.output_tps, 0),
        )
    )
    chart(lab, "temps", charts.timings_figure(timings), charts.timings_table(timings))
    st.markdown(
        lab.text.part(
            "croissance",
            shortest=shortest.tokens,
            longest=count(longest.tokens),
            shortest_ttft=milliseconds(shortest.ttft.median_s),
            longest_ttft=milliseconds(longest.ttft.median_s),
            shortest_itl=milliseconds(shortest.itl.median_s),
            longest_itl=milliseconds(longest.itl.median_s),
        )
    )
    st.markdown(lab.text.part("prix"))

    st.subheader("Avec et sans cache", anchor=False)
    chart(lab, "cache", charts.generation_figure(generation), charts.generation_table(generation))
    st.markdown(
        lab.text.part(
            "cache",
            tokens=len(generation.cached_s),
            prompt=plural(generation.prompt_tokens, "token"),
            speedup=number(generation.speedup, 1),
        )
    )

    st.subheader("Ce que pèse le cache", anchor=False)
    chart(lab, "memoire", charts.cache_figure(timings, shape), charts.cache_table(timings, shape))
    st.markdown(
        lab.text.part(
            "mémoire",
            tokens=count(longest.tokens),
            measured=mebibytes(longest.cache_bytes),
            multi_head=mebibytes(multi_head_bytes(shape, longest.tokens)),
            excess=number(multi_head_bytes(shape, longest.tokens) / longest.cache_bytes, 1),
            query_heads=shape.query_heads,
            kv_heads=plural(shape.kv_heads, "seule tête", "têtes"),
            window=shape.window,
            sliding=shape.sliding_layers,
            layers=shape.layers,
            kept=shape.window - 1,
        )
    )
sources(lab)
