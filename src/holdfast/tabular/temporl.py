"""TempoRL: choose an action by its value, then for how long to hold it by a second table of skip values.

Q(s,a) is learned by one-step Q-learning while stepping. When the skip is over, every sub-transition of it, from
s_i to s_{i+l}, updates J(s_i, l | a) toward Σ_{n<l} γ^n r_{i+n+1} + γ^l max_a' Q(s_{i+l}, a'), longest first.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import final

import numpy as np
from numpy.typing import NDArray

from holdfast.core import history as histories
from holdfast.core.checks import check_integer
from holdfast.core.compiling import compiled, in_python
from holdfast.core.history import discounts
from holdfast.core.schedules import Schedule
from holdfast.tabular.compiled import (
    best_value,
    bootstrapped_return,
    draw_option,
    greedy_option,
    left_after_step,
    persistence_index,
    toward,
)
from holdfast.tabular.learner import PAPER_EPSILON, TabularLearner
from holdfast.tabular.policy import Policy, SkipPolicy
from holdfast.tabular.q_learning import learn_one_step
from holdfast.tabular.run_state import EpisodeOutcomes, RunState
from holdfast.tabular.simulator import FlatModel, draw_outcome, first_state

__all__ = ["TempoRLQLearning", "draw_skip", "greedy_skip", "learn_skips", "run_temporl"]

Floats = NDArray[np.float64]
Integers = NDArray[np.int64]

k_step_return = compiled(histories.k_step_return)


@compiled
def draw_skip(
    q: Floats, skip_values: Floats, state: int, epsilon: float, agent: np.random.Generator
) -> tuple[int, int, bool]:
    """An action and a skip, each with its own coin; equals are drawn at random."""
    action, _, exploratory_action = draw_option(q[state], epsilon, agent)
    _, k, exploratory_skip = draw_option(skip_values[state, action : action + 1], epsilon, agent)
    return action, k, exploratory_action or exploratory_skip


@compiled
def greedy_skip(
    q: Floats, skip_values: Floats, state: int, ties_at_random: bool, evaluation: np.random.Generator
) -> tuple[int, int]:
    """The best action, the first of equals or one drawn at random, and its best skip, the longest of equals."""
    action, _ = greedy_option(q[state], -1.0, ties_at_random, evaluation)
    _, k = greedy_option(skip_values[state, action : action + 1], 0.0, False, evaluation)
    return action, k


@compiled
def learn_skips(
    skip_values: Floats,
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
    """Update ``skip_values`` (S, A, K) in place with every sub-transition of one skip.

    With ``pad_terminal`` a sub-transition that ends the episode stands for all longer ones too.
    """
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


@compiled
def run_temporl(
    model: FlatModel,
    q: Floats,
    skip_values: Floats,
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
    """One episode per entry of ``epsilons``, with a greedy one after each if asked; fills tables and ``log``."""
    k_max = skip_values.shape[2]
    states, rewards = np.zeros(k_max + 1, dtype=np.int64), np.zeros(k_max)
    for episode in range(len(epsilons)):
        state = first_state(model, environment)
        total, steps, decisions = 0.0, 0, 0
        ended = False
        while not ended:
            action, left, _ = draw_skip(q, skip_values, state, epsilons[episode], agent)
            decisions += 1
            kappa, terminated = 0, False
            states[0] = state
            while left > 0:
                outcome = draw_outcome(model, state, action, environment)
                reward, following = model.rewards[outcome], model.successors[outcome]
                terminated = model.terminal[following]
                learn_one_step(q, state, action, reward, following, terminated, alpha, powers[1])
                state = following
                total += reward
                steps += 1
                rewards[kappa] = reward
                kappa += 1
                states[kappa] = state
                ended = terminated or steps >= step_limit
                left = left_after_step(left, ended)
            learn_skips(skip_values, q, states, action, rewards, kappa, terminated, alpha, powers, pad_terminal)
        log.training_returns[episode] = total
        log.steps[episode] = steps
        log.decisions[episode] = decisions
        if len(log.greedy_returns) > 0:
            shown = _greedy_episode(model, q, skip_values, ties_at_random, step_limit, evaluation)
            log.greedy_returns[episode], log.greedy_steps[episode], log.greedy_decisions[episode] = shown


@compiled
def _greedy_episode(
    model: FlatModel,
    q: Floats,
    skip_values: Floats,
    ties_at_random: bool,
    step_limit: int,
    evaluation: np.random.Generator,
) -> tuple[float, int, int]:
    state = first_state(model, evaluation)
    total, steps, decisions = 0.0, 0, 0
    ended = False
    while not ended:
        action, left = greedy_skip(q, skip_values, state, ties_at_random, evaluation)
        decisions += 1
        while left > 0:
            outcome = draw_outcome(model, state, action, evaluation)
            state = model.successors[outcome]
            total += model.rewards[outcome]
            steps += 1
            ended = model.terminal[state] or steps >= step_limit
            left = left_after_step(left, ended)
    return total, steps, decisions


@final
class TempoRLQLearning(TabularLearner):
    """TempoRL's tabular learner: action values Q(s,a) and skip values J(s,k|a).

    Args:
        k_max: Longest skip.
        alpha: Learning rate α in (0, 1], of both tables.
        gamma: Discount factor γ in [0, 1].
        epsilon: Exploration rate: a number, or a schedule over episodes. One coin for the action, one for the
            skip.
        initial_value: Mean of the initial values.
        initial_std: Their standard deviation.
        step_limit: Steps after which an episode is truncated; None for the environment's own limit, else 100.
        greedy_ties: In greedy episodes, whether the ``"first"`` of equals is taken or one at ``"random"``;
            of equal skips it is always the longest.
        pad_terminal: Whether a skip that ends the episode also teaches all longer ones, which end it alike.
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
        pad_terminal: bool = True,
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
        """Actions for one step, and skips."""
        return {"q": 1, "skip_values": self.k_max}

    def longest_history(self) -> int | None:
        """k_max."""
        return self.k_max

    def run_compiled(
        self, model: FlatModel, state: RunState, epsilons: Floats, step_limit: int, log: EpisodeOutcomes
    ) -> None:
        """Advance ``state`` in place by one episode per entry of ``epsilons``, in compiled code."""
        run_temporl(
            model,
            state.tables["q"],
            state.tables["skip_values"],
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
        """An action and a skip, each with its own coin."""
        q, skip_values = state.tables["q"], state.tables["skip_values"]
        draw = in_python(draw_option)
        action, _, exploratory_action = draw(q[position], epsilon, state.agent)
        _, k, exploratory_skip = draw(skip_values[position, action : action + 1], epsilon, state.agent)
        return action, k, exploratory_action or exploratory_skip

    def greedy_option(self, state: RunState, position: int) -> tuple[int, int]:
        """The best action and its best skip, the longest of equals."""
        q, skip_values = state.tables["q"], state.tables["skip_values"]
        choose = in_python(greedy_option)
        action, _ = choose(q[position], -1.0, self.ties_at_random, state.evaluation)
        _, k = choose(skip_values[position, action : action + 1], 0.0, False, state.evaluation)
        return action, k

    def interrupts(self, state: RunState, position: int, action: int, left: int) -> bool:
        """Never."""
        return False

    def learn_step(
        self, state: RunState, position: int, action: int, reward: float, following: int, terminated: bool
    ) -> None:
        """One update of the action values."""
        learn_one_step(state.tables["q"], position, action, reward, following, terminated, self.alpha, self.gamma)

    def learn_option(
        self, state: RunState, states: Integers, action: int, rewards: Floats, terminated: bool
    ) -> None:
        """Every sub-transition updates the skip value of its length."""
        learn_skips(
            state.tables["skip_values"],
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
        """Greedy over actions, then over skips."""
        return SkipPolicy(tables["q"], tables["skip_values"])
