"""The entry point: help, version, and what bad input looks like."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

import holdfast
from holdfast.cli import main
from holdfast.cli.main import _VERBS

HEAVY = ("torch", "numba", "gymnasium", "scipy", "matplotlib", "stable_baselines3")


def imported_by(statement: str) -> set[str]:
    probe = f"{statement}\nimport sys\nsys.stderr.write(' '.join(sys.modules))"
    run = subprocess.run([sys.executable, "-c", probe], capture_output=True, text=True, check=True)
    return {name.partition(".")[0] for name in run.stderr.split()}


@pytest.mark.parametrize("arguments", [["--help"], ["--version"], [], ["solve", "--help"]])
def test_help_and_version_exit_0_and_import_nothing_heavy(arguments: list[str]) -> None:
    modules = imported_by(f"from holdfast.cli import main\nassert main({arguments}) == 0")
    assert modules & set(HEAVY) == set()
    assert "argparse" in modules  # the probe does see what is imported


def test_version(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["--version"]) == 0
    assert capsys.readouterr().out == f"holdfast {holdfast.__version__}\n"


def test_no_verb_prints_the_help(capsys: pytest.CaptureFixture[str]) -> None:
    assert main([]) == 0
    out = capsys.readouterr().out
    assert out.startswith("usage: holdfast")
    assert "solve" in out


@pytest.mark.parametrize("verb", ["", *_VERBS])
def test_help_fits_into_80_columns(
    verb: str, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", "80")
    assert main([verb, "--help"] if verb else ["--help"]) == 0
    assert [line for line in capsys.readouterr().out.splitlines() if len(line) > 80] == []


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        (["frobnicate"], "holdfast: VERB must be one of demo, train, evaluate, "),
        (["frobnicate"], "reproduce, doctor, docs, not 'frobnicate' (see holdfast --help)"),
        (
            ["demo", "--seed", "x"],
            "holdfast demo: --seed must be a whole number, not 'x' (see holdfast demo --help)",
        ),
        (["solve", "cliff", "--gamma", "high"], "holdfast solve: --gamma must be a number, not 'high' (see"),
        (["solve", "cliff", "--k-max"], "holdfast solve: argument --k-max: expected one argument (see"),
        (["solve"], "the following arguments are required: MAP_OR_ENV"),
        (["solve", "cliff", "--k-max", "many"], "--k-max"),
        (["solve", "cliff", "--nonsense"], "unrecognized arguments: --nonsense"),
    ],
)
def test_a_wrong_call_is_one_line_and_exit_code_2(
    arguments: list[str], sentence: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(arguments) == 2
    captured = capsys.readouterr()
    assert captured.out == ""
    assert sentence in captured.err
    assert captured.err.count("\n") == 1


def test_python_m_holdfast_is_the_same_command() -> None:
    run = subprocess.run(
        [sys.executable, "-m", "holdfast", "--version"], capture_output=True, text=True, check=True
    )
    assert run.stdout == f"holdfast {holdfast.__version__}\n"


def test_tracebacks_on_request(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HOLDFAST_DEBUG", "1")
    with pytest.raises(ValueError, match="nowhere"):
        main(["solve", "nowhere"])


@pytest.mark.parametrize("arguments", [["--help"], ["solve", "cliff", "--k-max", "1", "--json"]])
def test_a_reader_that_went_away_is_no_error(arguments: list[str]) -> None:
    environment = {name: value for name, value in os.environ.items() if name != "PYTHONUNBUFFERED"}
    read_end, write_end = os.pipe()
    os.close(read_end)
    run = subprocess.run(
        [sys.executable, "-m", "holdfast", *arguments],
        stdout=write_end,
        stderr=subprocess.PIPE,
        text=True,
        check=False,
        env=environment,
    )
    os.close(write_end)
    assert run.stderr == ""
    assert run.returncode == 0


def test_ctrl_c_is_one_line_and_exit_code_130(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def interrupted(*arguments: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr("holdfast.envs.make_scoring_env", interrupted)
    assert main(["solve", "cliff"]) == 130
    assert capsys.readouterr().err == "holdfast solve: interrupted\n"


INTERRUPTED_IMPORT = """
import os, signal, sys

class Now:
    def find_spec(self, name, path=None, target=None):
        if name == {module!r}:
            os.kill(os.getpid(), signal.{number})

signal.signal(signal.SIGINT, signal.default_int_handler)
sys.meta_path.insert(0, Now())
sys.argv[1:] = ["train", "CartPole-v1", "--steps", "10", "--quiet"]
from holdfast.__main__ import main
sys.exit(main())
"""


@pytest.mark.parametrize(
    ("module", "number", "code", "who"),
    [
        ("holdfast.cli.train", "SIGINT", 130, "holdfast"),
        ("holdfast.runs.training", "SIGINT", 130, "holdfast train"),
        ("holdfast.runs.deep_training", "SIGINT", 130, "holdfast train"),
        ("holdfast.runs.deep_training", "SIGTERM", 143, "holdfast train"),
    ],
)
def test_a_signal_during_imports_is_one_line_too(
    module: str, number: str, code: int, who: str, tmp_path: Path
) -> None:
    program = INTERRUPTED_IMPORT.format(module=module, number=number)
    run = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, check=False, cwd=tmp_path
    )
    assert (run.returncode, run.stderr) == (code, f"{who}: interrupted\n")
    assert list(tmp_path.iterdir()) == []
