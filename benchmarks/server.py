"""The app in a process of its own, and the browser that visits it."""

import os
import shutil
import subprocess
import sys
import time
import urllib.request
from pathlib import Path

ROOT = Path(__file__).parent.parent
CHROMIUM = shutil.which("chromium")
FLAGS = ["--no-sandbox", "--disable-gpu", "--no-first-run", "--disable-background-networking", "--disable-component-update"]


def serve(script: Path, port: int) -> subprocess.Popen:
    command = [sys.executable, "-m", "streamlit", "run", str(script), "--server.headless=true", f"--server.port={port}"]
    server = subprocess.Popen(command, cwd=ROOT, env=os.environ, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    while True:
        try:
            urllib.request.urlopen(f"http://127.0.0.1:{port}/_stcore/health").close()
            return server
        except OSError:
            time.sleep(0.2)


def resident_bytes(process: subprocess.Popen) -> int:
    """Of the process, the model's pages it has touched included."""
    status = Path(f"/proc/{process.pid}/status").read_text()
    return next(int(line.split()[1]) * 1024 for line in status.splitlines() if line.startswith("VmRSS:"))
