"""What there is to see of a policy."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace

import gymnasium
import numpy as np
import pytest

from holdfast.draw import HoldMap
from holdfast.envs import make_env
from holdfast.files import read_rows
from holdfast.policies import load_policy
from holdfast.policies.evaluation import evaluate
from holdfast.policies.opened import open_policy
from holdfast.policies.pictures import (
    Trip,
    _ranges,
    choose_axes,
    draw_decisions,
    draw_policy_over,
    find_axes,
    hold_map,
    take_trip,
)
from holdfast.runs.curves import NothingToShowError, holds_over_training
from tests.runs.small_runs import NETWORK, TABLE, trained


@pytest.fixture(scope="module")
def runs(tmp_path_factory: pytest.TempPathFactory) -> Path:
    top = tmp_path_factory.mktemp("runs")
    trained(TABLE, top / "table", episodes=60, k_max=6)
    trained(NETWORK, top / "network")
    return top


def test_a_trip_is_the_episode_that_is_evaluated(runs: Path) -> None:
    shown = open_policy(runs / "network")
    env = shown.make_env()
    trip = take_trip(shown.actor, env, 5)
    found = evaluate(shown.actor, env, [5])
    assert len(trip.observations) == found.lengths[0] + 1
    assert trip.decided.sum() == found.decisions[0]
    assert np.array_equal(trip.observations[0], env.reset(seed=5)[0])


def test_pictures_of_a_sparse_set(tmp_path: Path) -> None:
    options = {name: value for name, value in NETWORK.items() if name != "k_max"}
    trained(options, tmp_path / "run", persistences=[1, 4, 16])
    shown = open_policy(tmp_path / "run")
    env = shown.make_env()
    trip = take_trip(shown.actor, env, 5)
    found = hold_map(shown.actor, env, trip, None)
    assert found is not None
    assert found.k_max == 16
    assert set(np.unique(found.holds)) <= {1, 4, 16}
    assert draw_policy_over(shown.actor, env, trip) is not None
    axes = draw_decisions(shown.actor, env, trip, 2).axes[0]
    assert axes.get_lines()[0].get_xdata().tolist() == [1, 4, 16]
    steps, shares, title = holds_over_training(tmp_path / "run")
    assert shares.shape == (len(steps), 16)
    assert title.endswith("PerDQN, k in {1,4,16}")


def test_decisions_to_show_by_hand() -> None:
    decided = np.zeros(20, dtype=np.bool_)
    decided[[0, 3, 4, 8, 15]] = True
    trip = Trip(list(range(20)), decided)
    assert trip.decisions(3) == [0, 4, 15]
    assert trip.decisions(9) == [0, 3, 4, 8, 15]
    assert trip.decisions(1) == [0]


def test_the_map_says_what_the_policy_does(runs: Path) -> None:
    shown = open_policy(runs / "network")
    env = shown.make_env()
    trip = take_trip(shown.actor, env, 5)
    found = hold_map(shown.actor, env, trip, (1, 3))
    assert isinstance(found, HoldMap)
    assert found.names == ("cart velocity", "pole angular velocity")
    middle = np.median(np.array(trip.observations, dtype=np.float64), axis=0)
    for row, column in ((0, 0), (10, 50), (63, 31)):
        place = middle.copy()
        place[1], place[3] = found.x[column], found.y[row]
        action, hold, _ = load_policy(runs / "network").decide(place.astype(np.float32))
        assert (found.actions[row, column], found.holds[row, column]) == (action, hold)
    seen = np.array(trip.observations)
    assert found.x[0] < seen[:, 1].min() < seen[:, 1].max() < found.x[-1]
    assert np.array_equal(found.path, seen[:, [1, 3]])


def test_axes_that_change_the_choice_are_chosen(runs: Path) -> None:
    class Picky:
        """Looks at the last two numbers alone."""

        policy = SimpleNamespace(action_space=gymnasium.spaces.Discrete(2))

        def decide(self, observation: np.ndarray) -> object:
            class Choice:
                action = (observation[:, 3] > observation[:, 2]).astype(int)
                hold = np.where(observation[:, 2] > 0.0, 2, 1)

            return Choice

    env = make_env("CartPole-v1")
    trip = Trip([np.array([0.0, 1.0, -1.0, 1.0]), np.array([1.0, 0.0, 1.0, -1.0])], np.array([True, False]))
    assert choose_axes(Picky(), trip, env.observation_space) == (2, 3)  # type: ignore[arg-type]
    still = Trip([np.array([0.0, 1.0, -1.0, 1.0]), np.array([1.0, 0.0, -1.0, -1.0])], trip.decided)
    assert choose_axes(Picky(), still, env.observation_space) == (0, 3)  # type: ignore[arg-type]


def test_what_is_seen_may_leave_the_bounds_that_were_declared() -> None:
    space = gymnasium.spaces.Box(np.array([0.0, -1.0, 2.0]), np.array([1.0, 1.0, 2.0]), dtype=np.float64)
    seen = np.array([[5.0, -0.5, 2.0], [6.0, 0.5, 2.0]])
    low, high = _ranges(seen, space)
    assert low.tolist() == pytest.approx([4.85, -0.65, 1.0])
    assert high.tolist() == pytest.approx([6.15, 0.65, 3.0])
    assert _ranges(np.array([[0.0, 0.0, 2.0], [1.0, 1.0, 2.0]]), space)[1][1] == 1.0


def test_a_table_has_arrows_instead(runs: Path) -> None:
    shown = open_policy(runs / "table")
    env = shown.make_env()
    trip = take_trip(shown.actor, env, 0)
    assert hold_map(shown.actor, env, trip, None) is None
    figure = draw_policy_over(shown.actor, env, trip)
    assert figure is not None
    assert figure.axes[0].get_title() == "action and steps held"
    values = draw_decisions(shown.actor, env, trip, 2).axes[0]
    table = shown.actor.decide(trip.observations[0]).values
    assert [line.get_ydata().tolist() for line in values.get_lines()[:4]] == table.tolist()


def test_where_there_is_no_picture_there_is_none(tmp_path: Path) -> None:
    trained({**TABLE, "environment": "FrozenLake-v1"}, tmp_path)
    shown = open_policy(tmp_path)
    env = shown.make_env()
    assert draw_policy_over(shown.actor, env, take_trip(shown.actor, env, 0)) is None


@pytest.mark.parametrize("given", ["1,3", "cart velocity, pole angular velocity", "1,pole angular velocity"])
def test_axes_by_number_or_name(given: str) -> None:
    assert find_axes(given, make_env("CartPole-v1")) == (1, 3)


@pytest.mark.parametrize("given", ["1", "1,1", "1,4", "-1,2", "speed,1", "", "0,1,2"])
def test_axes_that_there_are_not(given: str) -> None:
    with pytest.raises(ValueError, match=r"^axes must be two different ones of cart position, "):
        find_axes(given, make_env("CartPole-v1"))


def test_no_axes_without_vectors() -> None:
    with pytest.raises(ValueError, match=r"^axes must not be given if observations are not vectors"):
        find_axes("0,1", make_env("cliff"))


def test_holds_are_written_down_for_every_evaluation(runs: Path) -> None:
    evaluations, holds = read_rows(runs / "network/evaluations.csv"), read_rows(runs / "network/holds.csv")
    steps, shares, title = holds_over_training(runs / "network")
    assert steps.tolist() == evaluations["step"]
    assert shares.shape == (len(steps), 3)
    assert shares.sum(axis=1) == pytest.approx(1.0)
    assert title == "CartPole-v1, PerDQN, K=3"
    means = np.divide(evaluations["length_mean"], evaluations["decisions_mean"])
    assert shares @ [1.0, 2.0, 3.0] == pytest.approx(means)
    decisions = dict.fromkeys(evaluations["step"], 0.0)
    lengths = dict(decisions)
    for step, held, count in zip(holds["step"], holds["held"], holds["decisions"], strict=True):
        decisions[step] += count
        lengths[step] += held * count
    episodes = evaluations["episodes"]
    assert list(decisions.values()) == pytest.approx(np.multiply(evaluations["decisions_mean"], episodes))
    assert list(lengths.values()) == pytest.approx(np.multiply(evaluations["length_mean"], episodes))


def test_no_evaluations_no_holds(tmp_path: Path) -> None:
    trained(TABLE, tmp_path, eval_every=0)
    with pytest.raises(NothingToShowError, match="has nothing to show: the run has no evaluation"):
        holds_over_training(tmp_path)


def test_damaged_holds_are_refused(tmp_path: Path) -> None:
    trained(TABLE, tmp_path)
    before = (tmp_path / "holds.csv").read_text()
    for line in (
        "1,5,0,3",
        "1,5,4,3",
        "1,5,1.5,3",
        "1,5,1e300,3",
        "1,5,nan,3",
        "1,nan,1,3",
        "1,-5,1,3",
        "1,5,1,inf",
    ):
        (tmp_path / "holds.csv").write_text(f"{before}{line}\n")
        with pytest.raises(ValueError, match=r"holds\.csv is damaged: (actions|steps and decisions) must be"):
            holds_over_training(tmp_path)
