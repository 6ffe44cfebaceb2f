"""A real server on the real model, and a real Chromium. Without a browser these tests fail: they are never skipped."""

import os
import shutil
import socket
import subprocess
import sys
import urllib.request
from collections.abc import Iterator

import pytest
from playwright.sync_api import Browser, Page, expect, sync_playwright

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


def free_port() -> int:
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        return listener.getsockname()[1]


@pytest.fixture(scope="session")
def server(model_folder, tmp_path_factory) -> Iterator[str]:
    """The address of the app, started the way README says, on the model the session converted."""
    port = free_port()
    log = tmp_path_factory.mktemp("server") / "log"
    command = [sys.executable, "-m", "streamlit", "run", "app.py", "--server.headless=true", f"--server.port={port}"]
    environment = os.environ | {"INFERENCE_CACHE": str(model_folder.parent)}
    with log.open("wb") as output:
        process = subprocess.Popen(command, cwd=ROOT, env=environment, stdout=output, stderr=subprocess.STDOUT)
    try:
        address = f"http://127.0.0.1:{port}"
        _wait_for(address, process, log)
        yield address
    finally:
        process.terminate()
        process.wait(timeout=20)
    assert "Traceback" not in log.read_text(), f"the server logged an error:\n{log.read_text()}"


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


@pytest.fixture
def page(browser: Browser, server: str) -> Iterator[Page]:
    """A laptop-sized page on the app. Whatever the page logs as an error, or fetches from elsewhere, fails the test."""
    expect.set_options(timeout=20_000)
    context = browser.new_context(viewport={"width": 1440, "height": 900}, locale="fr-FR", base_url=server, accept_downloads=True)
    page = context.new_page()
    errors: list[str] = []
    page.on("console", lambda message: errors.append(message.text) if message.type == "error" else None)
    page.on("pageerror", lambda error: errors.append(str(error)))
    page.on("request", lambda request: errors.append(request.url) if not request.url.startswith((server, "data:", "blob:")) else None)
    yield page
    context.close()
    assert not errors, errors
