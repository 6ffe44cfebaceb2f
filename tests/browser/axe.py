"""Axe, the accessibility checker."""

from axe_playwright_python.base import AXE_SCRIPT
from playwright.sync_api import Page

REFUSED = ("serious", "critical")
STREAMLIT_MENU = "[['[data-testid=stSidebarNav]']]"
"""Streamlit 1.67 puts the titles of its menu's sections, on a phone, in a list where only items may be. It works; axe refuses it."""


def violations(page: Page) -> list[str]:
    """What axe refuses, one line an element: how bad, which rule, where, and why."""
    page.evaluate(AXE_SCRIPT)
    found = page.evaluate("axe.run({ exclude: STREAMLIT_MENU }, { resultTypes: ['violations'] })".replace("STREAMLIT_MENU", STREAMLIT_MENU))
    assert len(found["passes"]) > 20, "axe has looked at next to nothing"
    return [
        f"{rule['impact']}: {rule['id']}, {node['target']}: {node['failureSummary']}"
        for rule in found["violations"]
        for node in rule["nodes"]
        if rule["impact"] in REFUSED
    ]
