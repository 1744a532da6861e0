"""Kemeny's constant and entropy of random options on the grids, over K_max: for one horizon, and for three."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from holdfast.core.array_types import Floats
from holdfast.experiments.spec import Experiment, Job
from holdfast.experiments.tables import Table, select

if TYPE_CHECKING:
    from matplotlib.figure import Figure

__all__ = ["KEMENY", "KEMENY_AND_ENTROPY", "draw_kemeny", "draw_kemeny_and_entropy"]


STUDY = "chains"
"""The study that the jobs of all these figures belong to."""

COLUMNS = ("k_max", "kemeny", "kemeny_of_one", "row_entropy", "stationary_entropy")

CHAIN_GRIDS: Mapping[str, str] = {"open": "Open", "cliff": "Cliff", "bridge": "Bridge", "zigzag": "ZigZag"}
"""Titles of the grids, by name."""

NOTES = (
    "The least and the largest are those of the K_max that were studied.",
    "The paper does not say what holes are. Here they are walls, and the goal is an ordinary cell; with other "
    "readings the minimum is shallower (see: holdfast docs exploration).",
    "In the picture, what rises above 1 by more than twice the depth of the deepest minimum is cut off.",
)
"""Notes for all these figures."""

_LONGEST: Mapping[str, Sequence[int]] = {
    "smoke": (1, 2, 4, 8, 16),
    "laptop": (*range(1, 17), 20, 24, 32, 48, 64),
    "paper": (*range(1, 33), 36, 40, 48, 56, 64),
}


@dataclass(frozen=True, eq=False)
class StoredCurve:
    """A curve to draw, read from rows; every array has shape (n,).

    Attributes:
        H: Number of environment steps in one step of the chain.
        k_max: Largest persistences, in increasing order.
        normalised_kemeny: Kemeny's constant divided by that for K_max = 1.
        normalised_error: 0, because it is exact.
        row_entropy: Mean entropy of the rows of P_H, in nats.
        row_entropy_error: 0, because it is exact.
    """

    H: int
    k_max: NDArray[np.int64]
    normalised_kemeny: Floats
    normalised_error: Floats
    row_entropy: Floats
    row_entropy_error: Floats


def plan_chains(scale: str, horizons: Sequence[int]) -> Iterator[tuple[Mapping[str, Any], int]]:
    """One job for each grid and horizon; nothing is drawn at random."""
    for grid in CHAIN_GRIDS:
        for horizon in horizons:
            yield {"grid": grid, "holes": "wall", "H": horizon, "longest": list(_LONGEST[scale])}, 0


def run_chain(job: Job, place: Path) -> dict[str, Any]:
    """The curve of one grid and horizon, uniform π and ω."""
    from holdfast.envs import exploration_kernel, make_env
    from holdfast.mdp import exploration_curves

    setting = job.setting
    kernel = exploration_kernel(make_env(setting["grid"]), setting["holes"]).kernel
    (curve,) = exploration_curves(kernel, setting["longest"], H=[setting["H"]], method="exact")
    return {
        "k_max": curve.k_max,
        "kemeny": curve.kemeny,
        "kemeny_of_one": np.full(len(curve.k_max), curve.kemeny_of_one.value),
        "row_entropy": curve.row_entropy,
        "stationary_entropy": curve.stationary_entropy,
    }


def stored_curves(rows: Table) -> dict[str, list[StoredCurve]]:
    """The curves of each grid that has rows, by its title, shortest horizon first."""
    found: dict[str, list[StoredCurve]] = {}
    for grid, title in CHAIN_GRIDS.items():
        own = select(rows, grid=grid)
        curves = [_curve(select(own, H=horizon)) for horizon in np.unique(own["H"])]
        if curves:
            found[title] = curves
    return found


def _curve(rows: Table) -> StoredCurve:
    order = np.argsort(rows["k_max"])
    nothing = np.zeros(len(order))
    return StoredCurve(
        H=int(rows["H"][0]),
        k_max=rows["k_max"][order].astype(np.int64),
        normalised_kemeny=(rows["kemeny"] / rows["kemeny_of_one"])[order],
        normalised_error=nothing,
        row_entropy=rows["row_entropy"][order],
        row_entropy_error=nothing,
    )


def minimum_lines(rows: Table) -> list[str]:
    """A table of the smallest constants and the largest entropies, each with its K_max in parentheses."""
    lines = [f"{'grid':<8}{'H':>4}{'least Kemeny / that of K=1':>30}{'largest entropy':>20}"]
    for title, curves in stored_curves(rows).items():
        for curve in curves:
            least, most = int(curve.normalised_kemeny.argmin()), int(curve.row_entropy.argmax())
            kemeny = f"{curve.normalised_kemeny[least]:.4f} ({curve.k_max[least]})"
            entropy = f"{curve.row_entropy[most]:.3f} ({curve.k_max[most]})"
            lines.append(f"{title:<8}{curve.H:>4}{kemeny:>30}{entropy:>20}")
    return lines


def draw_kemeny(rows: Table) -> Figure:
    """Kemeny's constant over K_max, one panel per grid.

    Paper: Figure fig:Kemeny
    """
    from holdfast.draw import draw_exploration_curves

    return draw_exploration_curves(stored_curves(rows), entropy=False)


def draw_kemeny_and_entropy(rows: Table) -> Figure:
    """Kemeny's constant above, entropy below, with one column per grid and one line per horizon.

    Paper: Figure fig:kem_complete
    """
    from holdfast.draw import draw_exploration_curves

    return draw_exploration_curves(stored_curves(rows))


KEMENY, KEMENY_AND_ENTROPY = (
    Experiment(
        label=label,
        title=f"{shown} of random options over K_max, H={', '.join(map(str, horizons))}",
        columns=COLUMNS,
        plan=partial(plan_chains, horizons=horizons),
        run=run_chain,
        draw=draw,
        summary=minimum_lines,
        notes=NOTES,
        shared=STUDY,
    )
    for label, shown, horizons, draw in (
        ("fig:Kemeny", "Kemeny's constant", (30,), draw_kemeny),
        ("fig:kem_complete", "Kemeny's constant and entropy", (10, 20, 30), draw_kemeny_and_entropy),
    )
)
