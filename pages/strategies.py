"""Lab: one prompt, four texts, and how flat the likeliest is."""

from itertools import groupby

import streamlit as st

from inference.charts import strategies as charts
from inference.errors import UserError
from inference.escaping import markdown_text
from inference.formatting import decimal, french, number, percent
from inference.records import MAX_SEED, MAX_TOP_K, SamplingParams
from inference.strategies import (
    BEAM,
    DRAW_A,
    DRAW_B,
    GREEDY,
    LENGTH_PENALTIES,
    MAX_PROMPT_CHARACTERS,
    NGRAM,
    TOKENS,
    WIDTHS,
    Settings,
    Written,
    checked_prompt,
    measure,
    parts_at,
)
from inference.tokens import visible
from pages.ui.lab import bet, chart, measured, open_lab, sources, table, verdict
from pages.ui.resources import REAL, describe_model, scorer_for

PROMPT = "Il était une fois"
ANSWERS = {GREEDY: 0, BEAM: 1, DRAW_A: 2, DRAW_B: 2}
"""Which of the bet's answers names each text."""
DRAWS = {"A": 1.0, "B": 0.9}
"""The top-p each draw starts with: the whole vocabulary, then a nucleus."""
TEMPERATURES = tuple(tenths / 10 for tenths in range(21))
TOP_PS = tuple(hundredths / 100 for hundredths in range(0, 101, 5))
LINKED = {"bind": "query-params", "persist_state": "session"}

lab = open_lab("strategies")
scorer = scorer_for(REAL)
vocabulary = scorer.vocabulary
choice = bet(lab)
if not choice:
    sources(lab)
    st.stop()


def draw_settings(name: str, seed: int) -> SamplingParams:
    """The widgets of one draw."""
    key = name.lower()
    st.markdown(f"**Tirage {name}**")
    temperature = st.select_slider("Température", TEMPERATURES, 1.0, format_func=decimal, key=f"t_{key}", **LINKED)
    top_p = st.select_slider("Top-p", TOP_PS, DRAWS[name], format_func=decimal, key=f"p_{key}", **LINKED)
    top_k = st.number_input("Top-k (0 : sans)", 0, MAX_TOP_K, 0, key=f"k_{key}", **LINKED)
    return SamplingParams(temperature=temperature, top_k=top_k or None, top_p=top_p, seed=seed)


def signed(value: float) -> str:
    return number(value, 1)


def described(params: SamplingParams) -> str:
    top_k = f", top-k {params.top_k}" if params.top_k else ""
    return f"T = {decimal(params.temperature)}, top-p {decimal(params.top_p)}{top_k}"


def with_marks(text: Written) -> str:
    """What was written, as Markdown: runs of tokens that repeat stand out, and what prints nothing shows."""
    runs = []
    for repeated, tokens in groupby(zip(text.token_ids, text.repeats), key=lambda one: one[1]):
        written = b"".join(vocabulary.token_bytes(token_id) or vocabulary.label(token_id).encode() for token_id, _ in tokens)
        shown = visible(written).replace("␣", " ")
        inside = markdown_text(shown.strip(" "))
        before, after = (" " if is_spaced else "" for is_spaced in (shown.startswith(" "), shown.endswith(" ")))
        runs.append(f"{before}:orange-background[**{inside}**]{after}" if repeated and inside else f"{before}{inside}{after}")
    return "".join(runs)


def token(token_id: int) -> str:
    return markdown_text(vocabulary.label(token_id))


st.markdown(lab.text.part("mesure", tokens=TOKENS))
prompt = st.text_input("Début du texte", PROMPT, max_chars=MAX_PROMPT_CHARACTERS, key="debut_du_texte", **LINKED)
with st.container(horizontal=True):
    width = st.slider("Chemins du faisceau", *WIDTHS, WIDTHS[1], key="chemins", width=220, **LINKED)
    penalty = st.select_slider(
        "Pénalité de longueur",
        LENGTH_PENALTIES,
        1.0,
        format_func=signed,
        help=lab.text.part("pénalité"),
        key="penalite",
        width=220,
        **LINKED,
    )
    seed = st.number_input("Graine des tirages", 0, MAX_SEED, 0, key="graine_des_tirages", width=220, **LINKED)
draws = []
for column, name in zip(st.columns(2), DRAWS):
    with column.container(border=True):
        draws.append(draw_settings(name, seed))
settings = Settings(width, penalty, *draws)
try:
    prompt_ids = checked_prompt(prompt, scorer.info, vocabulary)
except UserError as error:
    st.error(markdown_text(french(str(error))))
    sources(lab)
    st.stop()
beam = f"faisceau de {width}, pénalité {signed(penalty)}"
both = f"A : {described(draws[0])} ; B : {described(draws[1])} ; graine {seed}"
told = f"{describe_model(scorer)}, « {prompt} », {beam} ; {both}"
result = measured(lab, told, lambda: measure(scorer, prompt_ids, settings), lasts="une vingtaine de secondes")
if result:
    greedy, beam_text, draw_a, draw_b = result.texts
    likeliest, least, flattest = result.likeliest, result.least_likely, result.flattest
    answers = lab.text.choices()
    right = [answers[ANSWERS[text.name]] for text in result.texts if text.token_ids == likeliest.token_ids]
    verdict(choice, choice if choice in right else right[0])
    log_prob, repeated = number(likeliest.log_prob, 1), percent(likeliest.repeated_share)
    if least.token_ids == likeliest.token_ids:
        st.markdown(lab.text.part("un même texte", log_prob=log_prob, repeated=repeated, ngram=NGRAM))
    else:
        st.markdown(
            lab.text.part(
                "conclusion",
                likeliest=likeliest.name,
                log_prob=log_prob,
                repeated=repeated,
                ngram=NGRAM,
                least=least.name,
                least_log_prob=number(least.log_prob, 1),
                least_repeated=percent(least.repeated_share),
            )
        )
    parting, left = parts_at(greedy, beam_text), result.search.leaves(greedy.token_ids)
    gap = number(abs(beam_text.log_prob - greedy.log_prob), 1)
    if parting is None:
        st.markdown(lab.text.part("faisceau égal"))
    elif beam_text.log_prob > greedy.log_prob:
        st.markdown(lab.text.part("faisceau devant", gap=gap, parting=parting + 1))
    elif left:
        st.markdown(lab.text.part("faisceau derrière", gap=gap, width=width, parting=parting + 1))
    else:
        st.markdown(lab.text.part("faisceau pénalisé", gap=gap, penalty=signed(penalty), parting=parting + 1))
    if likeliest.repeated_share > least.repeated_share:
        st.markdown(lab.text.part("plus plat", likeliest=likeliest.name, least=least.name))
    elif least.token_ids != likeliest.token_ids:
        st.markdown(lab.text.part("pas plus plat"))
    lengths = [len(text.token_ids) for text in result.texts]
    if len(set(lengths)) > 1:
        st.markdown(lab.text.part("longueurs", shortest=min(lengths), longest=max(lengths)))

    st.subheader("Les textes", anchor=False)
    st.markdown(lab.text.part("textes", ngram=NGRAM))
    for pair in (result.texts[:2], result.texts[2:]):
        for column, text in zip(st.columns(2), pair):
            with column.container(border=True):
                likely = f"{number(text.log_prob, 1)} nats, soit {number(text.mean_log_prob, 2)} par token"
                st.caption(french(f"{text.name} : {likely} ; {percent(text.repeated_share)} déjà vus"))
                st.markdown(f"{markdown_text(prompt)}{with_marks(text)}")
    st.markdown(lab.text.part("mesures", ngram=NGRAM))
    chart(lab, "textes", charts.flatness_figure(result.texts), charts.texts_table(result.texts, vocabulary.text))
    st.markdown(lab.text.part("un seul"))

    st.subheader("L’arbre du faisceau", anchor=False)
    st.markdown(lab.text.part("arbre"))
    if left:
        st.markdown(lab.text.part("glouton perdu", step=left, width=width))
    else:
        st.markdown(lab.text.part("glouton suivi"))
    steps = st.slider("Étapes montrées", 4, TOKENS, 12, key="etapes", bind="query-params")
    tree = charts.tree_figure(result.search, greedy.token_ids, steps, vocabulary.label, vocabulary.text)
    chart(lab, "arbre", tree, charts.tree_table(result.search, vocabulary.label, vocabulary.text))

    st.subheader("L’entropie le long du texte", anchor=False)
    means = ", ".join(f"{text.name} {number(text.mean_entropy_bits, 2)} bits" for text in result.texts)
    st.markdown(lab.text.part("entropie", means=means))
    if flattest.repeated_share:
        repeated_bits, fresh_bits = (number(bits, 2) for bits in flattest.entropies_by_repeat)
        st.markdown(lab.text.part("boucle", flattest=flattest.name, repeated_bits=repeated_bits, fresh_bits=fresh_bits))
    else:
        st.markdown(lab.text.part("pas de boucle", ngram=NGRAM))
    chart(lab, "entropie", charts.entropy_figure(result.texts), charts.tokens_table(result.texts, vocabulary.label))

    st.subheader("Les mêmes u", anchor=False)
    st.markdown(lab.text.part("mêmes u"))
    step = parts_at(draw_a, draw_b)
    if step is None:
        st.markdown(lab.text.part("jamais séparés"))
    else:
        drawn = draw_a.draws[step], draw_b.draws[step]
        a, b = (token(one.draw.token_id) for one in drawn)
        if all(one.u is not None for one in drawn):
            st.markdown(lab.text.part("séparés", step=step + 1, u=number(drawn[0].u, 4), a=a, b=b))
        else:
            st.markdown(lab.text.part("séparés sans u", step=step + 1, a=a, b=b))
    table(lab, "tirages", charts.draws_table(draw_a, draw_b, vocabulary.label))
sources(lab)
