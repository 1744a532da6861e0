"""The figures of training on MountainCar, at a scale of seconds."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from holdfast.deep import PerDQN
from holdfast.draw import save_figure
from holdfast.experiments.drivers import dqn, ez_greedy, per_dqn
from holdfast.experiments.figures import find_experiment
from holdfast.experiments.figures.car_returns import UNSCALED
from holdfast.experiments.spec import Experiment
from holdfast.experiments.tables import Table, select
from holdfast.files import read_json
from holdfast.policies import find_algorithm
from tests.experiments.smoke import check_summary, rows_of

LABELS = ("mtcar", "mt_car_2", "mtcar_comp")
EXPECTED = {
    "mtcar": ["PerDQN(8)", "PerDQN(16)", "TempoRL(8)", "DQN"],
    "mt_car_2": ["PerDQN(8)", "MSA-DQN(8)", "TempoRL(8)"],
    "mtcar_comp": [
        *("PerDQN(8)", "PerDQN(16)", "DQN(x8)", "DQN(x16)"),
        *("εz(8)", "εz(16)", "εz(8x8)", "εz(16x16)"),
    ],
}


@pytest.mark.parametrize("label", LABELS)
def test_who_is_trained_how_long(label: str) -> None:
    experiment = find_experiment(label)
    for scale, steps, seeds in (("laptop", 150_000, 2), ("paper", 600_000, 10 if label == "mtcar_comp" else 20)):
        jobs = experiment.jobs(scale)
        assert [job.setting["driver"] for job in jobs[: len(EXPECTED[label])]] == EXPECTED[label]
        assert {job.seed for job in jobs} == set(range(seeds))
        assert len(jobs) == seeds * len(EXPECTED[label])
        assert {job.setting["steps"] for job in jobs} == {steps}


def test_batches_are_as_large_as_their_names_say() -> None:
    assert dqn(8).arguments == {"batch_size": 256}
    assert ez_greedy(16, 16).arguments == {"k_max": 16, "batch_size": 512}
    assert per_dqn(8).arguments == {"k_max": 8}


@pytest.fixture(scope="module")
def campaigns(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("car")


@pytest.fixture(scope="module")
def all_rows(campaigns: Path) -> dict[str, Table]:
    """All three figures; who is in several of them is trained once."""
    known: dict[str, bytes] = {}
    return {label: rows_of(find_experiment(label), campaigns / label, known=known) for label in LABELS}


@pytest.mark.parametrize("label", LABELS)
def test_rows_of_a_short_training(label: str, all_rows: dict[str, Table]) -> None:
    rows = all_rows[label]
    assert list(dict.fromkeys(rows["driver"].tolist())) == EXPECTED[label]
    for driver in EXPECTED[label]:
        own = select(rows, driver=driver)
        assert own["step"].tolist() == [100.0, 200.0, 300.0, 400.0]
        # Nothing reaches the flag in two episodes; the first ends after 200 steps.
        assert own["return"].tolist() == [-200.0] * 4
        assert np.isnan(own["decisions"][0])
        # εz-greedy holds what it explores with, but decides anew at each greedy step.
        assert 200 / 16 <= own["decisions"][1] <= 200


@pytest.mark.parametrize("label", LABELS)
def test_their_pictures(label: str, all_rows: dict[str, Table], tmp_path: Path) -> None:
    experiment = find_experiment(label)
    figure = experiment.draw(all_rows[label])
    shown = {line.get_label() for axes in figure.axes for line in axes.lines}
    assert shown == {f"{driver}, 1 run" for driver in EXPECTED[label]}
    assert {tuple(line.get_ydata()) for axes in figure.axes for line in axes.lines} == {(-200.0,) * 4}
    assert save_figure(figure, tmp_path / "car.png").stat().st_size > 10_000
    lines = check_summary(experiment, all_rows[label])
    assert len(lines) == 1 + len(EXPECTED[label])


def test_they_are_trained_with_the_papers_settings(all_rows: dict[str, Table], campaigns: Path) -> None:
    paper = PerDQN.paper_mountain_car()
    runs = sorted(campaigns.glob("*/runs/*"))
    assert len(runs) == len({driver for drivers in EXPECTED.values() for driver in drivers})
    for run in runs:
        config = read_json(run / "config.json")
        arguments, known = config["set"], find_algorithm(config["algo"]).arguments()
        assert arguments["schedule_steps"] == 600_000
        assert arguments["normalize_observations"] == "space"
        # At this scale alone learning starts sooner, from a smaller ring.
        for name in set(paper) & set(known) - {"learning_starts", "buffer_size", "batch_size", "k_max"}:
            assert arguments[name] == paper[name], name
        assert arguments["batch_size"] % paper["batch_size"] == 0


def made_up(drivers: list[str], returns: dict[int, list[float]]) -> Table:
    """Rows of drivers with the same returns, by seed."""
    parts = [
        {"driver": driver, "seed": float(seed), "step": 1000.0 * (n + 1), "return": value, "decisions": 10.0}
        for driver in drivers
        for seed, curve in returns.items()
        for n, value in enumerate(curve)
    ]
    return {name: np.array([part[name] for part in parts]) for name in parts[0]}


@pytest.mark.parametrize("label", LABELS)
def test_pictures_show_everybody(label: str, tmp_path: Path) -> None:
    experiment: Experiment = find_experiment(label)
    figure = experiment.draw(made_up(EXPECTED[label], {0: [-200.0, -180.0, -110.0], 1: [-200.0, -200.0, -120.0]}))
    shown = {line.get_label() for axes in figure.axes for line in axes.lines}
    assert {f"{driver}, 2 runs" for driver in EXPECTED[label]} <= shown
    assert len(figure.axes) == (3 if label == "mtcar_comp" else 1)
    line = figure.axes[0].lines[0]
    np.testing.assert_allclose(line.get_ydata(), [-200.0, -190.0, -115.0])
    save_figure(figure, tmp_path / "car.png")


def test_the_table_by_hand() -> None:
    rows = made_up(["PerDQN(8)"], {0: [-200.0, -180.0, -110.0], 1: [-200.0, -200.0, -200.0]})
    lines = check_summary(find_experiment("mtcar"), rows)
    assert lines[0].split() == ["agent", "runs", "reached", "flag", "at", "1,000", "at", "2,000", "at", "3,000"]
    # Two seeds: t = 12.706 with one degree of freedom, so 10 · 12.706 and 45 · 12.706.
    assert lines[1].split() == ["PerDQN(8)", "2", "1", "-200.0", "±0", "-190.0", "±127", "-155.0", "±572"]


def test_curves_end_where_those_of_the_paper_do() -> None:
    rows = made_up(["PerDQN(8)"], {0: [-200.0] * 600, 1: [-190.0] * 600})
    (line,) = find_experiment("mtcar").draw(rows).axes[0].lines
    assert (line.get_xdata()[-1], len(line.get_xdata())) == (500_000.0, 500)


def test_what_the_paper_does_not_say_can_be_run_both_ways() -> None:
    settings = {job.setting["normalize_observations"] for job in find_experiment("mtcar").jobs("paper")}
    assert settings == {"space"}
    assert {job.setting["normalize_observations"] for job in UNSCALED.jobs("paper")} == {None}


def test_what_is_missing_is_left_out(all_rows: dict[str, Table]) -> None:
    only = select(all_rows["mtcar"], driver="PerDQN(8)")
    figure = find_experiment("mtcar").draw(only)
    assert [line.get_label() for line in figure.axes[0].lines] == ["PerDQN(8), 1 run"]
