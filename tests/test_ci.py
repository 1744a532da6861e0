"""``.ci/run`` runs both halves of the tests, whatever the first says, and fails if one of them does."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

import pytest

from tests.architecture import ROOT

MAKE = """#!/bin/sh
for word in "$@"; do case "$word" in
  test) code=$CODE_OF_TEST; echo "closing line of test" ;;
  test-slow) code=$CODE_OF_SLOW; echo "closing line of test-slow" ;;
  EXIT_CODE_FILE=*) echo "$code" >"${word#*=}" ;;
esac; done
"""


@pytest.mark.skipif(not (ROOT / ".ci" / "run").exists(), reason="only a clone has it")
@pytest.mark.parametrize(("quick", "slow", "expected"), [(0, 0, 0), (1, 0, 1), (0, 1, 1), (2, 1, 2)])
def test_both_halves_are_run_and_either_may_fail(quick: int, slow: int, expected: int, tmp_path: Path) -> None:
    (tmp_path / "make").write_text(MAKE)
    (tmp_path / "make").chmod(0o755)
    variables = {
        **os.environ,
        "PATH": f"{tmp_path}{os.pathsep}{os.environ['PATH']}",
        "CODE_OF_TEST": str(quick),
        "CODE_OF_SLOW": str(slow),
    }
    done = subprocess.run([ROOT / ".ci" / "run"], env=variables, capture_output=True, text=True, check=False)
    assert done.returncode == expected, done.stderr
    assert done.stdout.splitlines() == ["closing line of test", "closing line of test-slow"]
