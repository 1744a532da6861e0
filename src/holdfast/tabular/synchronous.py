"""Learning without exploration: every iteration updates every value once, from a sample of its own length.

Each iteration draws one outcome of every (s,a) for each of the steps 1..k_max. Holding ``a`` from s leads through
the first step's outcome of (s,a), then the second step's outcome of (s',a), and so on. This gives a k-step sample
of every (s,a,k), made of k independent draws. Values are read from the table as it was before the iteration.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from holdfast.core.array_types import Floats, Integers
from holdfast.core.checks import check_choice, check_integer, check_real
from holdfast.core.history import discounts
from holdfast.core.options import duration_at, persistence_index
from holdfast.core.targets import bootstrapped_return, toward
from holdfast.mdp import TabularMDP, q_star_options
from holdfast.tabular.learner import check_seeds
from holdfast.tabular.run import stream
from holdfast.tabular.simulator import FlatModel, flat_model

__all__ = ["SYNCHRONOUS_RULES", "SynchronousResult", "learn_synchronously"]


SYNCHRONOUS_RULES = ("q", "combined", "all")
"""Q-learning; one optimality update of every (s,a,k); or also the bootstrap updates of all sub-transitions."""


@dataclass(frozen=True, slots=True, eq=False)
class SynchronousResult:
    """The error of the values, before the first iteration and after each.

    Attributes:
        errors: (seed, iteration + 1) largest error over live states, actions and persistences.
        errors_by_k: (seed, iteration + 1, K) the same for each persistence; K = 1 for ``"q"``.
        q: (seed, S, A, K) final values.
    """

    errors: Floats
    errors_by_k: Floats
    q: Floats


def learn_synchronously(
    mdp: TabularMDP,
    *,
    k_max: int = 6,
    rule: str = "combined",
    alpha: float = 0.1,
    iterations: int = 400,
    seeds: Sequence[int] = (0,),
    initial_value: float = 0.0,
    initial_std: float = 1.0,
) -> SynchronousResult:
    """Synchronous Q-learning or PerQ-learning, and its error against Q* or Q*_K.

    Args:
        mdp: The model; the learner uses its γ.
        k_max: Largest persistence; ``"q"`` does not use it.
        rule: ``"q"`` is Q-learning. With ``"combined"``, every (s,a,k) gets one update toward its k-step sample.
            With ``"all"``, every shorter sample of (s,a,·) updates it too, by bootstrapping from Q(s',a,·).
        alpha: Learning rate.
        iterations: Number of full updates.
        seeds: Seeds; one run for each.
        initial_value: Mean of the initial values.
        initial_std: Standard deviation of the initial values.
    """
    check_choice("rule", rule, SYNCHRONOUS_RULES)
    depth = 1 if rule == "q" else check_integer("k_max", k_max)
    alpha = check_real("alpha", alpha, 0.0, 1.0, open_low=True)
    iterations = check_integer("iterations", iterations)
    initial_value = check_real("initial_value", initial_value)
    initial_std = check_real("initial_std", initial_std, 0.0)
    numbers = check_seeds(seeds)
    model = flat_model(mdp, needs_start=False)
    truth = q_star_options(mdp, depth)
    q = np.stack(
        [initial_value + initial_std * stream(n, "initial").standard_normal(truth.shape) for n in numbers]
    )
    q[:, mdp.terminal] = 0.0
    environments = [stream(seed, "environment") for seed in numbers]
    samples = None
    errors = np.empty((len(numbers), iterations + 1, depth))
    errors[:, 0] = np.abs(q - truth).max(axis=(1, 2))
    for iteration in range(1, iterations + 1):
        if samples is None or not model.is_deterministic:
            samples = _combined_samples(model, environments, depth, mdp.gamma)
        q = _full_update(q, samples, alpha, mdp.gamma, bootstraps=rule == "all")
        q[:, mdp.terminal] = 0.0
        errors[:, iteration] = np.abs(q - truth).max(axis=(1, 2))
    return SynchronousResult(errors.max(axis=2), errors, q)


class _Samples(NamedTuple):
    """A k-step sample of every (s,a,k): entry k − 1 of each list is (run, S, A), with one run if all are equal."""

    ends: list[Integers]
    rewards: list[Floats]


def _full_update(q: Floats, samples: _Samples, alpha: float, gamma: float, bootstraps: bool) -> Floats:
    """Update every (s,a,k) of (run, S, A, K); terminal states must be worth 0."""
    n_runs, _, n_actions, k_max = q.shape
    runs, actions = np.arange(n_runs)[:, None, None], np.arange(n_actions)
    powers = discounts(gamma, k_max)
    values = q.max(axis=(2, 3))
    result = q.copy()
    for index in reversed(range(k_max)):  # last end first, as in the update of one history
        k, ends, rewards = duration_at(index), samples.ends[index], samples.rewards[index]
        target = bootstrapped_return(rewards, powers[k], values[runs, ends], terminated=False)
        result[..., index] = toward(result[..., index], target, alpha)
        for d in range(1, k_max - k + 1) if bootstraps else ():
            held_values = q[runs, ends, actions, persistence_index(d)]
            target = bootstrapped_return(rewards, powers[k], held_values, terminated=False)
            at = persistence_index(k + d)
            result[..., at] = toward(result[..., at], target, alpha)
    return result


def _combined_samples(
    model: FlatModel, environments: Sequence[np.random.Generator], k_max: int, gamma: float
) -> _Samples:
    """Where holding each action for 1..k_max steps leads in one iteration, and its discounted reward."""
    following, reward = _one_step(model, environments)
    runs, actions = np.arange(len(following))[:, None, None], np.arange(model.n_actions)
    ends, totals = [following], [reward]
    for power in discounts(gamma, k_max)[1:-1]:
        # A path may return to a state; the step taken there must then be another draw.
        following, reward = _one_step(model, environments)
        totals.append(totals[-1] + power * reward[runs, ends[-1], actions])
        ends.append(following[runs, ends[-1], actions])
    return _Samples(ends, totals)


def _one_step(model: FlatModel, environments: Sequence[np.random.Generator]) -> tuple[Integers, Floats]:
    """Next state and reward of one outcome of each (s,a), each (run, S, A), with one run if all are equal."""
    if model.is_deterministic:
        outcomes = model.offsets[None, :-1]
    else:
        outcomes = np.stack([_sampled_outcomes(model, environment) for environment in environments])
    shape = len(outcomes), model.n_states, model.n_actions
    return model.successors[outcomes].reshape(shape), model.rewards[outcomes].reshape(shape)


def _sampled_outcomes(model: FlatModel, environment: np.random.Generator) -> Integers:
    """The number of one outcome of each (s,a), (S·A,)."""
    first, last = model.offsets[:-1], model.offsets[1:] - 1
    draws = environment.random(len(first))
    rows = np.repeat(np.arange(len(first)), last - first + 1)
    passed = np.bincount(rows, weights=draws[rows] >= model.cumulative, minlength=len(first))
    return np.asarray(np.minimum(first + passed.astype(np.int64), last))
