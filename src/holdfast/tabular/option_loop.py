"""The loop of all learners: decide, hold the action, learn; optionally, a greedy episode follows each episode.

The loop exists twice: compiled, for models, and in Python, for any environment with Discrete spaces. In a model,
both draw the same numbers and learn the same values.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import numpy as np

from holdfast.core.array_types import Floats
from holdfast.core.compiling import compiled, in_python
from holdfast.tabular.compiled import (
    best_value,
    draw_held_action,
    draw_option,
    greedy_option,
    is_interrupted,
    left_after_step,
)
from holdfast.tabular.learning_rule import (
    HeldOption,
    LearningRule,
    Tables,
    learn_all_persistences,
    learn_one_step,
    learn_skips,
)
from holdfast.tabular.run import EpisodeOutcomes, RunState
from holdfast.tabular.simulator import FlatModel, draw_outcome, first_state
from holdfast.tabular.world import Steps

__all__ = ["Streams", "run_episodes", "run_in_python"]


# For the Python loop: passing a generator to compiled code takes longer than these few draws.
_draw_held_action, _draw_option = in_python(draw_held_action), in_python(draw_option)
_greedy_option, _left_after_step = in_python(greedy_option), in_python(left_after_step)


class Streams(NamedTuple):
    """A run's random streams: for the agent, for training episodes, and for greedy episodes."""

    agent: np.random.Generator
    environment: np.random.Generator
    evaluation: np.random.Generator


@compiled
def run_episodes(
    model: FlatModel,
    tables: Tables,
    rule: LearningRule,
    streams: Streams,
    epsilons: Floats,
    step_limit: int,
    log: EpisodeOutcomes,
) -> None:
    """Run one episode per entry of ``epsilons``, optionally with greedy ones; fills the tables and ``log``.

    It is one function, because passing a dozen arrays to another would take longer than a step.
    """
    q, skip_values, carry = tables
    agent, environment, evaluation = streams
    alpha, gamma, updates_per_step = rule.alpha, rule.powers[1], rule.updates_per_step
    owed = carry[0]
    durations, powers, longest = rule.durations, rule.powers, len(rule.powers) - 1
    persistences, places = rule.persistences, rule.places
    states, rewards = np.zeros(longest + 1, dtype=np.int64), np.zeros(longest)
    for episode in range(len(epsilons)):
        epsilon, state = epsilons[episode], first_state(model, environment)
        total, steps, decisions = 0.0, 0, 0
        ended = False
        while not ended:
            if len(durations) > 0:
                action, left, exploratory = draw_held_action(q[state], epsilon, durations, persistences, agent)
            else:
                action, left, exploratory = draw_option(q[state], epsilon, persistences, agent)
            if len(skip_values) > 0:  # the skip has its own coin
                _, left, _ = draw_option(skip_values[state, action : action + 1], epsilon, persistences, agent)
            decisions += 1
            margin = np.inf if exploratory else rule.margin
            kappa, terminated = 0, False
            states[0] = state
            while left > 0:
                outcome = draw_outcome(model, state, action, environment)
                reward, following = model.rewards[outcome], model.successors[outcome]
                terminated = model.terminal[following]
                owed += updates_per_step
                while owed >= 1.0:
                    learn_one_step(q, state, action, reward, following, terminated, alpha, gamma)
                    owed -= 1.0
                state = following
                total += reward
                rewards[kappa] = reward
                kappa += 1
                states[kappa] = state
                ended = terminated or steps + kappa >= step_limit
                left = left_after_step(left, ended)
                if left > 0 and margin < np.inf and is_cut(q[state], action, places[left], margin):
                    left = 0
            steps += kappa
            if updates_per_step == 0.0:
                learn_all_persistences(q, HeldOption(states, action, rewards, kappa, terminated), rule)
            if len(skip_values) > 0:
                option = HeldOption(states, action, rewards, kappa, terminated)
                learn_skips(skip_values, q, option, alpha, powers, rule.pad_terminal)
        log.training_returns[episode] = total
        log.steps[episode] = steps
        log.decisions[episode] = decisions
        if len(log.greedy_returns) > 0:
            shown = greedy_episode(model, tables, rule, step_limit, evaluation)
            log.greedy_returns[episode], log.greedy_steps[episode], log.greedy_decisions[episode] = shown
    carry[0] = owed


@compiled
def greedy_episode(
    model: FlatModel, tables: Tables, rule: LearningRule, step_limit: int, evaluation: np.random.Generator
) -> tuple[float, int, int]:
    """Return, steps and decisions of an episode of greedy options."""
    q, skip_values, _ = tables
    persistences = rule.persistences
    state = first_state(model, evaluation)
    total, steps, decisions = 0.0, 0, 0
    ended = False
    while not ended:
        action, left = greedy_option(q[state], rule.tolerance, rule.ties_at_random, persistences, evaluation)
        if len(skip_values) > 0:
            _, left = greedy_option(skip_values[state, action : action + 1], 0.0, False, persistences, evaluation)
        decisions += 1
        while left > 0:
            outcome = draw_outcome(model, state, action, evaluation)
            state = model.successors[outcome]
            total += model.rewards[outcome]
            steps += 1
            ended = model.terminal[state] or steps >= step_limit
            left = left_after_step(left, ended)
            if left > 0 and rule.margin < np.inf and is_cut(q[state], action, rule.places[left], rule.margin):
                left = 0
    return total, steps, decisions


@compiled
def is_cut(values: Floats, action: int, place: int, margin: float) -> bool:
    """Whether to drop a greedy option, given values (A, K) and the position ``place`` of what is left of it."""
    return is_interrupted(best_value(values, values.shape[1]), values[action, place], margin)  # type: ignore[no-any-return]


def run_in_python(
    steps: Steps,
    tables: Tables,
    rule: LearningRule,
    state: RunState,
    epsilons: Floats,
    step_limit: int,
    log: EpisodeOutcomes,
    teach: Callable[[HeldOption], None],
) -> None:
    """Run one episode per entry of ``epsilons``, optionally with greedy ones; fills the tables and ``log``.

    ``teach`` changes the tables by an option that is over.
    """
    for row, epsilon in enumerate(epsilons):
        episode = state.episode + row
        first = steps.begin(episode, "training")
        trained = _train(steps, tables, rule, first, epsilon, step_limit, state.agent, teach)
        log.training_returns[row], log.steps[row], log.decisions[row] = trained
        if len(log.greedy_returns) > 0:
            first = steps.begin(episode, "evaluation")
            shown = _evaluate(steps, tables, rule, first, step_limit, state.evaluation)
            log.greedy_returns[row], log.greedy_steps[row], log.greedy_decisions[row] = shown


def _train(
    steps: Steps,
    tables: Tables,
    rule: LearningRule,
    state: int,
    epsilon: float,
    step_limit: int,
    agent: np.random.Generator,
    teach: Callable[[HeldOption], None],
) -> tuple[float, int, int]:
    total, taken, decisions = 0.0, 0, 0
    ended = False
    while not ended:
        action, left, exploratory = _decide(tables, rule, state, epsilon, agent)
        decisions += 1
        states, rewards, terminated = [state], [], False
        while left > 0:
            state, reward, terminated, truncated = steps.step(action)
            taken += 1
            total += reward
            states.append(state)
            rewards.append(reward)
            ended = terminated or truncated or taken >= step_limit
            left = _left_after_step(left, ended)
            if left > 0 and not exploratory and _is_cut(tables, rule, state, action, left):
                left = 0
        teach(HeldOption(np.array(states), action, np.array(rewards), len(rewards), terminated))
    return total, taken, decisions


def _evaluate(
    steps: Steps, tables: Tables, rule: LearningRule, state: int, step_limit: int, evaluation: np.random.Generator
) -> tuple[float, int, int]:
    total, taken, decisions = 0.0, 0, 0
    ended = False
    while not ended:
        action, left = _decide_greedily(tables, rule, state, evaluation)
        decisions += 1
        while left > 0:
            state, reward, terminated, truncated = steps.step(action)
            taken += 1
            total += reward
            ended = terminated or truncated or taken >= step_limit
            left = _left_after_step(left, ended)
            if left > 0 and _is_cut(tables, rule, state, action, left):
                left = 0
    return total, taken, decisions


def _decide(
    tables: Tables, rule: LearningRule, state: int, epsilon: float, agent: np.random.Generator
) -> tuple[int, int, bool]:
    """The training decision, as in the compiled loop."""
    if len(rule.durations) > 0:
        return _draw_held_action(tables.q[state], epsilon, rule.durations, rule.persistences, agent)
    action, k, exploratory = _draw_option(tables.q[state], epsilon, rule.persistences, agent)
    if len(tables.skip_values) > 0:  # the skip has its own coin
        skips = tables.skip_values[state, action : action + 1]
        _, k, _ = _draw_option(skips, epsilon, rule.persistences, agent)
    return action, k, exploratory


def _decide_greedily(
    tables: Tables, rule: LearningRule, state: int, evaluation: np.random.Generator
) -> tuple[int, int]:
    """The greedy decision, as in the compiled loop."""
    values, persistences = tables.q[state], rule.persistences
    action, k = _greedy_option(values, rule.tolerance, rule.ties_at_random, persistences, evaluation)
    if len(tables.skip_values) > 0:
        skips = tables.skip_values[state, action : action + 1]
        _, k = _greedy_option(skips, 0.0, False, persistences, evaluation)
    return action, k


def _is_cut(tables: Tables, rule: LearningRule, state: int, action: int, left: int) -> bool:
    return rule.margin < np.inf and is_cut(tables.q[state], action, rule.places[left], rule.margin)
