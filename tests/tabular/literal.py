"""The updates and PerQ-learning once more, written for reading: dictionaries, sums and powers, no shared code."""

from __future__ import annotations

from typing import Any

import numpy as np


def update(
    q: dict[tuple[int, int, int], float],
    states: list[int],
    action: int,
    rewards: list[float],
    terminated: bool,
    alpha: float,
    gamma: float,
    n_actions: int,
    k_max: int,
) -> None:
    """The all-persistence update, k counted from 1."""
    kappa = len(rewards)
    for j in range(kappa, 0, -1):
        for i in range(j - 1, -1, -1):
            k = j - i
            reward = sum(gamma**n * rewards[i + n] for n in range(k))
            over = terminated and j == kappa
            best = max(q[states[j], a, m] for a in range(n_actions) for m in range(1, k_max + 1))
            target = reward if over else reward + gamma**k * best
            q[states[i], action, k] = (1 - alpha) * q[states[i], action, k] + alpha * target
            for d in range(1, k_max - k + 1):
                target = reward if over else reward + gamma**k * q[states[j], action, d]
                q[states[i], action, k + d] = (1 - alpha) * q[states[i], action, k + d] + alpha * target


def msa_update(
    q: dict[tuple[int, int, int], float],
    states: list[int],
    action: int,
    rewards: list[float],
    terminated: bool,
    alpha: float,
    gamma: float,
    n_actions: int,
    k_max: int,
    pad_terminal: bool,
) -> None:
    """Every sub-transition for its own length, last end first; one that ends the episode also for all longer."""
    kappa = len(rewards)
    for j in range(kappa, 0, -1):
        for i in range(j - 1, -1, -1):
            target = sum(gamma ** (n - i) * rewards[n] for n in range(i, j))
            lengths = [j - i]
            if terminated and j == kappa:
                if pad_terminal:
                    lengths = list(range(j - i, k_max + 1))
            else:
                best = max(q[states[j], a, m] for a in range(n_actions) for m in range(1, k_max + 1))
                target += gamma ** (j - i) * best
            for k in lengths:
                q[states[i], action, k] += alpha * (target - q[states[i], action, k])


def temporl_update(
    q: dict[tuple[int, int, int], float],
    skips: dict[tuple[int, int, int], float],
    states: list[int],
    action: int,
    rewards: list[float],
    terminated: bool,
    alpha: float,
    gamma: float,
    n_actions: int,
    k_max: int,
    pad_terminal: bool,
) -> None:
    """Q-learning step by step; then every sub-transition for its skip value, the longest first."""
    kappa = len(rewards)

    def beyond(j: int) -> float:
        return 0.0 if terminated and j == kappa else max(q[states[j], a, 1] for a in range(n_actions))

    for t in range(kappa):
        target = rewards[t] + gamma * beyond(t + 1)
        q[states[t], action, 1] += alpha * (target - q[states[t], action, 1])
    spans = [(i, j) for i in range(kappa) for j in range(i + 1, kappa + 1)]
    for i, j in sorted(spans, key=lambda span: (span[0] - span[1], span[0])):
        target = sum(gamma ** (n - i) * rewards[n] for n in range(i, j)) + gamma ** (j - i) * beyond(j)
        longest = k_max if pad_terminal and terminated and j == kappa else j - i
        for k in range(j - i, longest + 1):
            skips[states[i], action, k] += alpha * (target - skips[states[i], action, k])


def as_dictionary(table: np.ndarray) -> dict[tuple[int, int, int], float]:
    """A table (S, A, K) by state, action and k."""
    return {(s, a, k + 1): float(value) for (s, a, k), value in np.ndenumerate(table)}


def as_table(q: dict[tuple[int, int, int], float], shape: tuple[int, ...]) -> np.ndarray:
    """The other way round."""
    table = np.empty(shape)
    for (s, a, k), value in q.items():
        table[s, a, k - 1] = value
    return table


def perq_run(
    mdp: Any, q: np.ndarray, alpha: float, gamma: float, epsilons: list[float], limit: int, agent: Any
) -> tuple[np.ndarray, list[tuple[float, int, int]]]:
    """PerQ-learning on a deterministic model; the table, and return, steps and decisions of each episode."""
    _, n_actions, k_max = q.shape
    values = as_dictionary(q)
    start = int(np.flatnonzero(mdp.initial)[0])
    options = [(a, k) for a in range(n_actions) for k in range(1, k_max + 1)]
    episodes = []
    for epsilon in epsilons:
        state, total, steps, decisions = start, 0.0, 0, 0
        while not mdp.terminal[state] and steps < limit:
            if agent.random() < epsilon:
                action, k = options[int(agent.random() * len(options))]
            else:
                best = max(values[(state, *option)] for option in options)
                equals = [option for option in options if values[(state, *option)] == best]
                action, k = equals[int(agent.random() * len(equals))] if len(equals) > 1 else equals[0]
            decisions += 1
            states, rewards = [state], []
            while len(rewards) < k and not mdp.terminal[states[-1]] and steps < limit:
                rewards.append(float(mdp.reward[states[-1], action]))
                states.append(int(mdp.P[states[-1], action]))
                steps += 1
            over = bool(mdp.terminal[states[-1]])
            update(values, states, action, rewards, over, alpha, gamma, n_actions, k_max)
            total += sum(rewards)
            state = states[-1]
        episodes.append((total, steps, decisions))
    return as_table(values, q.shape), episodes
