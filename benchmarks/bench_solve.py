"""Exact solution of tabular models: how its cost grows with the number of states S and with K_max.

The models are open square grids with the start and the goal in opposite corners. γ is chosen so that value
iteration needs about as many sweeps on the smallest grid, where it ends after one per step of the longest
way, as on the largest, where the discount ends it; the growth with S is then that of a sweep.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial

import numpy as np

from benchmarks.harness import Row, Settings, Table, compare, format_bytes, growth, peak_bytes
from holdfast.envs import GridWorld
from holdfast.mdp import (
    FixedPoint,
    TabularMDP,
    all_persistence,
    bellman_optimality,
    fixed_point,
    option_optimality,
    q_star_options,
)

__all__ = ["tables"]

GAMMA = 0.8
TOLERANCE = 1e-6
K_MAX = 8


def tables(settings: Settings) -> Iterator[Table]:
    """One table per question."""
    sides = (6, 8, 12) if settings.quick else (32, 100, 316)
    durations = (1, 2, 4) if settings.quick else (1, 2, 4, 8, 16)
    models = [open_grid(side) for side in sides]
    middle = models[1]
    yield _growth_with_states(settings, sides, models)
    yield _growth_with_k_max(settings, middle, durations)
    yield _two_ways(settings, sides[1], slip=0.0)
    yield _two_ways(settings, sides[1], slip=0.2)
    yield _one_application(settings, middle)
    yield _applications_by_states(settings, models)


def open_grid(side: int, slip: float = 0.0) -> TabularMDP:
    """The model of an empty grid of side × side cells."""
    rows = [["."] * side for _ in range(side)]
    rows[0][0], rows[-1][-1] = "S", "G"
    return GridWorld("\n".join("".join(row) for row in rows), slip=slip).tabular_mdp(GAMMA)


def _growth_with_states(settings: Settings, sides: tuple[int, ...], models: list[TabularMDP]) -> Table:
    sizes = [model.n_states for model in models]
    names = [f"{size} states" for size in sizes]
    cases = {name: partial(_solve, model, K_MAX) for name, model in zip(names, models, strict=True)}
    sweeps = [_sweeps(model) for model in models]
    peaks = [peak_bytes(lambda side=side: _solve(open_grid(side), K_MAX)) for side in sides]  # type: ignore[misc]
    dense = [_dense_bytes(model) for model in models]
    facts = {
        name: {"sweeps": str(sweep), "peak memory": format_bytes(peak), "dense P": format_bytes(size)}
        for name, sweep, peak, size in zip(names, sweeps, peaks, dense, strict=True)
    }
    rows = compare(settings, cases, facts)
    costs = [row.timing.median for row in rows]
    per_sweep = [cost / sweep for cost, sweep in zip(costs, sweeps, strict=True)]
    factor = peaks[-1] / (models[-1].n_states * models[-1].n_actions * K_MAX * 8)
    return Table(
        f"Q*_K of an open grid, K_max = {K_MAX}, gamma = {GAMMA}, by number of states S",
        rows,
        (
            f"Time grows as S^{growth(sizes, costs):.2f}, per sweep as S^{growth(sizes, per_sweep):.2f}; "
            f"memory as S^{growth(sizes, peaks):.2f}.",
            f"The peak, building the model included, is {factor:.1f} times the result (S,A,K): no dense (S,A,S) "
            f"array arises, which alone would take {format_bytes(dense[-1])}.",
        ),
    )


def _growth_with_k_max(settings: Settings, model: TabularMDP, durations: tuple[int, ...]) -> Table:
    cases = {f"K_max = {k_max}": partial(_solve, model, k_max) for k_max in durations}
    rows = compare(settings, cases)
    slope = growth(durations, [row.timing.median for row in rows])
    return Table(
        f"Q*_K at {model.n_states} states, by K_max",
        rows,
        (
            f"Time grows as K^{slope:.2f} over this range: value iteration on (S,A) is paid once, and each "
            "further persistence is one more pass.",
        ),
    )


def _two_ways(settings: Settings, side: int, slip: float) -> Table:
    model = open_grid(side, slip)
    k_max = 4 if settings.quick else K_MAX
    start = np.zeros((model.n_states, model.n_actions, k_max))

    def iterate() -> FixedPoint:
        operator = option_optimality(model, k_max)
        return fixed_point(operator, start, modulus=model.gamma, tolerance=TOLERANCE)

    shortcut, iteration = "value iteration on (S,A), then K held steps", "iterating T*_K on (S,A,K)"
    return Table(
        f"Two ways to Q*_K at {model.n_states} states, K_max = {k_max}, slip = {slip}",
        compare(
            settings,
            {shortcut: partial(_solve, model, k_max), iteration: iterate},
            {shortcut: {"sweeps": str(_sweeps(model))}, iteration: {"sweeps": str(iterate().iterations)}},
        ),
        (
            "q_star_options goes the first way. T*_K takes fewer and costlier sweeps; an open grid without slips, "
            "where straight ways lead everywhere, suits it best.",
        ),
    )


def _one_application(settings: Settings, model: TabularMDP) -> Table:
    k_max = 4 if settings.quick else K_MAX
    values = _any_values(model, k_max)
    cases: dict[str, Callable[[], object]] = {
        "T* on (S,A)": partial(bellman_optimality(model), values[:, :, 0]),
        "T*_K": partial(option_optimality(model, k_max), values),
    }
    for kappa in sorted({1, k_max // 2, k_max}):
        cases[f"H^κ, κ = {kappa}"] = partial(all_persistence(model, k_max, kappa), values)
    return Table(
        f"One application of an operator at {model.n_states} states, K_max = {k_max}",
        compare(settings, cases),
        (f"The last four compute {k_max} times as many values as the first.",),
    )


def _applications_by_states(settings: Settings, models: list[TabularMDP]) -> Table:
    k_max = 4 if settings.quick else K_MAX
    kappa = k_max // 2
    cases = {
        f"{model.n_states} states": partial(all_persistence(model, k_max, kappa), _any_values(model, k_max))
        for model in models
    }
    rows = compare(settings, cases)
    sizes = [model.n_states for model in models]
    values = [size * model.n_actions * k_max for size, model in zip(sizes, models, strict=True)]
    rows = tuple(
        Row(row.case, row.timing, row.ratio, {"ns per value": f"{1e9 * row.timing.median / count:.1f}"})
        for row, count in zip(rows, values, strict=True)
    )
    slope = growth(sizes, [row.timing.median for row in rows])
    title = f"One application of H^κ, K_max = {k_max}, κ = {kappa}, by number of states S"
    return Table(title, rows, (f"Time grows as S^{slope:.2f}.",))


def _solve(model: TabularMDP, k_max: int) -> object:
    return q_star_options(model, k_max, tolerance=TOLERANCE)


def _sweeps(model: TabularMDP) -> int:
    start = np.zeros((model.n_states, model.n_actions))
    operator = bellman_optimality(model)
    return fixed_point(operator, start, modulus=model.gamma, tolerance=TOLERANCE).iterations


def _any_values(model: TabularMDP, k_max: int) -> np.ndarray:
    return np.random.default_rng(0).normal(size=(model.n_states, model.n_actions, k_max))


def _dense_bytes(model: TabularMDP) -> int:
    return 8 * model.n_states**2 * model.n_actions
