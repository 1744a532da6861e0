"""``holdfast demo``: what it trains, draws and says, and that it goes on."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest

from holdfast.cli import demo, main
from holdfast.runs import RunFolder

PICTURES = ("curves.png", "policy.png", "values.png", "holds.png", "training.png", "film.gif")

SMALL = {"40000": "400"}
SETTINGS = ("learning_starts=50", 'policy_kwargs={"net_arch": [8]}')


@pytest.fixture
def small(monkeypatch: pytest.MonkeyPatch) -> demo.Demo:
    """The whole demo at a tiny budget."""
    options = [SMALL.get(option, option) for option in demo._FULL.options]
    assert options != list(demo._FULL.options)
    reduced = replace(demo._FULL, options=(*options, "--set", *SETTINGS), episodes=2)
    monkeypatch.setattr(demo, "_FULL", reduced)
    return reduced


def test_the_quick_one(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    assert main(["demo", "--quick", "-o", str(tmp_path / "quick")]) == 0
    lines = capfd.readouterr().out.splitlines()
    rows = {line[:26].strip(): line[26:].split() for line in lines}
    # The better one reaches the goal every time, the other one never: five decisions for 24 steps.
    assert rows["reached the goal"] == ["100%", "0%"]
    assert [float(cell) for cell in rows["steps per episode"]] == [24.0, 100.0]
    assert [float(cell) for cell in rows["decisions per episode"]] == [5.0, 100.0]
    for name in PICTURES:
        assert (tmp_path / "quick" / name).stat().st_size > 1000
    assert any(line.startswith(f"  holdfast evaluate {tmp_path / 'quick/perq'} --sweep") for line in lines)


@pytest.mark.slow
def test_the_full_one_at_a_tiny_budget(
    small: demo.Demo, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    assert main(["demo", "--seed", "3"]) == 0
    out = capfd.readouterr().out
    assert max(map(len, out.splitlines())) <= 80
    rows = {line[:26].strip(): line[26:].split() for line in out.splitlines()}
    assert rows["return"][1] == "-200"
    assert {path.name for path in Path("demo").iterdir()} == {"perdqn", "dqn", *PICTURES}
    # What it shows as typed is what it trained.
    typed = out[out.index("  holdfast train") : out.index("-o demo/dqn")].replace("\\\n", " ")
    assert "--algo perdqn --steps 400" in " ".join(typed.split())
    assert main(["demo", "--seed", "4"]) == 2
    assert "demo/perdqn contains a run with" in capfd.readouterr().err


def test_commands_can_be_typed_where_the_program_is_not_on_the_path(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(demo.shutil, "which", lambda name: None)
    monkeypatch.setattr(sys, "argv", [".venv/bin/holdfast", "demo"])
    said = demo._next(Path("demo/perdqn"))
    assert "  .venv/bin/holdfast evaluate demo/perdqn --sweep-tolerance  #" in said
    assert max(map(len, said.splitlines())) <= 80
    monkeypatch.setattr(demo.shutil, "which", lambda name: "/usr/bin/holdfast")
    assert "  holdfast evaluate demo/perdqn --sweep-tolerance  #" in demo._next(Path("demo/perdqn"))


@pytest.mark.slow
def test_without_pygame_there_is_no_film_but_a_demo(
    small: demo.Demo, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setitem(sys.modules, "pygame", None)
    assert main(["demo", "-o", str(tmp_path)]) == 0
    assert "  no film: a film needs what this environment draws with: pygame is not" in capfd.readouterr().out
    assert not (tmp_path / "film.gif").exists()


@pytest.mark.slow
@pytest.mark.skipif(os.name == "nt", reason="signals are sent")
def test_stopped_it_goes_on(tmp_path: Path) -> None:
    command = [sys.executable, "-m", "holdfast", "demo", "-o", "here"]
    process = subprocess.Popen(command, cwd=tmp_path, stderr=subprocess.PIPE, text=True, start_new_session=True)
    try:
        both = [tmp_path / "here" / name / "metrics.csv" for name in ("perdqn", "dqn")]
        wait_until(lambda: all(path.exists() for path in both))
        os.killpg(process.pid, signal.SIGTERM)  # Ctrl-C may be switched off where tests run
        _, error = process.communicate(timeout=120.0)
    finally:
        process.kill()
    assert process.returncode == 143
    assert error.splitlines()[-1] == "holdfast demo: type the same command again to continue"
    assert "Traceback" not in error
    steps = {name: RunFolder(tmp_path / "here" / name).status() for name in ("perdqn", "dqn")}
    assert all(status.status == "resumable" for status in steps.values())
    # Started again and killed, it takes its trainings along.
    again = subprocess.Popen(command, cwd=tmp_path, stderr=subprocess.PIPE, text=True, start_new_session=True)
    try:
        for line in again.stderr or ():
            if "continuing in here/perdqn from step" in line:
                break
        wait_until(lambda: all(status_of(tmp_path, name) == "in use" for name in steps))
        again.kill()
        again.communicate(timeout=60.0)
        wait_until(lambda: all(status_of(tmp_path, name) == "resumable" for name in steps))
    finally:
        again.kill()
        again.communicate()


def status_of(folder: Path, name: str) -> str:
    return RunFolder(folder / "here" / name).status().status


def wait_until(is_so: Callable[[], bool]) -> None:
    deadline = time.monotonic() + 120.0
    while not is_so():
        assert time.monotonic() < deadline
        time.sleep(0.2)


def test_a_training_that_fails_ends_the_demo_at_once(
    small: demo.Demo, tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "dqn").touch()
    assert main(["demo", "-o", str(tmp_path)]) == 2
    said = capfd.readouterr().err.splitlines()[-1]
    assert said.startswith("holdfast train: ")
    assert str(tmp_path / "dqn") in said
    assert not (tmp_path / "curves.png").exists()


def test_a_folder_that_cannot_be_made_is_one_sentence(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "file").touch()
    assert main(["demo", "-o", str(tmp_path / "file")]) == 2
    assert capfd.readouterr() == ("", f"holdfast demo: {tmp_path / 'file'}: File exists\n")


def test_a_folder_with_spaces_can_be_typed(monkeypatch: pytest.MonkeyPatch) -> None:
    assert "evaluate 'my demo/perdqn' --sweep" in demo._next(Path("my demo/perdqn"))
