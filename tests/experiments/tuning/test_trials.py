from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from holdfast.experiments.tuning.study import Study, make_study
from holdfast.experiments.tuning.trials import (
    best_until,
    draw_trials,
    is_behind,
    median_bars,
    run_trial,
    trial_score,
)


def test_a_score_is_the_mean_of_the_last_fifth() -> None:
    assert trial_score([0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 2.0, 4.0]) == 3.0
    assert trial_score([1.0, 5.0]) == 5.0


def test_the_best_until_each_evaluation() -> None:
    assert best_until([1.0, 0.0, 3.0, 2.0]) == [1.0, 1.0, 3.0, 3.0]


def test_bars_are_medians_of_the_best_until_then() -> None:
    curves = [[0.0, 1.0, 0.0, 9.0], [0.0, 2.0, 5.0, 9.0], [0.0, 3.0, 1.0, 9.0], [0.0, 4.0, 2.0, 9.0]]
    assert median_bars(curves, 4) == []
    # The first quarter and the last one are left out. Best until the second: 1, 2, 3, 4, 0, whose median is 2;
    # until the third: 1, 5, 3, 4, 0, whose median is 3.
    assert median_bars([*curves, [0.0, -1.0, 0.0, 9.0]], 4) == [None, 2.0, 3.0, None]


@pytest.mark.parametrize(
    ("returns", "behind"),
    [
        ([], False),
        ([-9.0], False),
        ([0.0, 1.0], True),
        ([0.0, 2.0], False),
        ([3.0, 0.0, 0.0], False),
        ([1.0] * 4, False),
    ],
)
def test_a_trial_is_behind_whose_best_is_below_the_bar(returns: list[float], behind: bool) -> None:
    assert is_behind(returns, [None, 2.0, 3.0, None]) is behind
    assert not is_behind(returns, [])


@pytest.fixture
def study() -> Study:
    options = {"environment": "cliff", "algo": "q", "episodes": 60, "eval_every": 10, "eval_episodes": 2}
    return make_study(options, {"alpha": None})


def test_a_trial_that_is_behind_stops_itself_and_is_the_same_when_it_is_run_again(
    study: Study, tmp_path: Path
) -> None:
    place = tmp_path / "runs" / "trial"
    (job,) = study.jobs_of(3, {"alpha": 0.1}, [None, None, 2.0, 2.0, 2.0, None])
    rows = run_trial(job, place)
    # No return is above 1.
    assert len(rows["step"]) == 3
    assert rows["pruned"].tolist() == [1.0, 1.0, 1.0]
    again = run_trial(job, place)
    assert [list(again[name]) for name in again] == [list(rows[name]) for name in rows]


def test_a_trial_that_is_not_behind_goes_on_to_its_end(study: Study, tmp_path: Path) -> None:
    (job,) = study.jobs_of(3, {"alpha": 0.1}, [None, -1.0, -1.0, -1.0, -1.0, None])
    rows = run_trial(job, tmp_path / "runs" / "trial")
    assert len(rows["step"]) == study.evaluations == 6
    assert rows["pruned"].tolist() == [0.0] * 6


def test_a_training_that_is_over_at_its_last_evaluation_was_not_stopped(tmp_path: Path) -> None:
    """Eight environments make eight steps at once: of the eight evaluations that are due, four are made."""
    study = make_study(
        {
            "environment": "CartPole-v1",
            "algo": "dqn",
            "steps": 32,
            "eval_every": 4,
            "eval_episodes": 1,
            "n_envs": 8,
            "set": {"learning_starts": 100, "policy_kwargs": {"net_arch": [4]}},
        },
        {"gamma": None},
    )
    (job,) = study.jobs_of(3, {"gamma": 0.99}, [None, None, None, *[1e6] * 4, None])
    rows = run_trial(job, tmp_path / "runs" / "trial")
    assert rows["step"].tolist() == [8.0, 16.0, 24.0, 32.0]
    assert rows["pruned"].tolist() == [0.0] * 4


def test_the_picture_has_the_best_of_those_trained_to_the_end() -> None:
    """Trial 1 was stopped, the seed 1 of trial 2 failed: the best so far is 1 and then 3, not 9."""
    trials = [(0, 0, 1.0, 0), (0, 1, 1.0, 0), (1, 0, 9.0, 1), (1, 1, 9.0, 0), (2, 0, 9.0, 0)]
    trials += [(3, 0, 2.0, 0), (3, 1, 4.0, 0)]
    names = ("trial", "seed", "return", "pruned")
    rows = {name: np.array(part) for name, part in zip(names, zip(*trials, strict=True), strict=True)}
    rows["env_label"] = np.array(["cliff"] * len(trials))
    lines = {line.get_label(): line for line in draw_trials(rows).axes[0].get_lines()}
    assert lines["best so far"].get_xdata().tolist() == [0, 3]
    assert lines["best so far"].get_ydata().tolist() == [1.0, 3.0]
    assert lines["not trained to the end"].get_xdata().tolist() == [1, 2]
    # Where none was, there is a picture all the same.
    assert draw_trials({name: values[2:5] for name, values in rows.items()}).axes
