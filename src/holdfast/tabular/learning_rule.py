"""A learner as its loops see it: how it decides, its tables, and what it changes in them when an option is over.

A partial history s_t, a, r_{t+1}, ..., s_{t+κ} has the sub-transitions s_{t+i} → s_{t+j}. With k = j − i and R the
discounted reward between them, PerQ-learning updates

    Q(s_{t+i}, a, k)     ← (1 − α) Q + α [R + γ^k V(s_{t+j})]
    Q(s_{t+i}, a, k + d) ← (1 − α) Q + α [R + γ^k Q(s_{t+j}, a, d)],   d = 1..K_max − k

in place, last end first. Where each decision costs c, V(s_{t+j}) is max Q(s_{t+j},·,·) − c. Of a sparse set of
persistences, those are updated that are k, or k + d for a d of the set, or beyond k if s_{t+j} is terminal.

MSA Q-learning makes the first of the two updates alone. TempoRL updates its skip values J(s_{t+i}, k | a) toward
R + γ^k max_a' Q(s_{t+j}, a'), longest first. Q-learning sees every step by itself.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from holdfast.core.compiling import compiled
from holdfast.tabular.compiled import (
    best_value,
    bootstrapped_return,
    duration_at,
    k_step_return,
    persistence_index,
    toward,
    undecided_value,
    window_target,
)

__all__ = [
    "NO_DURATIONS",
    "HeldOption",
    "LearningRule",
    "Tables",
    "learn",
    "learn_all_persistences",
    "learn_one_step",
    "learn_skips",
    "learn_steps",
]

Floats = NDArray[np.float64]
Integers = NDArray[np.int64]

NO_DURATIONS: Floats = np.zeros(0)


class LearningRule(NamedTuple):
    """How a learner decides, and what it learns from an option.

    Attributes:
        alpha: Learning rate α.
        powers: γ^0..γ^K; no option lasts longer than K steps.
        persistences: The durations that options may have, the last of them K.
        places: (K + 1,) by number of steps, the place among them of the longest that is no longer; 0 for 0.
        ties_at_random: Whether greedy episodes draw one of equals at random; otherwise they take the first.
        updates_per_step: One-step updates with each step of an option; 0 updates all persistences instead, when
            the option is over.
        n_valued: V(s) is the largest value among the first ``n_valued`` persistences.
        bootstraps: Whether an option also updates longer persistences, by going on holding.
        pad_terminal: Whether an option that ends the episode also updates longer persistences.
        durations: Cumulative distribution of the duration of a random action; empty draws one of all options.
        margin: Interruption margin; infinite carries every option through.
        tolerance: What holding the best action longer may cost in a greedy episode; negative takes the best.
        decision_cost: c.
    """

    alpha: float
    powers: Floats
    persistences: Integers
    places: Integers
    ties_at_random: bool
    updates_per_step: float = 0.0
    n_valued: int = 1
    bootstraps: bool = False
    pad_terminal: bool = False
    durations: Floats = NO_DURATIONS
    margin: float = np.inf
    tolerance: float = -1.0
    decision_cost: float = 0.0


class Tables(NamedTuple):
    """What a run learns, changed in place.

    Attributes:
        q: (S, A, K) values of options; (S, A, 1) those of actions.
        skip_values: (S, A, K) values of holding the chosen action; (0, 0, 0) where ``q`` decides alone.
        carry: (1,) fraction of an update that is owed.
    """

    q: Floats
    skip_values: Floats
    carry: Floats


class HeldOption(NamedTuple):
    """The partial history of one option.

    Attributes:
        states: s_t..s_{t+κ} at the front.
        action: The held action.
        rewards: r_{t+1}..r_{t+κ} at the front.
        kappa: κ, the steps really executed.
        terminated: Whether s_{t+κ} is terminal.
    """

    states: Integers
    action: int
    rewards: Floats
    kappa: int
    terminated: bool


@compiled
def learn_one_step(
    q: Floats, state: int, action: int, reward: float, following: int, terminated: bool, alpha: float, gamma: float
) -> None:
    """Q(s,a) ← (1 − α) Q(s,a) + α [r + γ max Q(s',·)], in a table (S, A, 1)."""
    target = bootstrapped_return(reward, gamma, best_value(q[following], 1), terminated)
    q[state, action, 0] = toward(q[state, action, 0], target, alpha)


@compiled
def learn_steps(
    q: Floats, carry: Floats, option: HeldOption, alpha: float, gamma: float, updates_per_step: float
) -> None:
    """Learn from each step of an option as often as is due; a fraction of an update is carried over."""
    states, action, rewards, kappa, terminated = option
    owed = carry[0]
    for i in range(kappa):
        start, end = states[i], states[i + 1]
        ends_episode = terminated and i + 1 == kappa
        owed += updates_per_step
        while owed >= 1.0:
            learn_one_step(q, start, action, rewards[i], end, ends_episode, alpha, gamma)
            owed -= 1.0
    carry[0] = owed


@compiled
def learn_all_persistences(q: Floats, option: HeldOption, rule: LearningRule) -> None:
    """The all-persistence update of ``q`` (S, A, K) with one partial history; without its bootstrap, that of MSA.

    Where the rule does not bootstrap, ``pad_terminal`` lets a sub-transition that ends the episode stand for all
    longer ones.
    """
    states, action, rewards, kappa, terminated = option
    alpha, powers, n_valued, cost = rule.alpha, rule.powers, rule.n_valued, rule.decision_cost
    persistences, places = rule.persistences, rule.places
    for j in range(kappa, 0, -1):
        end = states[j]
        ends_episode = terminated and j == kappa
        learns_longer = rule.bootstraps or (rule.pad_terminal and ends_episode)
        end_value, held_values = undecided_value(best_value(q[end], n_valued), cost), q[end, action]
        reward = 0.0
        for i in range(j - 1, -1, -1):
            start, k = states[i], j - i
            reward = rewards[i] + powers[1] * reward
            first = places[k]
            is_complete = persistences[first] == k
            last = len(persistences) if learns_longer else first + 1
            for at in range(first if is_complete else first + 1, last):
                d = persistences[at] - k
                if d > 0 and persistences[places[d]] != d and not ends_episode:
                    continue  # no value to go on from
                # The rest goes by its place, counted from 1.
                rest = duration_at(places[d]) if d > 0 else 0
                target = window_target(reward, powers[k], rest, end_value, held_values, ends_episode)
                q[start, action, at] = toward(q[start, action, at], target, alpha)
            if start == end:  # bumping into a wall: what was just learned is the end's value too
                end_value = undecided_value(best_value(q[end], n_valued), cost)


@compiled
def learn_skips(
    skip_values: Floats, q: Floats, option: HeldOption, alpha: float, powers: Floats, pad_terminal: bool
) -> None:
    """Update ``skip_values`` (S, A, K) in place with every sub-transition of one skip.

    With ``pad_terminal`` a sub-transition that ends the episode stands for all longer ones too.
    """
    states, action, rewards, kappa, terminated = option
    k_max = skip_values.shape[2]
    for length in range(kappa, 0, -1):
        for i in range(kappa - length + 1):
            start, end = states[i], states[i + length]
            ends_episode = terminated and i + length == kappa
            reward = k_step_return(rewards, i, length, powers[1])
            target = bootstrapped_return(reward, powers[length], best_value(q[end], 1), ends_episode)
            longest = k_max if pad_terminal and ends_episode else length
            for k in range(length, longest + 1):
                at = persistence_index(k)
                skip_values[start, action, at] = toward(skip_values[start, action, at], target, alpha)


def learn(tables: Tables, option: HeldOption, rule: LearningRule) -> None:
    """Learn from one option what the rule says: from its steps, or from all its sub-transitions, or from both."""
    if rule.updates_per_step > 0.0:
        learn_steps(tables.q, tables.carry, option, rule.alpha, rule.powers[1], rule.updates_per_step)
    else:
        learn_all_persistences(tables.q, option, rule)
    if len(tables.skip_values) > 0:
        learn_skips(tables.skip_values, tables.q, option, rule.alpha, rule.powers, rule.pad_terminal)
