"""PerTD3 on a linear-quadratic problem, whose values are known in closed form."""

from __future__ import annotations

import gymnasium
import numpy as np
import pytest
import torch as th
from gymnasium import spaces

from holdfast.deep import PerTD3

GAMMA, A, B, COST = 0.8, 0.9, 0.5, 0.5


class LinearQuadratic(gymnasium.Env):
    """x' = 0.9 x + 0.5 u, paid −(x² + 0.5 u²); bounds that the best u never reaches."""

    observation_space = spaces.Box(-np.inf, np.inf, (1,), np.float32)
    action_space = spaces.Box(-1.0, 1.0, (1,), np.float32)

    def reset(self, *, seed=None, options=None):
        super().reset(seed=seed)
        self._x, self._steps = float(self.np_random.uniform(-1.0, 1.0)), 0
        return np.array([self._x], np.float32), {}

    def step(self, action):
        u = float(action[0])
        reward = -(self._x**2 + COST * u**2)
        self._x, self._steps = A * self._x + B * u, self._steps + 1
        return np.array([self._x], np.float32), reward, False, self._steps >= 8, {}


def riccati() -> tuple[float, float]:
    """P and L of V*(x) = −P x² and u* = −L x, by iterating the Riccati equation."""
    p = 1.0
    for _ in range(200):
        p = 1.0 + GAMMA * A**2 * p - (GAMMA * A * B * p) ** 2 / (COST + GAMMA * B**2 * p)
    return p, GAMMA * A * B * p / (COST + GAMMA * B**2 * p)


def value(x: float, u: float, k: int) -> float:
    """Q*(x,u,k): k steps of the held u, then the best."""
    total = 0.0
    for step in range(k):
        total -= GAMMA**step * (x**2 + COST * u**2)
        x = A * x + B * u
    return total - GAMMA**k * riccati()[0] * x**2


def test_the_closed_form_is_a_fixed_point():
    p, gain = riccati()
    for x in (-1.0, 0.3):
        assert value(x, -gain * x, 1) == pytest.approx(-p * x**2)
        # One step and the rest of a longer hold.
        assert value(x, 0.4, 3) == pytest.approx(-(x**2 + COST * 0.16) + GAMMA * value(A * x + B * 0.4, 0.4, 2))
        assert all(value(x, -gain * x, 1) >= value(x, u, k) for u in np.linspace(-2, 2, 9) for k in (1, 2, 4))


@pytest.mark.slow
@pytest.mark.parametrize("target_value", ["options", "primitive"])
def test_values_are_learned_within_three_percent(target_value):
    model = PerTD3(
        "MlpPolicy",
        LinearQuadratic(),
        persistences=(1, 2, 4),
        target_value=target_value,
        gamma=GAMMA,
        learning_rate=2e-3,
        tau=0.02,
        batch_size=128,
        learning_starts=3000,
        target_policy_noise=0.0,
        policy_kwargs={"net_arch": [64, 64]},
        seed=0,
        device="cpu",
    )
    model.learn(3000)
    for rate in (2e-3, 5e-4, 1e-4):
        model.lr_schedule = lambda _, rate=rate: rate
        model.train(2500, 128)
    states = np.linspace(-1.0, 1.0, 9)
    actions = np.linspace(-0.9, 0.9, 7)
    rows = np.array([(x, u) for x in states for u in actions], np.float32)
    with th.no_grad():
        found = model.critic(th.as_tensor(rows[:, :1]), th.as_tensor(rows[:, 1:]))[0].numpy()
    expected = np.array([[value(x, u, k) for k in (1, 2, 4)] for x, u in rows.astype(float)])
    assert np.abs(found - expected).mean() <= 0.03 * np.abs(expected).mean()
