"""A real server on the real model, and a real Chromium. Without a browser these tests fail: they are never skipped."""

import os
import shutil
import socket
import subprocess
import sys
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from playwright.sync_api import Browser, BrowserContext, Dialog, Page, expect, sync_playwright

from tests.conftest import ROOT

CHROMIUM_FLAGS = [
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
]

_contexts: dict[str, BrowserContext] = {}


def free_port() -> int:
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        return listener.getsockname()[1]


@contextmanager
def running_app(folder: Path, log: Path, environment: dict[str, str]) -> Iterator[str]:
    """The address of the app in a folder, started the way README says. A traceback in its log fails the test."""
    port = free_port()
    command = [sys.executable, "-m", "streamlit", "run", "app.py", "--server.headless=true", f"--server.port={port}"]
    with log.open("wb") as output:
        process = subprocess.Popen(command, cwd=folder, env=os.environ | environment, stdout=output, stderr=subprocess.STDOUT)
    try:
        address = f"http://127.0.0.1:{port}"
        _wait_for(address, process, log)
        yield address
    finally:
        process.terminate()
        process.wait(timeout=20)
    assert "Traceback" not in log.read_text(), f"the server logged an error:\n{log.read_text()}"


@pytest.fixture(scope="session")
def server(model_folder, tmp_path_factory) -> Iterator[str]:
    """The address of the app on the model the session converted."""
    log = tmp_path_factory.mktemp("server") / "log"
    with running_app(ROOT, log, {"INFERENCE_CACHE": str(model_folder.parent)}) as address:
        yield address


def _wait_for(address: str, process: subprocess.Popen, log) -> None:
    for _ in range(200):
        assert process.poll() is None, log.read_text()
        try:
            urllib.request.urlopen(f"{address}/_stcore/health", timeout=1).close()
            return
        except OSError:
            with pytest.raises(subprocess.TimeoutExpired):
                process.wait(timeout=0.2)
    pytest.fail(f"the server did not answer:\n{log.read_text()}")


@pytest.fixture(scope="session")
def browser() -> Iterator[Browser]:
    with sync_playwright() as playwright:
        executable = os.environ.get("CHROMIUM") or shutil.which("chromium") or shutil.which("chromium-browser")
        yield playwright.chromium.launch(executable_path=executable, args=CHROMIUM_FLAGS)


@contextmanager
def watched_page(browser: Browser, address: str, **options) -> Iterator[Page]:
    """A laptop-sized page on an app. Whatever the page logs as an error, asks in a dialog or fetches from elsewhere fails the test."""
    expect.set_options(timeout=20_000)
    settings = {"viewport": {"width": 1440, "height": 900}, "locale": "fr-FR", "base_url": address, "accept_downloads": True}
    page = _context(browser, settings | options).new_page()
    errors: list[str] = []

    def dismiss(dialog: Dialog) -> None:
        errors.append(dialog.message)
        dialog.dismiss()

    page.on("dialog", dismiss)
    page.on("console", lambda message: errors.append(message.text) if message.type == "error" else None)
    page.on("pageerror", lambda error: errors.append(str(error)))
    page.on("request", lambda request: errors.append(request.url) if not request.url.startswith((address, "data:", "blob:")) else None)
    yield page
    page.close()
    assert not errors, errors


def _context(browser: Browser, settings: dict) -> BrowserContext:
    """One for each kind of page: a new one would fetch and compile the app's scripts again at each test."""
    kind = repr(sorted(settings.items()))
    if kind not in _contexts:
        _contexts[kind] = browser.new_context(**settings)
    return _contexts[kind]


@pytest.fixture(scope="session")
def bench_scripts(browser: Browser) -> Page:
    """A blank page that knows the functions of `assets/bench/`: what computes, writes numbers and draws a step."""
    page = browser.new_page()
    names = ("format", "sampler", "settings", "dom", "step_view")
    page.add_script_tag(content="\n".join((ROOT / "assets" / "bench" / f"{name}.js").read_text(encoding="utf-8") for name in names))
    return page


@pytest.fixture
def page(browser: Browser, server: str) -> Iterator[Page]:
    with watched_page(browser, server) as page:
        yield page
