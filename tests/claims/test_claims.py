"""The page of claims: its numbers are in committed rows, its tests exist, and its verdicts follow its rule."""

from __future__ import annotations

import ast
import csv
import json
import re
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from scipy import stats

from holdfast.experiments.car_results import chosen_readings
from holdfast.experiments.car_training import PUBLISHED
from tests.architecture import ROOT
from tests.claims.car import car_gap
from tests.claims.findings import Finding, verdict
from tests.claims.kept import FOLDERS, Kept
from tests.claims.page import claims_text
from tests.claims.statements import ATARI, CAR, EXPLORATION, GRIDS, PROVEN, SYNCHRONOUS, Proven
from tests.evidence import DOCS, RESULTS

PAGE = (DOCS / "claims.md").read_text("utf-8")
GRID_KEYS = {"Cliff": "cliff", "Bridge": "bridge", "ZigZag": "zigzag", "FrozenLake": "frozen-lake"}
CHOICES: Mapping[str, Mapping[str, float]] = {
    "zero initial values, 100 steps": {"initial_std": 0.0, "step_limit": 100, "alpha": 0.1},
    "initial values N(0, .01²)": {"initial_std": 0.01, "step_limit": 100, "alpha": 0.1},
    "1,000 steps per episode": {"initial_std": 0.0, "step_limit": 1000, "alpha": 0.1},
}


# Read without the code of the package.


def jobs(folder: str) -> dict[str, dict[str, Any]]:
    return json.loads((RESULTS / folder / "manifest.json").read_text())["jobs"]


def lines(folder: str) -> Iterator[dict[str, str]]:
    with (RESULTS / folder / "rows.csv").open(newline="") as file:
        yield from csv.DictReader(file)


@pytest.fixture(scope="module")
def grid_scores() -> dict[tuple[str, str, str], list[float]]:
    """Mean greedy return of each seed, by agent, grid and choice."""
    found: dict[tuple[str, str, str], dict[int, list[float]]] = {}
    for folder in ("tabular_study", "tabular_ablation", "tabular_multi"):
        if not (RESULTS / folder).is_dir():
            continue
        settings = {job: entry["setting"] for job, entry in jobs(folder).items()}
        for line in lines(folder):
            setting = settings[line["job"]]
            for choice, wanted in CHOICES.items():
                if all(setting[name] == value for name, value in wanted.items()):
                    key = setting["agent"], setting["grid"], choice
                    runs = found.setdefault(key, {})
                    runs.setdefault(int(line["seed"]), []).append(float(line["greedy"]))
    return {key: [float(np.mean(runs[seed])) for seed in sorted(runs)] for key, runs in found.items()}


def table_line(text: str) -> list[str]:
    """The cells of the one line of the page that begins with a claim."""
    (line,) = [one for one in PAGE.splitlines() if one.startswith(f"| {text}")]
    return [cell.strip() for cell in line.strip("|").split(" | ")]


COMPARED = [
    ("PerQ-learning with K = 8 converges faster than with K = 4", "PerQ8", "PerQ4"),
    ("K = 16 is slightly better than 8", "PerQ16", "PerQ8"),
    ("PerQ-learning (K = 8) is better than Q-learning", "PerQ8", "Q"),
    ("PerQ-learning (K = 8) is better than TempoRL in all cases. ", "PerQ8", "TempoRL8 padded"),
    ("PerQ-learning (K = 8) is better than TempoRL in all cases, if", "PerQ8", "TempoRL8"),
    ("With large K, TempoRL is more robust", "TempoRL16 padded", "PerQ16"),
    ("Without the bootstrap (MSA-Q-learning)", "PerQ8", "MSA8"),
    ("Without the bootstrap they are worse even", "PerQ8", "MSA8 padded"),
    ("MSA-Q-learning is often worse", "MSA8", "Q"),
    ("The reason is that durations", "MSA8 padded", "MSA8"),
    ("Q-learning with K updates per step is not better", "Q x8", "Q"),
    ("PerQ-learning stays ahead", "PerQ8", "Q equal to PerQ8"),
]


@pytest.mark.parametrize(("claim", "ours", "theirs"), COMPARED)
def test_every_number_of_the_grids_is_in_the_rows(
    claim: str, ours: str, theirs: str, grid_scores: dict[tuple[str, str, str], list[float]]
) -> None:
    numbers = table_line(claim)[3]
    parts = dict(part.split(": ", 1) if ": " in part else ("", part) for part in numbers.split("<br>"))
    n_found = 0
    for told, text in parts.items():
        choice = told or next(iter(CHOICES))
        for name, value, half in re.findall(r"(\w+) ([+−]\d+\.\d+) ± (\d+\.\d+)", text):
            mine, other = (np.array(grid_scores[agent, GRID_KEYS[name], choice]) for agent in (ours, theirs))
            assert len(mine) == len(other) == 50
            gap = mine - other
            assert float(value.replace("−", "-")) == pytest.approx(gap.mean(), abs=5.1e-4)
            low, high = stats.t.interval(0.95, 49, gap.mean(), stats.sem(gap)) if gap.any() else (0.0, 0.0)
            assert float(half) == pytest.approx((high - low) / 2.0, abs=5.1e-4)
            n_found += 1
    # Nothing in the cell that was not looked at.
    assert n_found == numbers.count("±")
    assert n_found >= 2


def test_every_number_of_random_options_is_in_the_rows() -> None:
    for folder, claim in (("adv_exploration", "With a larger K, random options"),):
        rates = {
            int(float(line["k_max"])): tuple(
                100.0 * float(line[name]) for name in ("reached", "reached_low", "reached_high")
            )
            for line in lines(folder)
        }
        told = re.findall(r"K=(\d+): (\d+\.\d+) % \((\d+\.\d+)–(\d+\.\d+)\)", table_line(claim)[3])
        assert [int(k) for k, *_ in told] == [1, 2, 4, 8, 16, 32, 64]
        for k, *numbers in told:
            assert [float(number) for number in numbers] == pytest.approx(rates[int(k)], abs=5.1e-3)
    cells: dict[int, int] = {}
    for line in lines("adv_exploration"):
        cells[int(float(line["k_max"]))] = cells.get(int(float(line["k_max"])), 0) + (float(line["visits"]) > 0)
    told = re.findall(r"K=(\d+): (\d+)", table_line("They cover a wider region")[3])
    assert {int(k): int(number) for k, number in told} == cells


def test_every_number_of_kemenys_constant_is_in_the_rows() -> None:
    settings = {job: entry["setting"] for job, entry in jobs("kem_complete").items()}
    curves: dict[tuple[str, int], list[tuple[int, float]]] = {}
    for line in lines("kem_complete"):
        setting = settings[line["job"]]
        relative = float(line["kemeny"]) / float(line["kemeny_of_one"])
        curves.setdefault((setting["grid"], setting["H"]), []).append((int(float(line["k_max"])), relative))
    told = re.findall(r"(\w+), H=(\d+): (\d\.\d+) at K=(\d+)", table_line("For every horizon")[3])
    assert len(told) == 12
    for name, horizon, value, k in told:
        best = min(curves[name.lower(), int(horizon)], key=lambda point: point[1])
        assert (int(k), float(value)) == (best[0], pytest.approx(best[1], abs=5.1e-4))


def test_every_number_of_synchronous_learning_is_in_the_rows() -> None:
    rules = {job: entry["setting"]["rule"] for job, entry in jobs("sync").items()}
    errors: dict[tuple[str, int], list[float]] = {}
    for line in lines("sync"):
        if float(line["iteration"]) == 200.0:
            errors.setdefault((rules[line["job"]], int(float(line["k"]))), []).append(float(line["error"]))
    told = dict(re.findall(r"k=(\d): (\S+) ±", table_line("The larger k")[3]))
    assert len(told) == 6
    for k, value in told.items():
        assert float(value) == pytest.approx(np.mean(errors["combined", int(k)]), rel=0.05)
    plain = re.search(r"Q-learning (\S+) ±", table_line("Synchronous PerQ-learning converges faster")[3])
    assert plain is not None
    assert float(plain[1]) == pytest.approx(np.mean(errors["q", 1]), rel=0.05)


# What the page says of itself.


@pytest.mark.parametrize("one", PROVEN, ids=lambda one: one.claim[:40])
def test_what_keeps_a_claim_exists(one: Proven) -> None:
    for test in one.tests:
        file, *names = test.split("::")
        body: list[Any] = ast.parse((ROOT / "tests" / file).read_text("utf-8")).body
        for name in names:
            (found,) = [node for node in body if getattr(node, "name", None) == name]
            body = found.body


def test_no_claim_is_missing_or_twice() -> None:
    told = [one.claim for one in (*PROVEN, *EXPLORATION, *SYNCHRONOUS, *GRIDS, *CAR)] + [
        claim for claim, _ in ATARI
    ]
    assert len(told) == len(set(told)) >= 50
    for claim in told:
        assert PAGE.count(f"| {claim}") == 1, claim


def test_every_figure_of_the_paper_that_claims_something_is_there() -> None:
    named = set(re.findall(r"`(fig:\w+)`", PAGE))
    assert named == {
        *("fig:Kemeny", "fig:kem_complete", "fig:adv_exploration", "fig:adv_exploration_fix"),
        *("fig:sync", "fig:sync_val", "fig:tabular_perf", "fig:tabular_noboot", "fig:tabular_multi"),
        *("fig:tabular_times", "fig:mtcar", "fig:mt_car_2", "fig:mtcar_comp"),
        *("fig:atari", "fig:atariK", "fig:freeway_extended", "fig:freeway_comp"),
    }


def test_rows_that_are_cited_are_committed() -> None:
    cited = set(re.findall(r"`results/(\w+)`", PAGE))
    assert cited
    for folder in cited:
        assert (RESULTS / folder / "rows.csv").is_file(), folder
    assert cited <= set(FOLDERS)


def test_the_published_reading_is_the_one_that_was_chosen() -> None:
    rows = Kept(RESULTS).figure("mtcar", "laptop")
    for name, reading in ({} if rows is None else chosen_readings(rows)).items():
        assert PUBLISHED[name] == reading, "set PUBLISHED in car_training.py before published seeds are run"


def test_verdicts_by_hand() -> None:
    yes, no = Finding("a", True), Finding("b", False)
    told = [verdict(found) for found in ([yes, yes], [yes, no], [no], [])]
    assert told == ["holds", "holds in part", "does not hold", "not tested yet"]


def test_without_rows_nothing_is_claimed(tmp_path: Path) -> None:
    text = claims_text(tmp_path)
    assert "±" not in text
    assert text.count("not tested yet") == len((*EXPLORATION, *SYNCHRONOUS, *GRIDS, *CAR, *ATARI))


def test_rows_that_arrive_fill_numbers_in(monkeypatch: pytest.MonkeyPatch) -> None:
    scores = {"PerDQN(8)": {100: -100.0, 101: -110.0, 102: -105.0}, "DQN": {100: -200.0, 101: -190.0, 103: 0.0}}
    monkeypatch.setattr("tests.claims.car.driver_scores", lambda kept, driver: scores.get(driver, {}))
    (found,) = car_gap("PerDQN(8)", "DQN")(Kept(RESULTS))[""]
    # Differences of 100 and 80 on the seeds of both: 90 ± 12.706 · 14.142 / √2.
    assert (found.text, found.is_as_claimed) == ("PerDQN(8) minus DQN +90.0 ± 127.1, 2 seeds", False)
    assert car_gap("PerDQN(8)", "TempoRL(8)")(Kept(RESULTS))[""] == []
