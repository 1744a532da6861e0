from __future__ import annotations

from pathlib import Path

import gymnasium
import numpy as np
import pytest
from stable_baselines3 import DQN

from holdfast import PerDQN
from holdfast.experiments.figures.suite import SUITE
from holdfast.experiments.figures.suite.contestants import CONTESTANTS
from holdfast.experiments.figures.suite.experiment import COLUMNS, draw_suite, run_contestant, suite_lines
from holdfast.experiments.figures.suite.greedy_evaluation import GreedyEvaluations, play_greedily
from holdfast.experiments.figures.suite.tasks import TASKS, last_fifth, normalized
from holdfast.experiments.spec import Job


def literal_episode(model: PerDQN | DQN, index: int) -> tuple[float, int]:
    """One episode by itself: return and decisions."""
    env = gymnasium.make("CartPole-v1")
    observation, _ = env.reset(seed=1_000_000 + index)
    held, total, decisions, over = 0, 0.0, 0, False
    while not over:
        if held == 0:
            decisions += 1
            if isinstance(model, PerDQN):
                action, held, _ = model.policy.decide(observation)
            else:
                action, held = int(model.predict(observation, deterministic=True)[0]), 1
        held -= 1
        observation, reward, terminated, truncated, _ = env.step(action)
        total += float(reward)
        over = terminated or truncated
    return total, decisions


@pytest.mark.parametrize("kind", [PerDQN, DQN])
def test_episodes_side_by_side_are_those_played_one_by_one(kind: type) -> None:
    model = kind("MlpPolicy", "CartPole-v1", seed=3, learning_starts=50)
    model.learn(200)
    returns, decisions, lengths = play_greedily(model, [gymnasium.make("CartPole-v1") for _ in range(5)])
    assert [(float(r), int(d)) for r, d in zip(returns, decisions, strict=True)] == [
        literal_episode(model, index) for index in range(5)
    ]
    assert (returns == lengths).all()  # CartPole gives 1 per step


def test_evaluating_does_not_disturb_the_training() -> None:
    trained = []
    for every in (50, 10**9):
        model = PerDQN("MlpPolicy", "CartPole-v1", seed=5, learning_starts=50)
        model.learn(300, GreedyEvaluations("CartPole-v1", every, 3))
        trained.append([part.detach().numpy().copy() for part in model.policy.parameters()])
    for with_it, without in zip(*trained, strict=True):
        np.testing.assert_array_equal(with_it, without)


def test_the_last_fifth_by_hand() -> None:
    assert last_fifth([1.0, 2.0, 3.0, 4.0, 10.0]) == 10.0
    assert last_fifth(np.arange(11.0)) == 9.0  # of eleven, the last three
    np.testing.assert_array_equal(last_fifth([[0, 0, 0, 0, 5], [1, 1, 1, 1, 7]]), [5.0, 7.0])


def test_the_common_scale_by_hand() -> None:
    car = next(task for task in TASKS if task.environment == "MountainCar-v0")
    np.testing.assert_allclose(normalized([-200.0, -97.6, -148.8], car), [0.0, 1.0, 0.5])


def test_a_job_of_every_contestant_at_smoke_scale(tmp_path: Path) -> None:
    parts = []
    jobs = SUITE.jobs("smoke")
    assert {job.setting["agent"] for job in jobs} == {contestant.name for contestant in CONTESTANTS}
    for job in jobs:
        rows = run_contestant(job, tmp_path)
        assert tuple(rows) == COLUMNS
        assert list(rows["step"]) == [40, 80, 120, 160, 200]
        assert all(1.0 <= value <= 500.0 for value in rows["return"])
        told = {"agent": job.setting["agent"], "environment": job.setting["environment"], "seed": job.seed}
        parts.append({**{name: np.full(5, value) for name, value in told.items()}, **rows})
    table = {name: np.concatenate([np.asarray(part[name]) for part in parts]) for name in parts[0]}
    lines = suite_lines(table)
    assert all(len(line) <= 80 for line in lines)
    for contestant in CONTESTANTS:
        assert sum(line.strip().startswith(contestant.name) for line in lines) >= 2
    assert any("than tuned DQN" in line for line in lines)
    assert len(draw_suite(table).axes[0].lines) >= len(CONTESTANTS)


def test_a_job_is_the_same_run_whenever_it_is_run(tmp_path: Path) -> None:
    job: Job = SUITE.jobs("smoke")[-1]
    first, second = (run_contestant(job, tmp_path) for _ in range(2))
    for name in COLUMNS:
        np.testing.assert_array_equal(first[name], second[name])


def test_the_tuned_settings_are_dqns_own() -> None:
    tuned = CONTESTANTS[0]
    for task in TASKS:
        arguments = tuned.arguments_for(task.environment)
        assert arguments["policy_kwargs"] == {"net_arch": [256, 256]}
        if task.environment == "CartPole-v1":
            DQN(env="CartPole-v1", **arguments)
