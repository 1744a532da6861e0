"""Q-learning, with one or more updates per step: what the other learners of this package are measured against."""

from __future__ import annotations

from collections.abc import Mapping
from typing import final

import numpy as np
from numpy.typing import NDArray

from holdfast.core.checks import check_real
from holdfast.core.compiling import compiled, in_python
from holdfast.core.schedules import Schedule
from holdfast.tabular.compiled import best_value, bootstrapped_return, draw_option, greedy_option, toward
from holdfast.tabular.learner import PAPER_EPSILON, TabularLearner
from holdfast.tabular.option_loop import greedy_episode
from holdfast.tabular.policy import GreedyPolicy, Policy
from holdfast.tabular.run_state import EpisodeOutcomes, RunState
from holdfast.tabular.simulator import FlatModel, draw_outcome, first_state

__all__ = ["QLearning", "learn_one_step", "run_q_learning"]

Floats = NDArray[np.float64]
Integers = NDArray[np.int64]

MOST_UPDATES = 1e6
"""Updates per step beyond which there is a mistake: the loop would seem to hang."""


@compiled
def learn_one_step(
    q: Floats,
    state: int,
    action: int,
    reward: float,
    following: int,
    terminated: bool,
    alpha: float,
    gamma: float,
) -> None:
    """Q(s,a) ← (1 − α) Q(s,a) + α [r + γ max Q(s',·)], in a table (S, A, 1)."""
    target = bootstrapped_return(reward, gamma, best_value(q[following], 1), terminated)
    q[state, action, 0] = toward(q[state, action, 0], target, alpha)


@compiled
def learn_repeatedly(
    q: Floats,
    carry: Floats,
    state: int,
    action: int,
    reward: float,
    following: int,
    terminated: bool,
    alpha: float,
    gamma: float,
    updates_per_step: float,
) -> None:
    """As many updates with one step as are due; a fraction is carried over to the next step."""
    carry[0] += updates_per_step
    while carry[0] >= 1.0:
        learn_one_step(q, state, action, reward, following, terminated, alpha, gamma)
        carry[0] -= 1.0


@compiled
def run_q_learning(
    model: FlatModel,
    q: Floats,
    carry: Floats,
    alpha: float,
    gamma: float,
    updates_per_step: float,
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
        total, steps = 0.0, 0
        terminated = False
        while not terminated and steps < step_limit:
            action, _, _ = draw_option(q[state], epsilons[episode], agent)
            outcome = draw_outcome(model, state, action, environment)
            reward, following = model.rewards[outcome], model.successors[outcome]
            terminated = model.terminal[following]
            learn_repeatedly(
                q, carry, state, action, reward, following, terminated, alpha, gamma, updates_per_step
            )
            state = following
            total += reward
            steps += 1
        log.training_returns[episode] = total
        log.steps[episode] = steps
        log.decisions[episode] = steps
        if len(log.greedy_returns) > 0:
            shown = greedy_episode(model, q, np.inf, -1.0, ties_at_random, step_limit, evaluation)
            log.greedy_returns[episode], log.greedy_steps[episode], log.greedy_decisions[episode] = shown


@final
class QLearning(TabularLearner):
    """Q-learning: Q(s,a), a decision at every step.

    Args:
        alpha: Learning rate α in (0, 1].
        gamma: Discount factor γ in [0, 1].
        epsilon: Exploration rate: a number, or a schedule over episodes.
        initial_value: Mean of the initial values.
        initial_std: Their standard deviation.
        step_limit: Steps after which an episode is truncated; None for the environment's own limit, else 100.
        greedy_ties: In greedy episodes, whether the ``"first"`` of equals is taken or one at ``"random"``.
        updates_per_step: How often each step is learned from, 1 to a million; fractions are carried over.
            ``equal_updates_per_step`` gives the number that PerQ-learning makes if κ were uniform.
    """

    def __init__(
        self,
        *,
        alpha: float = 0.1,
        gamma: float = 0.99,
        epsilon: float | Schedule = PAPER_EPSILON,
        initial_value: float = 0.0,
        initial_std: float = 0.0,
        step_limit: int | None = None,
        greedy_ties: str = "first",
        updates_per_step: float = 1.0,
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
        self.updates_per_step = check_real("updates_per_step", updates_per_step, 1.0, MOST_UPDATES)

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
        run_q_learning(
            model,
            state.tables["q"],
            state.carry,
            self.alpha,
            self.gamma,
            self.updates_per_step,
            self.ties_at_random,
            epsilons,
            step_limit,
            state.agent,
            state.environment,
            state.evaluation,
            log,
        )

    def draw_option(self, state: RunState, position: int, epsilon: float) -> tuple[int, int, bool]:
        """ε-greedy over the actions, each for one step."""
        return in_python(draw_option)(state.tables["q"][position], epsilon, state.agent)

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
        """One update, or several."""
        learn_repeatedly(
            state.tables["q"],
            state.carry,
            position,
            action,
            reward,
            following,
            terminated,
            self.alpha,
            self.gamma,
            self.updates_per_step,
        )

    def learn_option(
        self, state: RunState, states: Integers, action: int, rewards: Floats, terminated: bool
    ) -> None:
        """Nothing: its steps have been learned from."""

    def policy_of(self, tables: Mapping[str, Floats]) -> Policy:
        """Greedy over the actions."""
        return GreedyPolicy(tables["q"])
