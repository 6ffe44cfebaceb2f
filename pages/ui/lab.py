"""What every lab page is made of: a bet, a measurement others can watch, a conclusion, and the table behind each chart."""

import time
from collections.abc import Callable, Hashable, Iterable
from dataclasses import dataclass
from typing import Any

import pandas as pd
import plotly.graph_objects as go
import streamlit as st

from inference.errors import UserError
from inference.escaping import csv_text, markdown_text
from inference.formatting import french, number
from inference.lab_text import LabText, read_lab
from inference.machine import describe_machine
from inference.measurement import Laboratory, Measurement, Spread, Work
from pages.ui import session
from pages.ui.figures import CHART_BUTTONS, french_decimals
from pages.ui.frame import require_frame

REFRESH_S = 0.5
UNSTEADY = (
    "La machine était occupée à autre chose pendant la mesure : le même travail y a pris du simple au double, ou pire. "
    "Ne concluez rien de ces temps ; mesurez de nouveau au calme."
)


@dataclass(frozen=True)
class Lab:
    """A lab page: its name, which is that of its prose file and of its widgets' keys, and its prose."""

    name: str
    text: LabText

    def key(self, widget: str) -> str:
        return f"{self.name}_{widget}"


@st.cache_resource(show_spinner=False)
def _laboratory() -> Laboratory:
    return Laboratory()


def open_lab(name: str) -> Lab:
    """The title of the page and its question; before anything else on the page."""
    require_frame()
    lab = Lab(name, read_lab(name))
    with st.container(key="lab"):
        st.title(lab.text.title, anchor=False)
    st.markdown(lab.text.part("question"))
    return lab


def bet(lab: Lab) -> str | None:
    """What the visitor bets the measurement will say; None until they have, and nothing is shown before."""
    with st.container(border=True):
        choice = st.radio(
            f"Votre pari. {lab.text.part('pari')}",
            lab.text.choices(),
            index=None,
            key=lab.key("pari"),
            persist_state="session",
        )
        if choice is None:
            st.caption(french("Choisissez d’abord : la réponse vient après."))
    return choice


def measured(
    lab: Lab, settings: str, work: Callable[[], Work], lasts: str, timings: Callable[[Any], Iterable[Spread]] = lambda result: ()
) -> Any | None:
    """The result of a measurement under some settings, made now or kept from an earlier visitor; None while there is none.

    settings  what the result depends on, in French.
    lasts     about how long it takes on two cores, in French.
    timings   of a result, those its conclusions rest on: none is shown, unless asked for, when the machine was too busy to time anything.
    """
    key = (lab.name, settings)
    if _laboratory().under_way(key, session.visitor()):
        _follow(lab, key)
        return None
    kept = _laboratory().latest(key)
    with st.container(horizontal=True, vertical_alignment="center"):
        st.button(
            "Mesurer de nouveau" if kept else "Mesurer",
            type="secondary" if kept else "primary",
            on_click=_start,
            args=(key, work),
            key=lab.key("start"),
        )
        if _laboratory().is_under_way(key):
            st.caption(french("Un autre visiteur fait cette mesure en ce moment : suivez-la avec lui."))
        elif kept:
            st.caption(markdown_text(french(_provenance(kept, settings))))
        else:
            st.caption(french(f"Dure {lasts} et occupe le processeur : pendant ce temps, les autres visiteurs attendent un peu plus."))
    return kept.result if kept and _is_trusted(lab, kept.result, timings) else None


def _is_trusted(lab: Lab, result: Any, timings: Callable[[Any], Iterable[Spread]]) -> bool:
    """Whether to draw conclusions; says why not, and leaves the last word to the visitor."""
    return warn_if_unsteady(timings(result)) or st.toggle("Voir quand même ces chiffres", key=lab.key("unsteady"))


def warn_if_unsteady(spreads: Iterable[Spread]) -> bool:
    """Whether the machine was calm. Says that the times are not to be trusted when it was busy with something else."""
    is_calm = all(spread.is_steady for spread in spreads)
    if not is_calm:
        st.warning(french(UNSTEADY))
    return is_calm


def _start(key: Hashable, work: Callable[[], Work]) -> None:
    try:
        _laboratory().start(key, work, session.visitor())
    except UserError as error:
        st.toast(markdown_text(french(str(error))))


@st.fragment(run_every=REFRESH_S)
def _follow(lab: Lab, key: Hashable) -> None:
    """The measurement under way: its progress and a way out. Once it has ended the whole page is drawn again."""
    measurement = _laboratory().under_way(key, session.visitor())
    if measurement is None:
        st.rerun()
    if measurement.state == "failed":
        st.error(markdown_text(french(measurement.error)))
        st.button("Continuer", on_click=measurement.give_up, args=(session.visitor(),), key=lab.key("continue"))
        return
    progress = measurement.progress
    since = "" if measurement.began_s is None else f" depuis {number(time.monotonic() - measurement.began_s, 0)} s"
    st.progress(min(1.0, progress.fraction), french(f"Mesure en cours{since} : {progress.doing}…"))
    with st.container(horizontal=True, vertical_alignment="center"):
        st.button("Arrêter la mesure", on_click=_stop, args=(measurement,), key=lab.key("stop"))
        others = len(measurement.wanted_by) - 1
        if others > 0:
            whose, whom = ("Un autre visiteur suit", "lui") if others == 1 else (f"{others} autres visiteurs suivent", "eux")
            st.caption(french(f"{whose} aussi cette mesure : si vous l’arrêtez, elle continuera pour {whom}."))
        elif measurement.state == "waiting":
            st.caption(french("Une autre mesure est en cours : celle-ci commencera ensuite."))


def _stop(measurement: Measurement) -> None:
    measurement.give_up(session.visitor())
    st.toast("Mesure arrêtée.")


def _provenance(measurement: Measurement, settings: str) -> str:
    ended = measurement.ended
    return f"Mesuré le {ended:%d/%m/%Y} à {ended:%H:%M}, en {number(measurement.duration_s, 0)} s, {settings}, sur {describe_machine()}."


def verdict(bet: str, truth: str, says: str = "la mesure dit") -> None:
    """Whether the bet was right. `truth` is one of the lab's choices, picked by the measurement, or by a calculation that `says` so."""
    if bet == truth:
        st.success(french(f"Pari gagné : {truth}."))
    else:
        st.info(french(f"Vous aviez parié « {bet} » ; {says} : {truth}."))


def chart(lab: Lab, name: str, figure: go.Figure, frame: pd.DataFrame) -> None:
    """A chart, and the table and file behind it."""
    st.plotly_chart(figure, key=lab.key(name), config=CHART_BUTTONS)
    with st.expander("Le tableau"):
        table(lab, name, frame)


def table(lab: Lab, name: str, frame: pd.DataFrame) -> None:
    """A table and its file."""
    st.dataframe(frame, hide_index=True, column_config=french_decimals(frame))
    st.download_button(
        "Télécharger (CSV)",
        _csv(frame),  # ready beforehand: made on demand, it would be lost if the page ran again meanwhile
        f"{lab.name}_{name}.csv",
        "text/csv",
        on_click="ignore",
        key=lab.key(f"{name}_csv"),
    )


def _csv(frame: pd.DataFrame) -> str:
    """Texts, tokens above all, never read as formulas by a spreadsheet."""
    texts = frame.select_dtypes(exclude="number")
    return frame.assign(**{column: texts[column].map(lambda cell: csv_text(str(cell))) for column in texts}).to_csv(index=False)


def sources(lab: Lab) -> None:
    st.caption(f"{french('Source : ')}{lab.text.part('source')}")
