"""Whole studies."""

from __future__ import annotations

import json
import math
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import gymnasium
import numpy as np
import pytest
from gymnasium import spaces

from holdfast.advice import StudyProgress, VisitationStudy, study_visitation
from holdfast.advice.advisor import advise_from_visits
from holdfast.envs import EnvironmentFailedError, FrozenLake16, GridWorld, make_env
from tests.advice.visitation.diaries import Diary

ARRAYS = ("returns", "lengths", "counts")
NUMBERS = ("k_max", "mode", "episodes", "steps", "decisions", "cut_off", "visited", "coverage")
ESTIMATES = (
    *("mean_return", "upper_return", "mean_length", "reward_per_step", "ends", "successes_per_step"),
    *("failures_per_step", "beats_typical", "terminated", "success", "steps_to_success"),
)


def same(one: VisitationStudy, other: VisitationStudy) -> bool:
    """Whether two studies found the same, to the last bit."""
    return json.dumps(one.document()) == json.dumps(other.document()) and all(
        getattr(a, name).tobytes() == getattr(b, name).tobytes()
        for a, b in zip(one.results, other.results, strict=True)
        for name in ARRAYS
    )


@pytest.mark.parametrize("name", ["MountainCar-v0", "cliff"])
def test_compiled_and_step_by_step_are_the_same_study(name: str) -> None:
    quick, slow = (
        study_visitation(name, [1, 16], modes=("dynamic", "fixed"), steps=2500, seed=2, loop=loop)
        for loop in ("compiled", "python")
    )
    assert (quick.loop, slow.loop) == ("compiled", "python")
    assert same(quick, slow)
    for ours, theirs in zip(quick.cells.edges, slow.cells.edges, strict=True):
        assert np.array_equal(ours, theirs)


@pytest.mark.parametrize("name", ["MountainCar-v0", "CartPole-v1", "Pendulum-v1"])
def test_the_seed_is_everything(name: str) -> None:
    first, again, other = (study_visitation(name, [1, 4], steps=600, seed=seed) for seed in (3, 3, 4))
    assert same(first, again)
    assert not same(first, other)


def test_both_modes_of_k_1_are_the_same() -> None:
    study = study_visitation("CartPole-v1", [1], modes=("dynamic", "fixed"), episodes=20)
    assert np.array_equal(study.of(1, "dynamic").returns, study.of(1, "fixed").returns)


def test_mountain_car_longer_options_lead_further_and_some_to_the_flag() -> None:
    study = study_visitation("MountainCar-v0", [1, 8, 32], episodes=400)
    assert study.usual_reward == -1.0
    assert study.cells.names == ("position", "velocity")
    assert study.goal == 0.5
    assert study.notes == ()
    one, eight, many = study.results
    assert one.visited < eight.visited < many.visited
    assert many.success is not None
    # 11.5 % in a trial of its own, ± four standard deviations.
    assert abs(many.success.value - 0.115) < 4 * math.sqrt(0.115 * 0.885 / 400)
    assert many.success.value == many.terminated.value
    assert one.success is not None
    assert one.success.value == 0.0
    assert one.steps_to_success is not None
    assert one.steps_to_success == (math.inf, pytest.approx(200 / one.success.high), math.inf)
    assert many.steps_to_success is not None
    assert many.steps_to_success.value == pytest.approx(many.steps / (many.success.value * many.episodes))
    # Places that no K visited count for nobody.
    anywhere = int((study.cells.counts.sum(axis=0) > 0).sum())
    assert many.coverage == many.visited / anywhere
    assert all(int(result.counts.sum()) == result.steps + result.episodes for result in study.results)


def test_a_grid_by_hand() -> None:
    """Down a corridor S.G: the first step left blocks, and only the goal pays."""
    study = study_visitation(GridWorld("S.G", step_limit=2), [1, 2], modes=("fixed",), episodes=400)
    both = study.of(2, "fixed")
    # One option of two steps: right with a probability of 1/4, and then the goal; all else stays at the start.
    assert both.decisions == both.episodes == 400
    assert both.success is not None
    won = round(both.success.value * 400)
    assert abs(won - 100) < 4 * math.sqrt(400 * 3 / 16)
    # An episode sees three states: 0, 1, 2 if it wins, 0, 0, 0 if not.
    assert both.counts.tolist() == [1200 - 2 * won, won, won]
    assert both.mean_return.value == pytest.approx(won / 400)
    assert (both.visited, both.coverage) == (3, 1.0)
    assert study.grid is not None
    assert study.grid.shape == (1, 3)
    # Two options of one step: right twice, 1/16.
    one = study.of(1, "fixed")
    assert one.success is not None
    assert abs(one.success.value * 400 - 25) < 4 * math.sqrt(400 * 15 / 256)


def test_holes_are_no_success() -> None:
    study = study_visitation("cliff", [1], episodes=200)
    (alone,) = study.results
    assert alone.success is not None
    assert alone.terminated.value > 0.9
    assert alone.success.value == (alone.returns > 0.0).mean() < 0.1


def test_cart_pole_has_returns_but_no_success() -> None:
    study = study_visitation("CartPole-v1", [1, 8], steps=1500)
    assert study.usual_reward == 1.0
    assert [result.success for result in study.results] == [None, None]
    assert "nothing is better than the usual reward, 1." in study.notes[0]
    one, eight = study.results
    assert one.terminated.value == 1.0
    assert eight.mean_return.high < one.mean_return.low
    typical = np.median(one.returns)
    assert eight.beats_typical.value == (eight.returns > typical).mean()


def test_too_few_episodes_are_said_to_be_so() -> None:
    """Of 35 the largest may be below the 90 % quantile too likely: 0.9^35 = 0.025026, and 0.9^36 = 0.02252."""
    for episodes, is_few in ((35, True), (36, False)):
        study = study_visitation("cliff", [1, 2], episodes=episodes)
        found = advise_from_visits(study)
        assert (found.is_undecided or found.is_provisional) == is_few
        assert ("only 35 episodes for some k_max" in found.sentence) == is_few
    assert "with only 1 episode for" in advise_from_visits(study_visitation("cliff", [1, 2], episodes=1)).sentence


def test_episodes_that_were_cut_off_are_counted_and_a_time_limit_is_asked_for() -> None:
    study = study_visitation(Diary(longest=10**9), [1, 2], steps=15_000)
    assert [(result.episodes, result.cut_off) for result in study.results] == [(1, 1), (1, 1)]
    assert study.notes[-1] == (
        "2 of 2 episodes did not end and were cut off after 15,000 steps: the environment needs a time limit "
        "(max_episode_steps when registering it, or gymnasium's TimeLimit)."
    )


def test_dense_rewards_have_no_usual_one_and_actions_may_be_continuous() -> None:
    study = study_visitation("Pendulum-v1", [1, 4], episodes=3)
    assert study.usual_reward is None
    assert "no single reward is the usual one, and no episode's end gives more" in study.notes[0]
    assert study.results[0].success is None
    assert len(study.cells.axes) == 2


def test_axes_are_chosen_by_name_or_number() -> None:
    by_name = study_visitation("CartPole-v1", [2], episodes=3, axes="pole angle, cart position")
    by_number = study_visitation("CartPole-v1", [2], episodes=3, axes=(2, 0))
    assert by_name.cells.names == by_number.cells.names == ("pole angle", "cart position")
    assert same(by_name, by_number)
    turned = study_visitation("MountainCar-v0", [2], episodes=3, axes=(1, 0))
    upright = study_visitation("MountainCar-v0", [2], episodes=3)
    assert np.array_equal(turned.results[0].counts.T, upright.results[0].counts)
    assert turned.goal is None


def test_pictures_have_no_heat_map_but_a_coverage() -> None:
    class Camera(Diary):
        observation_space = spaces.Box(0, 255, (4, 4), np.uint8)

        def _seen(self) -> Any:
            return np.full((4, 4), self._steps, dtype=np.uint8)

    study = study_visitation(Camera(), [1, 2], episodes=30)
    assert study.cells.kind == "observations"
    assert "No heat map" in study.notes[0]
    longest = [int(result.lengths.max()) for result in study.results]
    assert [result.visited for result in study.results] == [length + 1 for length in longest]


def test_dictionaries_of_numbers_have_a_heat_map() -> None:
    class Told(Diary):
        observation_space = spaces.Dict(  # type: ignore[assignment]
            steps=spaces.Box(0.0, np.inf, ()), end=spaces.Box(0.0, np.inf, (1,))
        )

        def _seen(self) -> Any:
            return {"steps": np.array(self._steps), "end": np.array([self._end])}

    study = study_visitation(Told(), [1, 2], episodes=40, axes="steps, end[0]")
    assert (study.cells.kind, study.cells.names) == ("plane", ("steps", "end[0]"))
    assert not any("heat map" in note for note in study.notes)
    vectors = study_visitation(Diary(), [1, 2], episodes=40, axes=(1, 0))
    assert np.array_equal(study.cells.counts, vectors.cells.counts)


def test_lakes_take_turns_and_have_no_common_map() -> None:
    lakes = [FrozenLake16(seed) for seed in range(2)]
    study = study_visitation(lakes, [4], episodes=10)
    assert (study.loop, study.grid) == ("python", None)
    assert study.notes[0].startswith("No heat map")
    assert study_visitation([lakes[0], FrozenLake16(0)], [4], episodes=10).grid is not None


def test_what_is_made_here_is_closed_here() -> None:
    made: list[Diary] = []

    def make() -> Diary:
        made.append(Diary())
        return made[-1]

    study = study_visitation(make, [1], episodes=2)
    assert [env.is_closed for env in made] == [True]
    assert study.env_name == "Diary"
    own = Diary()
    study_visitation(own, [1], episodes=2)
    assert not own.is_closed


def test_names_and_paths_lead_to_environments(tmp_path: Path) -> None:
    path = tmp_path / "corridor.map"
    path.write_text("S..G\n")
    assert study_visitation(path, [1], episodes=2).env_name == str(path)
    assert study_visitation(gymnasium.make("MountainCar-v0"), [1], episodes=1).env_name == "MountainCar-v0"


@pytest.mark.parametrize("name", ["cliff", "CartPole-v1"])
def test_progress_is_told(name: str) -> None:
    told: list[StudyProgress] = []
    study_visitation(name, [1, 4], steps=300, progress=told.append)
    fractions = [progress.fraction for progress in told]
    assert fractions == sorted(fractions)
    assert fractions[-1] == 1.0
    assert {progress.setting.k_max for progress in told} == {1, 4}


def test_progress_may_give_up() -> None:
    env = Diary()

    def stop(progress: StudyProgress) -> None:
        if progress.episodes == 3:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        study_visitation(lambda: env, [1], episodes=100, progress=stop)
    assert len(env.episodes) == 3
    assert env.is_closed


def test_an_environment_that_fails_is_named() -> None:
    class Broken(Diary):
        def _seen(self) -> Any:
            return np.array([np.nan, 0.0])

    with pytest.raises(EnvironmentFailedError, match="it gave an observation that is NaN"):
        study_visitation(Broken(), [1], episodes=2)


def test_the_document_is_plain() -> None:
    study = study_visitation("CartPole-v1", [1, 2], episodes=1)
    document = json.loads(json.dumps(study.document(), allow_nan=False))
    assert document["environment"] == "CartPole-v1"
    assert document["budget"] == {"amount": 1, "unit": "episodes"}
    assert document["reference"] == {"k_max": 1, "mode": "dynamic"}
    assert [set(row) for row in document["results"]] == [{*NUMBERS, *ESTIMATES}] * 2
    # One episode has no interval.
    assert document["results"][0]["mean_return"]["low"] is None


def test_a_setting_that_is_not_part_of_it() -> None:
    with pytest.raises(KeyError, match="k_max=3"):
        study_visitation("cliff", [1], episodes=1).of(3)


def bad_calls() -> Iterator[Any]:
    def call(sentence: str, error: type[Exception], env: Any = "cliff", k_values: Any = (1,), **more: Any) -> Any:
        return pytest.param(env, k_values, more, error, sentence, id=sentence)

    yield call("k_values must be a list of at least one", TypeError, k_values=[])
    yield call("k_values must be a list of at least one, not 4", TypeError, k_values=4)
    yield call("k_values must be a whole number of at least 1, not 0", ValueError, k_values=[0])
    yield call("k_values and modes must have each value once", ValueError, k_values=[2, 2])
    yield call("modes must be one of 'dynamic', 'fixed', not 'both'", ValueError, modes=["both"])
    yield call("modes must be a list of at least one, not 'fixed'", TypeError, modes="fixed")
    yield call("steps must not be given together with episodes", ValueError, steps=3, episodes=3)
    yield call("episodes must be a whole number of at least 1", ValueError, episodes=0)
    yield call("steps must be a whole number of at least 1", TypeError, steps=1.5)
    yield call("seed must be a whole number of at least 0", ValueError, seed=-1)
    yield call("loop must be one of", ValueError, loop="fast")
    yield call("loop must be 'auto' or 'python' here", ValueError, env="CartPole-v1", loop="compiled")
    yield call("env must be a name", TypeError, env=3)
    yield call("env must be a name, a Gym", TypeError, env=[])
    yield call("env must be a name, a Gymnasium environment", TypeError, env=lambda: 3)
    yield call("is unknown", ValueError, env="clif")
    yield call("axes must be two numbers", TypeError, env="CartPole-v1", axes=3)
    yield call("axes must be two different numbers in 0..3", ValueError, env="CartPole-v1", axes=(0, 4))
    yield call("axes must be None if observations are not vectors", ValueError, axes=(0, 1))
    yield call("axes must be two different ones of", ValueError, env="CartPole-v1", axes="pole, cart")


@pytest.mark.parametrize(("env", "k_values", "more", "error", "sentence"), list(bad_calls()))
def test_bad_input_gets_a_sentence(env: Any, k_values: Any, more: Any, error: Any, sentence: str) -> None:
    with pytest.raises(error, match=sentence):
        study_visitation(env, k_values, **more)


def test_environments_with_other_spaces_cannot_take_turns() -> None:
    with pytest.raises(ValueError, match="env must be environments with the same observation space"):
        study_visitation([make_env("cliff"), make_env("open")], [1])
