"""Curves of runs: what they are means of, and how sure they are."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from holdfast.files import read_rows
from holdfast.runs.curves import learning_curves, rolling_mean
from holdfast.stats.estimates import mean_interval
from tests.runs.small_runs import NETWORK, TABLE, trained


def test_intervals_by_hand() -> None:
    # Mean 2, standard deviation 1, t(0.975, 2) = 4.302653.
    mean, low, high = mean_interval(np.array([[1.0], [2.0], [3.0]]))
    assert mean[0] == 2.0
    assert high[0] - 2.0 == pytest.approx(4.302653 / np.sqrt(3.0), rel=1e-6)
    assert 2.0 - low[0] == pytest.approx(high[0] - 2.0)
    mean, low, high = mean_interval(np.array([[5.0]]))
    assert mean[0] == 5.0
    assert np.isnan(low[0])
    assert np.isnan(high[0])


def test_rolling_means_by_hand() -> None:
    assert rolling_mean(np.array([1.0, 3.0, 5.0, 7.0]), 2).tolist() == [1.0, 2.0, 4.0, 6.0]


def test_runs_of_one_setting_are_one_curve(tmp_path: Path) -> None:
    paths = []
    for seed in range(3):
        paths.append(tmp_path / f"perq{seed}")
        trained(TABLE, paths[-1], seed=seed, episodes=20 + seed)
    trained(TABLE, tmp_path / "alpha", set={"alpha": 0.5})
    trained({**TABLE, "algo": "q", "k_max": None}, tmp_path / "q")
    trained(NETWORK, tmp_path / "deep")
    panels = learning_curves([*paths, tmp_path / "alpha", tmp_path / "q", tmp_path / "deep"], window=4)
    assert [panel.title for panel in panels] == ["cliff", "CartPole-v1"]
    assert [curve.label for curve in panels[0].curves] == [
        "PerQ-learning, K=3, alpha=0.1 (3 seeds)",
        "PerQ-learning, K=3, alpha=0.5",
        "Q-learning",
    ]
    first, second, third = panels[0].curves
    assert first.color == second.color != third.color
    assert first.dash != second.dash
    assert second.low is None
    assert first.low is not None
    rows = [read_rows(path / "metrics.csv") for path in paths]
    assert first.x[-1] == min(row["step"][-1] for row in rows)
    at_end = [
        np.mean(
            [value for value, step in zip(row["return"], row["step"], strict=True) if step <= first.x[-1]][-4:]
        )
        for row in rows
    ]
    assert first.y[-1] == pytest.approx(np.mean(at_end))


def test_curves_over_episodes_and_of_evaluations(tmp_path: Path) -> None:
    trained(TABLE, tmp_path)
    (panel,) = learning_curves([tmp_path], "decisions", over="episode")
    assert (panel.curves[0].x[0], panel.curves[0].x[-1]) == (1.0, 12.0)
    (panel,) = learning_curves([tmp_path], "evaluation", over="episode")
    assert (panel.curves[0].x[0], panel.curves[0].x[-1]) == (5.0, 10.0)


def test_a_run_with_nothing_to_show(tmp_path: Path) -> None:
    trained(TABLE, tmp_path, eval_every=0)
    with pytest.raises(ValueError, match="has nothing to show yet"):
        learning_curves([tmp_path], "evaluation")


def test_the_same_seed_counts_once(tmp_path: Path) -> None:
    trained(TABLE, tmp_path / "one")
    trained(TABLE, tmp_path / "copy")
    trained(TABLE, tmp_path / "longer", episodes=20)
    trained(TABLE, tmp_path / "other", seed=9, episodes=20)
    (panel,) = learning_curves(sorted(tmp_path.iterdir()), over="episode")
    (curve,) = panel.curves
    assert curve.label == "PerQ-learning, K=3 (2 seeds)"
    assert curve.x[-1] == 20


def test_environments_with_other_arguments_are_other_panels(tmp_path: Path) -> None:
    trained(TABLE, tmp_path / "plain")
    trained(TABLE, tmp_path / "slip", env_kwargs={"slip": 0.1})
    titles = [panel.title for panel in learning_curves([tmp_path / "plain", tmp_path / "slip"])]
    assert titles == ["cliff", "cliff, slip=0.1"]
