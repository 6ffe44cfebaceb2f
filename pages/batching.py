"""Lab: several visitors in the same pass."""

import statistics
from functools import partial

import streamlit as st

from inference.batching import GAP_PASSES, REQUESTS, ROUNDS, SEED, SIZES, SLOTS, measure
from inference.charts import batching as charts
from inference.formatting import NARROW, mebibytes, milliseconds, number, percent, tiny
from inference.kv_cache import cache_bytes
from inference.serving import OUTPUT_TOKENS, PROMPT_TOKENS
from pages.ui.lab import bet, chart, measured, open_lab, sources, table, verdict
from pages.ui.resources import REAL, concrete, describe_model, scorer_for

BET_ROWS = 16
STATIC, CONTINUOUS = "lots fixes", "lot continu"


def seconds(value: float) -> str:
    return f"{number(value, 1 if value >= 10 else 2)}{NARROW}s"


lab = open_lab("batching")
scorer = scorer_for(REAL)
choice = bet(lab)
result = None
if choice:
    st.markdown(
        lab.text.part(
            "mesure",
            largest=SIZES[-1],
            rounds=ROUNDS,
            requests=REQUESTS,
            seed=SEED,
            gap=GAP_PASSES,
            shortest_prompt=PROMPT_TOKENS[0],
            longest_prompt=PROMPT_TOKENS[-1],
            shortest_output=OUTPUT_TOKENS[0],
            longest_output=OUTPUT_TOKENS[-1],
            slots=SLOTS,
        )
    )
    engines = concrete("continuous")
    work = partial(measure, scorer, engines.PaddedRows, engines.PagedEngine)
    result = measured(lab, describe_model(scorer), work, lasts="une minute", timings=lambda result: result.spreads)
if result:
    by_rows = {one.rows: one for one in result.sizes}
    one, many = by_rows[1], by_rows[BET_ROWS]
    ratio = result.step_ratio(BET_ROWS)
    last_ratio = round(result.sizes[-1].step.median_s / result.sizes[-2].step.median_s, 1)
    verdict(choice, lab.text.choices()[0 if ratio < 1.5 else 1 if ratio < 5 else 2])
    st.markdown(
        lab.text.part(
            "conclusion",
            one=milliseconds(one.step.median_s),
            many=milliseconds(many.step.median_s),
            rows=BET_ROWS,
            ratio=number(ratio, 1),
            one_tps=number(one.throughput_tps, 0),
            many_tps=number(many.throughput_tps, 0),
            last_ratio=number(last_ratio, 1),
            limit=lab.text.part("recul" if last_ratio > 2 else "palier" if last_ratio > 1.8 else "encore"),
        )
    )
    chart(lab, "passes", charts.passes_figure(result.sizes), charts.sizes_table(result.sizes))
    st.markdown(lab.text.part("passes"))
    chart(lab, "debit", charts.throughput_figure(result.sizes), charts.sizes_table(result.sizes))

    services = {STATIC: result.static, CONTINUOUS: result.continuous}
    st.subheader("Une file de demandes", anchor=False)
    st.markdown(lab.text.part("file", slots=SLOTS))
    chart(lab, "cases", charts.gantt_figure(services), charts.requests_table(services, scorer.vocabulary.text))
    st.markdown(
        lab.text.part(
            "comparaison",
            static_idle=percent(result.static.idle_share),
            static_tps=number(result.static.throughput_tps, 1),
            continuous_idle=percent(result.continuous.idle_share),
            continuous_tps=number(result.continuous.throughput_tps, 1),
            static_ttft=seconds(result.static.ttft_s(0.5)),
            continuous_ttft=seconds(result.continuous.ttft_s(0.5)),
            requests=len(result.requests),
            static_ttft_95=seconds(result.static.ttft_s(0.95)),
            continuous_ttft_95=seconds(result.continuous.ttft_s(0.95)),
            slots=SLOTS,
            paged_pass=milliseconds(result.paged_sizes[-1].step.median_s),
            static_pass=milliseconds(by_rows[SLOTS].step.median_s),
        )
    )
    table(lab, "services", charts.services_table(services))

    st.subheader("Ce que paie un visiteur", anchor=False)
    chart(lab, "latences", charts.paid_figure(result, services), charts.paid_table(result, services))
    slowdowns = [among.latency_s / alone.latency_s for among, alone in zip(result.continuous.served, result.alone, strict=True)]
    st.markdown(
        lab.text.part(
            "prix",
            alone=seconds(statistics.median(alone.latency_s for alone in result.alone)),
            continuous=seconds(result.continuous.latency_s(0.5)),
            static=seconds(result.static.latency_s(0.5)),
            worst=slowdowns.index(max(slowdowns)) + 1,
            worst_ratio=number(max(slowdowns), 1),
            gain=number(result.continuous.throughput_tps / result.one_by_one_tps, 1),
        )
    )

    st.subheader("Les blocs du cache", anchor=False)
    chart(lab, "blocs", charts.blocks_figure(result.continuous), charts.blocks_table(result.continuous))
    allotted, used = result.continuous.peak_bytes
    longest = PROMPT_TOKENS[-1] + OUTPUT_TOKENS[-1]
    st.markdown(
        lab.text.part(
            "blocs",
            block=result.block_tokens,
            peak=mebibytes(allotted),
            waste=percent(1 - used / allotted),
            longest=longest,
            reserved=mebibytes(SLOTS * cache_bytes(scorer.info.architecture, longest)),
            pool=mebibytes(result.cache_bytes),
        )
    )

    st.subheader("Les mêmes textes ?", anchor=False)
    differences = {name: result.differences(service) for name, service in services.items()}
    found = sum(map(len, differences.values()))
    count = len(services) * len(result.requests)
    if found:
        margin = max(one.margin for texts in differences.values() for one in texts)
        st.markdown(lab.text.part("autres textes", same=count - found, count=count, margin=tiny(margin)))
        table(lab, "textes", charts.differences_table(differences, scorer.vocabulary.label))
    else:
        st.markdown(lab.text.part("mêmes textes", count=count))

    st.subheader("Le même service, par le calcul", anchor=False)
    pairs = {STATIC: (result.static, result.static_predicted), CONTINUOUS: (result.continuous, result.continuous_predicted)}
    errors = {name: abs(computed.throughput_tps / service.throughput_tps - 1) for name, (service, computed) in pairs.items()}
    st.markdown(
        lab.text.part(
            "calcul",
            slots=SLOTS,
            static_computed=number(result.static_predicted.throughput_tps, 1),
            static_measured=number(result.static.throughput_tps, 1),
            static_error=f"{number(errors[STATIC] * 100, 0)}{NARROW}%",
            continuous_computed=number(result.continuous_predicted.throughput_tps, 1),
            continuous_measured=number(result.continuous.throughput_tps, 1),
            continuous_error=f"{number(errors[CONTINUOUS] * 100, 0)}{NARROW}%",
        )
    )
    table(lab, "calcul", charts.predictions_table(pairs))
    with st.expander("Les passes du moteur continu"):
        table(lab, "passes_continues", charts.sizes_table(result.paged_sizes))
sources(lab)
