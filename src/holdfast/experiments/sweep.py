"""Sweeps: an algorithm trained with every setting of a grid, with several seeds each."""

from __future__ import annotations

import itertools
import json
import textwrap
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from holdfast.core.checks import check_integer
from holdfast.core.errors import InputError, InputTypeError
from holdfast.experiments.spec import Experiment, Job, no_plan
from holdfast.experiments.tables import Table, select
from holdfast.policies.algorithms import find_algorithm, nearest_names
from holdfast.stats.estimates import mean_interval

if TYPE_CHECKING:
    from matplotlib.figure import Figure

__all__ = ["SWEEP", "grid_jobs", "train_options"]

COLUMNS = ("episode", "step", "return", "length", "decisions")

_OPTIONS = (
    "environment",
    "env_kwargs",
    "env_label",
    "algo",
    "set",
    "steps",
    "episodes",
    "eval_every",
    "eval_episodes",
    "n_envs",
    "threads",
    "device",
)
"""Names in a setting that are not arguments of the algorithm."""
_OF_ITS_OWN = ("seed", "checkpoint_every", "keep_checkpoints")
"""Options of a training that are not the user's in a sweep."""
_HELD = "steps_per_decision"
"""Name in a setting for the number of steps that ``HoldAction`` holds every action for."""
_OF_ENV = "env."
"""Prefix of names in the grid that are arguments of the environment."""
_TOLD = "of_env_"
"""Prefix of such arguments in a setting, which no option and no algorithm's argument has."""
_NAME_WIDTH = 44
_LAST = 20
"""Number of episodes whose mean return is compared."""


def grid_jobs(
    options: Mapping[str, Any], grid: Mapping[str, Sequence[Any]], n_seeds: int
) -> tuple[Experiment, list[Job]]:
    """The sweep of a grid, and its jobs.

    Args:
        options: Options that all jobs share, as for ``holdfast.runs.train``.
        grid: Values of arguments of the algorithm, of ``algo`` or, as ``env.NAME``, of arguments of the
            environment; every combination is a setting. If the environment holds every action for k steps by
            ``HoldAction``, ``steps`` and ``eval_every`` are divided by k, so that all settings spend the same time
            in it, and the discount factor of a decision is γ^k unless the grid or ``set`` names another.
        n_seeds: Number of seeds; each setting is trained with the seeds 0..n_seeds − 1.

    Raises:
        ValueError: A setting is invalid; nothing has been trained.
    """
    from holdfast.runs.options import make_config
    from holdfast.runs.training import check_agent

    options = _shared(options)
    grid = _checked_grid(grid)
    check_integer("seeds", n_seeds)
    settings = []
    for point in itertools.product(*grid.values()):
        named = dict(zip(grid, point, strict=True))
        algo = find_algorithm(named.get("algo", options.get("algo")))
        known = algo.arguments()
        for name in named:
            if name.startswith(_OF_ENV):
                if name.removeprefix(_OF_ENV) in options.get("env_kwargs", {}):
                    raise InputError(
                        f"grid and env_kwargs must not both name {name.removeprefix(_OF_ENV)!r}",
                        "grid",
                        "env_kwargs",
                    )
                continue
            if name == "k_max" and name not in known:
                raise InputError(
                    f"k_max must not be given for {algo.name}, which holds every action for one step", "k_max"
                )
            if name != "algo" and name not in known:
                hint = nearest_names(name, known) or f"choose from {', '.join(known)}"
                raise InputError(
                    f"grid names {name!r}, which {algo.name} does not have; {hint} (env.{name} for an argument of "
                    "the environment)",
                    "grid",
                )
            if name in options.get("set", {}):
                raise InputError(f"grid and set must not both name {name!r}", "grid", "set")
        setting = _following_the_hold(_setting(options, named), known["gamma"].default)
        config = make_config(train_options(setting))
        check_agent(config)
        # A map file is replaced by its map, because the file may change or disappear.
        setting |= {"environment": config.environment, "env_label": config.label}
        setting |= {"env_kwargs": config.env_kwargs} if config.env_kwargs else {}
        settings.append(setting)
    what = f"{settings[0]['env_label']}: {', '.join(grid)}"
    sweep = replace(SWEEP, title=f"mean return of the last {_LAST} training episodes, {what}")
    plan = ((setting, seed) for setting in settings for seed in range(n_seeds))
    return sweep, sweep.jobs_of(plan)


def _checked_grid(grid: Mapping[str, Sequence[Any]]) -> dict[str, list[Any]]:
    """The grid with its values as lists, or an error where an argument has no such list."""
    if isinstance(grid, Mapping):
        several = [
            isinstance(values, Iterable) and not isinstance(values, str | Mapping) for values in grid.values()
        ]
        found = {name: list(values) for name, values in grid.items()} if all(several) else {"": []}
        if all(found.values()):
            return found
    raise InputTypeError(
        f"grid must have a list of values for each argument, as {{'k_max': [2, 4]}} has, not {grid!r}", "grid"
    )


def _shared(options: Mapping[str, Any]) -> dict[str, Any]:
    """Options that all jobs share, by the names that a setting has for them."""
    from holdfast.runs.options import named_options

    found = named_options(options)
    for name in _OF_ITS_OWN:
        if name in found:
            raise InputError(f"options must not have {name!r}, which a sweep sets for each of its trainings")
    return {"env_label" if name == "label" else name: value for name, value in found.items()}


def _setting(options: Mapping[str, Any], named: Mapping[str, Any]) -> dict[str, Any]:
    """Options with one point of the grid; arguments of the environment join its own, and are listed by name."""
    own = {name.removeprefix(_OF_ENV): value for name, value in named.items() if name.startswith(_OF_ENV)}
    if not own:
        return {**options, **named}
    rest = {name: value for name, value in named.items() if not name.startswith(_OF_ENV)}
    told = {f"{_TOLD}{name}": value for name, value in own.items()}
    return {**options, "env_kwargs": {**options.get("env_kwargs", {}), **own}, **rest, **told}


def _following_the_hold(setting: dict[str, Any], usual_gamma: float) -> dict[str, Any]:
    """The same time in the environment, and the discount of k steps, if every action is held for k steps."""
    from holdfast.envs import NamedFailures, make_env
    from holdfast.envs.hold_action import steps_per_decision
    from holdfast.runs.options import DEFAULT_STEPS

    env = NamedFailures(make_env(setting["environment"], **setting.get("env_kwargs", {})))
    try:
        held = steps_per_decision(env)
    finally:
        env.close()
    if held == 1:
        return setting
    found = {**setting, _HELD: held}
    if find_algorithm(setting["algo"]).is_deep or setting.get("steps") is not None:
        found["steps"] = max(1, setting.get("steps", DEFAULT_STEPS) // held)
    if setting.get("eval_every"):
        found["eval_every"] = max(1, setting["eval_every"] // held)
    if "gamma" not in setting and "gamma" not in setting.get("set", {}):
        found["set"] = {**setting.get("set", {}), "gamma": float(usual_gamma) ** held}
    return found


def train_options(setting: Mapping[str, Any]) -> dict[str, Any]:
    """A setting as options for ``holdfast.runs.train``."""
    options = {name: setting[name] for name in _OPTIONS if setting.get(name) is not None}
    if "env_label" in options:
        options["label"] = options.pop("env_label")
    arguments = {
        name: value
        for name, value in setting.items()
        if name not in (*_OPTIONS, _HELD) and not name.startswith(_TOLD)
    }
    return {**options, "set": {**options.get("set", {}), **arguments}}


def run(job: Job, place: Path) -> Mapping[str, Any]:
    """Train; return one row per episode."""
    from holdfast.experiments.training import episode_columns, train_job

    trained = train_job({**train_options(job.setting), "seed": job.seed}, place)
    episodes = episode_columns(trained, COLUMNS)
    # Environment steps, not decisions, so that settings are compared over the same time.
    for name in ("step", "length"):
        episodes[name] = episodes[name] * job.setting.get(_HELD, 1)
    if len(episodes["episode"]) == 0:
        raise InputError("no episode ended within the trained steps: train longer")
    return episodes


def draw_sweep(rows: Table) -> Figure:
    """The return of training episodes over steps: one curve per setting, the mean over seeds."""
    from holdfast.draw import Curve, Panel, draw_curves
    from holdfast.draw.style import PALETTE
    from holdfast.runs.curves import mean_curve, rolling_mean

    colors = [color for name, color in PALETTE.items() if name != "yellow"]
    curves = []
    for number, (name, own) in enumerate(_settings(rows)):
        traces = []
        for seed in np.unique(own["seed"]):
            one = select(own, seed=seed)
            traces.append((one["step"], rolling_mean(one["return"], _LAST)))
        x, mean, low, high = mean_curve(traces)
        dash, shade = divmod(number, len(colors))
        seeds = f" ({len(traces)} seeds)" if len(traces) > 1 else ""
        curve = Curve(name + seeds, colors[shade], x, mean, dash=dash)
        curves.append(replace(curve, low=low, high=high) if len(traces) > 1 else curve)
    return draw_curves([Panel(str(rows["env_label"][0]), curves)], "steps", "return (training)")


def summary(rows: Table) -> list[str]:
    """One line per setting: mean of the last returns over seeds, with its interval."""
    found = []
    for name, own in _settings(rows):
        last = np.array([select(own, seed=seed)["return"][-_LAST:].mean() for seed in np.unique(own["seed"])])
        mean, low, _ = (float(part[0]) for part in mean_interval(last[:, None]))
        found.append((name, len(last), f"{mean:.5g}", f"± {mean - low:.3g}" if len(last) > 1 else ""))
    width = max(len("setting"), *(len(name) for name, *_ in found))
    if width <= _NAME_WIDTH:
        lines = [f"{'setting':<{width}}  {'seeds':>5}  {'return':>10}  95 % interval"]
        return lines + [f"{name:<{width}}  {n:>5}  {told:>10}  {half}".rstrip() for name, n, told, half in found]
    # Long names get their own lines: cut off, they could not be told apart.
    lines = [f"{'setting':<10}  {'seeds':>5}  {'return':>10}  95 % interval"]
    for name, n, told, half in found:
        lines += textwrap.wrap(name, 79, subsequent_indent="    ", break_on_hyphens=False)
        lines.append(f"{'':<10}  {n:>5}  {told:>10}  {half}".rstrip())
    return lines


def _settings(rows: Table) -> Iterator[tuple[str, Table]]:
    """Each setting with its rows, named by what differs between settings."""
    names = [name for name in rows if name not in (*COLUMNS, "seed", *_OPTIONS, _HELD) or name == "algo"]
    columns = [rows[name].astype(str) for name in names]
    keys = np.array([json.dumps(key) for key in zip(*columns, strict=True)])
    varying = [name for name, column in zip(names, columns, strict=True) if len(set(column)) > 1]
    for key in dict.fromkeys(keys.tolist()):
        own = {name: column[keys == key] for name, column in rows.items()}
        told = ", ".join(f"{_typed(name)}={_short(own[name][0])}" for name in varying)
        yield told or str(own["algo"][0]), own


def _typed(name: str) -> str:
    """The name of a setting as it was typed."""
    return f"{_OF_ENV}{name.removeprefix(_TOLD)}" if name.startswith(_TOLD) else name


def _short(value: Any) -> str:
    return f"{value:g}" if isinstance(value, float | np.floating) else str(value)


SWEEP = Experiment(
    label="sweep",
    title="a sweep",
    columns=COLUMNS,
    plan=partial(no_plan, "a sweep has no scale: its jobs are those of its grid"),
    run=run,
    draw=draw_sweep,
    summary=summary,
    reference="holdfast.experiments.sweep:SWEEP",
)
