"""The battery of changed files in its short and medium forms, and that it can fail."""

from __future__ import annotations

import importlib.util
import os
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
CONTROL = """
import os

import holdfast.cli
from tests import fuzzing

def main(command):
    if command[0] == "runs":
        open(os.environ["ELSEWHERE"], "a").close()
    if command[0] == "plot":
        raise KeyError("a bug")
    if command[0] == "evaluate":
        bytearray(2**31)
    if command[0] == "train":
        while True:
            pass
    return 0

fuzzing.SECONDS, fuzzing.PATIENCE = 1, 100.0
holdfast.cli.main = main
for kind, verb, outcome, said in fuzzing.battery(40, 3):
    print(verb, outcome, said.rpartition(": ")[2][:60])
"""


def run(*arguments: str, seconds: float = 500.0) -> subprocess.CompletedProcess[str]:
    environment = {**os.environ, "OMP_NUM_THREADS": "1", "PYTHONDONTWRITEBYTECODE": "1"}
    return subprocess.run(
        [sys.executable, *arguments],
        capture_output=True,
        text=True,
        timeout=seconds,
        check=False,
        cwd=ROOT,
        env=environment,
    )


@pytest.mark.parametrize("mutations", [15, pytest.param(500, marks=pytest.mark.slow)])
def test_files_that_were_changed_are_read_or_refused(mutations: int) -> None:
    pytest.importorskip("onnxruntime")
    found = run("-m", "tests.fuzzing", "--mutations", str(mutations), "--seed", "11", seconds=3000.0)
    assert found.returncode == 0, found.stdout + found.stderr[-2000:]
    assert f"{mutations} changes, " in found.stdout


@pytest.mark.slow
def test_the_battery_can_fail(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("onnxruntime")
    monkeypatch.setenv("ELSEWHERE", str(tmp_path / "elsewhere"))
    found = run("-c", CONTROL)
    lines = set(found.stdout.splitlines())
    assert any(line.startswith("runs failed") and "elsewhere" in line for line in lines) or any(
        line.startswith("runs failed open") for line in lines
    ), found.stdout + found.stderr[-2000:]
    assert any(line.startswith("train failed ended with") for line in lines), found.stdout
    assert all(not line.startswith(("runs read", "plot read", "evaluate read", "train read")) for line in lines)


@pytest.mark.slow
@pytest.mark.skipif(importlib.util.find_spec("atheris") is None, reason="needs pip install 'holdfast-rl[fuzz]'")
def test_inputs_that_reach_new_code_are_read_or_refused() -> None:
    found = run("-m", "tests.coverage_fuzzing", "--inputs", "3000", "--seed", "11")
    assert found.returncode == 0, found.stderr[-3000:]
