"""MountainCar with finer time: how settings are laid out, and the rows of the smallest scale."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from holdfast.experiments.figures.refinement_car import EXPERIMENT, in_physical_time
from holdfast.experiments.tables import select
from tests.experiments.smoke import check_summary, rows_of


def test_physical_time_by_hand() -> None:
    arguments = {
        "gamma": 0.81,
        "buffer_size": 100,
        "learning_starts": 10,
        "target_update_interval": 5,
        "train_freq": 1,
        "gradient_steps": 2,
        "exploration_fraction": 0.1,
    }
    assert in_physical_time(arguments, 1) == arguments
    finer = in_physical_time(arguments, 2)
    assert finer.pop("gamma") == pytest.approx(0.9)
    # One update per physical step: as many updates, and ε over the same part of the training.
    assert finer == {
        "buffer_size": 200,
        "learning_starts": 20,
        "target_update_interval": 10,
        "train_freq": 2,
        "gradient_steps": 2,
        "exploration_fraction": 0.1,
    }


def test_the_plan_lays_out_the_same_training_at_every_n() -> None:
    jobs = EXPERIMENT.jobs("laptop")
    assert {(job.setting["reading"], job.setting["n"], job.setting["agent"]) for job in jobs} == {
        *(("physical", n, agent) for n in (1, 4, 16) for agent in ("DQN", "PerDQN")),
        *(("physical", n, "DQN, skip n") for n in (4, 16)),
        *(("steps", 4, agent) for agent in ("DQN", "PerDQN")),
    }
    for job in jobs:
        setting, arguments = job.setting, job.setting["arguments"]
        n, hold = setting["n"], setting["hold"]
        first = 0.98 if setting["library"] == "sb3" else 0.99
        # A physical step is discounted alike whatever it is made of.
        assert arguments["gamma"] ** (n / hold) == pytest.approx(first)
        steps = setting["physical_steps"] * n // hold
        updates = steps * arguments["gradient_steps"] // arguments["train_freq"]
        assert updates == (60_000 if setting["library"] == "sb3" else 120_000)


def test_rows_picture_and_summary(tmp_path: Path) -> None:
    rows = rows_of(EXPERIMENT, tmp_path / "campaign")
    for n in (1, 2):
        own = select(rows, reading="physical", n=n, agent="DQN")
        assert own["time"].tolist() == [50.0, 100.0, 150.0, 200.0]
        # The flag is out of reach after 200 physical steps, which cost 1 each whatever n is.
        np.testing.assert_allclose(own["length"], 200.0)
        np.testing.assert_allclose(own["return"], -200.0)
        np.testing.assert_allclose(own["decisions"], 200.0 * n)
    skipping = select(rows, agent="DQN, skip n")
    assert set(skipping["n"]) == {2}
    np.testing.assert_allclose(skipping["decisions"], 200.0)
    np.testing.assert_allclose(skipping["return"], -200.0)
    assert (select(rows, agent="PerDQN")["decisions"] < 200.0).all()
    lines = check_summary(EXPERIMENT, rows)
    assert lines[0].split()[:2] == ["last", "fifth"]
    assert select(rows, reading="steps", agent="DQN")["time"].tolist() == [25.0, 50.0, 75.0, 100.0]
    first, second, third = EXPERIMENT.draw(rows).axes
    titles = [axes.get_title() for axes in (first, second, third)]
    assert titles == ["n = 1", "n = 2", "n = 2, as many steps as n = 1"]
    assert [line.get_label() for line in second.lines] == ["DQN", "DQN, skip n", "PerDQN"]
