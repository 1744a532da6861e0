"""Jobs in processes of this machine: what becomes of the others when one dies, and of all with the campaign."""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
import sys
import threading
from pathlib import Path

import pytest

from holdfast.cli import main
from holdfast.experiments.engines.local import _ends_within
from tests.experiments.campaigns import begin, contents, finish, is_alive, prepare, wait_until
from tests.experiments.kills import COMMANDS, killed_campaigns
from tests.experiments.ladders import FALLING, TALL

WAYS = ("raise", "columns", "die", "exit", "fork and die", "never")


def test_who_falls_costs_one_job(tmp_path: Path) -> None:
    prepare(tmp_path)
    code, out, err = finish(begin(tmp_path, "ladders:FALLING", "-o", "c", "--jobs", "2"))
    assert (code, err) == (1, "")
    ids = {job.setting["fall"]: job.id for job in FALLING.jobs("smoke")}
    assert list(contents(tmp_path / "c")) == [f"{ids['never']}.csv"]
    lines = out.splitlines()
    assert lines[0].startswith("falling: 1 of 6 jobs done, 5 failed, in ")
    assert lines[1] == "  in c"
    told = {lines[n].split("fall=")[1].partition(",")[0]: lines[n + 1 : n + 3] for n in range(2, 17, 3)}
    assert told["raise"] == ["    ValueError: the ladder is too short", f"    c/logs/{ids['raise']}.log"]
    assert told["columns"][0].endswith("run of falling must return the columns rung, height, not rung")
    assert told["die"] == [
        "    its process was ended by signal 9 (SIGKILL)",
        f"    c/logs/{ids['die']}.log",
    ]
    assert told["exit"][0] == "    SystemExit: 0"
    assert told["fork and die"][0] == "    its process was ended by signal 9 (SIGKILL)"
    log = (tmp_path / "c" / "logs" / f"{ids['raise']}.log").read_text()
    assert log.startswith("going to fall: raise\nTraceback")
    assert "2 rungs, the last at" in out
    manifest = json.loads((tmp_path / "c" / "manifest.json").read_text())
    assert {name: "failed" in manifest["jobs"][ids[name]] for name in WAYS} == dict(
        zip(WAYS, (True,) * 5 + (False,), strict=True)
    )
    assert manifest["jobs"][ids["never"]]["seconds"] > 0.0
    assert manifest["sessions"][0]["ended"] is not None


@pytest.mark.slow
@pytest.mark.parametrize("verb", COMMANDS)
def test_a_killed_campaign_ends_with_the_rows_of_one_that_was_not(verb: str, tmp_path: Path) -> None:
    if verb == "tune":
        pytest.importorskip("optuna")
    found = killed_campaigns(tmp_path, n_kills=3, seed=1, verb=verb)
    assert found.get("problem") is None
    assert (found["kills"], found["equal"]) == (3, True)


def test_a_job_that_takes_too_long_is_ended_with_all_that_it_has_started(tmp_path: Path) -> None:
    prepare(tmp_path)
    code, out, err = finish(begin(tmp_path, "ladders:WAITING", "-o", "c", "--jobs", "2", "--job-timeout", "4"))
    assert (code, err) == (1, "")
    assert out.startswith("waiting: 0 of 2 jobs done, 2 failed, in ")
    assert out.count("it took longer than 4 s and was ended") == 2
    numbers = [int(word) for seed in range(2) for word in (tmp_path / f"waiting-{seed}").read_text().split()]
    assert wait_until(lambda: not any(map(is_alive, numbers)))


def test_time_for_which_a_job_is_stopped_does_not_count() -> None:
    with subprocess.Popen([sys.executable, "-c", "import time; time.sleep(0.8)"]) as job:
        os.kill(job.pid, signal.SIGSTOP)
        threading.Timer(2.5, os.kill, (job.pid, signal.SIGCONT)).start()
        # It is stopped for longer than it may run.
        assert _ends_within(job, 2.0)


def test_a_job_that_failed_is_tried_again_as_often_as_is_said(tmp_path: Path) -> None:
    prepare(tmp_path)
    code, out, _ = finish(begin(tmp_path, "ladders:SLIPPING", "-o", "c", "--jobs", "2", "--retries", "1"))
    assert (code, out.partition(",")[0]) == (0, "slipping: 4 of 4 jobs done")
    code, out, _ = finish(begin(tmp_path, "ladders:FALLING", "-o", "f", "--jobs", "2", "--retries", "2"))
    assert code == 1
    assert "    ValueError: the ladder is too short (3 tries)\n" in out


@pytest.mark.parametrize(
    ("option", "told"),
    [
        (("--job-timeout", "0"), "--job-timeout must be a finite number above 0, not 0.0"),
        (("--step-timeout", "nan"), "--step-timeout must be a finite number above 0, not nan"),
        (("--retries", "-1"), "--retries must be"),
    ],
)
def test_limits_that_will_not_do_are_refused(
    option: tuple[str, str], told: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["reproduce", "tabular", "-o", str(tmp_path / "c"), *option]) == 2
    assert capsys.readouterr().err.startswith(f"holdfast reproduce: {told}")
    assert not (tmp_path / "c").exists()


@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGTERM, signal.SIGINT])
def test_workers_end_with_the_campaign(number: signal.Signals, tmp_path: Path) -> None:
    prepare(tmp_path)
    process = begin(tmp_path, "ladders:WAITING", "-o", "c", "--jobs", "2")
    marks = [tmp_path / f"waiting-{seed}" for seed in range(2)]
    assert wait_until(lambda: all(mark.exists() and mark.read_text() for mark in marks))
    numbers = [int(word) for mark in marks for word in mark.read_text().split()]
    assert all(map(is_alive, numbers))
    process.send_signal(number)
    code, out, err = finish(process)
    # With SIGKILL nobody is there to tell them: they end themselves, and what they have started.
    assert wait_until(lambda: not any(map(is_alive, numbers)))
    if number != signal.SIGKILL:
        assert code == 128 + number
        assert err == "holdfast reproduce: stopped; type the command again with --resume to continue\n"
        assert out.startswith("waiting: 0 of 2 jobs done, in ")


def test_two_campaigns_do_not_share_a_folder(tmp_path: Path) -> None:
    prepare(tmp_path)
    first = begin(tmp_path, "ladders:WAITING", "-o", "c")
    assert wait_until(lambda: (tmp_path / "waiting-0").exists())
    code, _, err = finish(begin(tmp_path, "ladders:WAITING", "-o", "c", "--resume"))
    first.kill()
    finish(first)
    assert (code, err) == (2, f"holdfast reproduce: c is in use by process {first.pid}\n")


SENTENCE = "the rows of 0 jobs are stored; make room, and continue with --resume\n"


def test_files_that_may_not_grow_are_said_to_be_so(tmp_path: Path) -> None:
    prepare(tmp_path)
    limit = ("bash", "-c", 'ulimit -f 16; exec "$@"', "limit")
    code, _, err = finish(begin(tmp_path, "ladders:TALL", "-o", "c", "--jobs", "1", before=limit))
    assert (code, err) == (2, f"holdfast reproduce: c cannot be written, file too large: {SENTENCE}")
    assert contents(tmp_path / "c") == {}
    # With room, it goes on.
    code, _, err = finish(begin(tmp_path, "ladders:TALL", "-o", "c", "--resume"))
    assert (code, err) == (0, "")
    assert len(contents(tmp_path / "c")) == len(TALL.jobs("smoke"))


def test_a_full_disk_is_said_to_be_full(tmp_path: Path) -> None:
    disk = prepare(tmp_path) / "disk"
    disk.mkdir()
    mount = shutil.which("mount") or "mount"
    made = subprocess.run([mount, "-t", "tmpfs", "-o", "size=64k", "tmpfs", str(disk)], capture_output=True)
    if made.returncode != 0:
        pytest.skip("needs the right to mount a small disk")
    try:
        code, _, err = finish(begin(tmp_path, "ladders:TALL", "-o", "disk/c", "--jobs", "1"))
        assert (code, err) == (
            2,
            f"holdfast reproduce: disk/c cannot be written, no space left on device: {SENTENCE}",
        )
        assert contents(disk / "c") == {}
        subprocess.run([mount, "-o", "remount,size=2m", str(disk)], check=True)
        code, _, err = finish(begin(tmp_path, "ladders:TALL", "-o", "disk/c", "--resume"))
        assert (code, err) == (0, "")
        assert len(contents(disk / "c")) == len(TALL.jobs("smoke"))
    finally:
        subprocess.run(["umount", str(disk)], check=True)
