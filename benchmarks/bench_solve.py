"""Exact solution of tabular models: how its cost grows with the number of states S, with K_max and with γ.

The models are open square grids with the start and the goal in opposite corners, where the longest path, and with
it the number of sweeps of value iteration, grows as √S; or winding corridors, where it grows as S. Unless stated
otherwise, discount and tolerance are the library's defaults.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial

import numpy as np
from numpy.typing import NDArray

from benchmarks.harness import Row, Settings, Table, compare, format_bytes, format_seconds, growth, peak_bytes
from holdfast.envs import GridWorld
from holdfast.mdp import (
    FixedPoint,
    TabularMDP,
    all_persistence,
    bellman_optimality,
    fixed_point,
    held_returns,
    option_optimality,
    q_star,
    q_star_options,
)
from holdfast.mdp.operators import Operator

__all__ = ["memory_note", "open_grid", "tables", "winding_corridor"]

K_MAX = 8
SLIP = 0.2


def tables(settings: Settings) -> Iterator[Table]:
    """One table per question."""
    sides = (6, 8, 12) if settings.quick else (32, 100, 316)
    large_sides = sides if settings.quick else (100, 316, 1000)
    durations = (1, 2, 4) if settings.quick else (1, 4, 16)
    models = [open_grid(side) for side in sides]
    yield _growth_with_states(settings, large_sides, slip=0.0)
    yield _growth_with_states(settings, sides, slip=SLIP)
    yield _waves_and_sweeps(settings, models)
    yield _longest_ways(settings, [side - 1 + side % 2 for side in sides])
    yield _growth_with_k_max(settings, open_grid(large_sides[-1]), durations)
    yield _discounts(settings, sides[1])
    yield _two_ways(settings, sides[1], slip=0.0)
    yield _two_ways(settings, sides[1], slip=SLIP)
    yield _one_application(settings, models[1])
    yield _applications_by_states(settings, models)


def open_grid(side: int, slip: float = 0.0, gamma: float | None = None) -> TabularMDP:
    """The model of an empty grid of side × side cells; ``gamma`` defaults to the library's."""
    rows = [["."] * side for _ in range(side)]
    rows[0][0], rows[-1][-1] = "S", "G"
    world = GridWorld("\n".join("".join(row) for row in rows), slip=slip)
    return world.tabular_mdp() if gamma is None else world.tabular_mdp(gamma)


def winding_corridor(side: int) -> TabularMDP:
    """The model of one corridor that fills a square, back and forth between holes; ``side`` must be odd."""
    rows = [["." if row % 2 == 0 else "#"] * side for row in range(side)]
    for row in range(1, side, 2):
        rows[row][-1 if row % 4 == 1 else 0] = "."
    rows[0][0] = "S"
    rows[-1][-1 if (side - 1) % 4 == 0 else 0] = "G"
    return GridWorld("\n".join("".join(row) for row in rows)).tabular_mdp()


def memory_note(peak: int, result: int, dense: int) -> str:
    """What a peak of memory in bytes shows, compared with the size of the result and of a dense (S,A,S) array."""
    note = f"Arrays, including those to build the model, take at most {peak / result:.1f} times the result (S,A,K)"
    if peak < dense:
        return f"{note}: no dense (S,A,S) array is formed, which alone would take {format_bytes(dense)}."
    return f"{note}."


def _growth_with_states(settings: Settings, sides: tuple[int, ...], slip: float) -> Table:
    models = [open_grid(side, slip) for side in sides]
    sizes = [model.n_states for model in models]
    names = [f"{size} states" for size in sizes]
    cases = {name: partial(q_star_options, model, K_MAX) for name, model in zip(names, models, strict=True)}
    peaks = [
        peak_bytes(lambda side=side: q_star_options(open_grid(side, slip), K_MAX))  # type: ignore[misc]
        for side in sides
    ]
    dense = [8 * model.n_states**2 * model.n_actions for model in models]
    facts = {
        name: {"peak memory": format_bytes(peak), "dense P": format_bytes(size)}
        for name, peak, size in zip(names, peaks, dense, strict=True)
    }
    rows = compare(settings, cases, facts)
    costs = [row.timing.median for row in rows]
    return Table(
        f"Q*_K of an open grid, slip = {slip}, K_max = {K_MAX}, gamma = {models[0].gamma}, by number of states S",
        rows,
        (
            f"Time grows as S^{growth(sizes, costs):.2f}, memory as S^{growth(sizes, peaks):.2f}.",
            memory_note(peaks[-1], 8 * sizes[-1] * models[-1].n_actions * K_MAX, dense[-1]),
        ),
    )


def _waves_and_sweeps(settings: Settings, models: list[TabularMDP]) -> Table:
    """Two ways to compute Q*, size by size; each ratio is to the waves at the same size."""
    sizes = [model.n_states for model in models]
    rows: list[Row] = []
    for model in models:

        def by_sweeps(model: TabularMDP = model) -> FixedPoint:
            return _iterate(model, bellman_optimality(model), (model.n_states, model.n_actions))

        name = f"{model.n_states} states"
        rows += compare(
            settings,
            {f"policies in waves, {name}": partial(q_star, model), f"value iteration, {name}": by_sweeps},
            {f"value iteration, {name}": {"sweeps": str(by_sweeps().iterations)}},
        )
    waves, sweeps = ([row.timing.median for row in rows[side::2]] for side in (0, 1))
    return Table(
        f"Q* of an open grid, slip = 0.0, gamma = {models[0].gamma}, by number of states S",
        tuple(rows),
        (f"In waves, time grows as S^{growth(sizes, waves):.2f}; in sweeps, as S^{growth(sizes, sweeps):.2f}.",),
    )


def _longest_ways(settings: Settings, sides: list[int]) -> Table:
    models = [winding_corridor(side) for side in sides]
    sizes = [model.n_states for model in models]
    rows = compare(settings, {f"{model.n_states} states": partial(q_star, model) for model in models})
    slope = growth(sizes, [row.timing.median for row in rows])
    return Table(
        f"Q* of one winding corridor, gamma = {models[0].gamma}, by number of states S",
        rows,
        (f"The path is S/2 steps long, and each step is a separate wave: time grows as S^{slope:.2f}.",),
    )


def _growth_with_k_max(settings: Settings, model: TabularMDP, durations: tuple[int, ...]) -> Table:
    """``q_star_options`` is ``q_star``, then ``held_returns``: timed apart, the part that depends on K shows."""
    values = q_star(model).max(axis=1)
    cases: dict[str, Callable[[], object]] = {"Q*, for any K_max": partial(q_star, model)}
    for k_max in durations:
        cases[f"then all Q*_K, K_max = {k_max}"] = partial(held_returns, model, values, k_max)
    rows = compare(settings, cases)
    once, *held = [row.timing.median for row in rows]
    totals = [once + cost for cost in held]
    return Table(
        f"Q*_K at {model.n_states} states, gamma = {model.gamma}, by K_max",
        rows,
        (
            f"The second part grows as K^{growth(durations, held):.2f} over this range; together, from "
            f"{format_seconds(totals[0])} to {format_seconds(totals[-1])}, as K^{growth(durations, totals):.2f}.",
        ),
    )


def _discounts(settings: Settings, side: int) -> Table:
    models = {f"gamma = {gamma}": open_grid(side, gamma=gamma) for gamma in (0.8, 0.9, 0.99, 0.999)}
    cases = {name: partial(q_star_options, model, K_MAX) for name, model in models.items()}
    return Table(f"Q*_K at {side**2} states, slip = 0.0, K_max = {K_MAX}, by gamma", compare(settings, cases))


def _two_ways(settings: Settings, side: int, slip: float) -> Table:
    model = open_grid(side, slip)
    k_max = 4 if settings.quick else K_MAX

    def by_values() -> tuple[NDArray[np.float64], int]:
        point = _iterate(model, bellman_optimality(model), (model.n_states, model.n_actions))
        return held_returns(model, point.value.max(axis=1), k_max), point.iterations

    def by_options() -> FixedPoint:
        return _iterate(model, option_optimality(model, k_max), (model.n_states, model.n_actions, k_max))

    shortcut, iteration = "value iteration on (S,A), then K held steps", "iterating T*_K on (S,A,K)"
    return Table(
        f"Value iteration for Q*_K at {model.n_states} states, K_max = {k_max}, slip = {slip}",
        compare(
            settings,
            {shortcut: by_values, iteration: by_options},
            {shortcut: {"sweeps": str(by_values()[1])}, iteration: {"sweeps": str(by_options().iterations)}},
        ),
        (
            "T*_K takes fewer but costlier sweeps; an open grid without slips, where straight paths lead "
            "everywhere, suits it best.",
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


def _iterate(model: TabularMDP, operator: Operator, shape: tuple[int, ...]) -> FixedPoint:
    return fixed_point(operator, np.zeros(shape), modulus=model.gamma)


def _any_values(model: TabularMDP, k_max: int) -> NDArray[np.float64]:
    return np.random.default_rng(0).normal(size=(model.n_states, model.n_actions, k_max))
