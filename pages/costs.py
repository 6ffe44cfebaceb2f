"""Lab: what a request, a conversation and a fall of prices come to."""

import math

import streamlit as st

from inference.charts import costs as charts
from inference.costs import (
    BATCH_SHARE,
    COUNTED,
    Prices,
    conversation,
    conversation_input_tokens,
    read_examples,
    request_cost,
    seen_at_s,
    tokens_cost,
    turn_cost,
)
from inference.escaping import markdown_text
from inference.formatting import count, decimal, dollars, french, number, percent, plural
from pages.ui.lab import bet, chart, open_lab, sources, table, verdict
from pages.ui.markup import ASSETS
from pages.ui.resources import REAL, scorer_for

BET_TURNS, BET_MESSAGE, BET_ANSWER = 20, 50, 200
"""As the prose of the bet has them."""
PROMPT = "Explique en quelques phrases pourquoi un chat dort autant."
ANSWER = (
    "Le chat est un chasseur : il dépense beaucoup d’énergie en peu de temps, puis il se repose. Il dort surtout le jour, par petites "
    "siestes, et garde l’oreille aux aguets. À l’aube et au crépuscule, quand ses proies sortent, il est le plus actif."
)
MAX_CHARACTERS = 4000
MAX_PRICE = 1000.0
PRICE_LABELS = {
    "input": ("Entrée", "entree"),
    "cache_write": ("Écriture en cache", "ecriture"),
    "cached_input": ("Lecture du cache", "lecture"),
    "output": ("Sortie", "sortie"),
}

examples, fall = read_examples(ASSETS / "prices.json")
lab = open_lab("costs")
scorer = scorer_for(REAL)
choice = bet(lab)
if not choice:
    sources(lab)
    st.stop()


def tokens_of(text: str) -> int:
    """Tokens of a text alone, without the one that opens every prompt."""
    return len(scorer.vocabulary.encode(text)) - len(scorer.vocabulary.encode(""))


def money(cost: float) -> str:
    """A cost for `COUNTED`, rounded as the tables round it."""
    return markdown_text(dollars(round(cost * COUNTED, 6)))


billed, doubled = (conversation_input_tokens(0, BET_MESSAGE, BET_ANSWER, turns) for turns in (BET_TURNS, 2 * BET_TURNS))
verdict(choice, lab.text.choices()[0 if billed < 2000 else 1 if billed < 10000 else 2], says="le calcul dit")
growth = number(doubled / billed, 1)
st.markdown(lab.text.part("conclusion", billed=count(billed), typed=count(BET_TURNS * BET_MESSAGE), growth=growth))

st.subheader("Vos tokens", anchor=False)
st.markdown(lab.text.part("textes", model=markdown_text(scorer.info.name)))
at_most = french(f"{count(MAX_CHARACTERS)} caractères au plus")
written = {"max_chars": MAX_CHARACTERS, "bind": "query-params", "persist_state": "session"}
prompt = st.text_area(f"L’invite ({at_most})", PROMPT, key="invite", **written)
answer = st.text_area(f"La réponse ({at_most})", ANSWER, key="reponse_ecrite", **written)
prompt_tokens, answer_tokens = tokens_of(prompt), tokens_of(answer)
st.markdown(lab.text.part("comptes", prompt=plural(prompt_tokens, "token"), answer=plural(answer_tokens, "token")))

st.subheader("Les prix", anchor=False)
st.markdown(lab.text.part("prix"))
by_name = {example.name: example for example in examples}
example = by_name[st.selectbox("Exemple", list(by_name), key="exemple_prix", bind="query-params")]
with st.container(horizontal=True):
    typed = {
        name: st.number_input(
            label,
            min_value=0.0,
            max_value=MAX_PRICE,
            value=getattr(example.prices, name),
            step=0.01,
            format="%g",
            key=f"{short}_{example.key}",
            bind="query-params",
            persist_state="session",
            width=160,
        )
        for name, (label, short) in PRICE_LABELS.items()
    }
prices = Prices(**typed)
name, date = markdown_text(example.name), markdown_text(example.date)
if prices == example.prices:
    label, url = markdown_text(example.source.label), example.source.url
    st.caption(lab.text.part("exemple", name=name, date=date, label=label, url=url))
else:
    st.caption(lab.text.part("prix modifiés", name=name, date=date))
with st.expander("Tous les exemples"):
    table(lab, "exemples", charts.examples_table(examples))

st.subheader("Une requête", anchor=False)
cost = request_cost(prompt_tokens, answer_tokens, prices)
if cost == 0:
    st.markdown(lab.text.part("gratuit"))
else:
    share = tokens_cost(answer_tokens, prices.output) / cost
    st.markdown(lab.text.part("requête", cost=money(cost), share=percent(share), batch=money(cost * BATCH_SHARE)))
table(lab, "requete", charts.bill_table(prompt_tokens, answer_tokens, prices))

st.subheader("Une conversation", anchor=False)
st.markdown(lab.text.part("conversation"))
with st.container(horizontal=True):
    turns = st.slider("Tours", 1, 50, 20, key="tours", bind="query-params", width=300)
    system_tokens = st.number_input("Consigne (tokens)", 0, 100_000, 0, step=100, key="consigne", bind="query-params", width=200)
told = conversation(system_tokens, prompt_tokens, answer_tokens, turns)
st.markdown(
    lab.text.part(
        "somme",
        turns=turns,
        input=count(conversation_input_tokens(system_tokens, prompt_tokens, answer_tokens, turns)),
        reread=count(sum(turn.reread_tokens for turn in told)),
        last=count(told[-1].input_tokens),
    )
)
chart(lab, "tours", charts.tokens_figure(told), charts.conversation_table(told, prices))
plain, cached = (sum(turn_cost(turn, prices, is_cached) for turn in told) for is_cached in (False, True))
if math.isclose(plain, cached):
    change = lab.text.part("pareil")
elif cached < plain:
    change = lab.text.part("moins", gap=money(plain - cached))
else:
    change = lab.text.part("plus", gap=money(cached - plain))
st.markdown(lab.text.part("cumul", plain=money(plain), cached=money(cached), change=change))
chart(lab, "cumul", charts.cost_figure(told, prices), charts.conversation_table(told, prices))

st.subheader("Le streaming", anchor=False)
st.markdown(lab.text.part("streaming"))
with st.container(horizontal=True):
    ttft_s = st.number_input("TTFT (s)", 0.0, 60.0, 0.5, step=0.1, format="%g", key="ttft", bind="query-params", width=200)
    itl_ms = st.number_input("Entre deux tokens (ms)", 0.0, 5000.0, 50.0, step=10.0, format="%g", key="itl", bind="query-params", width=200)
if answer_tokens == 0:
    st.markdown(lab.text.part("sans réponse"))
else:
    seen_s = seen_at_s(answer_tokens, ttft_s, itl_ms / 1e3, is_streamed=True)
    first, last = (f"{number(seconds, 2)} s" for seconds in (seen_s[0], seen_s[-1]))
    st.markdown(lab.text.part("vue", tokens=plural(answer_tokens, "token"), first=first, last=last))
    chart(
        lab,
        "streaming",
        charts.streaming_figure(answer_tokens, ttft_s, itl_ms / 1e3),
        charts.streaming_table(answer_tokens, ttft_s, itl_ms / 1e3),
    )

st.subheader("La chute des prix", anchor=False)
read, written = sum(turn.input_tokens for turn in told), sum(turn.output_tokens for turn in told)
then, now = (tokens_cost(read + written, price) for price in (fall.before, fall.after))
st.markdown(
    lab.text.part(
        "chute",
        years=decimal(fall.years),
        before=decimal(fall.before),
        after=decimal(fall.after),
        factor=count(round(fall.factor)),
        yearly=number(fall.yearly_factor, 0),
        then=money(then),
        now=money(now),
    )
)
sources(lab)
