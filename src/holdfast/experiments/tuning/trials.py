"""A trial: one drawing of arguments, trained as a job that stops itself where others were better by then.

What the trial is measured by goes with it: at each evaluation the median, over the trials that had ended when it
was drawn, of the best evaluation until then. So a trial needs to hear from nobody, on whichever machine it runs,
and is the same trial when it is run again.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from holdfast.core.errors import InputError
from holdfast.experiments.spec import Experiment, Job, no_plan
from holdfast.experiments.tables import Table, select
from holdfast.runs.session import Evaluated

if TYPE_CHECKING:
    from matplotlib.figure import Figure

__all__ = [
    "COLUMNS",
    "TUNE",
    "best_until",
    "is_behind",
    "median_bars",
    "told_parameters",
    "trial_options",
    "trial_score",
]

COLUMNS = ("step", "return", "decisions", "pruned")
"""Of the rows, an evaluation each: ``pruned`` is 1 where the training was stopped behind the last of them."""

LEAST = 5
"""Trials that must have ended before others are stopped."""
WARM_UP = 0.25
"""Part of the evaluations before which none is stopped."""

_OPTIONS = (
    "environment",
    "env_kwargs",
    "algo",
    "steps",
    "episodes",
    "eval_every",
    "eval_episodes",
    "device",
    "n_envs",
    "threads",
    "set",
)


def trial_score(returns: Sequence[float]) -> float:
    """What a training is worth: the mean of the last fifth of its evaluations, of one at least."""
    last = max(1, len(returns) // 5)
    return float(np.mean(returns[-last:]))


def best_until(returns: Sequence[float]) -> list[float]:
    """The largest return until each evaluation."""
    return [float(value) for value in np.maximum.accumulate(np.asarray(returns, dtype=np.float64))]


def median_bars(curves: Sequence[Sequence[float]], evaluations: int) -> list[float | None]:
    """What a trial must have reached at each evaluation not to be stopped; None where nobody is.

    Args:
        curves: Evaluations of the trials that ended, one sequence each.
        evaluations: How many a training has.

    Returns:
        The median over the curves of the best evaluation until then; None in the first quarter and at the last
        one. Empty as long as fewer than five trials have ended.
    """
    if len(curves) < LEAST:
        return []
    bests = [best_until(curve) for curve in curves]
    first = int(np.ceil(WARM_UP * evaluations))
    bars: list[float | None] = []
    for number in range(evaluations):
        there = [best[number] for best in bests if number < len(best)]
        is_looked_at = first <= number < evaluations - 1 and len(there) >= LEAST
        bars.append(float(np.median(there)) if is_looked_at else None)
    return bars


def is_behind(returns: Sequence[float], bars: Sequence[float | None]) -> bool:
    """Whether a trial with these evaluations is to be stopped: its best one is below the bar of the last."""
    if not returns or len(returns) > len(bars):
        return False
    bar = bars[len(returns) - 1]
    return bar is not None and max(returns) < bar


def trial_options(setting: Mapping[str, Any]) -> dict[str, Any]:
    """A setting as ``holdfast.runs.train`` takes it, without the seed."""
    options = {name: setting[name] for name in _OPTIONS if setting.get(name) is not None}
    return {**options, "label": setting["env_label"], "set": {**options.get("set", {}), **setting["parameters"]}}


def run_trial(job: Job, place: Path) -> Mapping[str, Any]:
    """Train, or go on, until it is over or behind; a row per evaluation."""
    from holdfast.experiments.store import place_entry
    from holdfast.experiments.training import evaluation_columns, train_job
    from holdfast.runs.directory import RunFolder

    bars = job.setting["bars"]
    run = RunFolder(place_entry(place))
    known = evaluation_columns(run, ("return_mean",))["return_mean"].tolist() if run.evaluations.is_there else []
    # A process that was killed may have written down more than it had saved.
    returns: dict[int, float] = dict(enumerate(known, start=1))

    def behind() -> bool:
        return is_behind([returns[number] for number in sorted(returns)], bars)

    def note(evaluated: Evaluated) -> bool:
        for number in [number for number in returns if number >= evaluated.number]:
            del returns[number]
        returns[evaluated.number] = evaluated.mean_return
        return not behind()

    if not (returns and behind()):
        run = train_job({**trial_options(job.setting), "seed": job.seed}, place, note)
    found = evaluation_columns(run, ("step", "episode", "return_mean", "decisions_mean"))
    if len(found["step"]) == 0:
        raise InputError("no evaluation was made within the training: train for longer, or evaluate more often")
    # A training that was over at its last evaluation was not stopped by it.
    is_over = run.read_config().is_reached(int(found["step"][-1]), int(found["episode"][-1]))
    pruned = is_behind(found["return_mean"].tolist(), bars) and not is_over
    return {
        "step": found["step"],
        "return": found["return_mean"],
        "decisions": found["decisions_mean"],
        "pruned": np.full(len(found["step"]), float(pruned)),
    }


def draw_trials(rows: Table) -> Figure:
    """The score of each trial by its number, and the best until then, of those trained to the end."""
    from holdfast.draw import Curve, Panel, draw_curves
    from holdfast.draw.style import PALETTE

    numbers, scores, ended = _scores(rows)
    curves = []
    if ended.any():
        best = np.array(best_until(scores[ended].tolist()))
        curves.append(Curve("trial", PALETTE["grey"], numbers[ended], scores[ended], is_marked=True))
        curves.append(Curve("best so far", PALETTE["blue"], numbers[ended], best))
    if not ended.all():
        others = numbers[~ended], scores[~ended]
        curves.append(Curve("not trained to the end", PALETTE["orange"], *others, dash=2, is_marked=True))
    return draw_curves([Panel(str(rows["env_label"][0]), curves)], "trial", "greedy return, last evaluations")


def _scores(rows: Table) -> tuple[Any, Any, Any]:
    """The trials' numbers, their scores, and whether they were trained to the end with all seeds."""
    numbers, n_seeds = np.unique(rows["trial"]), len(np.unique(rows["seed"]))
    scores, ended = [], []
    for number in numbers:
        own = select(rows, trial=number)
        curves = [select(own, seed=seed)["return"].tolist() for seed in np.unique(own["seed"])]
        scores.append(np.mean([trial_score(curve) for curve in curves]))
        ended.append(len(curves) == n_seeds and not own["pruned"].any())
    return numbers, np.array(scores), np.array(ended)


def _title(job: Job) -> str:
    """``trial 3, seed 1: alpha=0.118, k_max=4``: on a narrow terminal, too, trials and seeds are told apart."""
    return f"trial {job.setting['trial']}, seed {job.seed}: {told_parameters(job.setting['parameters'])}"


def told_parameters(parameters: Mapping[str, Any]) -> str:
    """What was drawn, for people."""
    return ", ".join(f"{name}={_short(value)}" for name, value in parameters.items())


def _short(value: Any) -> str:
    return f"{value:.3g}" if isinstance(value, float) else str(value).replace(" ", "")


def _no_summary(rows: Table) -> list[str]:
    return []


TUNE = Experiment(
    label="tune",
    title="a study",
    columns=COLUMNS,
    plan=partial(no_plan, "a study has no scale: its trials are drawn as it goes on"),
    run=run_trial,
    draw=draw_trials,
    summary=_no_summary,
    job_title=_title,
    reference="holdfast.experiments.tuning.trials:TUNE",
)
