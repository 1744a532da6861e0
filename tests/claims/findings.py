"""What rows say of a claim: findings, each a number with its interval and whether it is as the paper claims.

A claim *holds* if every finding is as claimed, *holds in part* if some are, and *does not hold* if none is. A
difference is as claimed if its whole 95 % interval lies on the claimed side of zero.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from holdfast.experiments.tables import Table, matrix, select
from holdfast.experiments.tabular_curves import GRIDS
from holdfast.stats.estimates import Estimate, mean_estimate
from tests.claims.kept import ZERO, Kept

Floats = NDArray[np.float64]

HOLDS, IN_PART, FAILS, UNTESTED = "holds", "holds in part", "does not hold", "not tested yet"

GRID_NAMES = {grid: title.split()[0] for grid, title in GRIDS.items()}


@dataclass(frozen=True)
class Finding:
    """One number.

    Attributes:
        text: What it is a number of, and the number.
        is_as_claimed: Whether it is what the paper says.
    """

    text: str
    is_as_claimed: bool


Findings = Mapping[str, Sequence[Finding]]
"""By the choice of holdfast's own that they were made with; "" where there is none."""

Evidence = Callable[[Kept], Findings]


def verdict(findings: Sequence[Finding]) -> str:
    """In a word or two."""
    so = [one.is_as_claimed for one in findings]
    if not so:
        return UNTESTED
    return HOLDS if all(so) else IN_PART if any(so) else FAILS


def told(estimate: Estimate, digits: int = 3) -> str:
    """A difference with half the width of its interval: ``+0.423 ± 0.026``."""
    half = "" if np.isnan(estimate.low) else f" ± {(estimate.high - estimate.low) / 2.0:.{digits}f}"
    return f"{estimate.value:+.{digits}f}{half}".replace("-", "−")


# The grids ------------------------------------------------------------------------------------------------------


def grid_gaps(
    ours: str,
    theirs: str,
    choices: Sequence[str] = (ZERO,),
    expected: Mapping[str, str] | str = "above",
) -> Evidence:
    """Scores of one agent minus those of another, seed by seed, grid by grid.

    Args:
        ours: An agent.
        theirs: Another.
        choices: Under which choices.
        expected: ``"above"``, ``"below"`` or ``"not above"`` zero, by grid or for all of them.
    """

    def find(kept: Kept) -> Findings:
        found = {}
        for choice in choices:
            lines = []
            for grid, title in GRID_NAMES.items():
                if not isinstance(expected, str) and grid not in expected:
                    continue
                mine, other = (kept.grid_scores(agent, grid, choice) for agent in (ours, theirs))
                if mine is None or other is None:
                    continue
                gap = mean_estimate(mine - other)
                wanted = expected if isinstance(expected, str) else expected[grid]
                lines.append(Finding(f"{title} {told(gap)}", _is_so(gap, wanted)))
            found[choice if len(choices) > 1 else ""] = lines
        return found

    return find


def early_gaps(ours: str, theirs: str, k_values: Sequence[int], share: float = 0.1) -> Evidence:
    """Greedy returns in the first part of the episodes, seed by seed."""

    def find(kept: Kept) -> Findings:
        found = []
        for k in k_values:
            for grid, title in GRID_NAMES.items():
                curves = [kept.grid_curve(agent.format(k=k), grid) for agent in (ours, theirs)]
                if curves[0] is None or curves[1] is None:
                    continue
                n = max(int(share * len(curves[0][0])), 1)
                gap = mean_estimate(curves[0][1][:, :n].mean(axis=1) - curves[1][1][:, :n].mean(axis=1))
                found.append(Finding(f"K={k} {title} {told(gap)}", _is_so(gap, "above")))
        return {"": found}

    return find


def grid_scores(agents: Sequence[str], choice: str, at_least: float) -> Evidence:
    """Scores of agents, claimed to be at least so high: that anything is learned."""

    def find(kept: Kept) -> Findings:
        found = []
        for agent in agents:
            for grid, title in GRID_NAMES.items():
                score = kept.grid_scores(agent, grid, choice)
                if score is not None:
                    mean = mean_estimate(score)
                    found.append(Finding(f"{agent} {title} {told(mean)}", mean.low > at_least))
        return {"": found}

    return find


def _is_so(gap: Estimate, expected: str) -> bool:
    if expected == "above":
        return gap.low > 0.0
    return gap.high < 0.0 if expected == "below" else not gap.low > 0.0


def least_time_beyond_one(kept: Kept) -> Findings:
    """The K_max with the shortest mean time of a run, and its time as a part of that of K_max = 1."""
    rows = kept.figure("tabular_times")
    found = []
    for grid, title in GRID_NAMES.items() if rows is not None else ():
        assert rows is not None
        k_values, seconds = matrix(select(rows, grid=grid), "seconds", "k_max")
        best = int(seconds.mean(axis=0).argmin())
        ratio = mean_estimate(seconds[:, best] / seconds[:, 0])
        half = (ratio.high - ratio.low) / 2.0
        is_so = k_values[best] > 1 and ratio.high < 1.0
        found.append(Finding(f"{title} K={k_values[best]:.0f}: {ratio.value:.2f} ± {half:.2f} of K=1", is_so))
    return {"": found}


# Exploration ----------------------------------------------------------------------------------------------------

_CHAINS = {"open": "Open", "cliff": "Cliff", "bridge": "Bridge", "zigzag": "ZigZag"}


def _chain(rows: Table, grid: str, horizon: int) -> tuple[Floats, Floats, Floats]:
    """K_max, Kemeny's constant as a part of that of K_max = 1, and entropy."""
    own = select(rows, grid=grid, H=horizon)
    order = np.argsort(own["k_max"])
    relative = own["kemeny"] / own["kemeny_of_one"]
    return own["k_max"][order], relative[order], own["row_entropy"][order]


def kemeny_minima(horizons: Sequence[int], differ: bool = False) -> Evidence:
    """Where Kemeny's constant is least, and whether it has risen again at the largest K_max.

    Args:
        horizons: H.
        differ: Whether the minimum is claimed to lie at a different K_max on each grid.
    """

    def find(kept: Kept) -> Findings:
        rows = kept.figure("kem_complete")
        found: list[Finding] = []
        places: list[int] = []
        for horizon in horizons if rows is not None else ():
            for grid, title in _CHAINS.items():
                assert rows is not None
                k_max, kemeny, _ = _chain(rows, grid, horizon)
                least = int(kemeny.argmin())
                name = f"{title}, H={horizon}" if len(horizons) > 1 else title
                is_so = bool(k_max[least] > 1 and kemeny[-1] > kemeny[least])
                found.append(Finding(f"{name}: {kemeny[least]:.3f} at K={k_max[least]:.0f}", is_so))
                places.append(int(k_max[least]))
        if differ and places:
            told_places = ", ".join(map(str, places))
            found.append(Finding(f"a different K on each grid: {told_places}", len(set(places)) == len(places)))
        return {"": found}

    return find


def entropy_maxima(kept: Kept) -> Findings:
    """Where the entropy is largest, and what is left of it at the largest K_max."""
    rows = kept.figure("kem_complete")
    found = []
    for grid, title in _CHAINS.items() if rows is not None else ():
        assert rows is not None
        k_max, _, entropy = _chain(rows, grid, 30)
        most = int(entropy.argmax())
        text = f"{title}: {entropy[most]:.3f} at K={k_max[most]:.0f}, {entropy[-1]:.3f} at K={k_max[-1]:.0f}"
        found.append(Finding(text, bool(k_max[most] > 1 and entropy[-1] < entropy[most])))
    return {"": found}


def flag_rates(label: str, k_values: Sequence[int], rises: bool = True) -> Evidence:
    """The share of random episodes that reach the flag, with its interval.

    It is claimed to rise with K: the interval must lie above that of the K before.
    """

    def find(kept: Kept) -> Findings:
        rows = kept.figure(label)
        found: list[Finding] = []
        before: float | None = None
        for k in k_values if rows is not None else ():
            assert rows is not None
            own = select(rows, k_max=k)
            rate, low, high = (100.0 * float(own[name][0]) for name in ("reached", "reached_low", "reached_high"))
            is_so = before is None or low > before or not rises
            found.append(Finding(f"K={k}: {rate:.2f} % ({low:.2f}–{high:.2f})", is_so))
            before = high
        return {"": found}

    return find


def dynamic_against_fixed(k: int) -> Evidence:
    """Flag rates of holds of up to k and of exactly k steps."""

    def find(kept: Kept) -> Findings:
        tables = [kept.figure(label) for label in ("adv_exploration", "adv_exploration_fix")]
        if tables[0] is None or tables[1] is None:
            return {"": []}
        own = [select(table, k_max=k) for table in tables if table is not None]
        dynamic, fixed = (
            tuple(100.0 * float(one[name][0]) for name in ("reached", "reached_low", "reached_high"))
            for one in own
        )
        text = (
            f"up to {k}: {dynamic[0]:.2f} % ({dynamic[1]:.2f}–{dynamic[2]:.2f}), "
            f"exactly {k}: {fixed[0]:.2f} % ({fixed[1]:.2f}–{fixed[2]:.2f})"
        )
        return {"": [Finding(text, dynamic[1] > fixed[2])]}

    return find


def one_step_never_arrives(kept: Kept) -> Findings:
    """The flag rate of single random steps."""
    found = flag_rates("adv_exploration", (1,))(kept)[""]
    rows = kept.figure("adv_exploration")
    rate = None if rows is None else float(select(rows, k_max=1)["reached_high"][0])
    return {"": [Finding(one.text, rate is not None and rate < 0.01) for one in found]}


def visited_cells(kept: Kept) -> Findings:
    """Cells of the map that random options of up to K steps visit."""
    rows = kept.figure("adv_exploration")
    found: list[Finding] = []
    before = 0
    for k in (1, 2, 4, 8, 16, 32, 64) if rows is not None else ():
        assert rows is not None
        cells = int((select(rows, k_max=k)["visits"] > 0).sum())
        found.append(Finding(f"K={k}: {cells}", cells > before))
        before = cells
    return {"": found}


# Synchronous learning -------------------------------------------------------------------------------------------

_AT = 200


def _errors(rows: Table, rule: str, k: int | None = None) -> Floats:
    """Largest errors of each run after ``_AT`` iterations, (run,): of all values, or of one persistence."""
    own = select(rows, rule=rule, iteration=_AT)
    if k is not None:
        own = select(own, k=k)
    return np.array([own["error"][own["seed"] == seed].max() for seed in np.unique(own["seed"])])


def _error(errors: Floats) -> str:
    mean = mean_estimate(errors)
    return f"{mean.value:.2g} ± {(mean.high - mean.low) / 2.0:.1g}"


def sync_faster(k: int | None = None) -> Evidence:
    """Largest error of PerQ-learning, of all values or of one persistence, beside Q-learning's."""

    def find(kept: Kept) -> Findings:
        rows = kept.figure("sync")
        if rows is None:
            return {"": []}
        ours, theirs = _errors(rows, "combined", k), _errors(rows, "q")
        name = "PerQ" if k is None else f"k={k}"
        gap = mean_estimate(ours - theirs)
        text = f"error after {_AT} iterations: {name} {_error(ours)}, Q-learning {_error(theirs)}"
        return {"": [Finding(text, gap.high < 0.0)]}

    return find


def sync_by_k(kept: Kept) -> Findings:
    """Largest errors of each persistence, claimed to be less than those of the one before."""
    rows = kept.figure("sync")
    found = []
    before: Floats | None = None
    for k in range(1, 7) if rows is not None else ():
        assert rows is not None
        errors = _errors(rows, "combined", k)
        is_less = before is None or mean_estimate(errors - before).high < 0.0
        found.append(Finding(f"k={k}: {_error(errors)}", is_less))
        before = errors
    return {"": found}
