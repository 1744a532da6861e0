"""Results arrive wherever they are printed to: closed, full, or without our characters."""

from __future__ import annotations

import io
import os
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from holdfast.cli import main
from tests.runs.small_runs import TABLE, trained

SOLVE = ["solve", "cliff", "--k-max", "1", "--json"]
PROGRAM = """
import os, sys
for number in map(int, sys.argv[1].split(",") if sys.argv[1] else []):
    os.close(number)
os.execv(sys.executable, [sys.executable, "-m", "holdfast", *sys.argv[2:]])
"""


def run_with(closed: str, arguments: Sequence[str], **more: Any) -> subprocess.CompletedProcess[str]:
    """The command with some of its standard streams closed."""
    environment = {name: value for name, value in os.environ.items() if name != "PYTHONUNBUFFERED"}
    return subprocess.run(
        [sys.executable, "-c", PROGRAM, closed, *arguments],
        **{"stdout": subprocess.PIPE, "stderr": subprocess.PIPE, **more},
        env=environment,
        text=True,
        check=False,
    )


def test_with_a_closed_output_results_go_to_the_errors() -> None:
    run = run_with("1", SOLVE)
    assert (run.returncode, run.stdout) == (0, "")
    assert '"n_states": 60' in run.stderr
    assert "Traceback" not in run.stderr


@pytest.mark.parametrize("closed", ["0", "1,2", "0,1,2"])
def test_other_closed_streams_do_no_harm(closed: str, tmp_path: Path) -> None:
    run = run_with(closed, ["train", "cliff", "--algo", "q", "--episodes", "20", "--out", str(tmp_path / "run")])
    assert run.returncode == 0
    assert "Traceback" not in run.stderr
    lines = (tmp_path / "run/metrics.csv").read_text().splitlines()
    # Nothing that was printed has come into the files that would have had the numbers of the streams.
    assert len(lines) == 21
    assert all(line.count(",") == lines[0].count(",") for line in lines)


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="there is no full device here")
def test_an_output_that_is_full_is_one_line() -> None:
    with open("/dev/full", "w") as full:  # noqa: PTH123
        run = run_with("", SOLVE, stdout=full)
    assert run.returncode == 1
    assert run.stderr == "holdfast: the standard output cannot be written: No space left on device\n"


@pytest.fixture(scope="module")
def table(tmp_path_factory: pytest.TempPathFactory) -> Path:
    top = tmp_path_factory.mktemp("runs")
    trained(TABLE, top / "table")
    return top / "table"


def printed(arguments: Sequence[str], encoding: str, monkeypatch: pytest.MonkeyPatch) -> str:
    stream = io.TextIOWrapper(io.BytesIO(), encoding=encoding, errors="strict")
    monkeypatch.setattr(sys, "stdout", stream)
    assert main(list(arguments)) == 0
    # What was changed for the command is as it was.
    assert sys.stdout is stream
    assert stream.errors == "strict"
    stream.flush()
    return stream.buffer.getvalue().decode(encoding)  # type: ignore[attr-defined]


@pytest.mark.parametrize("encoding", ["ascii", "latin-1", "cp1252", "cp437"])
def test_what_a_terminal_cannot_show_is_replaced(
    encoding: str, table: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    evaluate = ["evaluate", str(table), "--episodes", "2"]
    whole, shown = printed(evaluate, "utf-8", monkeypatch), printed(evaluate, encoding, monkeypatch)
    bar = "█" if encoding == "cp437" else "#"
    assert shown == whole.replace("█", bar)
    explore = ["explore", "cliff", "--study", "visits", "--k-max", "1,2", "--budget", "200"]
    whole, shown = printed(explore, "utf-8", monkeypatch), printed(explore, encoding, monkeypatch)
    dash = "–" if encoding == "cp1252" else "-"
    sign = "+-" if encoding == "ascii" else "±"
    assert "–" in whole
    assert shown == whole.replace("–", dash).replace("±", sign)


def test_names_that_no_encoding_has_are_shown_somehow(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    solve = ["solve", "cliff", "--k-max", "1", "-o"]
    named = os.fsdecode(b"out-\xff")
    assert "wrote out-\\udcff/values.npz" in printed([*solve, named], "utf-8", monkeypatch)
    assert "wrote out-\\u20ac/values.npz" in printed([*solve, "out-€"], "ascii", monkeypatch)
    # TensorBoard's files cannot have such names.
    assert main(["train", "cliff", "--algo", "q", "--out", named]) == 2
    assert "the run's folder must have a name in UTF-8, not 'out-\\udcff'" in capsys.readouterr().err
    assert sorted(path.name for path in Path(named).iterdir()) == ["values.npz", "values.png"]


# Pipes whose reader has gone --------------------------------------------------------------------------------


def run_into_a_broken_pipe(arguments: Sequence[str], *streams: str, **more: Any) -> int:
    """The exit code of a command some of whose streams nobody reads."""
    reader, writer = os.pipe()
    os.close(reader)
    try:
        return run_with("", arguments, **dict.fromkeys(streams, writer), **more).returncode
    finally:
        os.close(writer)


@pytest.mark.parametrize("streams", [["stdout"], ["stderr"], ["stdout", "stderr"]], ids="+".join)
@pytest.mark.parametrize("more", [["--json", "--checkpoint-every", "0"], []], ids=" ".join)
def test_a_training_goes_on_when_nobody_reads_about_it(
    streams: list[str], more: list[str], tmp_path: Path
) -> None:
    out = tmp_path / "run"
    train = ["train", "cliff", "--algo", "perq", "--episodes", "300", "--out", str(out), *more]
    assert run_into_a_broken_pipe(train, *streams) == 0
    assert len((out / "metrics.csv").read_text().splitlines()) == 301
    assert (out / "policy").exists()


def test_failed_jobs_are_a_failure_whether_or_not_anybody_reads_of_them(tmp_path: Path) -> None:
    (tmp_path / "broken_world.py").write_text(BROKEN_WORLD)
    sweep = ["sweep", "--algo", "perq", "--env", "broken_world:make", "--grid", "alpha=.1,.5"]
    more = ["--seeds", "1", "--episodes", "5", "--jobs", "1", "--out", str(tmp_path / "sweep")]
    assert run_into_a_broken_pipe([*sweep, *more], "stdout", cwd=tmp_path) == 1


def test_bad_input_is_bad_input_whether_or_not_anybody_reads_of_it() -> None:
    assert run_into_a_broken_pipe(["solve", "cliff", "--k-max", "0"], "stdout", "stderr") == 2


def test_a_page_that_nobody_reads_to_its_end_is_no_failure() -> None:
    assert run_into_a_broken_pipe(["docs", "theory"], "stdout") == 0


BROKEN_WORLD = """
from holdfast.envs import make_env

def make():
    env = make_env("FrozenLake-v1")
    def step(action):
        raise KeyError("arm")
    env.unwrapped.step = step
    return env
"""


# Environments that take the streams away ----------------------------------------------------------------------

THIEF = """
import os, sys
from holdfast.envs import make_env

def make(how):
    exec(how)
    return make_env("cliff")
"""


@pytest.mark.parametrize(
    "how",
    ["sys.stdout.close()", "sys.stdout = None", "sys.stdout = sys.stderr = None", "sys.stderr.close()"],
)
@pytest.mark.parametrize("more", [[], ["--json"]], ids=" ".join)
def test_results_arrive_whatever_an_environment_does_to_the_streams(
    how: str, more: list[str], tmp_path: Path
) -> None:
    (tmp_path / "thief.py").write_text(THIEF)
    train = ["train", "thief:make", "--algo", "q", "--episodes", "20", "--out", "run", *more]
    run = run_with("", [*train, "--env-kwargs", f"how={how!r}"], cwd=tmp_path)
    assert run.returncode == 0, run.stderr
    assert ('"event": "result"' if more else "finished: ") in run.stdout
    assert "Traceback" not in run.stderr


def test_an_output_that_is_closed_for_good_is_one_line(tmp_path: Path) -> None:
    (tmp_path / "thief.py").write_text(THIEF)
    train = ["train", "thief:make", "--algo", "q", "--episodes", "20", "--out", "run"]
    run = run_with("", [*train, "--env-kwargs", "how='sys.__stdout__.close()'"], cwd=tmp_path)
    assert run.returncode == 1
    assert "holdfast: the standard output cannot be written: it was closed\n" in run.stderr
    assert "Traceback" not in run.stderr
