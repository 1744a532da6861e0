"""Trade-offs: policies for several decision costs, solved or trained, with their returns and decisions."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from holdfast.core.checks import check_real
from holdfast.core.errors import InputError
from holdfast.experiments.spec import Experiment, Job, no_plan
from holdfast.experiments.sweep import grid_jobs, train_options
from holdfast.experiments.tables import Table, select

if TYPE_CHECKING:
    import gymnasium
    from matplotlib.figure import Figure

    from holdfast.advice.trade_off import TradeOffPoint
    from holdfast.policies.evaluation import Actor

__all__ = [
    "TRADE_OFF",
    "is_solvable",
    "is_solved",
    "solved_jobs",
    "trade_off_points",
    "trained_jobs",
    "training_options",
]

COLUMNS = ("tolerance", "is_tolerant", "return", "decisions", "length")
"""One row per episode: first those without a tolerance, then those with the chosen tolerance."""

_EPISODES, _SOLVED = "evaluation_episodes", "solved"
"""Names in a setting that are neither options nor arguments of the algorithm."""
_LONGEST_SOLVED = 10_000
"""Steps after which an exact policy's episode is cut off if the environment sets no limit."""


def is_solvable(env: gymnasium.Env[Any, Any]) -> bool:
    """Whether an environment exposes its transitions, so that nothing has to be trained."""
    from holdfast.mdp import TabularMDP

    try:
        TabularMDP.from_gymnasium(env, 0.5)
    except InputError:
        return False
    return True


def solved_jobs(
    options: Mapping[str, Any], costs: Sequence[float], persistences: Sequence[int], gamma: float, episodes: int
) -> tuple[Experiment, list[Job]]:
    """One job per cost, which solves a table.

    Args:
        options: ``environment``, and possibly ``env_kwargs``.
        costs: Costs of a decision.
        persistences: Persistences to choose from.
        gamma: Discount factor, below 1.
        episodes: Number of episodes that each policy plays, without and with a tolerance.
    """
    from holdfast.runs.options import make_config

    if not 0.0 <= gamma < 1.0:
        raise InputError(f"gamma must be a number in [0, 1), not {gamma:g}", "gamma")
    config = make_config({**options, "algo": "perq"})
    common = {
        "environment": config.environment,
        "env_label": config.label,
        **({"env_kwargs": config.env_kwargs} if config.env_kwargs else {}),
        "persistences": list(persistences),
        "gamma": gamma,
        _SOLVED: True,
        _EPISODES: episodes,
    }
    plan = [({**common, "decision_cost": cost}, 0) for cost in _checked(costs)]
    return _titled(config.label, "exact policies"), TRADE_OFF.jobs_of(plan)


def trained_jobs(
    options: Mapping[str, Any], costs: Sequence[float], n_seeds: int, episodes: int
) -> tuple[Experiment, list[Job]]:
    """One job for each cost and seed, which trains.

    Args:
        options: Options that all jobs share, as for ``holdfast.runs.train``.
        costs: Costs of a decision.
        n_seeds: Number of seeds; each cost is trained with the seeds 0..n_seeds − 1.
        episodes: Number of episodes that each policy plays, without and with a tolerance.
    """
    # The final policies are compared; the best one during training would be best by return alone.
    common = {**options, "eval_every": 0}
    _, jobs = grid_jobs(common, {"decision_cost": _checked(costs)}, n_seeds)
    plan = [({**job.setting, _SOLVED: False, _EPISODES: episodes}, job.seed) for job in jobs]
    return _titled(jobs[0].setting["env_label"], jobs[0].setting["algo"]), TRADE_OFF.jobs_of(plan)


def _checked(costs: Sequence[float]) -> list[float]:
    found = [check_real("costs", cost, 0.0) for cost in costs]
    if not found or len(set(found)) < len(found):
        raise InputError(f"costs must be different numbers of at least 0, not {list(costs)}", "costs")
    return sorted(found)


def _titled(label: str, what: str) -> Experiment:
    return replace(TRADE_OFF, title=f"return against decisions per episode by decision cost, {label}, {what}")


def run(job: Job, place: Path) -> Mapping[str, Any]:
    """Solve or train, choose a tolerance on some episodes, and play others without and with it."""
    from holdfast.envs import make_scoring_env
    from holdfast.policies.evaluation import LONGEST_EPISODE, evaluate, evaluation_seeds
    from holdfast.policies.tolerance_sweep import sweep_tolerance, sweep_values, tolerance_verdict

    setting = job.setting
    episodes = setting[_EPISODES]
    env = make_scoring_env(setting["environment"], **setting.get("env_kwargs", {}))
    try:
        if is_solved(setting):
            actor, longest = _solved_actor(setting, env), _LONGEST_SOLVED
        else:
            actor, longest = _trained_actor(job, place), LONGEST_EPISODE
        chosen_on, played = (evaluation_seeds(job.seed, number, episodes) for number in (0, 1))
        tolerances = sweep_values(actor, env, chosen_on[0], longest)
        tried = sweep_tolerance(actor, env, chosen_on, tolerances, longest)
        tolerance = tolerance_verdict(tried, episodes).tolerance
        found = [evaluate(actor.acting_with(t, None), env, played, longest) for t in (None, tolerance)]
    finally:
        env.close()
    return {
        "tolerance": np.repeat([0.0, tolerance], episodes),
        "is_tolerant": np.repeat([0.0, 1.0], episodes),
        "return": np.concatenate([part.returns for part in found]),
        "decisions": np.concatenate([part.decisions for part in found]).astype(np.float64),
        "length": np.concatenate([part.lengths for part in found]).astype(np.float64),
    }


def _solved_actor(setting: Mapping[str, Any], env: gymnasium.Env[Any, Any]) -> Actor:
    from holdfast.mdp import TabularMDP, q_star_options
    from holdfast.policies.actors import TableActor
    from holdfast.tabular import GreedyPolicy

    mdp = TabularMDP.from_gymnasium(env, setting["gamma"])
    cost, persistences = setting["decision_cost"], tuple(setting["persistences"])
    q = q_star_options(mdp, decision_cost=cost, persistences=persistences)
    first_state, first_action = (
        int(getattr(space, "start", 0)) for space in (env.observation_space, env.action_space)
    )
    policy = GreedyPolicy(q, decision_cost=cost, persistences=persistences)
    return TableActor(policy, first_state, first_action)


def _trained_actor(job: Job, place: Path) -> Actor:
    from holdfast.experiments.training import train_job
    from holdfast.policies import load_policy

    train_job({**training_options(job.setting), "seed": job.seed}, place)
    return load_policy(place)


def is_solved(setting: Mapping[str, Any]) -> bool:
    """Whether the policy of a job is exact, not trained."""
    return bool(setting[_SOLVED])


def training_options(setting: Mapping[str, Any]) -> dict[str, Any]:
    """The setting of a job that trains, as options for ``holdfast.runs.train``."""
    return train_options({name: value for name, value in setting.items() if name not in (_EPISODES, _SOLVED)})


def trade_off_points(rows: Table) -> list[TradeOffPoint]:
    """One point per cost, first without, then with a tolerance.

    With several seeds, intervals are over seeds, each the mean over its episodes; with one seed, over its
    episodes.
    """
    from holdfast.advice.trade_off import TradeOffPoint
    from holdfast.stats.estimates import mean_estimate

    points = []
    for is_tolerant in (0.0, 1.0):
        for cost in np.unique(rows["decision_cost"]):
            own = select(rows, decision_cost=cost, is_tolerant=is_tolerant)
            seeds = [select(own, seed=seed) for seed in np.unique(own["seed"])]
            parts = (
                np.array([part[name].mean() for part in seeds]) if len(seeds) > 1 else own[name]
                for name in ("return", "decisions", "length")
            )
            tolerances = tuple(float(part["tolerance"][0]) for part in seeds) if is_tolerant else ()
            points.append(TradeOffPoint(float(cost), tolerances, *map(mean_estimate, parts)))
    return points


def draw_rows(rows: Table) -> Figure:
    """Return against decisions per episode, with and without a tolerance, and the front."""
    from holdfast.advice.trade_off import is_on_front
    from holdfast.draw.style import PALETTE
    from holdfast.draw.trade_off import TradeOffMarks, draw_trade_off

    points = trade_off_points(rows)
    half = len(points) // 2
    kinds = []
    for label, color, marker, own in (
        ("as solved or trained", PALETTE["blue"], "o", points[:half]),
        ("with a decision tolerance", PALETTE["orange"], "s", points[half:]),
    ):
        kinds.append(
            TradeOffMarks(
                label,
                color,
                marker,
                [point.cost for point in own],
                [point.decisions.value for point in own],
                [point.returns.value for point in own],
                np.array([[point.decisions.low, point.decisions.high] for point in own]).T,
                np.array([[point.returns.low, point.returns.high] for point in own]).T,
            )
        )
    values = np.array([(point.decisions.value, point.returns.value) for point in points])
    front = np.unique(values[is_on_front(values[:, 1], values[:, 0])], axis=0)
    return draw_trade_off(kinds, (front[:, 0], front[:, 1]), str(rows["env_label"][0]))


def summary(rows: Table) -> list[str]:
    """One line per point, with a star on the front, and the sentence."""
    import textwrap

    from holdfast.advice.trade_off import is_on_front, trade_off_sentence

    points = trade_off_points(rows)
    on_front = is_on_front([p.returns.value for p in points], [p.decisions.value for p in points])
    lines = [f"{'cost':>8}  {'tolerance':>14}  {'return':>15}  {'decisions':>13}  {'steps':>13}  *"]
    for point, is_there in zip(points, on_front, strict=True):
        returns, decisions, steps = map(_with_interval, (point.returns, point.decisions, point.steps))
        row = f"{point.cost:>8g}  {_span(point.tolerances):>14}  {returns:>15}  {decisions:>13}  {steps:>13}"
        lines.append(f"{row}  {'*' if is_there else ''}".rstrip())
    return [*lines, "", *textwrap.wrap(trade_off_sentence(points), 79, break_on_hyphens=False)]


def _with_interval(estimate: Any) -> str:
    half = estimate.high - estimate.value
    told = f"{half:.0f}" if half >= 10.0 else f"{half:.2g}"
    return f"{estimate.value:.4g}" + (f" ± {told}" if half > 0.0 else "")


def _span(tolerances: Sequence[float]) -> str:
    if not tolerances:
        return "none"
    low, high = f"{min(tolerances):.3g}", f"{max(tolerances):.3g}"
    return low if low == high else f"{low}-{high}"


TRADE_OFF = Experiment(
    label="tradeoff",
    title="a trade-off",
    columns=COLUMNS,
    plan=partial(no_plan, "a trade-off has no scale: its jobs are those of its costs"),
    run=run,
    draw=draw_rows,
    summary=summary,
    notes=(
        "Returns are undiscounted and without the cost. A star marks rows that no other beats in both. Tolerances "
        "were chosen on other episodes than those shown. ±: 95 % (Student's), over seeds if there are "
        "several, else over episodes.",
    ),
    reference="holdfast.experiments.trade_off:TRADE_OFF",
)
