"""A real browser, and folders with something to report."""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from holdfast.cli import main
from tests.runs.small_runs import NETWORK, TABLE, trained

NASTY = "<img src=x onerror=alert(1)>"
"""What a run may be called."""


@pytest.fixture(scope="session")
def browser() -> Iterator[Any]:
    """The system's Chromium; nothing is downloaded."""
    playwright = pytest.importorskip("playwright.sync_api", reason="pip install 'holdfast-rl[test]'")
    names = ("chromium", "chromium-browser", "google-chrome", "chrome")
    path = os.environ.get("HOLDFAST_BROWSER") or next(filter(None, map(shutil.which, names)), None)
    if path is None:
        pytest.skip("needs a Chromium: install the system's, or name one in HOLDFAST_BROWSER")
    with playwright.sync_playwright() as started:
        found = started.chromium.launch(executable_path=path, args=["--no-sandbox"])
        yield found
        found.close()


@pytest.fixture(scope="session")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Runs of three agents on two tasks, a sweep, and a run that is damaged."""
    top = tmp_path_factory.mktemp("report")
    for seed in range(3):
        trained({**TABLE, "seed": seed}, top / "runs" / f"perq-{seed}")
        trained({**TABLE, "seed": seed, "algo": "q", "k_max": None}, top / "runs" / f"q-{seed}")
    trained(NETWORK, top / "runs" / NASTY)
    trained(TABLE, top / "runs" / "damaged")
    (top / "runs" / "damaged" / "metrics.csv").write_text("episode,step\n1,nothing\n", encoding="utf-8")
    sweep = ["sweep", "--env", "cliff", "--algo", "perq", "--grid", "k_max=1,4", "--seeds", "2"]
    assert main([*sweep, "--episodes", "12", "-o", str(top / "sweep"), "--jobs", "1"]) == 0
    return top
