"""The figures of training on MountainCar, at a scale of seconds."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from holdfast.deep import PerDQN
from holdfast.draw import save_figure
from holdfast.experiments.car_ablation import DRIVERS, PARTS
from holdfast.experiments.car_results import choice_areas, chosen_readings, published_rows
from holdfast.experiments.car_training import PUBLISHED, family
from holdfast.experiments.drivers import dqn, ez_greedy, per_dqn
from holdfast.experiments.figures import find_experiment
from holdfast.experiments.figures.car_returns import SCALED
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
    for scale, steps, seeds in (("laptop", 300_000, 5), ("paper", 600_000, 10 if label == "mtcar_comp" else 20)):
        jobs = [job for job in experiment.jobs(scale) if job.seed >= 100]
        assert [job.setting["driver"] for job in jobs[: len(EXPECTED[label])]] == EXPECTED[label]
        by_driver = {name: {job.seed for job in jobs if job.setting["driver"] == name} for name in EXPECTED[label]}
        for name, found in by_driver.items():
            fewer = scale == "laptop" and ("x" in name or name == "εz(16)")
            assert found == set(range(100, 103 if fewer else 100 + seeds)), name
        assert {job.setting["steps"] for job in jobs} == {steps}
        assert {job.setting["reading"] for job in jobs} <= set(PUBLISHED.values())


def test_seeds_of_their_own_choose_the_reading() -> None:
    jobs = [job for job in find_experiment("mtcar").jobs("laptop") if job.seed < 100]
    told = {(job.setting["driver"], job.setting["reading"], job.seed) for job in jobs}
    assert told == {
        (name, reading, seed)
        for name in ("PerDQN(8)", "DQN", "TempoRL(8)")
        for reading in ("text", "baselines")
        for seed in range(3)
    }
    scaled = {(job.setting["reading"], job.setting["normalize_observations"]) for job in jobs}
    assert scaled == {("text", "space"), ("baselines", None)}
    for label in LABELS[1:]:
        assert min(job.seed for job in find_experiment(label).jobs("laptop")) == 100
    assert min(job.seed for job in find_experiment("mtcar").jobs("paper")) == 100


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
        assert own["return"].tolist() == own["greedy"].tolist() == [-200.0] * 4
        assert ((own["greedy_decisions"] >= 200 / 16) & (own["greedy_decisions"] <= 200)).all()
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
    runs = sorted(campaigns.glob("*/runs/*"))
    assert len(runs) == len({driver for drivers in EXPECTED.values() for driver in drivers})
    for run in runs:
        config = read_json(run / "config.json")
        arguments, known = config["set"], find_algorithm(config["algo"]).arguments()
        paper = PerDQN.paper_mountain_car(PUBLISHED[family(config["algo"])])
        assert arguments["schedule_steps"] == 600_000
        assert arguments["normalize_observations"] is None
        # At this scale alone learning starts sooner, from a smaller ring.
        for name in set(paper) & set(known) - {"learning_starts", "buffer_size", "batch_size", "k_max"}:
            assert arguments[name] == paper[name], name
        assert arguments["batch_size"] % paper["batch_size"] == 0


ALGORITHMS = {"PerDQN": "perdqn", "MSA-DQN": "msa-dqn", "TempoRL": "temporl-dqn", "DQN": "dqn", "εz": "ez-dqn"}


def made_up(drivers: list[str], returns: dict[int, list[float]], reading: str | None = None) -> Table:
    """Rows of drivers with the same returns, by seed; greedy ones are 5 better."""
    parts = [
        {
            "driver": driver,
            "algorithm": (algorithm := ALGORITHMS[driver.partition("(")[0]]),
            "reading": reading or PUBLISHED[family(algorithm)],
            "seed": float(seed),
            "step": 1000.0 * (n + 1),
            "return": value,
            "greedy": value + 5.0,
            "decisions": 10.0,
        }
        for driver in drivers
        for seed, curve in returns.items()
        for n, value in enumerate(curve)
    ]
    return {name: np.array([part[name] for part in parts]) for name in parts[0]}


@pytest.mark.parametrize("label", LABELS)
def test_pictures_show_everybody(label: str, tmp_path: Path) -> None:
    experiment: Experiment = find_experiment(label)
    returns = {100: [-200.0, -180.0, -110.0], 101: [-200.0, -200.0, -120.0]}
    figure = experiment.draw(made_up(EXPECTED[label], returns))
    shown = {line.get_label() for axes in figure.axes for line in axes.lines}
    assert {f"{driver}, 2 runs" for driver in EXPECTED[label]} <= shown
    panels = 3 if label == "mtcar_comp" else 1
    assert len(figure.axes) == 2 * panels
    for axes, greedy in ((figure.axes[0], 0.0), (figure.axes[panels], 5.0)):
        np.testing.assert_allclose(axes.lines[0].get_ydata(), np.array([-200.0, -190.0, -115.0]) + greedy)
    save_figure(figure, tmp_path / "car.png")


def test_the_table_by_hand() -> None:
    rows = made_up(["PerDQN(8)"], {100: [-205.0, -185.0, -115.0], 101: [-205.0, -205.0, -205.0]})
    lines = check_summary(find_experiment("mtcar"), rows)
    assert lines[0].split() == ["greedy", "runs", "flag", "at", "1,000", "at", "2,000", "at", "3,000"]
    # Two seeds: t = 12.706 with one degree of freedom, so 10 · 12.706 and 45 · 12.706.
    assert lines[1].split() == ["PerDQN(8)", "2", "1", "-200.0", "±0", "-190.0", "±127", "-155.0", "±572"]


def test_the_reading_with_the_larger_area_is_chosen_by_family() -> None:
    parts = [
        made_up(["PerDQN(8)"], {0: [-200.0, -100.0], 1: [-200.0, -120.0]}, "text"),
        made_up(["PerDQN(8)"], {0: [-200.0, -180.0], 1: [-200.0, -190.0]}, "baselines"),
        made_up(["DQN", "TempoRL(8)"], {0: [-200.0, -200.0]}, "text"),
        made_up(["DQN", "TempoRL(8)"], {0: [-200.0, -150.0]}, "baselines"),
        # Published seeds choose nothing.
        made_up(["DQN"], {100: [-100.0, -100.0]}, "text"),
    ]
    rows = {name: np.concatenate([part[name] for part in parts]) for name in parts[0]}
    # (−200 − 100 − 200 − 120) / 4 = −155, and greedy episodes return 5 more.
    assert choice_areas(rows)["PerDQN"] == {"text": -150.0, "baselines": -187.5}
    assert chosen_readings(rows) == {"PerDQN": "text", "others": "baselines"}
    assert find_experiment("mtcar").summary(rows)[0] == "seeds that choose, PerDQN: baselines -187.5, text -150.0"
    # One reading alone, or a job that is missing, chooses nothing.
    assert chosen_readings(parts[0]) == {}
    some = {
        name: column[(rows["driver"] != "TempoRL(8)") | (rows["reading"] == "text")]
        for name, column in rows.items()
    }
    assert chosen_readings(some) == {"PerDQN": "text"}


def test_published_rows_are_of_the_published_seeds_and_reading() -> None:
    other = next(reading for reading in ("text", "baselines") if reading != PUBLISHED["others"])
    parts = [made_up(["DQN"], {1: [-1.0], 100: [-2.0]}), made_up(["DQN"], {100: [-3.0]}, other)]
    rows = {name: np.concatenate([part[name] for part in parts]) for name in parts[0]}
    assert published_rows(rows)["return"].tolist() == [-2.0]
    assert find_experiment("mtcar").summary(select(rows, seed=1)) == ["no published seeds yet"]


def test_curves_end_where_those_of_the_paper_do() -> None:
    rows = made_up(["PerDQN(8)"], {100: [-200.0] * 600, 101: [-190.0] * 600})
    (line,) = find_experiment("mtcar").draw(rows).axes[0].lines
    assert (line.get_xdata()[-1], len(line.get_xdata())) == (500_000.0, 500)


def test_what_the_paper_does_not_say_can_be_run_both_ways() -> None:
    settings = {job.setting["normalize_observations"] for job in find_experiment("mtcar").jobs("paper")}
    assert settings == {None}
    assert {job.setting["normalize_observations"] for job in SCALED.jobs("paper")} == {"space"}


def test_what_is_missing_is_left_out(all_rows: dict[str, Table]) -> None:
    only = select(all_rows["mtcar"], driver="PerDQN(8)")
    figure = find_experiment("mtcar").draw(only)
    assert [line.get_label() for line in figure.axes[0].lines] == ["PerDQN(8), 1 run"]


def test_what_makes_it_work_is_asked_with_the_published_settings() -> None:
    jobs = PARTS.jobs("laptop")
    assert len(jobs) == 5 * len(DRIVERS)
    assert {job.setting["steps"] for job in jobs} == {150_000}
    assert {job.seed for job in jobs} == set(range(100, 105))
    whole = next(job.setting for job in jobs if job.setting["driver"] == "PerDQN(8)")
    for job in jobs:
        assert job.setting["reading"] == PUBLISHED[family(job.setting["algorithm"])]
        if job.setting["driver"].startswith("PerDQN(8), "):
            # One thing alone is another.
            own = {**job.setting["arguments"]}
            assert {**whole, "driver": job.setting["driver"], "arguments": own} == job.setting
            assert own.pop("k_max") == 8
            assert len(own) == (2 if "one body" in job.setting["driver"] else 1)
        known = set(find_algorithm(job.setting["algorithm"]).arguments())
        assert set(job.setting["arguments"]) <= known
    # At the paper's scale the whole is the same job as in the figures.
    assert {job.id for job in PARTS.jobs("paper")} & {job.id for job in find_experiment("mtcar").jobs("paper")}


def test_its_rows_and_picture(tmp_path: Path) -> None:
    jobs = [job for job in PARTS.jobs("smoke") if "," in job.setting["driver"]]
    rows = rows_of(PARTS, tmp_path / "parts", jobs)
    figure = PARTS.draw(rows)
    assert [axes.get_title() for axes in figure.axes[:2]] == ["exploration and update", "parts of the update"]
    assert len(check_summary(PARTS, rows)) == 1 + len(jobs)
