"""Lab: a prompt followed through the network."""

import streamlit as st

from inference.charts import forward_pass as charts
from inference.errors import UserError
from inference.escaping import markdown_text
from inference.formatting import count, french, number, percent, plural
from inference.forward_pass import checked_text, settles_at
from pages.ui.lab import bet, chart, open_lab, sources, table, verdict
from pages.ui.resources import REAL, inspect, scorer_for
from pages.ui.session import open_in_bench

DEFAULT_TEXT = "Le chat dort sur le"
KINDS = {"sliding": "glissante", "full": "pleine"}

lab = open_lab("forward_pass")
scorer = scorer_for(REAL)
text = st.text_input("Texte à suivre", DEFAULT_TEXT, key="texte", bind="query-params", persist_state="session")
choice = bet(lab)
if not choice:
    sources(lab)
    st.stop()


def label(token_id: int) -> str:
    return scorer.vocabulary.label(token_id)


try:
    token_ids = scorer.vocabulary.encode(checked_text(text))
    with st.spinner("Le modèle lit le texte…"):
        passage = inspect(scorer, token_ids, len(token_ids) - 1)
except UserError as error:
    st.error(markdown_text(french(str(error))))
    sources(lab)
    st.stop()
depth = len(passage.lens) - 1

st.subheader("Des tokens aux vecteurs", anchor=False)
st.markdown(lab.text.part("tokens", tokens=plural(len(token_ids), "token"), size=count(scorer.vocabulary.size)))
table(lab, "tokens", charts.tokens_table(passage, label))

st.subheader("L’attention", anchor=False)
st.markdown(lab.text.part("attention", window=passage.window) if passage.window else lab.text.part("attention pleine"))
with st.container(horizontal=True):
    layer = st.slider("Couche", 1, depth, 1, key="couche", bind="query-params")
    heads = list(range(1, passage.attentions.shape[1] + 1))
    head = st.segmented_control("Tête", heads, default=1, required=True, key="tete", bind="query-params")
weights = passage.attentions[layer - 1, head - 1]
most = int(weights[-1].argmax())
st.markdown(
    lab.text.part(
        "tête",
        layer=layer,
        kind=KINDS[passage.layer_types[layer - 1]],
        head=head,
        reader=markdown_text(label(token_ids[-1])),
        most=markdown_text(label(token_ids[most])),
        share=percent(float(weights[-1, most])),
    )
)
attention = charts.attention_figure(passage, layer - 1, head - 1, label)
chart(lab, "attention", attention, charts.attention_table(passage, layer - 1, head - 1, label))

st.subheader("Ce que chaque couche répondrait", anchor=False)
st.markdown(lab.text.part("lentille"))
settled = settles_at(passage.lens)
moment = (
    "seulement à la dernière couche" if settled == depth else f"à la couche {settled} sur {depth} et y reste" if settled else "dès l’entrée"
)
verdict(choice, lab.text.choices()[min(2, 3 * settled // (depth + 1))])
chart(lab, "lentille", charts.lens_figure(passage, label), charts.lens_table(passage, label))
st.markdown(lab.text.part("rang", favourite=markdown_text(label(passage.favourite_id))))
st.plotly_chart(charts.rank_figure(passage), key=lab.key("rang"))
st.markdown(
    lab.text.part(
        "conclusion",
        favourite=markdown_text(label(passage.favourite_id)),
        prob=percent(passage.lens[-1].favourite_prob),
        first_rank=count(passage.lens[0].favourite_rank),
        moment=moment,
        entropy=f"{number(passage.lens[-1].entropy_bits, 2)} bits",
    )
)
st.markdown(lab.text.part("banc"))
if st.button(french("Ouvrir ce texte dans « Un token à la fois »"), type="primary"):
    open_in_bench(text, REAL)
    st.switch_page("pages/home.py", query_params={})  # None would clear the address, which Streamlit refuses while widgets hold it
sources(lab)
