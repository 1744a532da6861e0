"""The updates and PerQ-learning once more, written for reading: dictionaries, sums and powers, no shared code."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from holdfast.core import PartialHistory

Values = dict[tuple[int, int, int], float]
"""Values by state, action and k."""


class Setting(NamedTuple):
    """What an update goes by."""

    alpha: float
    gamma: float
    n_actions: int
    k_max: int
    pad_terminal: bool = False
    cost: float = 0.0
    durations: tuple[int, ...] = ()

    @property
    def holds(self) -> tuple[int, ...]:
        """The persistences that have values."""
        return self.durations or tuple(range(1, self.k_max + 1))

    def worth(self, q: Values, state: int) -> float:
        """V(s) before the decision there is paid for."""
        return max(q[state, a, k] for a in range(self.n_actions) for k in self.holds) - self.cost


class Window(NamedTuple):
    """A sub-transition s_i → s_j: its discounted reward, and whether the episode is over then."""

    i: int
    j: int
    reward: float
    over: bool


def windows(history: PartialHistory, gamma: float) -> list[Window]:
    """All sub-transitions, last end first, then shortest first."""
    return [
        Window(
            i,
            j,
            sum(gamma**n * float(history.rewards[i + n]) for n in range(j - i)),
            history.terminated and j == history.kappa,
        )
        for j in range(history.kappa, 0, -1)
        for i in range(j - 1, -1, -1)
    ]


def update(q: Values, history: PartialHistory, by: Setting) -> None:
    """The all-persistence update, k counted from 1."""
    states, action = history.states.tolist(), history.action
    for i, j, reward, over in windows(history, by.gamma):
        seen, before = j - i, by.worth(q, states[j])
        for k in by.holds:
            if k < seen or (k > seen and k - seen not in by.holds and not over):
                continue
            rest = before if k == seen else q[states[j], action, k - seen] if not over else 0.0
            target = reward if over else reward + by.gamma**seen * rest
            q[states[i], action, k] = (1 - by.alpha) * q[states[i], action, k] + by.alpha * target


def msa_update(q: Values, history: PartialHistory, by: Setting) -> None:
    """Every sub-transition for its own length, last end first; one that ends the episode also for all longer."""
    states, action = history.states.tolist(), history.action
    for i, j, target, over in windows(history, by.gamma):
        if not over:
            target += by.gamma ** (j - i) * by.worth(q, states[j])
        for k in by.holds:
            if k == j - i or (k > j - i and over and by.pad_terminal):
                q[states[i], action, k] += by.alpha * (target - q[states[i], action, k])


def temporl_update(q: Values, skips: Values, history: PartialHistory, by: Setting) -> None:
    """Q-learning step by step; then every sub-transition for its skip value, the longest first."""
    states, action = history.states.tolist(), history.action

    def learned(window: Window) -> float:
        beyond = 0.0 if window.over else max(q[states[window.j], a, 1] for a in range(by.n_actions))
        return window.reward + by.gamma ** (window.j - window.i) * beyond

    every = sorted(windows(history, by.gamma), key=lambda window: (window.i - window.j, window.i))
    for window in (window for window in every if window.j - window.i == 1):
        at = states[window.i], action, 1
        q[at] += by.alpha * (learned(window) - q[at])
    for window in every:
        length = window.j - window.i
        for k in range(length, (by.k_max if window.over and by.pad_terminal else length) + 1):
            skips[states[window.i], action, k] += by.alpha * (learned(window) - skips[states[window.i], action, k])


def as_dictionary(table: np.ndarray, durations: tuple[int, ...] = ()) -> Values:
    """A table (S, A, K) by state, action and k, which are 1..K unless told."""
    holds = durations or range(1, table.shape[2] + 1)
    return {(s, a, holds[place]): float(value) for (s, a, place), value in np.ndenumerate(table)}


def as_table(q: Values, shape: tuple[int, ...], durations: tuple[int, ...] = ()) -> np.ndarray:
    """The other way round."""
    table = np.empty(shape)
    holds = list(durations or range(1, shape[2] + 1))
    for (s, a, k), value in q.items():
        table[s, a, holds.index(k)] = value
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
            history = PartialHistory(np.array(states), action, np.array(rewards), over)
            update(values, history, Setting(alpha, gamma, n_actions, k_max))
            total += sum(rewards)
            state = states[-1]
        episodes.append((total, steps, decisions))
    return as_table(values, q.shape), episodes
