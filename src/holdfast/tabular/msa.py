"""MSA Q-learning: every sub-transition of a held action updates the value of its own length, and nothing else.

This is PerQ-learning without bootstrapping along the held action. As the paper prints it, lengths beyond the end
of an episode are never learned; ``pad_terminal`` learns them too.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import final

import numpy as np
from numpy.typing import NDArray

from holdfast.core.checks import check_integer
from holdfast.core.compiling import compiled, in_python
from holdfast.core.history import discounts
from holdfast.core.schedules import Schedule
from holdfast.tabular.compiled import (
    best_value,
    bootstrapped_return,
    draw_option,
    greedy_option,
    persistence_index,
    toward,
)
from holdfast.tabular.learner import PAPER_EPSILON, TabularLearner
from holdfast.tabular.option_loop import greedy_episode, hold
from holdfast.tabular.policy import GreedyPolicy, Policy
from holdfast.tabular.run_state import EpisodeOutcomes, RunState
from holdfast.tabular.simulator import FlatModel, first_state

__all__ = ["MSAQLearning", "learn_own_lengths", "run_msa"]

Floats = NDArray[np.float64]
Integers = NDArray[np.int64]


@compiled
def learn_own_lengths(
    q: Floats,
    states: Integers,
    action: int,
    rewards: Floats,
    kappa: int,
    terminated: bool,
    alpha: float,
    powers: Floats,
    pad_terminal: bool,
) -> None:
    """Update ``q`` (S, A, K) in place with every sub-transition of one partial history, last end first.

    With ``pad_terminal`` a sub-transition that ends the episode stands for all longer ones too.
    """
    k_max = q.shape[2]
    for j in range(kappa, 0, -1):
        end = states[j]
        ends_episode = terminated and j == kappa
        reward = 0.0
        for i in range(j - 1, -1, -1):
            start, k = states[i], j - i
            reward = rewards[i] + powers[1] * reward
            target = bootstrapped_return(reward, powers[k], best_value(q[end], k_max), ends_episode)
            longest = k_max if pad_terminal and ends_episode else k
            for length in range(k, longest + 1):
                at = persistence_index(length)
                q[start, action, at] = toward(q[start, action, at], target, alpha)


@compiled
def run_msa(
    model: FlatModel,
    q: Floats,
    alpha: float,
    powers: Floats,
    pad_terminal: bool,
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
            action, k, _ = draw_option(q[states[0]], epsilons[episode], agent)
            decisions += 1
            kappa, terminated = hold(model, q, action, k, np.inf, step_limit - steps, states, rewards, environment)
            steps += kappa
            for i in range(kappa):
                total += rewards[i]
            learn_own_lengths(q, states, action, rewards, kappa, terminated, alpha, powers, pad_terminal)
            states[0] = states[kappa]
        log.training_returns[episode] = total
        log.steps[episode] = steps
        log.decisions[episode] = decisions
        if len(log.greedy_returns) > 0:
            shown = greedy_episode(model, q, np.inf, -1.0, ties_at_random, step_limit, evaluation)
            log.greedy_returns[episode], log.greedy_steps[episode], log.greedy_decisions[episode] = shown


@final
class MSAQLearning(TabularLearner):
    """Q-learning over options with multi-step sub-transitions, the ablation of PerQ-learning.

    Args:
        k_max: Largest persistence.
        alpha: Learning rate α in (0, 1].
        gamma: Discount factor γ in [0, 1].
        epsilon: Exploration rate: a number, or a schedule over episodes. One coin per option.
        initial_value: Mean of the initial values.
        initial_std: Their standard deviation.
        step_limit: Steps after which an episode is truncated; None for the environment's own limit, else 100.
        greedy_ties: In greedy episodes, whether the ``"first"`` of equals is taken or one at ``"random"``.
        pad_terminal: Whether a hold that ends the episode also teaches all longer ones, which end it alike.
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
        pad_terminal: bool = False,
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
        self.pad_terminal = bool(pad_terminal)
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
        run_msa(
            model,
            state.tables["q"],
            self.alpha,
            self._powers,
            self.pad_terminal,
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
        """The best option."""
        values = state.tables["q"][position]
        return in_python(greedy_option)(values, -1.0, self.ties_at_random, state.evaluation)

    def interrupts(self, state: RunState, position: int, action: int, left: int) -> bool:
        """Never."""
        return False

    def learn_step(
        self, state: RunState, position: int, action: int, reward: float, following: int, terminated: bool
    ) -> None:
        """Nothing: the option is learned from when it is over."""

    def learn_option(
        self, state: RunState, states: Integers, action: int, rewards: Floats, terminated: bool
    ) -> None:
        """Every sub-transition updates its own length."""
        learn_own_lengths(
            state.tables["q"],
            states,
            action,
            rewards,
            len(rewards),
            terminated,
            self.alpha,
            self._powers,
            self.pad_terminal,
        )

    def policy_of(self, tables: Mapping[str, Floats]) -> Policy:
        """Greedy over all options."""
        return GreedyPolicy(tables["q"])
