"""Lab: the same question at temperature zero, computed alone and otherwise."""

import streamlit as st

from inference.charts import temperature_zero as charts
from inference.escaping import markdown_text
from inference.formatting import count, plural, tiny
from inference.routes import AGAIN, ALONE, BATCH, BATCHES
from inference.temperature_zero import PROMPT, SERVED, measure
from pages.ui.lab import bet, chart, measured, open_lab, sources, table, verdict
from pages.ui.resources import REAL, concrete, describe_model, scorer_for

lab = open_lab("temperature_zero")
scorer = scorer_for(REAL)


def label(token_id: int) -> str:
    return scorer.vocabulary.label(token_id)


choice = bet(lab)
result = None
if choice:
    precision = scorer.info.dtype
    also = "" if precision == SERVED else f", en {precision} puis en {SERVED}, sur une copie des poids rendue à la fin"
    st.markdown(lab.text.part("mesure", also=also))
    arithmetic, open_precision = concrete("batched"), concrete("quantization").open_precision
    result = measured(lab, describe_model(scorer), lambda: measure(scorer, arithmetic, open_precision), lasts="une demi-minute")
if result:
    asked = next(one for one in result.comparisons if one.route == BATCH)
    lengths = list(dict.fromkeys(one.tokens for one in result.comparisons))
    repeated = max(one.differing for one in result.comparisons if one.route == AGAIN)
    verdict(choice, lab.text.choices()[0 if not asked.differing else 1 if asked.share < 0.5 else 2])
    if asked.differing:
        differing, vocabulary = charts.changes(asked.differing), count(asked.vocabulary)
        st.markdown(lab.text.part("conclusion", rows=BATCHES[-1], differing=differing, vocabulary=vocabulary, largest=tiny(asked.largest)))
    else:
        st.markdown(lab.text.part("lot égal", rows=BATCHES[-1], vocabulary=count(asked.vocabulary)))
    st.markdown(lab.text.part("deux fois", again=charts.changes(repeated)))
    if asked.flips:
        favourite, other = (markdown_text(label(token_id)) for token_id in asked.favourites)
        st.markdown(lab.text.part("favori changé", favourite=favourite, other=other))
    else:
        st.markdown(lab.text.part("favori gardé", gap=tiny(asked.gap)))
    chart(lab, "logits", charts.comparisons_figure(result.comparisons), charts.comparisons_table(result.comparisons))
    (cached, threaded), (long_cached, long_threaded) = ([one for one in result.comparisons if one.tokens == n][-2:] for n in lengths)
    st.markdown(
        lab.text.part(
            "autres calculs",
            cached=charts.changes(cached.differing),
            threads=threaded.route,
            threaded=charts.changes(threaded.differing),
            tokens=long_cached.tokens,
            long_cached=charts.changes(long_cached.differing),
            long_threaded=charts.changes(long_threaded.differing),
        )
    )

    st.subheader("De combien", anchor=False)
    tokens = st.segmented_control("Tokens du texte", lengths, default=lengths[0], required=True, key="tokens", bind="query-params")
    shown = tuple(one for one in result.comparisons if one.tokens == tokens)
    most = max(shown, key=lambda one: one.largest)
    if most.differing:
        st.markdown(lab.text.part("écarts", tokens=tokens, largest=tiny(most.largest), route=most.route))
        chart(lab, "ecarts", charts.differences_figure(shown), charts.differences_table(shown))
    else:
        st.markdown(lab.text.part("tous égaux", tokens=tokens))

    st.subheader("Jusqu’à changer de token", anchor=False)
    names = [search.precision for search in result.searches]
    places = len(result.searches[0].near_ties)
    st.markdown(lab.text.part("recherche", positions=count(result.searches[0].positions), places=places))
    for search in result.searches:
        places, flips = len(search.near_ties), len(search.flipped)
        change, gap = max(one.change for one in search.near_ties), tiny(search.near_ties[0].gap)
        if search.flipped:
            st.markdown(lab.text.part("bascule", precision=search.precision, flips=flips, places=places))
        elif change:
            st.markdown(lab.text.part("pas de bascule", precision=search.precision, places=places, gap=gap, change=tiny(change)))
        else:
            st.markdown(lab.text.part("avances égales", precision=search.precision, places=places, gap=gap))
        if search.unstable:
            st.markdown(lab.text.part("endroits instables", places=plural(len(search.unstable), "endroit"), precision=search.precision))
    chosen = st.segmented_control("Précision", names, default=names[-1], required=True, key="precision_cherchee", bind="query-params")
    search = result.searches[names.index(chosen)]
    near_ties = charts.near_ties_table(search.near_ties, scorer.vocabulary.text, label)
    chart(lab, "ex_aequo", charts.near_ties_figure(search.near_ties, label), near_ties)
    if search.fork:
        fork = search.fork
        text = markdown_text(scorer.vocabulary.text(fork.token_ids))
        st.markdown(lab.text.part("suites", text=text, precision=search.precision))
        for column, name, written in zip(st.columns(2), (ALONE, fork.route), (fork.alone, fork.other), strict=True):
            with column.container(border=True):
                st.caption(name)
                st.markdown(f"… {markdown_text(scorer.vocabulary.text(written))}")
        with st.expander("Le tableau"):
            table(lab, "suites", charts.fork_table(fork, label))

    st.subheader("L’ordre des additions", anchor=False)
    sums = result.sums
    a, b, c = sums.triple
    terms = len(sums.terms)
    kind = "ordre" if (a + b) + c != a + (b + c) else "ordre égal"
    st.markdown(lab.text.part(kind, terms=terms, token=markdown_text(label(sums.token_id)), prompt=PROMPT))
    table(lab, "trois_produits", charts.triple_table(sums))
    distinct = plural(len(set(sums.orders.values())), "valeur", "valeurs différentes")
    st.markdown(lab.text.part("sommes", terms=terms, distinct=distinct, precision=scorer.info.dtype))
    table(lab, "sommes", charts.orders_table(sums))

    st.subheader("Ce qu’il faut en retenir", anchor=False)
    if repeated:
        st.markdown(lab.text.part("seul instable", count=plural(repeated, "logit"), vocabulary=count(asked.vocabulary)))
    else:
        st.markdown(lab.text.part("seul stable"))
    st.markdown(lab.text.part("retenir"))
sources(lab)
