"""Code of the user that ends the program, or returns what is of no use: one line, and never exit code 0."""

from __future__ import annotations

import subprocess
import sys
import time
from pathlib import Path

import pytest

from holdfast.cli import main
from holdfast.files import read_rows
from tests.runs.small_runs import TABLE, trained

MODULE = """
import os, signal, sys
import gymnasium
import numpy as np
from gymnasium import spaces

class Leave(BaseException):
    pass

class Robot(gymnasium.Env):
    action_space = spaces.Discrete(2)
    observation_space = spaces.Discrete(3)
    def __init__(self, how="good", render_mode=None):
        self.how, self.render_mode, self.episodes = how, render_mode, 0
        if how == "make exit":
            sys.exit(0)
        if how == "make leave":
            raise Leave("at once")
    def reset(self, *, seed=None, options=None):
        super().reset(seed=seed)
        self.episodes, self.time = self.episodes + 1, 0
        if self.how == "reset exit" and self.episodes == 3:
            sys.exit(0)
        return 1, None if self.how == "no info" else {}
    def step(self, action):
        self.time += 1
        if self.episodes == 3 and self.time == 2:
            if self.how == "exit":
                sys.exit(0)
            if self.how == "leave":
                raise Leave("the room")
            if self.how == "generator":
                raise GeneratorExit
            if self.how == "ctrl-c":
                os.kill(os.getpid(), signal.SIGINT)
        reward = 1e308 if self.how == "huge" else 0.5
        terminated = np.array([False, True]) if self.how == "ends" else self.time == 4
        info = {"lock": sys.stderr, "episode": 3} if self.how == "odd info" else {}
        return 1, reward, terminated, False, info
    def render(self):
        if self.how == "flat":
            return np.zeros((0, 0, 3), np.uint8)
        return np.zeros((4 + (self.time if self.how == "growing" else 0), 4, 3), np.uint8)

class Headless(gymnasium.Env):
    action_space = spaces.Discrete(2)

class Blind(Robot):
    observation_space = spaces.Box(-1, 1, (0,))

class Table(Robot):
    @property
    def P(self):
        sys.exit(0)

class Crooked(Robot):
    P = {0: {0: 3, 1: 4}, 1: None}

class Rich(Robot):
    P = {s: {a: [(1.0, a, 1e308, False)] for a in range(2)} for s in range(2)}

class Inside(Robot):
    @property
    def unwrapped(self):
        sys.exit(0)

def plan(scale):
    sys.exit(0)

def ladder(**changes):
    from holdfast.experiments.spec import Experiment
    given = dict(label="ladder", title="a ladder", columns=("x",), plan=lambda scale: [({"a": 1}, 0)],
                 run=lambda job, place: {"x": [1.0]}, draw=lambda rows: sys.exit(0), summary=lambda rows: ["one"])
    return Experiment(**{**given, **changes})

PLAN = ladder(plan=plan)
SUMMARY = ladder(summary=lambda rows: sys.exit(0))
DRAW = ladder()
"""


@pytest.fixture(autouse=True)
def _module(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "leaving_robots.py").write_text(MODULE)
    (tmp_path / "robots_that_leave_at_once.py").write_text("import sys\nsys.exit(0)\n")
    monkeypatch.chdir(tmp_path)
    monkeypatch.syspath_prepend(tmp_path)


@pytest.fixture(scope="module")
def table(tmp_path_factory: pytest.TempPathFactory) -> Path:
    top = tmp_path_factory.mktemp("policies")
    (top / "leaving_robots.py").write_text(MODULE)
    with pytest.MonkeyPatch.context() as patch:
        patch.syspath_prepend(top)
        trained(TABLE, top / "run", environment="leaving_robots:Robot")
    return top / "run"


TRAIN = ["train", "leaving_robots:Robot", "--algo", "q", "--episodes", "9", "--out", "run", "--quiet"]
DEEP = [
    *("train", "leaving_robots:Robot", "--steps", "40", "--eval-every", "0", "--out", "run", "--quiet"),
    *("--set", "learning_starts=10", "policy_kwargs={'net_arch': [4]}"),
]
EXPLORE = ["explore", "leaving_robots:Robot", "--k-max", "1,2", "--budget", "100"]


def said_by(arguments: list[str], code: int, capsys: pytest.CaptureFixture[str]) -> str:
    """The one line that a command ends with."""
    capsys.readouterr()
    assert main(arguments) == code
    captured = capsys.readouterr()
    assert captured.out == ""
    assert captured.err.count("\n") == 1
    return captured.err.rstrip("\n")


FAILURES = {
    "exit": "its step raised SystemExit: 0 (leaving_robots.py, line ",
    "leave": "its step raised Leave: the room (leaving_robots.py, line ",
    "generator": "its step raised GeneratorExit (leaving_robots.py, line ",
    "reset exit": "its reset raised SystemExit: 0 (leaving_robots.py, line ",
}


@pytest.mark.parametrize("how", FAILURES)
def test_code_that_ends_the_program_is_a_failure_with_episode_and_step(
    how: str, table: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    given = ["--env-kwargs", f"how={how}"]
    in_all = 8 if how == "reset exit" else 10
    for arguments in ([*TRAIN, "--eval-every", "0"], DEEP):
        begin = f"holdfast train: the environment failed in episode 3, at step {in_all}: {FAILURES[how]}"
        # Stable-Baselines3 resets an environment within the step before.
        begin = begin.replace("3, at step 8", "2, at step 8") if arguments is DEEP else begin
        assert said_by([*arguments, "--out", f"run-{arguments[2]}", *given], 1, capsys).startswith(begin)
    place = "before its step 1" if how == "reset exit" else "at its step 2"
    begin = f"the environment failed in episode 3, {place}: {FAILURES[how]}"
    evaluate = ["evaluate", str(table), "--env", "leaving_robots:Robot", *given]
    assert said_by(evaluate, 1, capsys).startswith(f"holdfast evaluate: {begin}")
    assert said_by([*EXPLORE, *given], 1, capsys).startswith(f"holdfast explore: {begin}")


def test_a_failure_in_an_evaluation_says_so(capsys: pytest.CaptureFixture[str]) -> None:
    said = said_by([*TRAIN, "--eval-every", "2", "--env-kwargs", "how=exit"], 1, capsys)
    place = "in evaluation 1, at step 8, in episode 3, at its step 2"
    assert said.startswith(f"holdfast train: the environment failed {place}: its step raised SystemExit: 0")


@pytest.mark.parametrize("how", ["make exit", "make leave"])
def test_environments_that_cannot_be_made_are_bad_input(
    how: str, table: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    given = ["--env-kwargs", f"how={how}"]
    raised = {"make exit": "SystemExit: 0", "make leave": "Leave: at once"}[how]
    sweep = ["sweep", "--env", "leaving_robots:Robot", "--algo", "q", "--grid", "alpha=0.1,0.2", "-o", "sweep"]
    for arguments in (
        TRAIN,
        DEEP,
        EXPLORE,
        ["solve", "leaving_robots:Robot"],
        ["evaluate", str(table), "--env", "leaving_robots:Robot"],
        sweep,
    ):
        said = said_by([*arguments, *given], 2, capsys)
        assert f"environment 'leaving_robots:Robot' cannot be made: Robot raised {raised}" in said
    assert not Path("run").exists()


def test_modules_that_leave_when_they_are_imported_are_bad_input(capsys: pytest.CaptureFixture[str]) -> None:
    named = "robots_that_leave_at_once:make"
    sweep = ["sweep", "--env", named, "--algo", "q", "--grid", "alpha=0.1"]
    for arguments in (["train", named], ["explore", named], ["solve", named], sweep):
        sys.modules.pop("robots_that_leave_at_once", None)
        said = said_by(arguments, 2, capsys)
        assert "importing robots_that_leave_at_once raised SystemExit: 0" in said
    for arguments in (["reproduce", named], ["plot", named]):
        sys.modules.pop("robots_that_leave_at_once", None)
        assert "importing robots_that_leave_at_once raised SystemExit: 0" in said_by(arguments, 2, capsys)


def test_experiments_that_end_the_program_do_not_succeed(capsys: pytest.CaptureFixture[str]) -> None:
    assert said_by(["reproduce", "leaving_robots:PLAN"], 2, capsys).endswith("plan of ladder raised SystemExit: 0")
    for what in ("draw", "summary"):
        assert main(["reproduce", f"leaving_robots:{what.upper()}", "-o", what]) == 2
        assert f"{what} of ladder raised SystemExit: 0; the rows are stored" in capsys.readouterr().err


@pytest.mark.parametrize("verb", ["solve", "explore"])
def test_what_ends_the_program_elsewhere_is_a_failure_too(verb: str, capsys: pytest.CaptureFixture[str]) -> None:
    said = said_by([verb, "leaving_robots:Inside"], 1, capsys)
    assert said.startswith(f"holdfast {verb}: the environment failed: its code raised SystemExit: 0 (leaving_rob")


def test_transition_tables_that_cannot_be_read_are_bad_input(capsys: pytest.CaptureFixture[str]) -> None:
    for name, sentence in {
        "Table": "readable transition table, and that of Table raised SystemExit: 0",
        "Crooked": "env.P must have the actions of every state",
        "Rich": "r must hold rewards of at most 1e+30 in size: larger sums overflow",
    }.items():
        assert sentence in said_by(["solve", f"leaving_robots:{name}"], 2, capsys)
        # Where episodes can be played instead, they are.
        assert main(["explore", f"leaving_robots:{name}", "--k-max", "1,2", "--budget", "50"]) == 0


def test_ctrl_c_in_an_environment_stays_ctrl_c(table: Path) -> None:
    program = [sys.executable, "-c", "import signal, sys; from holdfast.cli import main\n"]
    # A shell's background jobs begin with Ctrl-C switched off, and so may this test.
    program[2] += "signal.signal(signal.SIGINT, signal.default_int_handler); sys.exit(main())"
    arguments = ["evaluate", str(table), "--env", "leaving_robots:Robot", "--env-kwargs", "how=ctrl-c"]
    run = subprocess.run([*program, *arguments], capture_output=True, text=True, check=False)
    assert (run.returncode, run.stderr) == (130, "holdfast evaluate: interrupted\n")
    run = subprocess.run(
        [*program, *TRAIN, "--env-kwargs", "how=ctrl-c"], capture_output=True, text=True, check=False
    )
    assert run.returncode == 130
    assert "stopped at step" in run.stderr


@pytest.mark.parametrize("number", ["SIGTERM", "SIGINT"])
def test_a_signal_while_the_environment_is_made_is_obeyed(number: str, tmp_path: Path) -> None:
    (tmp_path / "slow_robots.py").write_text(
        f"import os, signal\nos.kill(os.getpid(), signal.{number})\nimport time\ntime.sleep(60)\n"
    )
    program = [sys.executable, "-c", "import signal, sys; from holdfast.cli import main\n"]
    program[2] += "signal.signal(signal.SIGINT, signal.default_int_handler); sys.exit(main())"
    began = time.monotonic()
    run = subprocess.run([*program, "train", "slow_robots:make"], capture_output=True, text=True, check=False)
    assert time.monotonic() - began < 60
    assert run.returncode == {"SIGTERM": 143, "SIGINT": 130}[number]
    assert "cannot be made" not in run.stderr


def test_an_environment_without_a_space_is_one_sentence(table: Path, capsys: pytest.CaptureFixture[str]) -> None:
    evaluate = ["evaluate", str(table), "--env"]
    for arguments in (["train"], ["explore"], ["solve"], evaluate):
        said = said_by([*arguments, "leaving_robots:Headless"], 2, capsys)
        assert (
            "environment 'leaving_robots:Headless' must have an observation_space, but asking for it raised "
            in said
        )


def test_observations_without_a_number_are_refused(capsys: pytest.CaptureFixture[str]) -> None:
    said = said_by(["train", "leaving_robots:Blind"], 2, capsys)
    assert (
        "ENV must have observations with at least one number in every part, but those of leaving_robots:" in said
    )


@pytest.mark.parametrize("how", ["no info", "ends", "huge"])
def test_what_cannot_be_learned_from_is_a_failure(
    how: str, table: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    sentence = {
        "no info": "it gave None as info, which must be a dictionary",
        "ends": "it gave array([False, True]) as terminated, which must be True or False",
        "huge": "it gave 1e+308 as a reward, which must be a finite number of at most 1e+30 in size",
    }[how]
    evaluate = ["evaluate", str(table), "--env", "leaving_robots:Robot"]
    for arguments in (TRAIN, [*DEEP, "--out", "deep"], EXPLORE, evaluate):
        said = said_by([*arguments, "--env-kwargs", f"how={how}"], 1, capsys)
        assert said.endswith(sentence)
    for metrics in Path().glob("*/metrics.csv"):
        assert read_rows(metrics)["return"] == []


def test_what_else_is_in_the_info_does_not_matter() -> None:
    assert main([*DEEP, "--env-kwargs", "how=odd info"]) == 0
    assert main([*DEEP[:-6], "--out", "other", *DEEP[-4:]]) == 0
    assert Path("run/metrics.csv").read_bytes() == Path("other/metrics.csv").read_bytes()


def test_frames_that_make_no_film_are_refused(table: Path, capsys: pytest.CaptureFixture[str]) -> None:
    for how, sentence in {
        "flat": "a film needs frames with at least one pixel, not of shape (0, 0, 3)",
        "growing": "a film needs frames of one size, but those of this environment vary",
    }.items():
        film = ["evaluate", str(table), "--env", "leaving_robots:Robot", "--render", "film.gif"]
        assert said_by([*film, "--env-kwargs", f"how={how}"], 2, capsys).endswith(sentence)
        assert not Path("film.gif").exists()


def test_jobs_that_end_the_program_fail(capsys: pytest.CaptureFixture[str]) -> None:
    sweep = ["sweep", "--env", "leaving_robots:Robot", "--algo", "q", "--grid", "alpha=0.1,0.2", "-o", "sweep"]
    assert main([*sweep, "--seeds", "1", "--episodes", "9", "--env-kwargs", "how=exit"]) == 1
    out = capsys.readouterr().out
    assert out.startswith("sweep: 0 of 2 jobs done, 2 failed")
    assert out.count("the environment failed in episode 3, at step 10: its step raised SystemExit: 0") == 2
