"""The order in which the all-persistence update learns from one held action, as a picture."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from holdfast.core.decomposition import ScheduledUpdate
from holdfast.experiments.spec import Experiment, Job
from holdfast.experiments.tables import Table

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

__all__ = ["EXPERIMENT", "draw_order_of_updates", "update_formula"]


def plan(scale: str) -> Iterator[tuple[Mapping[str, Any], int]]:
    """One job, the same at every scale: an action held for two steps, with K_max = 3."""
    yield {"kappa": 2, "k_max": 3}, 0


def run(job: Job, place: Path) -> dict[str, Any]:
    """The updates in order, numbered from 1: those of Q(s_{t+i}, a, j − i + d) at s_{t+j}."""
    from holdfast.core.decomposition import backward_schedule

    updates = np.array(list(backward_schedule(job.setting["kappa"], job.setting["k_max"])))
    return {"order": np.arange(1, len(updates) + 1), **dict(zip("ijd", updates.T, strict=True))}


def draw_order_of_updates(rows: Table) -> Figure:
    """One line per update, the first at the top: the observed steps, and where the rest comes from.

    Paper: Figure fig:all_pers_update
    """
    from matplotlib.figure import Figure

    from holdfast.draw import look

    updates = _updates(rows)
    with look():
        figure = Figure(figsize=(8.4, 0.34 * len(updates) + 1.3), layout="constrained")
        left, right = figure.subplots(1, 2, sharey=True, width_ratios=(1.0, 0.85))
        _draw_spans(left, updates)
        left.set_title(f"κ = {int(rows['kappa'][0])} steps were held, K = {int(rows['k_max'][0])}", loc="left")
        for number, update in enumerate(updates, start=1):
            right.text(0.0, number, f"${update_formula(update)}$", va="center", fontsize=10)
        right.set_axis_off()
        right.set_title("the value that is updated, and its target", loc="left")
        figure.legend(*left.get_legend_handles_labels(), loc="outside lower left", ncols=3, fontsize=8)
    return figure


def _draw_spans(axes: Axes, updates: Sequence[ScheduledUpdate]) -> None:
    from holdfast.draw import algorithm_color
    from holdfast.draw.style import INK

    kappa, last = max(update.j for update in updates), max(update.j + update.d for update in updates)
    blue, orange = algorithm_color("perq"), algorithm_color("msa-q")
    numbers = np.arange(1, len(updates) + 1)
    i, j, d = np.array(updates).T
    axes.vlines(range(last + 1), 0.4, len(updates) + 0.6, colors="#e4e4e1", linewidths=0.8, zorder=0)
    axes.hlines(numbers, i, j, colors=blue, linewidths=5.0, label="steps that were seen")
    held = d > 0
    axes.hlines(
        numbers[held],
        j[held],
        (j + d)[held],
        colors=orange,
        linewidths=2.2,
        linestyles=(0, (2.0, 1.0)),
        label="steps on, from the value of holding on",
    )
    axes.plot(j[~held], numbers[~held], "D", color=INK, markersize=5.5, label="best option from here on")
    axes.plot(i, numbers, "o", color="white", markeredgecolor=blue, markeredgewidth=1.6, markersize=6.0)
    axes.set_xlim(-0.2, last + 0.2)
    axes.set_ylim(len(updates) + 0.6, 0.4)
    axes.set_xticks(range(last + 1), [f"${_state(n)}$" if n <= kappa else "" for n in range(last + 1)])
    axes.set_yticks(numbers)
    axes.tick_params(length=0, labelsize=9.5)
    axes.spines[:].set_visible(False)
    axes.set_ylabel("update")


def update_formula(update: ScheduledUpdate) -> str:
    """The value that an update changes and its target, in TeX."""
    i, j, d = update
    rewards = [f"{_power(n)}r_{{t+{i + n + 1}}}" for n in range(j - i)]
    after = rf"\max\,Q({_state(j)},\cdot,\cdot)" if d == 0 else f"Q({_state(j)},a,{d})"
    return rf"Q({_state(i)},a,{j - i + d}) \leftarrow {'+'.join(rewards)}+{_power(j - i)}{after}"


def _state(n: int) -> str:
    return "s_t" if n == 0 else f"s_{{t+{n}}}"


def _power(n: int) -> str:
    if n < 2:
        return r"\gamma\," * n
    return rf"\gamma^{{{n}}}"


def _updates(rows: Table) -> list[ScheduledUpdate]:
    """The updates in order."""
    order = np.argsort(rows["order"])
    numbers = np.column_stack([rows[name][order] for name in "ijd"]).astype(int)
    return [ScheduledUpdate(*update) for update in numbers.tolist()]


def summary(rows: Table) -> list[str]:
    """The updates in order, in words."""
    lines = []
    for number, (i, j, d) in enumerate(_updates(rows), start=1):
        start, end = (f"s_t+{n}" if n else "s_t" for n in (i, j))
        after = "the best option" if d == 0 else f"Q({end}, a, {d})"
        lines.append(f"{number:3}  {f'Q({start}, a, {j - i + d})':<16}from {start} to {end}, then {after}")
    return lines


EXPERIMENT = Experiment(
    label="fig:all_pers_update",
    title="the order of the updates for κ = 2, K_max = 3",
    columns=("order", "i", "j", "d"),
    plan=plan,
    run=run,
    draw=draw_order_of_updates,
    summary=summary,
)
