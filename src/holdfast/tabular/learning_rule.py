"""A learner as its loops see it: how it decides, its tables, and how it updates them after an option.

A partial history s_t, a, r_{t+1}, ..., s_{t+κ} has the sub-transitions s_{t+i} → s_{t+j}. With k = j − i and R the
discounted reward between them, PerQ-learning updates

    Q(s_{t+i}, a, k)     ← (1 − α) Q + α [R + γ^k V(s_{t+j})]
    Q(s_{t+i}, a, k + d) ← (1 − α) Q + α [R + γ^k Q(s_{t+j}, a, d)],   d = 1..K_max − k

in place, last end first. If each decision costs c, V(s_{t+j}) is max Q(s_{t+j},·,·) − c. With a sparse set of
persistences, the updated ones are k, those that are k + d for a d of the set, and those beyond k if s_{t+j} is
terminal.

MSA Q-learning makes only the first of the two updates. TempoRL updates its skip values J(s_{t+i}, k | a) toward
R + γ^k max_a' Q(s_{t+j}, a'), longest first. Q-learning learns from every step by itself.
"""

from __future__ import annotations

from collections.abc import Mapping
from itertools import pairwise
from typing import Any, NamedTuple

import numpy as np

from holdfast.core.array_types import Floats, Integers
from holdfast.core.checks import check_integer, check_real
from holdfast.core.compiling import compiled
from holdfast.core.errors import InputError
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
    "check_depths",
    "check_durations",
    "check_rule",
    "learn_all_persistences",
    "learn_one_step",
    "learn_option",
    "learn_skips",
    "learn_steps",
]


NO_DURATIONS: Floats = np.zeros(0)


class LearningRule(NamedTuple):
    """How a learner decides, and how it learns from an option.

    Attributes:
        alpha: Learning rate α.
        powers: γ^0..γ^K; no option lasts longer than K steps.
        persistences: The durations that options may have; the last is K.
        places: (K + 1,) for each number of steps, the position of the longest persistence that is not longer; 0
            for 0 steps.
        ties_at_random: Whether greedy episodes break ties at random; otherwise they take the first option.
        updates_per_step: Number of one-step updates for each step of an option; 0 updates all persistences
            instead, when the option is over.
        n_valued: V(s) is the largest value among the first ``n_valued`` persistences.
        bootstraps: Whether an option also updates longer persistences, through the value of holding on.
        pad_terminal: Whether an option that ends the episode also updates longer persistences.
        durations: Cumulative distribution of a random action's duration; if empty, any option may be drawn.
        margin: Interruption margin; if infinite, no option is cut.
        tolerance: How much value holding the best action longer may cost in a greedy episode; if negative, the
            best option is taken as it is.
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
    """What a run learns; changed in place.

    Attributes:
        q: (S, A, K) values of options, or (S, A, 1) values of actions.
        skip_values: (S, A, K) values of holding the chosen action; (0, 0, 0) if ``q`` alone decides.
        carry: (1,) fraction of an update that is still owed.
    """

    q: Floats
    skip_values: Floats
    carry: Floats


def check_depths(depths: Any) -> dict[str, int]:
    """Check what a learner says of its tables: compiled code reads them without a check of its own."""
    if not isinstance(depths, Mapping) or not all(isinstance(name, str) for name in depths) or "q" not in depths:
        raise InputError("table_depths must return the depths of tables by name, one of them 'q'")
    return {name: check_integer(f"the depth of {name!r} in table_depths", depths[name]) for name in depths}


def check_rule(rule: Any, depths: Mapping[str, int], *, learns: bool) -> LearningRule:
    """Check that a learner's rule fits its tables: compiled code reads them without a check of its own.

    Args:
        rule: What the learner gave.
        depths: Of its tables.
        learns: Whether the rule says what is learned, too.
    """
    if not isinstance(rule, LearningRule):
        raise InputError(f"rule must return a LearningRule, as make_rule makes it, not {type(rule).__name__}")
    durations = check_durations(rule.persistences)
    n_durations, longest = len(durations), durations[-1]
    if not len(rule.powers) == len(rule.places) == longest + 1:
        raise InputError("rule must be made by make_rule for the durations that it has")
    check_real("updates_per_step of rule", rule.updates_per_step, 0.0)
    check_real("tolerance of rule", rule.tolerance)
    check_real("decision_cost of rule", rule.decision_cost, 0.0)
    if np.isnan(rule.margin):
        raise InputError("margin of rule must be a number or infinity, not nan")
    if not isinstance(rule.durations, np.ndarray) or rule.durations.ndim != 1 or len(rule.durations) > longest:
        raise InputError(f"durations of rule must be an array of at most {longest} cumulative probabilities")
    learns_windows = learns and rule.updates_per_step == 0.0
    has_all = learns_windows or rule.margin < np.inf
    if depths["q"] != n_durations and (has_all or depths["q"] != 1):
        other = "" if has_all or n_durations == 1 else ", or 1"
        raise InputError(
            f"the depth of 'q' in table_depths must be {n_durations}, the number of the rule's durations{other}, "
            f"not {depths['q']}"
        )
    if learns_windows and check_integer("n_valued of rule", rule.n_valued) > n_durations:
        raise InputError(f"n_valued of rule must be at most {n_durations}, the number of its durations")
    skips = depths.get("skip_values", n_durations)
    if skips != n_durations or ("skip_values" in depths and learns and longest != n_durations):
        raise InputError(
            f"the depth of 'skip_values' in table_depths must be K for a rule with the durations 1..K, not {skips}"
        )
    return rule


def check_durations(durations: Any) -> list[int]:
    """Check the durations of a learner's options: whole numbers of at least 1 that increase."""
    numbers = [check_integer("each duration of rule", number) for number in durations]
    if not numbers or any(later <= earlier for earlier, later in pairwise(numbers)):
        raise InputError(f"the durations of rule must increase, as 1, 2, 4 do, not {numbers}")
    return numbers


class HeldOption(NamedTuple):
    """The partial history of one option.

    Attributes:
        states: Array that begins with s_t..s_{t+κ}.
        action: The held action.
        rewards: Array that begins with r_{t+1}..r_{t+κ}.
        kappa: κ, the number of executed steps.
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
    """Learn from each step of an option as many times as are due; a fraction of an update is carried over."""
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
    """The all-persistence update of ``q`` (S, A, K) with one partial history; without bootstrapping, MSA's update.

    If the rule does not bootstrap, ``pad_terminal`` lets a sub-transition that ends the episode update all longer
    persistences too.
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
                    continue  # no value to bootstrap from
                # The rest is given by its position, counted from 1.
                rest = duration_at(places[d]) if d > 0 else 0
                target = window_target(reward, powers[k], rest, end_value, held_values, ends_episode)
                q[start, action, at] = toward(q[start, action, at], target, alpha)
            if start == end:  # bumped into a wall: what was just learned also changes the end's value
                end_value = undecided_value(best_value(q[end], n_valued), cost)


@compiled
def learn_skips(
    skip_values: Floats, q: Floats, option: HeldOption, alpha: float, powers: Floats, pad_terminal: bool
) -> None:
    """Update ``skip_values`` (S, A, K) in place with every sub-transition of one skip.

    With ``pad_terminal``, a sub-transition that ends the episode updates all longer skips too.
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


def learn_option(tables: Tables, option: HeldOption, rule: LearningRule) -> None:
    """Learn from one option as the rule says: from its steps, from all its sub-transitions, or from both."""
    if rule.updates_per_step > 0.0:
        learn_steps(tables.q, tables.carry, option, rule.alpha, rule.powers[1], rule.updates_per_step)
    else:
        learn_all_persistences(tables.q, option, rule)
    if len(tables.skip_values) > 0:
        learn_skips(tables.skip_values, tables.q, option, rule.alpha, rule.powers, rule.pad_terminal)
