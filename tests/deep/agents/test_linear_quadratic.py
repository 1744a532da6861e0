"""PerTD3 and PerSAC on a linear-quadratic problem, whose values are known in closed form."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import gymnasium
import numpy as np
import pytest
import torch as th
from gymnasium import spaces

from holdfast.deep import PerSAC, PerTD3

GAMMA, A, B, COST = 0.8, 0.9, 0.5, 0.5
DURATIONS = (1, 2, 4)


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


def probed(agent: Any, target_value: str, **arguments: Any) -> Any:
    """An agent that has learned from what random actions give."""
    model = agent(
        "MlpPolicy",
        LinearQuadratic(),
        persistences=DURATIONS,
        target_value=target_value,
        gamma=GAMMA,
        learning_rate=2e-3,
        tau=0.02,
        batch_size=128,
        learning_starts=3000,
        policy_kwargs={"net_arch": [64, 64]},
        seed=0,
        device="cpu",
        **arguments,
    )
    model.learn(3000)
    for rate in (2e-3, 5e-4, 1e-4):
        model.lr_schedule = lambda _, rate=rate: rate
        model.train(2500, 128)
    return model


def off_by(model: Any, closed_form: Callable[[float, float, int], float]) -> float:
    """Mean error of the first critic's values, as a share of their mean size."""
    rows = np.array([(x, u) for x in np.linspace(-1.0, 1.0, 9) for u in np.linspace(-0.9, 0.9, 7)], np.float32)
    with th.no_grad():
        found = model.critic(th.as_tensor(rows[:, :1]), th.as_tensor(rows[:, 1:]))[0].numpy()
    expected = np.array([[closed_form(x, u, k) for k in DURATIONS] for x, u in rows.astype(float)])
    return float(np.abs(found - expected).mean() / np.abs(expected).mean())


@pytest.mark.slow
@pytest.mark.parametrize("target_value", ["options", "primitive"])
def test_values_are_learned_within_three_percent(target_value):
    assert off_by(probed(PerTD3, target_value, target_policy_noise=0.0), value) <= 0.03


# Entropy --------------------------------------------------------------------------------------------------------

ALPHA, TARGET_ENTROPY = 0.02, -5.0


def soft_value_of_zero() -> float:
    """v of V(x) = −P x² + v: for ever, what a Gaussian's entropy is worth, less what its width costs."""
    curvature = COST + GAMMA * B**2 * riccati()[0]
    return 0.5 * ALPHA * math.log(math.pi * ALPHA / curvature) / (1.0 - GAMMA)


def soft_value(x: float, u: float, k: int) -> float:
    """Q(x,u,k): k steps of the held u, paid αH̄ from the second on, then the best draws at every step."""
    paid = sum(GAMMA**step for step in range(1, k)) * ALPHA * TARGET_ENTROPY
    return value(x, u, k) + paid + GAMMA**k * soft_value_of_zero()


def test_the_soft_closed_form_is_a_fixed_point():
    # V(x) = α log ∫ exp(Q(x,u,1)/α) du, by quadrature.
    places = np.linspace(-4.0, 4.0, 20_001)
    for x in (-1.0, 0.3):
        single = np.array([soft_value(x, u, 1) for u in places])
        best = single.max()
        found = best + ALPHA * math.log(np.exp((single - best) / ALPHA).sum() * (places[1] - places[0]))
        assert found == pytest.approx(-riccati()[0] * x**2 + soft_value_of_zero(), abs=1e-6)
        # One step, what the next is paid, and the rest of a longer hold.
        rest = ALPHA * TARGET_ENTROPY + soft_value(A * x + B * 0.4, 0.4, 2)
        assert soft_value(x, 0.4, 3) == pytest.approx(-(x**2 + COST * 0.16) + GAMMA * rest)


def test_deciding_costs_what_the_width_of_a_draw_does():
    """Where decisions have the entropy that held steps are paid for, holding the best action is worth α/2 more."""
    p, gain = riccati()
    entropy = 0.5 * math.log(math.pi * math.e * ALPHA / (COST + GAMMA * B**2 * p))
    for x in (-1.0, 0.3):
        decides = -p * x**2 + soft_value_of_zero()
        holds_on = ALPHA * entropy + soft_value(x, -gain * x, 1)
        assert holds_on - decides == pytest.approx(ALPHA / 2)


@pytest.mark.slow
def test_soft_values_are_learned_within_three_percent():
    model = probed(PerSAC, "primitive", ent_coef=ALPHA, target_entropy=TARGET_ENTROPY)
    assert off_by(model, soft_value) <= 0.03
    # Without the payments of held steps, or without entropy, it would not be.
    assert off_by(model, lambda x, u, k: value(x, u, k) + GAMMA**k * soft_value_of_zero()) > 0.05
    assert off_by(model, value) > 0.05
