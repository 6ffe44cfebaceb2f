"""Lab: the least time a token can take, on this machine and on others."""

from functools import partial

import streamlit as st

from inference.charts import memory_floor as charts
from inference.decode_floor import ROUNDS, measure
from inference.escaping import markdown_text
from inference.formatting import count, decimal, gigabytes, mebibytes, milliseconds, number, percent
from inference.memory_floor import critical_batch_size, floor_s, read_presets, weights_read_bytes
from pages.ui.lab import bet, chart, measured, open_lab, sources, verdict
from pages.ui.markup import ASSETS
from pages.ui.resources import REAL, concrete, describe_model, scorer_for

BITS = (16, 8, 4.5, 4)
presets = read_presets(ASSETS / "hardware.json")
models = {model.name: model for model in presets.models}
machines = {machine.name: machine for machine in presets.hardware}
FICHE = ("Llama 3.1 70B", "H100 SXM", 16)
"""What the sheet computes: 42 ms."""

lab = open_lab("memory_floor")
scorer = scorer_for(REAL)
choice = bet(lab)
result = None
if choice:
    st.markdown(lab.text.part("mesure", rounds=ROUNDS))
    work = partial(measure, scorer, concrete("bandwidth").open_block)
    result = measured(lab, describe_model(scorer), work, lasts="une dizaine de secondes", timings=lambda result: [result.decode])
if result:
    verdict(choice, lab.text.choices()[0 if result.ratio < 1.3 else 1 if result.ratio < 2 else 2])
    st.markdown(
        lab.text.part(
            "conclusion",
            bandwidth=f"{gigabytes(result.bandwidth_bytes_per_s)}/s",
            weights=mebibytes(result.weights_bytes),
            dtype=scorer.info.dtype,
            floor=milliseconds(result.floor_s),
            decode=milliseconds(result.decode.median_s),
            low=milliseconds(result.decode.low_s),
            high=milliseconds(result.decode.high_s),
            ratio=number(result.ratio, 2),
            mbu=percent(result.mbu),
        )
    )
    chart(lab, "mesure", charts.floor_figure(result), charts.rounds_table(result))
    st.markdown(lab.text.part("reste"))

st.subheader("La calculatrice", anchor=False)
st.markdown(lab.text.part("calculatrice"))
with st.container(horizontal=True):
    name = st.selectbox("Modèle", list(models), index=list(models).index(FICHE[0]), key="modele", bind="query-params")
    bits = st.selectbox("Bits par paramètre", BITS, index=BITS.index(FICHE[2]), format_func=decimal, key="bits", bind="query-params")
    machine = machines[st.selectbox("Machine", list(machines), index=list(machines).index(FICHE[1]), key="machine", bind="query-params")]
model = models[name]
bytes_read = weights_read_bytes(model.parameters, bits, model.active_share)
floor = floor_s(bytes_read, machine.bandwidth_bytes_per_s)
st.markdown(
    lab.text.part(
        "calcul",
        name=markdown_text(model.name),
        bits=decimal(bits),
        bytes=gigabytes(bytes_read),
        hardware=markdown_text(machine.name),
        bandwidth=f"{gigabytes(machine.bandwidth_bytes_per_s)}/s",
        floor=milliseconds(floor),
        tps=number(1 / floor, 0 if floor < 0.1 else 1),
    )
)
batch = critical_batch_size(weights_read_bytes(model.parameters, bits), model.active_parameters, machine)
if batch is None:
    st.markdown(lab.text.part("lot inconnu"))
else:
    flops = f"{count(machine.flops_per_s / 1e12)} TFLOP/s"
    st.markdown(lab.text.part("lot", batch=count(batch), flops=flops, precision=machine.flops_precision))
if model.active_share < 1:
    active, parameters = (decimal(value / 1e9) for value in (model.active_parameters, model.parameters))
    st.markdown(lab.text.part("mélange", active=active, parameters=parameters))
chart(lab, "machines", charts.hardware_figure(presets.hardware, bytes_read), charts.hardware_table(presets.hardware, bytes_read))
st.markdown(lab.text.part("publiés"))
computed_s = [floor_s(weights_read_bytes(example.parameters, example.bits), example.bandwidth_bytes_per_s) for example in presets.published]
st.dataframe(charts.published_table(presets.published, computed_s), hide_index=True)
sources(lab)
