"""The study of how often advice is right: its worlds, its verdicts, and the rows that the documentation counts."""

from __future__ import annotations

import importlib.util
import math
import re
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from holdfast.advice.advisor import advise_from_visits
from holdfast.advice.fixed_skips.skip_verdict import skip_verdict
from holdfast.advice.fixed_skips.skips import exact_skips
from holdfast.advice.visitation.study import study_visitation
from holdfast.experiments.advice_study import ADVICE, gains, verdict
from holdfast.experiments.advice_worlds import N_WORLDS, advice_world
from holdfast.mdp import TabularMDP
from tests.architecture import ROOT
from tests.evidence import advised_in, verdicts

FOLDER = ROOT / "results" / "advice_study"
ROWS, BEFORE = FOLDER / "rows.csv", FOLDER / "before.csv"


def test_half_of_the_worlds_is_kept_apart_and_stays_so() -> None:
    building = [number for number in range(N_WORLDS) if advice_world(number).half == "building"]
    assert (N_WORLDS, len(building)) == (84, 42)
    assert building[:8] == [2, 4, 5, 9, 11, 13, 18, 19]
    assert len({advice_world(number).name for number in range(72)}) == 72


@pytest.mark.parametrize("number", [4, 20, 50, 83])
def test_a_world_is_played_as_it_is_solved(number: int) -> None:
    world = advice_world(number)
    assert world.best_return() >= world.random_return()
    study = study_visitation(world.make(), [1], episodes=300)
    (found,) = study.results
    if world.limit == "limit":
        half = 2.0 * (found.mean_return.high - found.mean_return.low)
        assert found.mean_return.value == pytest.approx(world.random_return(), abs=max(half, 1e-9))


def table(gain: list[float], advised: int, error: float = 0.01) -> dict[str, Any]:
    middle = np.array(gain)
    k_max = np.array([1, 2, 4])
    return {
        "k_max": k_max,
        "gain": middle,
        "gain_low": middle - error,
        "gain_high": middle + error,
        "advised": np.full(3, advised),
    }


@pytest.mark.parametrize(
    ("gain", "advised", "expected"),
    [
        ([0.0, 0.2, 0.0], 2, "right"),
        ([0.0, 0.2, 0.0], 4, "harmless"),
        ([0.0, 0.2, -0.2], 4, "wrong"),
        ([0.0, 0.2, 0.0], 1, "missed"),
        ([0.0, 0.04, -0.2], 1, "right"),
        ([0.0, -0.04, 0.0], 2, "harmless"),
    ],
)
def test_verdicts(gain: list[float], advised: int, expected: str) -> None:
    assert verdict(table(gain, advised)) == expected


def test_what_is_uncertain_is_not_clear() -> None:
    assert verdict(table([0.0, -0.2, 0.0], 2, error=0.3)) == "harmless"


def test_gains_are_parts_of_the_way_from_random_to_best() -> None:
    gain, low, high = gains(np.array([[1.0, 2.0, 3.0], [2.0, 4.0, 3.0]]), best=10.0, at_random=0.0)
    assert gain.tolist() == pytest.approx([0.0, 0.1])
    assert low[1] < 0.1 < high[1]


def test_the_page_names_the_worlds_that_the_old_rule_had_right() -> None:
    page = " ".join((ROOT / "docs" / "explore.md").read_text(encoding="utf-8").split())
    after = verdicts(FOLDER, advised_in(ROWS))
    lost: dict[str, list[int]] = {}
    for number, found in verdicts(FOLDER, advised_in(BEFORE)).items():
        if found == ("kept apart", "right") and after[number][1] != "right":
            lost.setdefault(after[number][1], []).append(number)
    assert lost == {"missed": [12, 48, 51], "harmless": [27]}
    assert "four worlds of the kept half that the old one had right: in three of them (12, 48, 51)" in page
    assert "in one (27) its advice is harmless instead of right" in page


def test_a_job_advises_and_trains(tmp_path: Path) -> None:
    job = ADVICE.jobs("smoke")[0]
    rows = ADVICE.run(job, tmp_path)
    assert list(rows["k_max"]) == [1, 2, 4, 8, 16, 32, 64]
    assert rows["gain"][0] == 0.0
    again = ADVICE.run(job, tmp_path)
    assert np.array_equal(rows["gain"], again["gain"])


@pytest.fixture(scope="module")
def tank() -> Any:
    place = importlib.util.spec_from_file_location("tank", ROOT / "examples" / "tank.py")
    assert place is not None
    assert place.loader is not None
    module = importlib.util.module_from_spec(place)
    place.loader.exec_module(module)
    return module


def tank_model(tank: Any) -> TabularMDP:
    n = tank.TOO_HOT - tank.COLD + 1
    P, r = np.zeros((n, 2, n)), np.zeros((n, 2, n))
    for place in range(n):
        for action in range(2):
            exact = tank.after(place + tank.COLD, action)
            low = math.floor(exact)
            for chance, reached in ((1.0 - exact + low, low), (exact - low, low + 1)):
                P[place, action, min(max(reached - tank.COLD, 0), n - 1)] += chance
        r[:, :, place] = tank.reward(place + tank.COLD)
    return TabularMDP(P, r, 0.99, tank.TARGET - tank.COLD, [n - 1])


def test_the_right_fixed_skip_of_the_tank_is_five(tank: Any) -> None:
    assert skip_verdict(exact_skips(tank_model(tank), range(1, 9))).k == 5


def test_a_tank_that_overheats_is_no_reason_to_hold(tank: Any) -> None:
    """Returns of whole episodes are higher with longer holds, because episodes that fail cost nothing more."""
    study = study_visitation(tank.make(), [1, 8, 32], steps=30_000)
    one, eight, many = study.results
    assert one.mean_return.high < eight.mean_return.low
    assert one.ends["worse"].value < 0.3
    assert many.ends["worse"].value > 0.7
    advice = advise_from_visits(study)
    assert (advice.k_max, advice.basis) == (1, "none")
    assert re.search(r"With k_max = 32 episodes fail about once per \d+ steps", advice.sentence)
    assert "compared per step of equal time: their mean falls" in advice.sentence
