"""Whose fault it is: the user's, the environment's, the machine's or holdfast's own, by exit code and one line."""

from __future__ import annotations

import errno
import os
import stat
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any, NoReturn

import pytest

import holdfast
from holdfast.cli import main


@pytest.fixture(autouse=True)
def _in_a_folder_of_its_own(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("HOLDFAST_DEBUG", raising=False)
    monkeypatch.chdir(tmp_path)
    (tmp_path / "temporary").mkdir()
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path / "temporary"))


def raising(error: Exception) -> Callable[..., NoReturn]:
    """A function with a bug, as if it stood in a file of holdfast's."""
    place = Path(holdfast.__file__).with_name("wrong.py")
    names: dict[str, Any] = {"error": error}
    exec(compile("def wrong(*arguments, **keywords):\n    raise error", place, "exec"), names)
    return names["wrong"]  # type: ignore[no-any-return]


PLACES = {
    "solve cliff": "holdfast.mdp.q_star_options",
    "solve zigzag": "holdfast.envs.grids.neighbours",
    "train cliff --algo perq": "holdfast.runs.tabular_training.build_learner",
    "train CartPole-v1 --steps 100": "holdfast.runs.deep_training.network_state",
    "train CartPole-v1 --steps 90 --set k_max=2": "holdfast.deep.arguments.check_choice",
    "evaluate policy": "holdfast.policies.opened.read_policy",
    "explore cliff": "holdfast.advice.exploring.advise_from_chain",
    "export policy x.onnx": "holdfast.policies.export.read_policy",
    "runs .": "holdfast.runs.directory.RunFolder.status",
    "plot here": "holdfast.runs.directory.RunFolder.status",
    "sweep --env cliff --algo perq --grid k_max=1,2": "holdfast.experiments.sweep.find_algorithm",
    "reproduce sync": "holdfast.experiments.spec.Experiment.jobs",
    "doctor": "holdfast.cli.doctor._processors",
    "demo --quick": "holdfast.cli.demo._train_both",
}
"""A function of holdfast that each command calls."""

ERRORS = (
    KeyError("states"),
    AssertionError(),
    ValueError("x must be\ny"),
    TypeError("no"),
    ZeroDivisionError("0"),
)


@pytest.mark.parametrize(("command", "place"), PLACES.items())
@pytest.mark.parametrize("error", ERRORS, ids=lambda error: type(error).__name__)
def test_a_fault_of_holdfast_is_one_line_and_a_file_and_exit_code_70(
    command: str,
    place: str,
    error: Exception,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    tmp_path: Path,
) -> None:
    run = tmp_path / "here" / "run"
    run.mkdir(parents=True)
    for name in ("config.json", "metrics.csv"):
        (run / name).touch()
    monkeypatch.setattr(place, raising(error))
    assert main(command.split()) == 70
    said = capsys.readouterr().err
    (file,) = (tmp_path / "temporary").glob("holdfast-*")
    told = type(error).__name__ + (f": {' '.join(str(error).split())}" if str(error) else "")
    assert said == (
        f"holdfast {command.split()[0]}: this is a fault of holdfast ({told}), not of what you typed: its "
        f"traceback is in {file}; please report it to the maintainers of holdfast, with that file\n"
    )
    report = file.read_text(encoding="utf-8")
    assert report.startswith(f"holdfast {holdfast.__version__}, Python ")
    assert f"arguments: {command.split()}\n" in report
    assert "Traceback (most recent call last):" in report
    assert report.rstrip().endswith(type(error).__name__ + (f": {error}" if str(error) else ""))


def test_a_fault_before_the_verb_is_known(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr("holdfast.cli.doctor.add_parser", raising(KeyError("x")))
    assert main(["doctor"]) == 70
    assert capsys.readouterr().err.startswith("holdfast: this is a fault of holdfast (KeyError: 'x'), not of")


def test_nobody_else_can_read_or_guess_the_file(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    monkeypatch.setattr(PLACES["doctor"], raising(RuntimeError("text\x1b[2J\ud800" + 500 * "x")))
    assert (main(["doctor"]), main(["doctor"])) == (70, 70)
    one, other = (tmp_path / "temporary").iterdir()
    assert one.name != other.name
    assert stat.S_IMODE(one.stat().st_mode) == 0o600
    said = capsys.readouterr().err
    assert "\x1b" not in said
    assert said.count("\n") == 2
    assert len(said) < 2 * (500 + len(str(tmp_path)))


def test_a_traceback_that_cannot_be_written_is_said_to_be_lost(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    monkeypatch.setattr(PLACES["doctor"], raising(KeyError("x")))
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path / "nowhere"))
    assert main(["doctor"]) == 70
    assert capsys.readouterr().err == (
        "holdfast doctor: this is a fault of holdfast (KeyError: 'x'), and its traceback could not be written (No "
        "such file or directory): please repeat the command with HOLDFAST_DEBUG=1, and report what it prints to "
        "the maintainers of holdfast\n"
    )


def test_a_disk_that_is_full_leaves_no_half_of_a_traceback(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    real = os.fdopen

    def full(handle: int, *arguments: Any, **keywords: Any) -> Any:
        file = real(handle, *arguments, **keywords)
        file.write = raising(OSError(errno.ENOSPC, "No space left on device"))
        return file

    monkeypatch.setattr(PLACES["doctor"], raising(KeyError("x")))
    monkeypatch.setattr("holdfast.cli.faults.os.fdopen", full)
    assert main(["doctor"]) == 70
    monkeypatch.undo()
    assert "could not be written (No space left on device)" in capsys.readouterr().err
    assert list((tmp_path / "temporary").iterdir()) == []


@pytest.mark.parametrize("error", ERRORS, ids=lambda error: type(error).__name__)
def test_everything_is_raised_on_request(
    error: Exception, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("HOLDFAST_DEBUG", "1")
    monkeypatch.setattr(PLACES["doctor"], raising(error))
    with pytest.raises(type(error)) as caught:
        main(["doctor"])
    assert caught.value is error
    assert list((tmp_path / "temporary").iterdir()) == []


OF_THE_MACHINE = {
    "config.toml: Permission denied": PermissionError(errno.EACCES, "Permission denied", "config.toml"),
    "/a/b: Read-only file system": OSError(errno.EROFS, "Read-only file system", "/a/b"),
    "[Errno 28] No space left on device": OSError(errno.ENOSPC, "No space left on device"),
    "[Errno 24] Too many open files": OSError(errno.EMFILE, "Too many open files"),
    "this needs more memory than there is (Unable to allocate 8 EiB): choose something smaller": MemoryError(
        "Unable to allocate 8 EiB"
    ),
    "this needs more memory than there is: choose something smaller": MemoryError(),
}


@pytest.mark.parametrize(("sentence", "error"), OF_THE_MACHINE.items(), ids=list(OF_THE_MACHINE))
def test_what_the_machine_refuses_is_said_in_a_sentence(
    sentence: str, error: Exception, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(PLACES["doctor"], raising(error))
    assert main(["doctor"]) == 2
    assert capsys.readouterr().err == f"holdfast doctor: {sentence}\n"


@pytest.mark.parametrize(
    "error",
    [
        OSError(errno.EBADF, "Bad file descriptor"),
        OSError("something"),
        FileNotFoundError(
            errno.ENOENT, "No such file", str(Path(holdfast.__file__).parent / "maps" / "cliff.txt")
        ),
    ],
    ids=str,
)
def test_files_that_no_user_has_chosen_are_a_fault(
    error: OSError, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(PLACES["doctor"], raising(error))
    assert main(["doctor"]) == 70
    assert "this is a fault of holdfast" in capsys.readouterr().err


ROBOTS = """
import gymnasium
from gymnasium.envs.registration import register

class Robot(gymnasium.Env):
    observation_space = gymnasium.spaces.Box(-1.0, 1.0, (2,))
    action_space = gymnasium.spaces.Discrete(2)

    def __init__(self, how=None, size=3):
        if how == "made":
            raise KeyError("wheels")
        self.how = how

    def reset(self, seed=None, options=None):
        return self.observation_space.sample(), {}

    def step(self, action):
        raise ValueError("no wheels")

class Odd(Robot):
    P = {0: {0: [(1.0, 0)]}}

class Odder(Odd):
    P = {0: {0: [("sure", 0, 0.0, False)]}}

class Oddest(Odd):
    P = {0: 3}

class Uncertain(Odd):
    P = {0: {0: [(1.0, 0, 0.0, False)]}}
    initial_state_distrib = ["first"]

class Broken(Robot):
    def tabular_mdp(self, gamma):
        return {}["model"]

from holdfast.experiments.spec import Experiment

def experiment(plan):
    return Experiment("mine", "of mine", ("x",), plan, None, None, None)

PLANLESS = experiment(lambda scale: {}[scale])
UNPAIRED = experiment(lambda scale: [3])

register("Robot-v0", lambda **given: Robot(**given))
"""


@pytest.mark.parametrize(
    ("command", "code", "sentence"),
    [
        ("train robots:Robot --env-kwargs how=made", 2, "cannot be made: Robot raised KeyError: 'wheels'"),
        ("train robots:Robot-v0 --env-kwargs how=made", 2, "its constructor raised KeyError: 'wheels'"),
        ("explore robots:Robot --budget 10 --k-max 1", 1, "episode 1, at its step 1: its step raised ValueError"),
        ("solve robots:Odd", 2, "env.P must hold lists of (probability, next state, reward, terminated)"),
        ("solve robots:Odder", 2, "env.P must hold lists of (probability, next state, reward, terminated)"),
        ("solve robots:Oddest", 2, "env.P must have the actions of every state"),
        ("solve robots:Uncertain", 2, "env.initial_state_distrib must be probabilities"),
        ("solve robots:Broken", 2, "and that of Broken raised KeyError: 'model'"),
        ("solve robots:Robot", 2, ": MAP_OR_ENV must expose its transition table"),
        ("explore robots:Robot --study chain", 2, ": --study must be 'visits' or 'auto' without"),
        (
            "train CartPole-v1 --set policy_kwargs={'optimizer_kwargs':{'betas':[2,3]}}",
            2,
            "in --set for this environment: Invalid beta",
        ),
        (
            "train CartPole-v1 --set policy_kwargs={'optimizer_kwargs':{'nesterov':True}}",
            2,
            "in --set for this environment: ",
        ),
        (
            "train CartPole-v1 --set policy_kwargs={'features_extractor_kwargs':{'x':1}}",
            2,
            "in --set for this environment: ",
        ),
        ("reproduce robots:PLANLESS", 2, "plan of mine raised KeyError: 'smoke'"),
        ("reproduce robots:UNPAIRED", 2, "plan of mine must give pairs of a setting and a seed"),
        ("train FrozenLake-v1 --algo perq --env-kwargs map_name=9x9", 2, "its constructor raised KeyError"),
    ],
)
def test_what_other_code_says_of_a_users_values_is_the_users(
    command: str, code: int, sentence: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "robots.py").write_text(ROBOTS)
    assert main(command.split()) == code
    said = capsys.readouterr().err.splitlines()[-1]
    assert sentence in said
    assert "fault of holdfast" not in said
