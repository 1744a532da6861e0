"""An environment that hangs ends in a sentence that says where, and its run goes on."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest

from holdfast.core.errors import InputError
from holdfast.envs import NamedFailures
from holdfast.runs import step_watch, train
from holdfast.runs.progress import Silent
from holdfast.runs.step_limit import step_limit
from holdfast.runs.step_watch import RunningTime, is_stopped, place_in
from tests.runs.hanging import Hanging

SOURCE = Path(__file__).with_name("hanging.py")
SMALL = ("learning_starts=5", "batch_size=4", "buffer_size=50", "policy_kwargs={'net_arch': [4]}")


def line_of(how: str) -> int:
    lines = SOURCE.read_text().splitlines()
    return next(number for number, line in enumerate(lines, start=1) if line.endswith(f"# in {how}"))


def holdfast(folder: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "holdfast", *arguments]
    environment = {**os.environ, "PYTHONPATH": str(SOURCE.parent), "OMP_NUM_THREADS": "1"}
    return subprocess.run(
        command, capture_output=True, text=True, timeout=120, check=False, cwd=folder, env=environment
    )


def started(folder: Path, *arguments: str) -> subprocess.Popen[str]:
    command = [sys.executable, "-m", "holdfast", *arguments]
    environment = {**os.environ, "PYTHONPATH": str(SOURCE.parent), "OMP_NUM_THREADS": "1"}
    return subprocess.Popen(command, stderr=subprocess.PIPE, text=True, cwd=folder, env=environment)


@pytest.mark.parametrize(
    "how", ["loop", "reset", *(pytest.param(how, marks=pytest.mark.slow) for how in ("sleep", "lock"))]
)
def test_a_training_ends_in_a_sentence_and_goes_on(how: str, tmp_path: Path) -> None:
    # After 30 steps, of which it had the time to write a checkpoint; the next process hangs after as many.
    options = ("hanging:Hanging", "--steps", "45", "--out", "run", "--quiet", "--eval-every", "0", "--set", *SMALL)
    more = ("--env-kwargs", f"how={how}", "--step-timeout", "0.7", "--checkpoint-every", "1e-9")
    first = holdfast(tmp_path, "train", *options, *more)
    assert first.returncode == (-9 if how == "lock" else 1), first.stderr
    assert first.stderr.count("\n") == 1
    call = "before its step 1: its reset" if how == "reset" else "at its step 10: its step"
    assert f"{call} did not return within 0.7 s" in first.stderr
    # Of a loop, any of its two lines.
    assert any(
        f"(it was in hanging.py, line {line})" in first.stderr
        for line in (line_of(how), line_of(how) - (how == "loop"))
    ), first.stderr
    assert first.stderr.endswith("; type the same command again to continue from the last checkpoint\n")
    listed = holdfast(tmp_path, "runs", ".")
    assert "resumable" in listed.stdout


@pytest.mark.parametrize(
    "command",
    [
        ("explore", "hanging:Hanging", "--env-kwargs", "how=sleep"),
        ("evaluate", "run", "--env", "hanging:Hanging", "--env-kwargs", "how=sleep"),
    ],
    ids=["explore", "evaluate"],
)
def test_other_verbs_say_it_too(command: tuple[str, ...], tmp_path: Path) -> None:
    if command[0] == "evaluate":
        train(
            {
                "environment": "tests.runs.hanging:Hanging",
                "steps": 20,
                "set": {"learning_starts": 5, "batch_size": 4, "policy_kwargs": {"net_arch": [4]}},
            },
            tmp_path / "run",
        )
    found = holdfast(tmp_path, *command, "--step-timeout", "0.5")
    assert found.returncode == 1, found.stderr
    assert f"did not return within 0.5 s (it was in hanging.py, line {line_of('sleep')})" in found.stderr


@pytest.mark.slow
def test_a_training_that_was_suspended_does_not_hang(tmp_path: Path) -> None:
    """Stopped in the middle of a step for longer than a step may take, and let go on again."""
    options = ("hanging:Hanging", "--steps", "35", "--out", "run", "--quiet", "--eval-every", "0", "--set", *SMALL)
    training = started(tmp_path, "train", *options, "--env-kwargs", "how=suspended", "--step-timeout", "0.7")
    try:
        while not (tmp_path / "ready").exists():
            assert training.poll() is None, training.communicate()[1]
            time.sleep(0.02)
        training.send_signal(signal.SIGSTOP)
        # Longer than a step may take and a stack may be waited for.
        time.sleep(3.5)
        training.send_signal(signal.SIGCONT)
        _, said = training.communicate(timeout=60)
    finally:
        training.kill()
    assert (training.returncode, said) == (0, "")


@pytest.mark.slow
def test_a_training_that_is_stopped_at_the_limit_is_not_ended(tmp_path: Path) -> None:
    """It hangs, but nobody lets it show that: only when it can run again, the sentence comes."""
    options = ("hanging:Hanging", "--steps", "45", "--out", "run", "--quiet", "--eval-every", "0", "--set", *SMALL)
    training = started(
        tmp_path, "train", *options, "--env-kwargs", "how=suspended_forever", "--step-timeout", "0.7"
    )
    try:
        while not (tmp_path / "ready").exists():
            assert training.poll() is None, training.communicate()[1]
            time.sleep(0.02)
        training.send_signal(signal.SIGSTOP)
        time.sleep(1.5)
        assert training.poll() is None
        training.send_signal(signal.SIGCONT)
        _, said = training.communicate(timeout=60)
    finally:
        training.kill()
    assert training.returncode == 1
    assert "did not return within 0.7 s" in said


def test_time_counts_while_both_processes_run(monkeypatch: pytest.MonkeyPatch) -> None:
    now, stopped = [100.0], [False]
    monkeypatch.setattr(step_watch.time, "monotonic", lambda: now[0])
    monkeypatch.setattr(step_watch, "is_stopped", lambda process: stopped[0])
    running = RunningTime(1, 0.2)
    for passed, is_process_stopped, counted in (
        (0.2, False, 0.2),
        (0.3, False, 0.5),
        # The process did not run.
        (0.2, True, 0.5),
        # The one who looks did not run, such as in a machine that slept.
        (3600.0, False, 0.9),
        (0.2, False, 1.1),
    ):
        now[0], stopped[0] = now[0] + passed, is_process_stopped
        running.look()
        assert running.seconds == pytest.approx(counted)
    running.begin()
    assert running.seconds == 0.0


@pytest.mark.parametrize("has_proc", [True, False])
def test_a_process_that_is_stopped_is_told_from_one_that_sleeps(has_proc: bool, monkeypatch: Any) -> None:
    if not has_proc:
        if shutil.which("ps") is None:
            pytest.skip("there is no ps here")
        monkeypatch.setattr(step_watch, "Path", lambda path: Path("/nowhere") / path.lstrip("/"))
    sleeping = subprocess.Popen([sys.executable, "-c", "import time; time.sleep(60)"])
    try:
        assert not is_stopped(sleeping.pid)
        sleeping.send_signal(signal.SIGSTOP)
        os.waitpid(sleeping.pid, os.WUNTRACED)
        assert is_stopped(sleeping.pid)
        sleeping.send_signal(signal.SIGCONT)
        os.waitpid(sleeping.pid, os.WCONTINUED)
        assert not is_stopped(sleeping.pid)
    finally:
        sleeping.kill()
        sleeping.wait()
    assert not is_stopped(sleeping.pid)


def test_a_quick_environment_is_left_alone() -> None:
    env = NamedFailures(Hanging())
    before = {path.name for path in Path("/proc/self/fd").iterdir()}
    with step_limit(0.2, "test"):
        for _ in range(3):
            env.reset()
            for _ in range(300):
                env.step(0)
    assert {path.name for path in Path("/proc/self/fd").iterdir()} == before


@pytest.mark.parametrize("limit", [0, -1, float("nan"), float("inf"), "1"])
def test_limits_that_will_not_do_are_refused(limit: Any) -> None:
    told = "step_timeout must be a finite number above 0"
    with pytest.raises(InputError, match=told), step_limit(limit, "test"):
        pass


def test_the_place_is_the_innermost_line_that_is_not_of_pythons_library() -> None:
    import socket

    dump = (
        'Thread 0x1 (most recent call first):\n  File "/a/other.py", line 1 in wait\n\n'
        f'Current thread 0x2 (most recent call first):\n  File "{socket.__file__}", line 7 in recv\n'
        '  File "/b/robot.py", line 12 in ask\n  File "/b/robot.py", line 3 in step\n'
        '  File "/c/failures.py", line 9 in step\n  File "/c/loop.py", line 2 in run\n'
    )
    assert place_in(dump, "/c/failures.py") == " (it was in robot.py, line 12)"
    assert place_in(dump, "/c/nowhere.py") == ""


def test_an_episode_without_an_end_is_said_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    said = []

    class Saying(Silent):
        def say(self, sentence: str) -> None:
            said.append(sentence)

    monkeypatch.setattr("holdfast.runs.session.LONGEST_EPISODE", 25)
    options = {
        "environment": "tests.runs.hanging:Hanging",
        "env_kwargs": {"how": "endless"},
        "steps": 90,
        "eval_every": 0,
        "set": {"learning_starts": 5, "batch_size": 4, "policy_kwargs": {"net_arch": [4]}},
    }
    train(options, tmp_path / "run", Saying())
    assert len(said) == 2
    assert said[1].startswith("an episode has not ended after 25 steps")


@pytest.mark.slow
def test_a_job_of_a_sweep_says_it(tmp_path: Path) -> None:
    grid = ("--grid", "env.how=sleep,never", "--seeds", "1", "--steps", "45", "--eval-every", "0")
    given = ("--set", *SMALL, "--step-timeout", "0.7", "--jobs", "1", "-o", "s")
    found = holdfast(tmp_path, "sweep", "--env", "hanging:Hanging", *grid, *given)
    assert found.returncode == 1, found.stderr
    assert "1 of 2 jobs done, 1 failed" in found.stdout
    assert f"its step did not return within 0.7 s (it was in hanging.py, line {line_of('sleep')})" in found.stdout


def test_reading_ends_with_the_process_that_was_to_answer() -> None:
    reading, writing = os.pipe()
    os.write(writing, b"a stack")
    os.close(writing)
    try:
        assert step_watch._read(reading) == "a stack"
    finally:
        os.close(reading)
