"""PerQ-learning: whatever time an action was held for, learn the values of holding it for every time.

The update of a partial history s_t, a, r_{t+1}, ..., s_{t+κ} visits its sub-transitions s_{t+i} → s_{t+j}, last
end first, and for each of them all persistences it informs. With k = j − i and R the discounted reward between,

    Q(s_{t+i}, a, k)     ← (1 − α) Q + α [R + γ^k V(s_{t+j})]
    Q(s_{t+i}, a, k + d) ← (1 − α) Q + α [R + γ^k Q(s_{t+j}, a, d)],   d = 1..K_max − k

in place and in this order.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import final

import numpy as np
from numpy.typing import NDArray

from holdfast.core.checks import check_choice, check_integer, check_real
from holdfast.core.compiling import compiled, in_python
from holdfast.core.history import discounts
from holdfast.core.schedules import Schedule
from holdfast.core.targets import STATE_VALUES
from holdfast.tabular.compiled import (
    best_value,
    bootstrapped_return,
    draw_option,
    greedy_option,
    persistence_index,
    toward,
)
from holdfast.tabular.learner import PAPER_EPSILON, TabularLearner
from holdfast.tabular.option_loop import greedy_episode, hold, is_cut
from holdfast.tabular.policy import GreedyPolicy, Policy, check_margin
from holdfast.tabular.run_state import EpisodeOutcomes, RunState
from holdfast.tabular.simulator import FlatModel, first_state

__all__ = ["PerQLearning", "learn_all_persistences", "run_perq"]

Floats = NDArray[np.float64]
Integers = NDArray[np.int64]


@compiled
def learn_all_persistences(
    q: Floats,
    states: Integers,
    action: int,
    rewards: Floats,
    kappa: int,
    terminated: bool,
    alpha: float,
    powers: Floats,
    n_valued: int,
) -> None:
    """The all-persistence update of ``q`` (S, A, K) with one partial history.

    Args:
        q: Changed in place.
        states: s_t..s_{t+κ} at the front.
        action: The held action.
        rewards: r_{t+1}..r_{t+κ} at the front.
        kappa: κ.
        terminated: Whether s_{t+κ} is terminal.
        alpha: Learning rate.
        powers: γ^0..γ^K.
        n_valued: V(s) is the largest value among the first ``n_valued`` persistences.
    """
    k_max = q.shape[2]
    for j in range(kappa, 0, -1):
        end = states[j]
        ends_episode = terminated and j == kappa
        end_value = best_value(q[end], n_valued)
        reward = 0.0
        for i in range(j - 1, -1, -1):
            start, k = states[i], j - i
            reward = rewards[i] + powers[1] * reward
            target = bootstrapped_return(reward, powers[k], end_value, ends_episode)
            at = persistence_index(k)
            q[start, action, at] = toward(q[start, action, at], target, alpha)
            for d in range(1, k_max - k + 1):
                held_value = q[end, action, persistence_index(d)]
                target = bootstrapped_return(reward, powers[k], held_value, ends_episode)
                at = persistence_index(k + d)
                q[start, action, at] = toward(q[start, action, at], target, alpha)
            if start == end:  # bumping into a wall: what was just learned is the end's value too
                end_value = best_value(q[end], n_valued)


@compiled
def run_perq(
    model: FlatModel,
    q: Floats,
    alpha: float,
    powers: Floats,
    n_valued: int,
    margin: float,
    tolerance: float,
    ties_at_random: bool,
    epsilons: Floats,
    step_limit: int,
    agent: np.random.Generator,
    environment: np.random.Generator,
    evaluation: np.random.Generator,
    log: EpisodeOutcomes,
) -> None:
    """One episode per entry of ``epsilons``, with a greedy one after each if asked; fills ``q`` and ``log``."""
    k_max = q.shape[2]
    states, rewards = np.zeros(k_max + 1, dtype=np.int64), np.zeros(k_max)
    for episode in range(len(epsilons)):
        states[0] = first_state(model, environment)
        total, steps, decisions = 0.0, 0, 0
        terminated = False
        while not terminated and steps < step_limit:
            action, k, exploratory = draw_option(q[states[0]], epsilons[episode], agent)
            decisions += 1
            own_margin = np.inf if exploratory else margin
            kappa, terminated = hold(
                model, q, action, k, own_margin, step_limit - steps, states, rewards, environment
            )
            steps += kappa
            for i in range(kappa):
                total += rewards[i]
            learn_all_persistences(q, states, action, rewards, kappa, terminated, alpha, powers, n_valued)
            states[0] = states[kappa]
        log.training_returns[episode] = total
        log.steps[episode] = steps
        log.decisions[episode] = decisions
        if len(log.greedy_returns) > 0:
            shown = greedy_episode(model, q, margin, tolerance, ties_at_random, step_limit, evaluation)
            log.greedy_returns[episode], log.greedy_steps[episode], log.greedy_decisions[episode] = shown


@final
class PerQLearning(TabularLearner):
    """Persistent Q-learning: Q(s,a,k) for every action a and every time k it may be held.

    Paper: Algorithm alg:PerQ

    Args:
        k_max: Largest persistence; with 1 this is Q-learning.
        alpha: Learning rate α in (0, 1].
        gamma: Discount factor γ in [0, 1].
        epsilon: Exploration rate: a number, or a schedule over episodes. One coin per option.
        initial_value: Mean of the initial values.
        initial_std: Their standard deviation.
        step_limit: Steps after which an episode is truncated; None for the environment's own limit, else 100.
        greedy_ties: In greedy episodes, whether the ``"first"`` of equals is taken or one at ``"random"``.
        target_value: V(s'), over all ``"options"`` or over ``"primitive"`` actions alone.
        interrupt_margin: Cut a greedy option where another option is better than holding on by more than this;
            None carries every option through. Exploratory options are never cut.
        decision_tolerance: In greedy episodes and in ``act``, hold the best action as long as its value stays
            this close to the best; None takes the best option, the first of equals.
    """

    def __init__(
        self,
        k_max: int = 8,
        *,
        alpha: float = 0.1,
        gamma: float = 0.99,
        epsilon: float | Schedule = PAPER_EPSILON,
        initial_value: float = 0.0,
        initial_std: float = 0.0,
        step_limit: int | None = None,
        greedy_ties: str = "first",
        target_value: str = "options",
        interrupt_margin: float | None = None,
        decision_tolerance: float | None = None,
    ) -> None:
        super().__init__(
            alpha=alpha,
            gamma=gamma,
            epsilon=epsilon,
            initial_value=initial_value,
            initial_std=initial_std,
            step_limit=step_limit,
            greedy_ties=greedy_ties,
        )
        self.k_max = check_integer("k_max", k_max)
        self.target_value = check_choice("target_value", target_value, STATE_VALUES)
        self.interrupt_margin = _check_allowance("interrupt_margin", interrupt_margin)
        self.decision_tolerance = _check_allowance("decision_tolerance", decision_tolerance)
        check_margin(self.interrupt_margin, self.decision_tolerance)
        self._powers = discounts(self.gamma, self.k_max)

    def table_depths(self) -> Mapping[str, int]:
        """One table with all persistences."""
        return {"q": self.k_max}

    def longest_history(self) -> int | None:
        """k_max."""
        return self.k_max

    def run_compiled(
        self, model: FlatModel, state: RunState, epsilons: Floats, step_limit: int, log: EpisodeOutcomes
    ) -> None:
        """Advance ``state`` in place by one episode per entry of ``epsilons``, in compiled code."""
        run_perq(
            model,
            state.tables["q"],
            self.alpha,
            self._powers,
            self._n_valued,
            self._margin,
            self._tolerance,
            self.ties_at_random,
            epsilons,
            step_limit,
            state.agent,
            state.environment,
            state.evaluation,
            log,
        )

    def draw_option(self, state: RunState, position: int, epsilon: float) -> tuple[int, int, bool]:
        """ε-greedy over all options."""
        return in_python(draw_option)(state.tables["q"][position], epsilon, state.agent)

    def greedy_option(self, state: RunState, position: int) -> tuple[int, int]:
        """The best option, held longer as far as the tolerance allows."""
        values = state.tables["q"][position]
        return in_python(greedy_option)(values, self._tolerance, self.ties_at_random, state.evaluation)

    def interrupts(self, state: RunState, position: int, action: int, left: int) -> bool:
        """Whether another option is better than holding on by more than the margin."""
        return is_cut(state.tables["q"][position], action, left, self._margin)

    def learn_step(
        self, state: RunState, position: int, action: int, reward: float, following: int, terminated: bool
    ) -> None:
        """Nothing: PerQ-learning learns when the option is over."""

    def learn_option(
        self, state: RunState, states: Integers, action: int, rewards: Floats, terminated: bool
    ) -> None:
        """The all-persistence update."""
        learn_all_persistences(
            state.tables["q"],
            states,
            action,
            rewards,
            len(rewards),
            terminated,
            self.alpha,
            self._powers,
            self._n_valued,
        )

    def policy_of(self, tables: Mapping[str, Floats]) -> Policy:
        """Greedy over all options."""
        return GreedyPolicy(tables["q"], self.decision_tolerance, self.interrupt_margin)

    @property
    def _n_valued(self) -> int:
        return 1 if self.target_value == "primitive" else self.k_max

    @property
    def _margin(self) -> float:
        return math.inf if self.interrupt_margin is None else self.interrupt_margin

    @property
    def _tolerance(self) -> float:
        return -1.0 if self.decision_tolerance is None else self.decision_tolerance


def _check_allowance(name: str, value: float | None) -> float | None:
    return None if value is None else check_real(name, value, 0.0)
