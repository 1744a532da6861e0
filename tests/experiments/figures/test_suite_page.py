"""What is said of the learning suite, on small tables whose numbers are known."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from holdfast.draw import ALGORITHM_COLORS
from holdfast.experiments.figures.suite import ABLATION, SUITE
from holdfast.experiments.figures.suite.experiment import COLUMNS, draw_suite, suite_lines
from holdfast.experiments.figures.suite.measures import RIVAL, Measured, measure, overall, score_arrays
from holdfast.experiments.figures.suite.page import ablation_page, suite_page
from holdfast.experiments.figures.suite.tasks import TASKS
from holdfast.experiments.kept_rows import keep_rows
from holdfast.experiments.manifest import ManifestFile, new_manifest
from holdfast.experiments.store import Store, read_manifest_and_rows, table_bytes
from holdfast.experiments.tables import Table
from tests.architecture import ROOT
from tests.evidence import EVIDENCE

POLE, CAR = TASKS[0], TASKS[2]
HALF = {POLE.environment: 261.0, CAR.environment: -148.8}
"""Halfway from random to best: 22 to 500, and -200 to -97.6."""


def rows_of(*runs: tuple[str, str, int, list[float]]) -> Table:
    """Runs as (agent, environment, seed, returns); two decisions fewer at each evaluation."""
    parts = []
    for agent, environment, seed, returns in runs:
        n = len(returns)
        parts.append(
            {
                "agent": np.full(n, agent),
                "environment": np.full(n, environment),
                "seed": np.full(n, seed),
                "step": np.arange(1.0, n + 1.0),
                "return": np.array(returns),
                "decisions": 20.0 - 2.0 * np.arange(n),
            }
        )
    return {name: np.concatenate([part[name] for part in parts]) for name in parts[0]}


def level(agent: str, seeds: range, by: float = 0.0, environments: tuple[str, ...] = tuple(HALF)) -> list[object]:
    """Runs halfway to the best, and a little above, from the first evaluation to the last."""
    return [(agent, env, seed, [HALF[env] + by] * 5) for env in environments for seed in seeds]


def test_a_run_by_hand() -> None:
    rows = rows_of(
        ("PerDQN", POLE.environment, 101, [22.0, 22.0, 22.0, 22.0, 500.0]),
        ("PerDQN", POLE.environment, 100, [261.0] * 5),
    )
    found = measure(rows, "PerDQN", POLE)
    assert found is not None
    assert found.seeds.tolist() == [100, 101]
    assert found.ends.tolist() == [261.0, 500.0]
    np.testing.assert_allclose(found.scores, [0.5, 1.0])
    np.testing.assert_allclose(found.areas, [0.5, 0.2])
    assert found.decisions.tolist() == [12.0, 12.0]
    assert measure(rows, "PerDQN", CAR) is None


def measured(*seeds: int) -> Measured:
    values = np.array(seeds, dtype=np.float64)
    return Measured(np.array(seeds), values, values, values / 10.0, values)


def test_which_runs_are_put_together() -> None:
    equal = score_arrays([measured(1, 2), measured(3, 4)])
    assert equal is not None
    assert equal[0].tolist() == [[1.0, 3.0], [2.0, 4.0]]
    common = score_arrays([measured(1, 2, 3), measured(2, 3)])
    assert common is not None
    assert common[0].tolist() == [[2.0, 2.0], [3.0, 3.0]]
    np.testing.assert_allclose(common[1], [[0.2, 0.2], [0.3, 0.3]])
    assert score_arrays([measured(1, 2, 3), measured(4)]) is None
    chosen = score_arrays([measured(1, 2, 3), measured(3, 2)], {3})
    assert chosen is not None
    assert chosen[0].tolist() == [[3.0, 3.0]]


def test_agents_with_different_numbers_of_seeds_are_compared_on_what_both_have() -> None:
    rows = rows_of(*level(RIVAL, range(100, 110)), *level("PerDQN", range(105, 112), by=1.0))
    told = overall(rows)
    assert list(told) == [RIVAL, "PerDQN"]
    rival, ours = told[RIVAL], told["PerDQN"]
    assert (rival.runs, rival.compared, rival.better_areas) == (10, 0, None)
    assert (ours.runs, ours.compared) == (7, 5)
    assert ours.better_areas == (1.0, 1.0, 1.0)
    assert ours.better_scores == (1.0, 1.0, 1.0)
    assert rival.scores.value == pytest.approx(0.5)
    # 1 of 478 on one task and 1 of 102.4 on the other: the middle half of 7 + 7 scores has four of each.
    assert ours.scores.value == pytest.approx(0.5 + (1 / 478 + 1 / 102.4) / 2)
    assert any("compared on the 5 seeds of both" in line for line in suite_lines(rows))


def test_who_lacks_a_task_or_a_common_seed_is_not_put_over_all() -> None:
    only_pole = (POLE.environment,)
    rows = rows_of(*level(RIVAL, range(100, 103)), *level("PerDQN", range(100, 103), environments=only_pole))
    assert list(overall(rows)) == [RIVAL]
    assert "| PerDQN | 3 |" in suite_page(rows)
    apart = rows_of(*level(RIVAL, range(100, 102)), *level("PerDQN", range(200, 202)))
    assert (overall(apart)["PerDQN"].compared, overall(apart)["PerDQN"].better_areas) == (0, None)
    alone = rows_of(*level("PerDQN", range(100, 102)))
    assert overall(alone)["PerDQN"].better_areas is None
    unequal = level("PerDQN", range(100, 103), environments=only_pole)
    unequal += level("PerDQN", range(102, 104), environments=(CAR.environment,))
    assert overall(rows_of(*unequal))["PerDQN"].runs == 1


def test_the_page_by_hand() -> None:
    rows = rows_of(
        *level(RIVAL, range(100, 103), environments=(POLE.environment,)),
        ("PerDQN", POLE.environment, 101, [22.0, 22.0, 22.0, 22.0, 500.0]),
    )
    lines = suite_page(rows).splitlines()
    assert lines[0] == "### Over 1 task"
    assert "| DQN, tuned | 3 | 0.50 [0.50, 0.50] | 0.50 [0.50, 0.50] |  |  |  |" in lines
    # One run has no interval: better at the end, worse before.
    assert "| PerDQN | 1 | 1.00 | 0.20 | 1 | 1.00 | 0.00 |" in lines
    assert "### CartPole-v1, 50,000 steps" in lines
    assert (
        "| DQN, tuned | 3 | 261.0 [261.0, 261.0] | 261.0 [261.0, 261.0] | 261.0 | 0.50 [0.50, 0.50] | 12.0 |"
        in lines
    )
    assert "| PerDQN | 1 | 500.0 | 500.0 | 500.0 | 0.20 | 12.0 |" in lines
    assert "| agent | 100 | 101 | 102 |" in lines
    assert "| PerDQN |  | 500.0 |  |" in lines


def test_the_numbers_of_all_agents_stand_in_columns() -> None:
    folder = ROOT / "results" / "suite"
    lines = suite_lines(read_manifest_and_rows(folder, SUITE)[1])
    assert any("PerDQN, earlier defaults" in line for line in lines)
    tasks = [line for line in lines if line.endswith("runs")]
    assert len({len(line) for line in tasks}) == 1
    compared = [line for line in lines if line.endswith("]")]
    assert len({line.index("[") for line in compared}) == 1


def test_agents_of_one_algorithm_share_its_colour_and_differ_in_dashes() -> None:
    axes = draw_suite(read_manifest_and_rows(ROOT / "results" / "suite", SUITE)[1]).axes[0]
    looks = {
        line.get_label().rsplit(",", 1)[0]: (line.get_color(), line.get_linestyle()) for line in axes.get_lines()
    }
    assert len(set(looks.values())) == len(looks)
    assert looks["PerDQN"] == (ALGORITHM_COLORS["perdqn"], "-")
    assert looks["PerDQN, k_max=1"][0] == looks["PerDQN"][0]
    assert looks["DQN, tuned"] == (ALGORITHM_COLORS["dqn"], "-")


def test_the_ablation_by_hand() -> None:
    """Gaps are those of common seeds: seed 100 of the defaults, which the variant lacks, does not count."""
    rows = rows_of(
        ("PerDQN", POLE.environment, 100, [22.0] * 5),
        ("PerDQN", POLE.environment, 101, [261.0] * 5),
        ("PerDQN, without double", POLE.environment, 101, [22.0, 22.0, 22.0, 22.0, 500.0]),
        ("PerDQN, k_max=4", CAR.environment, 101, [-148.8] * 5),
    )
    names = {"PerDQN": "defaults", "PerDQN, without double": "without double", "PerDQN, k_max=4": "k_max=4"}
    lines = ablation_page(rows, names, "PerDQN").splitlines()
    assert "### Ablation on CartPole-v1, 50,000 steps" in lines
    assert any(line.startswith("| defaults | 2 | 141.5 [") and line.endswith("|  | 12.0 |") for line in lines)
    assert "| without double | 1 | 500.0 | 500.0 | 0.20 | -0.30 | 12.0 |" in lines
    # Nothing to compare with.
    assert "| k_max=4 | 1 | -148.8 | -148.8 | 0.50 |  | 12.0 |" in lines


def test_the_ablation_is_drawn_of_what_has_run_on_every_task() -> None:
    rows = rows_of(
        *level("PerDQN", range(100, 102)),
        *level("PerDQN, k_max=4", range(100, 101), -10.0),
        *level("PerDQN, without double", range(100, 101), environments=(POLE.environment,)),
    )
    figure = ABLATION.draw(rows)
    assert [axes.get_title() for axes in figure.axes] == [
        f"{task.environment}, {what}" for task in (POLE, CAR) for what in ("last fifth", "area")
    ]
    assert [label.get_text() for label in figure.axes[0].get_yticklabels()] == ["defaults", "k_max=4"]


def test_kept_rows_become_a_page_with_a_picture(tmp_path: Path) -> None:
    """As ``make evidence`` does it: some agents with ten seeds and some with five, on all tasks."""
    campaign = tmp_path / "suite-paper"
    store = Store(campaign)
    store.create()
    manifest = new_manifest(SUITE, "paper")
    jobs = SUITE.jobs("paper")
    manifest.plan_jobs(jobs)
    manifest.begin_session({"name": "local"})
    with store.locked():
        store.begin()
        for job in jobs:
            if job.setting["agent"] != RIVAL and job.seed >= 105:
                continue
            random = np.random.default_rng([job.seed, len(job.setting["agent"])])
            rows = {name: random.normal(size=50) for name in COLUMNS} | {"step": np.arange(50) * 100}
            data = table_bytes(rows, COLUMNS, SUITE.label)
            store.write(job, data)
            manifest.note_done(job, 1.0, data)
        ManifestFile(campaign, manifest).write()
    keep_rows(SUITE, [campaign], tmp_path / "results" / "suite")
    suite = next(one for one in EVIDENCE if one.name == "suite")
    suite.draw(tmp_path / "results", tmp_path)
    block = suite.block(tmp_path / "results", tmp_path)
    assert "![Greedy returns" in block
    assert "### Over 4 tasks" in block
    lines = [line for line in block.splitlines() if line.startswith("| PerDQN | 5 |")]
    assert len(lines) == 1 + len(TASKS)
    assert lines[0].split(" | ")[4] == "5"
    assert (tmp_path / "images" / "suite.png").stat().st_size > 10_000
    assert suite.block(tmp_path / "results", tmp_path) == block
