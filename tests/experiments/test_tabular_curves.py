"""The learning curves that several figures share: plans, rows, panels and tables of scores."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from scipy import stats

from holdfast.core.schedules import Exponential
from holdfast.envs import FrozenLake16, make_env
from holdfast.experiments.spec import Experiment
from holdfast.experiments.tables import Table, select
from holdfast.experiments.tabular_curves import (
    AS_PRINTED,
    COLUMNS,
    Size,
    msa,
    per_q,
    plain_q,
    plan_curves,
    run_curves,
    temporl,
)
from holdfast.experiments.tabular_results import (
    Line,
    agent_lines,
    curve_panels,
    draw_returns_by_row,
    score_lines,
    scores,
    shaded_lines,
)
from holdfast.tabular import FitResult, PerQLearning
from tests.experiments.smoke import rows_of

AGENTS = [per_q(3), plain_q(), msa(3, is_padded=True)]
SIZE = Size(4, {"cliff": 60, "frozen-lake": 450})
EXPERIMENT = Experiment(
    label="curves",
    title="small ones",
    columns=COLUMNS,
    plan=lambda scale: plan_curves(AGENTS, SIZE),
    run=run_curves,
    draw=lambda rows: draw_returns_by_row({"": (rows, agent_lines(AGENTS))}),
    summary=score_lines,
)


@pytest.fixture(scope="module")
def rows(tmp_path_factory: pytest.TempPathFactory) -> Table:
    return rows_of(EXPERIMENT, tmp_path_factory.mktemp("curves") / "campaign")


def per_q_runs(env: Any, episodes: int) -> FitResult:
    return PerQLearning(3, epsilon=Exponential(0.99), greedy_ties="random").fit(env, episodes, range(4))


class TestPlans:
    def test_a_setting_says_all_that_changes_the_numbers(self) -> None:
        (setting, seed), *_ = plan_curves([temporl(8)], Size(50, {"zigzag": 600}))
        assert seed == 0
        assert setting == {
            "grid": "zigzag",
            "agent": "TempoRL8 padded",
            "algorithm": "temporl-q",
            "k_max": 8,
            "pad_terminal": True,
            "episodes": 600,
            "block": 3,
            "runs": 50,
            "alpha": 0.1,
            "gamma": 0.99,
            "epsilon_decay": 0.99,
            "initial_std": 0.0,
            "step_limit": 100,
            "greedy_ties": "random",
        }

    def test_what_takes_longest_comes_first(self) -> None:
        planned = [(setting["grid"], setting["agent"]) for setting, _ in plan_curves(AGENTS[:2], SIZE)]
        assert planned == [("frozen-lake", "PerQ3"), ("frozen-lake", "Q"), ("cliff", "PerQ3"), ("cliff", "Q")]

    def test_the_values_that_the_paper_prints(self) -> None:
        (setting, _), *_ = plan_curves([per_q(8)], SIZE, AS_PRINTED)
        assert (setting["alpha"], setting["initial_std"]) == (0.01, 1.0)

    @pytest.mark.parametrize(
        ("episodes", "block"), [(1, 1), (60, 1), (200, 1), (201, 3), (450, 3), (6000, 30), (211, 211)]
    )
    def test_blocks_are_of_one_length_and_at_most_two_hundred(self, episodes: int, block: int) -> None:
        (setting, _), *_ = plan_curves([per_q(8)], Size(1, {"cliff": episodes}))
        assert setting["block"] == block
        assert episodes % block == 0
        assert episodes // block <= 200


class TestRows:
    def test_they_are_those_of_the_learner(self, rows: Table) -> None:
        result = per_q_runs(make_env("cliff"), 60)
        own = select(rows, grid="cliff", agent="PerQ3")
        assert own["seed"].tolist() == np.repeat(range(4), 60).tolist()
        assert own["episode"].tolist() == list(range(1, 61)) * 4
        np.testing.assert_array_equal(own["return"], result.training_returns.ravel())
        np.testing.assert_array_equal(own["greedy"], result.greedy_returns.ravel())

    def test_a_lake_is_another_one_for_each_seed_and_episodes_are_taken_together(self, rows: Table) -> None:
        result = per_q_runs(FrozenLake16, 450)
        own = select(rows, grid="frozen-lake", agent="PerQ3")
        assert own["episode"].tolist() == list(range(3, 451, 3)) * 4
        for seed in range(4):
            of_seed = own["greedy"][own["seed"] == seed]
            by_hand = [result.greedy_returns[seed, n : n + 3].sum() / 3.0 for n in range(0, 450, 3)]
            np.testing.assert_allclose(of_seed, by_hand, rtol=0.0, atol=1e-15)
        alone = PerQLearning(3, epsilon=Exponential(0.99), greedy_ties="random").fit(FrozenLake16(2), 450, [2])
        np.testing.assert_array_equal(alone.greedy_returns[0], result.greedy_returns[2])


class TestWhatIsShown:
    def test_scores_are_means_over_all_episodes(self, rows: Table) -> None:
        result = per_q_runs(FrozenLake16, 450)
        found = scores(rows, "PerQ3", "frozen-lake")
        assert found is not None
        np.testing.assert_allclose(found, result.greedy_returns.mean(axis=1), atol=1e-12)
        assert scores(rows, "PerQ3", "bridge") is None

    def test_the_table_has_means_and_intervals(self, rows: Table) -> None:
        head, *lines = score_lines(rows)
        assert head.split() == ["agent", "Cliff", "FrozenLake"]
        assert [line.split()[0] for line in lines] == ["PerQ3", "Q", "MSA3"]
        own = scores(rows, "Q", "cliff")
        assert own is not None
        low, high = stats.t.interval(0.95, len(own) - 1, own.mean(), stats.sem(own))
        assert lines[1].split()[1:3] == [f"{own.mean():.3f}", f"±{(high - low) / 2.0:.3f}"]

    def test_differences_are_taken_seed_by_seed(self, rows: Table) -> None:
        head, *lines = score_lines(rows, minus="PerQ3")
        assert head.split()[:2] == ["PerQ3", "minus"]
        assert [line.split()[0] for line in lines] == ["Q", "MSA3"]
        ours, theirs = scores(rows, "PerQ3", "cliff"), scores(rows, "Q", "cliff")
        assert ours is not None
        assert theirs is not None
        low, high = stats.t.interval(0.95, 3, (ours - theirs).mean(), stats.sem(ours - theirs))
        assert lines[0].split()[1:3] == [f"{(ours - theirs).mean():+.3f}", f"±{(high - low) / 2.0:.3f}"]

    def test_curves_are_means_with_intervals(self, rows: Table) -> None:
        lines = agent_lines(AGENTS)
        cliff, lake = curve_panels(rows, lines)
        assert (cliff.title, lake.title) == ("Cliff", "FrozenLake 16x16")
        assert [curve.label for curve in cliff.curves] == ["PerQ3", "Q", "MSA3 padded"]
        curve = cliff.curves[0]
        returns = select(rows, grid="cliff", agent="PerQ3")["greedy"].reshape(4, 60)
        np.testing.assert_allclose(curve.y, returns.mean(axis=0), atol=1e-12)
        at = int(returns.std(axis=0).argmax())
        low, high = stats.t.interval(0.95, 3, returns[:, at].mean(), stats.sem(returns[:, at]))
        assert curve.low is not None
        assert curve.high is not None
        assert (curve.low[at], curve.high[at]) == pytest.approx((low, high))

    def test_what_is_missing_is_left_out(self, rows: Table) -> None:
        some = select(rows, agent=["PerQ3", "Q"])
        some = {name: column[(some["grid"] == "cliff") | (some["agent"] == "Q")] for name, column in some.items()}
        cliff, lake = curve_panels(some, agent_lines(AGENTS))
        assert [curve.label for curve in cliff.curves] == ["PerQ3", "Q"]
        assert [curve.label for curve in lake.curves] == ["Q"]
        # Name, mean, interval; and both again of who is there twice.
        assert {line.split()[0]: len(line.split()) for line in score_lines(some)[1:]} == {"Q": 5, "PerQ3": 3}
        shown = {"there": (some, agent_lines(AGENTS)), "not there": (some, agent_lines([per_q(64)]))}
        assert len(draw_returns_by_row(shown).axes) == 2

    def test_one_run_has_no_interval(self, rows: Table) -> None:
        alone = select(rows, seed=0, grid="cliff")
        ((curve, *_),) = [panel.curves for panel in curve_panels(alone, agent_lines(AGENTS))]
        assert curve.low is None
        assert len(curve.y) == 60
        assert "±" not in "".join(score_lines(alone))

    def test_lines_can_be_told_apart(self) -> None:
        lines = agent_lines([per_q(4), msa(4), msa(4, is_padded=True)])
        assert len({(line.color, line.dash) for line in lines}) == 3
        assert lines[1].color == lines[2].color
        shades = shaded_lines([per_q(4), per_q(8), per_q(16)])
        assert isinstance(shades[0], Line)
        assert len({line.color for line in shades}) == 3
