"""A lab's measurement as its page shows it, run without a browser."""

import time

import pytest
from streamlit.testing.v1 import AppTest

REST_S = 10


def page() -> None:
    """The part of a lab page that measures; `is_calm` says how its machine was."""
    import streamlit as st

    from inference.lab_text import read_lab
    from inference.measurement import Progress, Spread
    from pages.ui.lab import Lab, measured

    is_calm = st.session_state["is_calm"]

    def measure():
        yield Progress(0.5, "chronomètre")
        return Spread.of([1.0, 1.1, 1.2] if is_calm else [1.0, 2.5, 2.6])

    lab = Lab("essai", read_lab("costs"))
    result = measured(lab, f"calme : {is_calm}", measure, "un instant", timings=lambda spread: [spread])
    if result:
        st.markdown("Une conclusion.")


def conclusions(app: AppTest) -> int:
    return [text.value for text in app.markdown].count("Une conclusion.")


@pytest.fixture(params=[True, False], ids=["calm", "busy"])
def app(request) -> AppTest:
    """The page, once its measurement has ended."""
    app = AppTest.from_function(page)
    app.session_state["is_calm"] = request.param
    app.run().button(key="essai_start").click().run()
    end = time.monotonic() + REST_S
    while "Mesurer de nouveau" not in [button.label for button in app.button]:
        assert time.monotonic() < end
        app.run()
    return app


def test_a_measurement_on_a_busy_machine_concludes_nothing_unless_asked(app):
    assert not app.exception
    if app.session_state["is_calm"]:
        assert conclusions(app) == 1 and not app.warning and not app.toggle
    else:
        assert conclusions(app) == 0 and len(app.warning) == 1
        app.toggle(key="essai_unsteady").set_value(True).run()
        assert conclusions(app) == 1 and len(app.warning) == 1
