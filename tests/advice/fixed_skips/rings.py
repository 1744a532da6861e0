"""Replays filled by random options in a known model."""

from __future__ import annotations

import numpy as np
from gymnasium import spaces
from numpy.typing import NDArray

from holdfast.deep import OptionReplayBuffer
from holdfast.mdp import TabularMDP

N_ENVS = 50


def random_ring(
    mdp: TabularMDP, steps: int, longest: int, seed: int = 0, *, time_limit: int = 50, numbers: bool = False
) -> OptionReplayBuffer:
    """``steps`` steps in all of options (a, k), all with k up to ``longest`` as likely as each other.

    Args:
        mdp: With dense probabilities and a start.
        steps: A multiple of ``N_ENVS``.
        longest: Largest k.
        seed: Of everything.
        time_limit: Steps after which an episode is truncated.
        numbers: Whether states are shown by their numbers; else one-hot.
    """
    rng, S = np.random.default_rng(seed), mdp.n_states
    assert mdp.initial is not None
    # What is drawn from the ring does not matter here, and one uniform view is the quickest to fill.
    ring = OptionReplayBuffer(
        steps,
        spaces.Discrete(S) if numbers else spaces.Box(0.0, 1.0, (S,), np.float32),
        spaces.Discrete(mdp.n_actions),
        device="cpu",
        n_envs=N_ENVS,
        gamma=mdp.gamma,
        prioritized=False,
    )

    def drawn(probabilities: NDArray[np.float64]) -> NDArray[np.int64]:
        likely = np.cumsum(probabilities, axis=1)
        return np.minimum((rng.random((N_ENVS, 1)) >= likely).sum(axis=1), S - 1)

    def shown(states: NDArray[np.int64]) -> NDArray[np.generic]:
        return states if numbers else np.eye(S, dtype=np.float32)[states]

    starts = np.tile(mdp.initial, (N_ENVS, 1))
    states, actions = drawn(starts), np.zeros(N_ENVS, dtype=np.int64)
    left, ages = np.zeros(N_ENVS, dtype=np.int64), np.zeros(N_ENVS, dtype=np.int64)
    for _ in range(steps // N_ENVS):
        actions = np.where(left == 0, rng.integers(mdp.n_actions, size=N_ENVS), actions)
        left = np.where(left == 0, rng.integers(1, longest + 1, size=N_ENVS), left) - 1
        ages += 1
        reached = drawn(mdp.P[states, actions])
        terminated = mdp.terminal[reached]
        truncated = ~terminated & (ages >= time_limit)
        done = terminated | truncated
        infos = [{"TimeLimit.truncated": bool(cut)} for cut in truncated]
        rewards, over = mdp.reward[states, actions], (left == 0) | done
        ring.add(shown(states), shown(reached), actions, rewards, done, infos, over)
        states = np.where(done, drawn(starts), reached)
        left[done] = ages[done] = 0
    return ring
