"""Lab: a draft proposes, the model verifies, and the text is the model's."""

from functools import partial

import streamlit as st

from inference.charts import speculative as charts
from inference.escaping import markdown_text
from inference.formatting import count, decimal, number, plural, scientific
from inference.speculative import Round
from inference.speculative_speed import DRAFT_ROWS, LOOKUP, NUM_DRAFT_TOKENS, PROMPTS, SMALL, TOKENS, measure
from pages.ui.lab import bet, chart, measured, open_lab, sources, verdict
from pages.ui.resources import REAL, concrete, describe_model, scorer_for

TEMPERATURES = (0.0, 0.7, 1.0)
MARKS = {"accepté": "green", "refusé": "red", "non lu": "gray"}

lab = open_lab("speculative")
scorer = scorer_for(REAL)
label = scorer.vocabulary.label
choice = bet(lab)
result = None
if choice:
    st.markdown(
        lab.text.part(
            "mesure",
            prompts=len(PROMPTS),
            tokens=TOKENS,
            fewest=NUM_DRAFT_TOKENS[SMALL][0],
            most=NUM_DRAFT_TOKENS[SMALL][-1],
            rows=count(DRAFT_ROWS),
        )
    )
    temperature = st.segmented_control(
        "Température", TEMPERATURES, default=1.0, format_func=decimal, required=True, key="temperature_du_brouillon", bind="query-params"
    )
    settings = f"{describe_model(scorer)}, T = {decimal(temperature)}"
    work = partial(measure, scorer, temperature, concrete("draft").open_draft)
    result = measured(lab, settings, work, lasts="une à deux minutes", timings=lambda result: result.spreads)


def token(token_id: int) -> str:
    return markdown_text(label(token_id))


def as_badges(one: Round) -> str:
    """The proposals of a round, then the token the target added, as Markdown."""
    proposals = (
        f":{MARKS[charts.outcome(one, position)]}-badge[{token(proposal.token_id)} · {charts.outcome(one, position)}]"
        for position, proposal in enumerate(one.proposals)
    )
    return " ".join((*proposals, f":orange-badge[{token(one.token_id)} · {'en prime' if one.is_bonus else 'repêché'}]"))


if result:
    best, check = result.best, result.check
    widest = result.run(SMALL, NUM_DRAFT_TOKENS[SMALL][-1])
    lookups = [run.speedup for run in result.runs if run.draft == LOOKUP]
    verdict(choice, lab.text.choices()[0 if best.speedup < 1.2 else 1 if best.speedup <= 2 else 2])
    st.markdown(
        lab.text.part(
            "conclusion" if best.speedup > 1 else "plus lent",
            draft=best.draft,
            gamma=best.num_draft_tokens,
            speedup=number(best.speedup, 2),
            low=number(best.speedups.low_s, 2),
            high=number(best.speedups.high_s, 2),
            tokens_per_pass=number(best.tokens_per_pass, 2),
            share=number(best.accepted_share * 100, 0),
            draft_cost=number(best.draft_cost, 2),
            verify_cost=number(best.verify_cost, 2),
        )
    )
    round_cost = number(best.tokens_per_pass / best.speedup, 2)
    st.markdown(lab.text.part("pourquoi", tokens_per_pass=number(best.tokens_per_pass, 2), round_cost=round_cost))
    chart(lab, "vitesse", charts.speedups_figure(result.runs), charts.runs_table(result.runs))
    st.markdown(
        lab.text.part(
            "formule",
            gamma_most=widest.num_draft_tokens,
            verify_most=number(widest.verify_cost, 2),
            leviathan=number(max(run.expected_speedup for run in result.runs if run.draft == SMALL), 2),
        )
    )
    st.markdown(lab.text.part("relecture", low=number(min(lookups), 2), high=number(max(lookups), 2)))

    st.subheader("Pas à pas", anchor=False)
    st.markdown(lab.text.part("pas à pas"))
    with st.container(horizontal=True):
        prompt = st.selectbox("Texte", PROMPTS, key="texte_suivi", bind="query-params")
        draft = st.selectbox("Brouillon", list(NUM_DRAFT_TOKENS), key="brouillon", bind="query-params")
        gamma = st.selectbox("γ", NUM_DRAFT_TOKENS[draft], index=1, key="gamma", bind="query-params")
    text = result.run(draft, gamma).texts[PROMPTS.index(prompt)]
    number_of = st.number_input("Passe", 1, len(text.rounds), key="passe", help=f"De 1 à {len(text.rounds)}")
    rounds = [timed_round.round for timed_round in text.rounds[:number_of]]
    last = rounds[-1]
    before = [token_id for one in rounds[:-1] for token_id in one.new_ids]
    st.markdown(f"{markdown_text(scorer.vocabulary.text((*text.prompt_ids, *before)))} {as_badges(last)}")
    written = plural(len(last.new_ids), "token")
    if not last.proposals:
        st.markdown(lab.text.part("rien à proposer", token=token(last.token_id)))
    elif last.is_bonus:
        st.markdown(lab.text.part("reçu en prime", token=token(last.token_id), written=written))
    else:
        refused = last.examined[-1].token_id
        st.markdown(lab.text.part("repêché", refused=token(refused), token=token(last.token_id), written=written))
    if last.proposals:
        chart(lab, "passe", charts.round_figure(last, label), charts.round_table(last, label))

    st.subheader("La distribution ne change pas", anchor=False)
    st.markdown(lab.text.part("distribution", error=scientific(check.largest_error), draws=count(check.draws)))
    draws = charts.draws_table(check, label)
    chart(lab, "tirages", charts.draws_figure(draws), draws)
    if not check.degrees:
        texts = sum(len(run.texts) for run in result.runs)
        st.markdown(lab.text.part("certain", texts=texts, same=sum(run.same_texts for run in result.runs)))
    else:
        figures = {"chi_square": number(check.chi_square, 1), "degrees": check.degrees, "limit": number(check.limit, 1)}
        st.markdown(lab.text.part("conforme" if check.chi_square <= check.limit else "écart", **figures))
sources(lab)
