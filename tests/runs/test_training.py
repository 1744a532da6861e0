"""Training a run: what is written, repeating it, extending it, stopping it, and what is refused."""

from __future__ import annotations

import json
import math
import os
import shutil
import signal
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import gymnasium
import numpy as np
import pytest

from holdfast.envs import EnvironmentFailedError
from holdfast.files import read_rows
from holdfast.policies import ALGORITHMS, load_policy
from holdfast.runs import RunFolder, train
from holdfast.runs.options import read_options
from holdfast.runs.progress import Silent, TrainingProgress
from holdfast.runs.session import Session
from holdfast.runs.stopping import StopRequest, stop_on_signals
from tests.runs.kills import contents
from tests.runs.small_runs import BOTH, NETWORK, TABLE, options_for, trained

both = pytest.mark.parametrize("options", BOTH.values(), ids=BOTH)


@pytest.mark.parametrize("algo", ALGORITHMS)
def test_every_algorithm_trains_and_says_so(algo: str, tmp_path: Path) -> None:
    outcome = train(options_for(algo), tmp_path / "run")
    assert outcome.status == "finished"
    status = RunFolder(tmp_path / "run").status()
    assert (status.status, status.steps) == ("finished", outcome.steps)
    assert status.config is not None
    assert status.config.algo == algo


@both
def test_metrics_have_a_row_per_episode(options: dict[str, Any], tmp_path: Path) -> None:
    outcome = trained(options, tmp_path)
    rows = read_rows(tmp_path / "metrics.csv")
    assert rows["episode"] == [float(number) for number in range(1, outcome.episodes + 1)]
    assert sum(rows["length"]) <= outcome.steps
    # A CartPole step gives 1, a grid's return is that of its last step.
    assert rows["step"] == list(np.cumsum(rows["length"]))
    assert all(
        1 <= decisions <= length for decisions, length in zip(rows["decisions"], rows["length"], strict=True)
    )
    assert all(math.ceil(length / 3) <= n for n, length in zip(rows["decisions"], rows["length"], strict=True))
    evaluations = read_rows(tmp_path / "evaluations.csv")
    assert evaluations["evaluation"] == [1.0, 2.0]
    assert max(evaluations["return_mean"]) == outcome.best_return


def test_decisions_are_those_that_were_made(tmp_path: Path) -> None:
    trained(NETWORK, tmp_path, algo="dqn", k_max=None)
    rows = read_rows(tmp_path / "metrics.csv")
    assert rows["decisions"] == rows["length"] == rows["return"]


@both
def test_the_config_of_a_run_repeats_it_bit_for_bit(options: dict[str, Any], tmp_path: Path) -> None:
    trained(options, tmp_path / "one")
    train(read_options(tmp_path / "one" / "config.json"), tmp_path / "two")
    assert contents(tmp_path / "one") == contents(tmp_path / "two")
    assert (tmp_path / "one/config.json").read_text() == (tmp_path / "two/config.json").read_text()


@both
def test_another_seed_is_another_run(options: dict[str, Any], tmp_path: Path) -> None:
    trained(options, tmp_path / "one")
    trained(options, tmp_path / "two", seed=4)
    assert contents(tmp_path / "one")["metrics.csv"] != contents(tmp_path / "two")["metrics.csv"]


class Stopping(Silent):
    """Asks a run to stop at a step."""

    seconds = 0.0

    def __init__(self, stop: StopRequest, at: int) -> None:
        self._stop = stop
        self._at = at

    def show(self, progress: TrainingProgress) -> None:
        if progress.steps >= self._at:
            self._stop.signal = signal.SIGTERM


@both
@pytest.mark.parametrize("at", [1, 33, 61])
def test_a_stopped_run_goes_on_as_if_it_had_not_been(options: dict[str, Any], at: int, tmp_path: Path) -> None:
    trained(options, tmp_path / "whole")
    stop = StopRequest()
    outcome = train(options, tmp_path / "stopped", Stopping(stop, at), stop)
    assert outcome.status == "stopped"
    assert RunFolder(tmp_path / "stopped").status().status == "resumable"
    again = trained(options, tmp_path / "stopped")
    assert again.status == "finished"
    assert contents(tmp_path / "whole") == contents(tmp_path / "stopped")


@both
def test_rows_after_the_last_checkpoint_are_cut_back(options: dict[str, Any], tmp_path: Path) -> None:
    trained(options, tmp_path / "whole")
    stop = StopRequest()
    train(options, tmp_path / "stopped", Stopping(stop, 40), stop)
    for name in ("metrics.csv", "evaluations.csv", "holds.csv"):
        with (tmp_path / "stopped" / name).open("a") as file:
            file.write("9,9,9,9,9,9,9,9,9,9\n7,7")
    trained(options, tmp_path / "stopped")
    assert contents(tmp_path / "whole") == contents(tmp_path / "stopped")


@pytest.mark.parametrize(
    ("evaluated_at", "done", "is_due"), [(0, 4, False), (0, 5, True), (7, 9, False), (7, 10, True)]
)
def test_evaluations_are_due_at_multiples_of_their_interval(evaluated_at: int, done: int, is_due: bool) -> None:
    # Several environments step at once, and may step over a multiple.
    session = SimpleNamespace(config=SimpleNamespace(eval_every=5), evaluated_at=evaluated_at)
    assert Session.evaluation_is_due(session, done) is is_due  # type: ignore[arg-type]


@both
def test_a_finished_run_is_left_as_it_is(options: dict[str, Any], tmp_path: Path) -> None:
    trained(options, tmp_path)
    before = contents(tmp_path)
    outcome = trained(options, tmp_path)
    assert outcome.status == "already finished"
    assert contents(tmp_path) == before


def test_a_longer_table_run_is_the_same_whether_extended_or_not(tmp_path: Path) -> None:
    trained(TABLE, tmp_path / "grown")
    trained(TABLE, tmp_path / "grown", episodes=20)
    trained(TABLE, tmp_path / "whole", episodes=20)
    assert contents(tmp_path / "grown") == contents(tmp_path / "whole")


def test_a_longer_network_run_keeps_the_schedules_it_had(tmp_path: Path) -> None:
    trained(NETWORK, tmp_path / "grown")
    outcome = trained(NETWORK, tmp_path / "grown", steps=130)
    assert outcome.steps == 130
    longer = {**NETWORK, "set": {**NETWORK["set"], "schedule_steps": 80}}
    trained(longer, tmp_path / "whole", steps=130)
    grown, whole = contents(tmp_path / "grown"), contents(tmp_path / "whole")
    # SB3 counts from where learn() began, and for how long it was to be.
    for document in (grown["state"], whole["state"]):
        document["agent"]["counters"].pop("_total_timesteps")
    assert grown == whole
    config = json.loads((tmp_path / "grown/config.json").read_text())
    assert (config["steps"], config["set"]["schedule_steps"]) == (130, 80)


@pytest.mark.parametrize(
    ("change", "sentence"),
    [
        ({"k_max": 2}, "contains a run with k_max=3, not 2"),
        ({"set": {"alpha": 0.5}}, "contains a run with alpha=0.1, not 0.5"),
        ({"environment": "bridge"}, "contains a run with environment='cliff', not 'bridge'"),
        ({"env_kwargs": {"slip": 0.1}}, "contains a run with no slip"),
    ],
)
def test_another_run_in_the_same_folder_is_refused(change: dict[str, Any], sentence: str, tmp_path: Path) -> None:
    trained(TABLE, tmp_path)
    before = contents(tmp_path)
    with pytest.raises(ValueError, match=sentence):
        trained(TABLE, tmp_path, **change)
    assert contents(tmp_path) == before


def test_a_folder_with_something_else_is_refused(tmp_path: Path) -> None:
    (tmp_path / "thesis.tex").write_text("...")
    with pytest.raises(ValueError, match="contains something else"):
        trained(TABLE, tmp_path)
    assert [path.name for path in tmp_path.iterdir()] == ["thesis.tex"]


def test_fewer_episodes_change_nothing(tmp_path: Path) -> None:
    trained(TABLE, tmp_path)
    assert trained(TABLE, tmp_path, episodes=5).status == "already finished"
    assert RunFolder(tmp_path).status().episodes == 12


def test_options_that_there_are_not_are_refused(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="must not have 'epsodes'; did you mean episodes"):
        train({**TABLE, "epsodes": 3}, tmp_path / "run")
    with pytest.raises(ValueError, match="must not have 'alpha'"):
        train({**TABLE, "alpha": 3}, tmp_path / "run")
    options = dict(TABLE, env=TABLE["environment"])
    del options["environment"]
    assert train(options, tmp_path / "run").status == "finished"


def test_a_run_without_its_checkpoint_begins_anew_and_says_so(tmp_path: Path) -> None:
    said = []

    class Saying(Silent):
        def say(self, sentence: str) -> None:
            said.append(sentence)

    trained(TABLE, tmp_path)
    before = contents(tmp_path)
    shutil.rmtree(tmp_path / "checkpoint")
    train(TABLE, tmp_path, Saying())
    assert "starting over" in said[0]
    assert contents(tmp_path) == before


def test_a_locked_run_is_refused(tmp_path: Path) -> None:
    trained(TABLE, tmp_path)
    with (
        RunFolder(tmp_path).locked(),
        pytest.raises(ValueError, match=f"is in use by process {os.getpid()}"),
    ):
        trained(TABLE, tmp_path, episodes=20)


@pytest.mark.parametrize(
    ("options", "sentence"),
    [
        ({**TABLE, "set": {"alpha": 7.0}}, "alpha must be"),
        ({**NETWORK, "set": {"gamma": 2.0}}, "gamma must be"),
        ({**NETWORK, "device": "abacus"}, "device must be auto, cpu"),
    ],
)
def test_nothing_is_left_behind_by_a_run_that_cannot_begin(
    options: dict[str, Any], sentence: str, tmp_path: Path
) -> None:
    with pytest.raises(ValueError, match=sentence):
        train(options, tmp_path / "run")
    assert list(tmp_path.iterdir()) == []


def test_steps_end_a_table_run_with_the_episode_they_are_reached_in(tmp_path: Path) -> None:
    outcome = trained(TABLE, tmp_path, episodes=None, steps=100)
    rows = read_rows(tmp_path / "metrics.csv")
    assert rows["step"][-1] >= 100 > rows["step"][-2]
    assert outcome.steps == rows["step"][-1]


def test_episodes_end_a_network_run(tmp_path: Path) -> None:
    outcome = trained(NETWORK, tmp_path, episodes=2)
    assert (outcome.status, outcome.episodes) == ("finished", 2)
    assert outcome.steps < 80


def test_the_best_policy_is_the_one_with_the_best_evaluation(tmp_path: Path) -> None:
    trained(TABLE, tmp_path, episodes=200, eval_every=20)
    evaluations = read_rows(tmp_path / "evaluations.csv")
    best = max(evaluations["return_mean"])
    about = json.loads((tmp_path / "policy/policy.json").read_text())["about"]
    last_best = max(number for number, mean in enumerate(evaluations["return_mean"]) if mean == best)
    assert (about["mean_return"], about["step"]) == (best, evaluations["step"][last_best])


def test_without_evaluations_the_last_policy_is_kept(tmp_path: Path) -> None:
    trained(TABLE, tmp_path, eval_every=0)
    assert load_policy(tmp_path).decide(0).values.shape == (4, 3)


def test_without_checkpoints_a_run_is_finished_but_cannot_be_extended(tmp_path: Path) -> None:
    trained(TABLE, tmp_path, checkpoint_every=0.0)
    assert RunFolder(tmp_path).status().status == "finished"
    before = contents(tmp_path)
    assert trained(TABLE, tmp_path, checkpoint_every=0.0).status == "already finished"
    with pytest.raises(ValueError, match="was trained without checkpoints"):
        trained(TABLE, tmp_path, checkpoint_every=0.0, episodes=20)
    assert contents(tmp_path) == before


def test_checkpoints_take_no_more_than_their_share(tmp_path: Path) -> None:
    outcome = trained(TABLE, tmp_path, episodes=3000, checkpoint_every=1e-9, eval_every=0)
    timing = read_rows(tmp_path / "timing.csv")
    assert len(timing["step"]) > 1
    between = timing["seconds"][1:-1]
    assert all(
        waited >= cost / 0.05 for waited, cost in zip(between, timing["checkpoint_seconds"][:-2], strict=True)
    )
    assert outcome.checkpoint_seconds == pytest.approx(sum(timing["checkpoint_seconds"]))


# Environments that fail -----------------------------------------------------------------------------------------


class Failing(gymnasium.Env[Any, Any]):
    """Two states; fails at a step of its life."""

    def __init__(self, at: int, how: str, discrete: bool) -> None:
        self.action_space = gymnasium.spaces.Discrete(2)
        self._at, self._how, self._discrete = at, how, discrete
        self.observation_space = (
            gymnasium.spaces.Discrete(2) if discrete else gymnasium.spaces.Box(-1.0, 1.0, (2,), np.float32)
        )
        self._steps = 0

    def _observation(self) -> Any:
        if self._discrete:
            return self._steps % 2
        return np.full(2, np.nan if self._how == "nan" and self._steps == self._at else 0.5, np.float32)

    def reset(self, *, seed: int | None = None, options: Any = None) -> tuple[Any, Any]:
        super().reset(seed=seed)
        return self._observation(), {}

    def step(self, action: Any) -> Any:
        self._steps += 1
        if self._how == "raise" and self._steps == self._at:
            raise KeyError("the gripper is jammed")
        reward = math.nan if self._how == "nan" and self._discrete and self._steps == self._at else 1.0
        return self._observation(), reward, self._steps % 10 == 0, False, {}


@both
@pytest.mark.parametrize(
    ("how", "sentence"), [("raise", "its step raised KeyError: 'the gripper is jammed'"), ("nan", "it gave")]
)
def test_an_environment_that_fails_is_named_with_episode_and_step(
    options: dict[str, Any], how: str, sentence: str, tmp_path: Path
) -> None:
    name = f"Failing{how}-v0"
    kwargs = {"at": 47, "how": how, "discrete": options is TABLE}
    gymnasium.register(name, Failing)
    try:
        given = {**options, "environment": name, "env_kwargs": kwargs, "eval_every": 0}
        with pytest.raises(EnvironmentFailedError, match=f"failed in episode 5, at step 47: {sentence}"):
            train(given, tmp_path / "new")
        stop = StopRequest()
        train(given, tmp_path / "old", Stopping(stop, 20), stop)
        before = contents(tmp_path / "old")
        with pytest.raises(EnvironmentFailedError, match=sentence):
            train(given, tmp_path / "old")
        after = contents(tmp_path / "old")
        for part in ("state", "checkpoint/tensors.safetensors", "checkpoint/replay.safetensors"):
            assert after[part] == before[part]
    finally:
        del gymnasium.registry[name]


def test_signals_are_noted_and_the_second_one_stops_at_once() -> None:
    before = signal.getsignal(signal.SIGTERM)
    with stop_on_signals() as stop:
        stop.is_obeyed_later = True
        assert not stop
        os.kill(os.getpid(), signal.SIGTERM)
        assert stop
        assert stop.exit_code == 143
        with pytest.raises(KeyboardInterrupt):
            os.kill(os.getpid(), signal.SIGTERM)
    assert signal.getsignal(signal.SIGTERM) is before


def test_before_a_training_has_begun_a_signal_ends_the_process() -> None:
    with pytest.raises(SystemExit) as caught, stop_on_signals():
        os.kill(os.getpid(), signal.SIGTERM)
    assert caught.value.code == 143


def test_signals_that_were_switched_off_stay_off() -> None:
    before = signal.signal(signal.SIGHUP, signal.SIG_IGN)
    try:
        with stop_on_signals() as stop:
            os.kill(os.getpid(), signal.SIGHUP)
            assert not stop
    finally:
        signal.signal(signal.SIGHUP, before)


@both
@pytest.mark.parametrize("number", [0, 1], ids=["first", "last"])
def test_a_run_that_is_stopped_in_an_evaluation_does_it_when_it_goes_on(
    options: dict[str, Any], number: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    lasting = {"episodes": 10} if options is TABLE else {"steps": 60}
    trained(options, tmp_path / "whole", **lasting)
    stop = StopRequest()
    original = Session.evaluate

    def evaluate(session: Session, *arguments: Any) -> Any:
        if session.n_evaluations == number:
            stop.signal = signal.SIGTERM
        return original(session, *arguments)

    with monkeypatch.context() as patched:
        patched.setattr(Session, "evaluate", evaluate)
        outcome = train({**options, **lasting}, tmp_path / "stopped", None, stop)
    assert outcome.status == "stopped"
    assert RunFolder(tmp_path / "stopped").status().status == "resumable"
    assert trained(options, tmp_path / "stopped", **lasting).status == "finished"
    assert contents(tmp_path / "stopped") == contents(tmp_path / "whole")


@pytest.mark.parametrize("freq", [1, [1, "episode"]])
def test_evaluations_that_come_too_often_do_not_depend_on_checkpoints(
    freq: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    options = {**NETWORK, "eval_every": 3, "set": {**NETWORK["set"], "train_freq": freq}}
    if freq == 1:
        options["n_envs"] = 8
    trained(options, tmp_path / "whole")

    class Killed(BaseException):
        pass

    original = RunFolder.write_checkpoint

    def killed_after_it(folder: RunFolder, *arguments: Any) -> None:
        original(folder, *arguments)
        if RunFolder(folder.path).status().steps >= 40:
            raise Killed

    with monkeypatch.context() as patched:
        patched.setattr(RunFolder, "write_checkpoint", killed_after_it)
        patched.setattr("holdfast.runs.session.SHARE_OF_CHECKPOINTS", 1e9)
        with pytest.raises(Killed):
            trained(options, tmp_path / "killed", checkpoint_every=1e-9)
    trained(options, tmp_path / "killed")
    assert contents(tmp_path / "killed") == contents(tmp_path / "whole")


def test_threads_are_those_of_the_run_while_it_lasts(tmp_path: Path) -> None:
    import torch

    before = torch.get_num_threads()
    seen = []

    class Watching(Silent):
        seconds = 0.0

        def show(self, progress: TrainingProgress) -> None:
            seen.append(torch.get_num_threads())

    train({**NETWORK, "threads": 3}, tmp_path / "run", Watching())
    assert set(seen) == {3}
    assert torch.get_num_threads() == before
    with pytest.raises(ValueError, match="gamma must be"):
        train({**NETWORK, "threads": 3, "set": {"gamma": 2.0}}, tmp_path / "none")
    assert torch.get_num_threads() == before


def test_an_endless_episode_is_cut_in_evaluations_as_in_training(tmp_path: Path) -> None:
    trained(TABLE, tmp_path, environment="CliffWalking-v1", algo="q", k_max=None, episodes=5)
    assert max(read_rows(tmp_path / "evaluations.csv")["length_mean"]) <= 100
