"""Which of PerDQN's defaults matter: each is switched off by itself, and actions may be held shorter or longer.

``holdfast reproduce ablation``: the suite's protocol on two of its tasks, with three seeds. The rows of the
defaults are those of the suite.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Any

from holdfast.experiments.figures.suite.contestants import CONTESTANTS, Contestant
from holdfast.experiments.figures.suite.experiment import COLUMNS, run_contestant, setting_of
from holdfast.experiments.figures.suite.measures import measure, tasks_of
from holdfast.experiments.figures.suite.page import ablation_page
from holdfast.experiments.figures.suite.tasks import TASKS
from holdfast.experiments.spec import Experiment
from holdfast.experiments.tables import Table
from holdfast.stats import mean_interval

if TYPE_CHECKING:
    from matplotlib.figure import Figure

__all__ = ["ABLATION", "VARIANTS", "ablation_text"]

_SWITCHED_OFF: Mapping[str, Mapping[str, Any]] = {
    "without layer_norm": {"layer_norm": False},
    "without dueling": {"dueling": False},
    "without double": {"target_value": "options"},
    "without clip_targets": {"clip_targets": False},
    "initial_values zero": {"initial_values": "zero"},
    "learning rate stays": {"learning_rate_falls_to": 1.0},
    "without average_rate": {"average_rate": 0.0},
    "explore_by options": {"explore_by": "options"},
    "importance of the buffer": {"importance": "buffer"},
    "uniform replay": {"prioritized": False},
    "own draws": {"shared_draws": False},
    "heads of 64 units": {"head_arch": [64]},
    "trunk of 64, 64": {"policy_kwargs": {"net_arch": [64, 64]}},
}
_LENGTHS: Mapping[str, Mapping[str, Any]] = {f"k_max={k_max}": {"k_max": k_max} for k_max in (1, 4, 8, 16, 32)}

_DEFAULTS = next(contestant for contestant in CONTESTANTS if contestant.name == "PerDQN")

VARIANTS = (
    _DEFAULTS,
    *(
        Contestant(f"PerDQN, {name}", "holdfast", "PerDQN", arguments)
        for name, arguments in {**_SWITCHED_OFF, **_LENGTHS}.items()
    ),
)
"""The variants, in the order of display."""

_TASKS = tuple(task for task in TASKS if task.environment in ("CartPole-v1", "MountainCar-v0"))
_SIZES = {"smoke": (200, 1, 2, 5), "laptop": (None, 3, 20, 50), "paper": (None, 3, 20, 50)}
"""Steps (None for the task's own), seeds, episodes of an evaluation, and evaluations."""


def _plan(scale: str) -> Iterator[tuple[Mapping[str, Any], int]]:
    steps, seeds, episodes, evaluations = _SIZES[scale]
    smaller = {"learning_starts": 50, "buffer_size": 500} if scale == "smoke" else {}
    for seed in range(100, 100 + seeds):
        for variant in VARIANTS:
            for task in _TASKS[:1] if scale == "smoke" else _TASKS:
                yield setting_of(variant, task, steps or task.steps, episodes, evaluations, smaller), seed


def _draw(rows: Table) -> Figure:
    """The last fifth and the area of every variant on each task: mean and interval over seeds."""
    from holdfast.draw import IntervalMark, IntervalPanel, draw_aggregates
    from holdfast.draw.style import PALETTE

    tasks = tasks_of(rows)
    measured = [(variant, [measure(rows, variant.name, task) for task in tasks]) for variant in VARIANTS]
    # Panels stand side by side: a variant that has not run on every task yet is left out.
    complete = [(variant, found) for variant, found in measured if all(one is not None for one in found)]
    panels = []
    for index, task in enumerate(tasks):
        for title, name in (("last fifth", "ends"), ("area", "areas")):
            marks = []
            for variant, found in complete:
                color = PALETTE["blue" if variant is _DEFAULTS else "grey"]
                mean, low, high = map(float, mean_interval(getattr(found[index], name)))
                marks.append(IntervalMark(_short(variant), color, mean, low, high))
            panels.append(IntervalPanel(f"{task.environment}, {title}", marks, marks[0].value))
    return draw_aggregates(panels)


def ablation_text(rows: Table) -> str:
    """The same as Markdown tables, each variant beside the defaults on the same seeds."""
    return ablation_page(rows, {variant.name: _short(variant) for variant in VARIANTS}, _DEFAULTS.name)


def _short(variant: Contestant) -> str:
    return "defaults" if variant is _DEFAULTS else variant.name.removeprefix("PerDQN, ")


def ablation_lines(rows: Table) -> list[str]:
    """Every variant on each task: mean of the last fifth, worst seed, area, decisions."""
    lines = []
    for task in tasks_of(rows):
        lines.append(f"{task.environment}: last fifth, worst seed, area, decisions, runs")
        for variant in VARIANTS:
            found = measure(rows, variant.name, task)
            if found is not None:
                lines.append(
                    f"  {_short(variant):<26}{found.ends.mean():>9.1f}{found.ends.min():>9.1f}"
                    f"{found.areas.mean():>8.2f}{found.decisions.mean():>8.1f}{len(found.seeds):>4}"
                )
    return lines


ABLATION = Experiment(
    label="fig:ablation",
    title="Which of PerDQN's defaults matter, and how long actions may be held",
    columns=COLUMNS,
    plan=_plan,
    run=run_contestant,
    draw=_draw,
    summary=ablation_lines,
    notes=("One default at a time is switched off, on CartPole-v1 and MountainCar-v0, with three seeds.",),
    shared="fig:suite",
)
