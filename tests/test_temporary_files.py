"""A test run leaves nothing in the machine's temporary folder but what pytest itself keeps there."""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
from pathlib import Path

from tests.architecture import ROOT

# SB3 makes a folder SB3-DATE for every training without a logger of its own.
TRAINS = "tests/deep/agents/test_ez_dqn.py::test_greedy_actions_last_one_step"


def test_temporary_files_go_to_a_folder_of_the_run() -> None:
    folder = Path(tempfile.gettempdir())
    assert folder.name.startswith("holdfast-")
    child = subprocess.run(
        [sys.executable, "-c", "import tempfile; print(tempfile.gettempdir())"],
        capture_output=True,
        text=True,
        check=True,
    )
    assert Path(child.stdout.strip()) == folder


def test_a_run_with_workers_leaves_nothing_behind(tmp_path: Path) -> None:
    environment = {name: value for name, value in os.environ.items() if not name.startswith("PYTEST")}
    environment["TMPDIR"] = str(tmp_path)
    done = subprocess.run(
        [sys.executable, "-m", "pytest", "-n", "1", "-p", "no:cacheprovider", TRAINS],
        cwd=ROOT,
        env=environment,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stdout
    assert [path.name for path in tmp_path.iterdir() if not path.name.startswith("pytest-of-")] == []
