"""A run that is killed at random moments, also within a checkpoint, ends as one that was not."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.runs.kills import COMMANDS

PROGRAM = Path(__file__).with_name("kills.py")


@pytest.mark.slow
@pytest.mark.parametrize("name", COMMANDS)
def test_a_killed_run_ends_as_one_that_was_not(name: str, tmp_path: Path) -> None:
    if "atari" in name:
        pytest.importorskip("minatar" if "minatar" in name else "ale_py")
    program = [sys.executable, str(PROGRAM), name, str(tmp_path), "3", "1"]
    environment = {**os.environ, "OMP_NUM_THREADS": "1"}
    run = subprocess.run(program, capture_output=True, text=True, timeout=500, check=False, env=environment)
    assert run.returncode == 0, run.stderr
    found = json.loads(run.stdout.splitlines()[-1])
    assert found.get("problem") is None, (found, run.stderr)
    assert found["different"] == []
    assert found["kills"] == 3
