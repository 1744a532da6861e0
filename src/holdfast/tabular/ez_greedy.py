"""εz-greedy Q-learning: plain Q-learning whose exploratory actions are held for a random time."""

from __future__ import annotations

from collections.abc import Mapping
from typing import final

import numpy as np
from numpy.typing import NDArray

from holdfast.core.checks import check_choice, check_integer, check_real
from holdfast.core.compiling import compiled, in_python
from holdfast.core.durations import DURATIONS, duration_distribution
from holdfast.core.schedules import Schedule
from holdfast.tabular.compiled import (
    count_best,
    duration_at,
    greedy_option,
    is_exploratory,
    left_after_step,
    nth_best,
    scaled_index,
)
from holdfast.tabular.learner import PAPER_EPSILON, TabularLearner
from holdfast.tabular.option_loop import greedy_episode
from holdfast.tabular.policy import GreedyPolicy, Policy
from holdfast.tabular.q_learning import learn_one_step
from holdfast.tabular.run_state import EpisodeOutcomes, RunState
from holdfast.tabular.simulator import FlatModel, draw_outcome, first_state

__all__ = ["EZGreedyQLearning", "draw_ez_option", "run_ez_greedy"]

Floats = NDArray[np.float64]
Integers = NDArray[np.int64]


@compiled
def draw_ez_option(
    values: Floats, epsilon: float, cumulative: Floats, agent: np.random.Generator
) -> tuple[int, int, bool]:
    """The best action of (A, 1) for one step, or with probability ε a random one for a random duration."""
    exploratory = is_exploratory(agent.random(), epsilon)
    if not exploratory:
        equals = count_best(values)
        return nth_best(values, scaled_index(agent.random(), equals) if equals > 1 else 0), 1, exploratory
    action = scaled_index(agent.random(), values.shape[0])
    draw, position = agent.random(), 0
    while position < len(cumulative) - 1 and draw >= cumulative[position]:
        position += 1
    return action, duration_at(position), exploratory


@compiled
def run_ez_greedy(
    model: FlatModel,
    q: Floats,
    alpha: float,
    gamma: float,
    cumulative: Floats,
    ties_at_random: bool,
    epsilons: Floats,
    step_limit: int,
    agent: np.random.Generator,
    environment: np.random.Generator,
    evaluation: np.random.Generator,
    log: EpisodeOutcomes,
) -> None:
    """One episode per entry of ``epsilons``, with a greedy one after each if asked; fills ``q`` and ``log``."""
    for episode in range(len(epsilons)):
        state = first_state(model, environment)
        total, steps, decisions = 0.0, 0, 0
        ended = False
        while not ended:
            action, left, _ = draw_ez_option(q[state], epsilons[episode], cumulative, agent)
            decisions += 1
            while left > 0:
                outcome = draw_outcome(model, state, action, environment)
                reward, following = model.rewards[outcome], model.successors[outcome]
                terminated = model.terminal[following]
                learn_one_step(q, state, action, reward, following, terminated, alpha, gamma)
                state = following
                total += reward
                steps += 1
                ended = terminated or steps >= step_limit
                left = left_after_step(left, ended)
        log.training_returns[episode] = total
        log.steps[episode] = steps
        log.decisions[episode] = decisions
        if len(log.greedy_returns) > 0:
            shown = greedy_episode(model, q, np.inf, -1.0, ties_at_random, step_limit, evaluation)
            log.greedy_returns[episode], log.greedy_steps[episode], log.greedy_decisions[episode] = shown


@final
class EZGreedyQLearning(TabularLearner):
    """Q-learning with temporally extended exploration: a random action is held for a random duration.

    Args:
        k_max: Longest duration.
        alpha: Learning rate α in (0, 1].
        gamma: Discount factor γ in [0, 1].
        epsilon: Exploration rate: a number, or a schedule over episodes. One coin where nothing is held.
        initial_value: Mean of the initial values.
        initial_std: Their standard deviation.
        step_limit: Steps after which an episode is truncated; None for the environment's own limit, else 100.
        greedy_ties: In greedy episodes, whether the ``"first"`` of equals is taken or one at ``"random"``.
        durations: ``"uniform"`` over 1..k_max, or ``"zeta"``: falling as k^−µ up to k_max.
        mu: µ above 0, for ``"zeta"``.
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
        durations: str = "uniform",
        mu: float = 2.0,
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
        self.durations = check_choice("durations", durations, DURATIONS)
        self.mu = check_real("mu", mu, 0.0, open_low=True)
        self._cumulative = np.cumsum(duration_distribution(self.durations, self.k_max, self.mu))

    def table_depths(self) -> Mapping[str, int]:
        """One table of primitive actions."""
        return {"q": 1}

    def longest_history(self) -> int | None:
        """Any: it learns step by step."""
        return None

    def run_compiled(
        self, model: FlatModel, state: RunState, epsilons: Floats, step_limit: int, log: EpisodeOutcomes
    ) -> None:
        """Advance ``state`` in place by one episode per entry of ``epsilons``, in compiled code."""
        run_ez_greedy(
            model,
            state.tables["q"],
            self.alpha,
            self.gamma,
            self._cumulative,
            self.ties_at_random,
            epsilons,
            step_limit,
            state.agent,
            state.environment,
            state.evaluation,
            log,
        )

    def draw_option(self, state: RunState, position: int, epsilon: float) -> tuple[int, int, bool]:
        """The best action for one step, or a random one for a random duration."""
        return in_python(draw_ez_option)(state.tables["q"][position], epsilon, self._cumulative, state.agent)

    def greedy_option(self, state: RunState, position: int) -> tuple[int, int]:
        """The best action, for one step."""
        values = state.tables["q"][position]
        return in_python(greedy_option)(values, -1.0, self.ties_at_random, state.evaluation)

    def interrupts(self, state: RunState, position: int, action: int, left: int) -> bool:
        """Never."""
        return False

    def learn_step(
        self, state: RunState, position: int, action: int, reward: float, following: int, terminated: bool
    ) -> None:
        """One update."""
        learn_one_step(state.tables["q"], position, action, reward, following, terminated, self.alpha, self.gamma)

    def learn_option(
        self, state: RunState, states: Integers, action: int, rewards: Floats, terminated: bool
    ) -> None:
        """Nothing: its steps have been learned from."""

    def policy_of(self, tables: Mapping[str, Floats]) -> Policy:
        """Greedy over the actions."""
        return GreedyPolicy(tables["q"])
