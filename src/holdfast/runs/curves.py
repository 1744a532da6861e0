"""Curves of runs: one per setting, the mean over its seeds with an interval."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from holdfast.core.array_types import Floats
from holdfast.core.errors import InputError
from holdfast.draw import Curve, Panel, algorithm_color
from holdfast.files import read_rows
from holdfast.policies.algorithms import ALGORITHMS, algorithm_title
from holdfast.runs.config import RunConfig
from holdfast.runs.directory import RunFolder
from holdfast.runs.session import EVALUATION_COLUMNS, HOLD_COLUMNS, METRIC_COLUMNS
from holdfast.stats.estimates import mean_interval

__all__ = [
    "QUANTITIES",
    "NothingToShowError",
    "holds_over_training",
    "learning_curves",
    "mean_curve",
    "rolling_mean",
]

Run = tuple[RunConfig, Floats, Floats]
"""A run's values: where on the axis, and what."""

_POINTS = 200
_LONGEST = 10_000
"""The longest possible hold if no argument says so."""


class NothingToShowError(InputError):
    """A run has no episode or evaluation yet."""


@dataclass(frozen=True)
class Quantity:
    """A quantity that a curve can show.

    Attributes:
        title: Title of the axis.
        of_evaluations: Whether it is read from the evaluations, rather than from the training episodes.
        of: Computes it from the rows.
    """

    title: str
    of_evaluations: bool
    of: Callable[[dict[str, Floats]], Floats]


QUANTITIES = {
    "return": Quantity("return (training)", False, lambda rows: rows["return"]),
    "evaluation": Quantity("return (greedy)", True, lambda rows: rows["return_mean"]),
    "decisions": Quantity("decisions per episode", False, lambda rows: rows["decisions"]),
    "hold": Quantity(
        "steps per decision", False, lambda rows: rows["length"] / np.maximum(rows["decisions"], 1.0)
    ),
    "length": Quantity("steps per episode", False, lambda rows: rows["length"]),
}
"""By name."""


def learning_curves(
    paths: Sequence[Path], quantity: str = "return", over: str = "step", window: int = 20
) -> list[Panel]:
    """One panel per environment (with its arguments), with one curve per setting.

    Runs that differ only in seed and length form one curve, up to the end of the shortest; of two runs with the
    same seed, the longer one counts.

    Args:
        paths: Folders of runs.
        quantity: One of ``QUANTITIES``.
        over: ``"step"`` or ``"episode"``.
        window: Episodes averaged per point; evaluations are not averaged.

    Raises:
        ValueError: A run is damaged or has nothing to show yet.
    """
    groups: dict[str, dict[str, dict[int, Run]]] = {}
    titles = {}
    for path in paths:
        config = RunFolder(path).read_config()
        x, y = _trace(RunFolder(path), QUANTITIES[quantity], over, window)
        place = json.dumps([config.label, config.env_kwargs], sort_keys=True)
        titles[place] = _title(config)
        of_setting = groups.setdefault(place, {}).setdefault(_setting(config), {})
        # The same seed is the same run: keep the longer of the two.
        if config.seed not in of_setting or x[-1] > of_setting[config.seed][1][-1]:
            of_setting[config.seed] = (config, x, y)
    return [
        Panel(
            titles[place],
            _curves([list(runs.values()) for runs in settings.values()], QUANTITIES[quantity].of_evaluations),
        )
        for place, settings in groups.items()
    ]


def holds_over_training(path: Path) -> tuple[Floats, Floats, str]:
    """How long actions were held in the evaluations of a run.

    Returns:
        Steps of the evaluations (n,), the share of their decisions held for 1..K steps (n, K), and a title.

    Raises:
        ValueError: The run is damaged or has no evaluation yet.
    """
    folder = RunFolder(path)
    config = folder.read_config()
    rows = {name: np.array(values) for name, values in read_rows(folder.holds, HOLD_COLUMNS).items()}
    if len(rows["step"]) == 0:
        raise NothingToShowError(f"{folder.holds} has nothing to show: the run has no evaluation")
    held, decisions = rows["held"], rows["decisions"]
    # A user's own agent may limit its holds by something other than k_max.
    is_known = config.algo in ALGORITHMS or "k_max" in config.arguments
    longest = config.k_max if is_known else int(min(max(held.max(), 1), _LONGEST))
    if not np.isin(held, np.arange(1, longest + 1)).all():
        raise InputError(f"{folder.holds} is damaged: actions must be held for 1 to {longest} steps")
    if not all((np.isfinite(numbers) & (numbers >= 0.0)).all() for numbers in (rows["step"], decisions)):
        raise InputError(f"{folder.holds} is damaged: steps and decisions must be numbers of at least 0")
    if decisions.max() > 2**53:
        raise InputError(f"{folder.holds} is damaged: decisions must be at most 2**53")
    steps, evaluation = np.unique(rows["step"], return_inverse=True)
    counts = np.zeros((len(steps), longest))
    np.add.at(counts, (evaluation, held.astype(int) - 1), decisions)
    shares = counts / np.maximum(counts.sum(axis=1, keepdims=True), 1.0)
    return steps, shares, f"{_title(config)}, {_short_name(config)}"


def _title(config: RunConfig) -> str:
    """The environment, with its arguments; a map would be too long."""
    told = ", ".join(f"{name}={value}" for name, value in config.env_kwargs.items() if name != "map")
    return f"{config.label}, {told}" if told else config.label


def _setting(config: RunConfig) -> str:
    """What the runs of one curve share: everything but seed and length."""
    arguments = dict(config.arguments)
    if arguments.get("schedule_steps") == config.steps:
        arguments.pop("schedule_steps", None)
    return json.dumps([config.algo, config.n_envs, arguments, config.env_kwargs], sort_keys=True)


def _trace(folder: RunFolder, quantity: Quantity, over: str, window: int) -> tuple[Floats, Floats]:
    path = folder.evaluations if quantity.of_evaluations else folder.metrics
    columns = EVALUATION_COLUMNS if quantity.of_evaluations else METRIC_COLUMNS
    rows = {name: np.array(values) for name, values in read_rows(path, columns).items()}
    if len(rows[over]) == 0:
        raise NothingToShowError(f"{path} has nothing to show yet")
    values = quantity.of(rows)
    if not (np.isfinite(rows[over]).all() and np.isfinite(values).all()):
        raise InputError(f"{path} is damaged: it must have finite numbers")
    return rows[over], values if quantity.of_evaluations else rolling_mean(values, window)


def rolling_mean(values: Floats, window: int) -> Floats:
    """The mean of the last ``window`` values, or of all if there are fewer."""
    sums = np.cumsum(np.concatenate([[0.0], values]))
    ends = np.arange(1, len(values) + 1)
    starts = np.maximum(ends - window, 0)
    return np.asarray((sums[ends] - sums[starts]) / (ends - starts))


def _curves(settings: list[list[Run]], of_evaluations: bool) -> list[Curve]:
    found = []
    dashes: dict[str, int] = {}
    labels = _labels([runs[0][0] for runs in settings])
    for label, runs in zip(labels, settings, strict=True):
        config = runs[0][0]
        last = min(x[-1] for _, x, _ in runs)
        common = runs[0][1][runs[0][1] <= last]
        # Evaluations that all runs made at the same steps need no resampling.
        is_marked = of_evaluations and all(np.array_equal(x[x <= last], common) for _, x, _ in runs)
        grid, mean, low, high = mean_curve([run[1:] for run in runs], common if is_marked else None)
        color = algorithm_color(config.algo)
        dash = dashes.setdefault(color, -1) + 1
        dashes[color] = dash
        seeds = f" ({len(runs)} seeds)" if len(runs) > 1 else ""
        banded = len(runs) > 1
        found.append(
            Curve(
                label + seeds,
                color,
                grid,
                mean,
                low if banded else None,
                high if banded else None,
                dash,
                is_marked,
            )
        )
    return found


def mean_curve(
    traces: Sequence[tuple[Floats, Floats]], at: Floats | None = None
) -> tuple[Floats, Floats, Floats, Floats]:
    """Mean of several runs, with its interval, up to the end of the shortest.

    Args:
        traces: For each run, the points in ascending order, and the values there.
        at: Points at which to take the mean; None for evenly spaced ones.

    Returns:
        The points, the mean, and the ends of its interval, each (n,).
    """
    if at is None:
        first, last = max(x[0] for x, _ in traces), min(x[-1] for x, _ in traces)
        at = np.linspace(first, last, _POINTS) if last > first else np.array([first])
    # The value at each point is the last one known by then.
    values = np.array([y[np.maximum(np.searchsorted(x, at, side="right") - 1, 0)] for x, y in traces])
    return at, *mean_interval(values)


def _labels(configs: list[RunConfig]) -> list[str]:
    """Labels of settings: the algorithm, its K, and whatever else distinguishes settings of that algorithm."""
    names = [_short_name(config) for config in configs]
    labels = []
    for config, name in zip(configs, names, strict=True):
        twins = [other for other, other_name in zip(configs, names, strict=True) if other_name == name]
        own = _told(config)
        differing = [key for key in own if any(_told(twin).get(key) != own[key] for twin in twins)]
        told = ", ".join(f"{key}={str(own[key])[:20]}" for key in differing)
        labels.append(f"{name}, {told}" if told else name)
    return labels


def _told(config: RunConfig) -> dict[str, Any]:
    """What a label may mention: the arguments of the algorithm."""
    return dict(json.loads(_setting(config))[2])


def _short_name(config: RunConfig) -> str:
    title = algorithm_title(config.algo)
    return f"{title}, {config.held}" if config.held else title
