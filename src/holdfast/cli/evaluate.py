"""``holdfast evaluate``: a policy's return, how often it decides, and pictures of it."""

from __future__ import annotations

import argparse
import json
import math
import os
import sys
import textwrap
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from holdfast.cli.policies import acting_options, add_policy_arguments, policy_folder
from holdfast.cli.streams import results
from holdfast.cli.typed_values import counted
from holdfast.cli.verbs import add_output, add_pairs, add_seed, add_step_timeout, add_verb
from holdfast.core.errors import InputError

if TYPE_CHECKING:
    from holdfast.policies import Evaluation
    from holdfast.policies.opened import OpenedPolicy
    from holdfast.policies.tolerance_sweep import SweepPoint

__all__ = ["add_parser", "render"]

_DESCRIPTION = """\
Play greedy episodes with the best policy of a run, and print its return with a
95 % interval, its steps and decisions per episode, and how long actions were
held.
"""
_EXAMPLES = """\
examples:
  holdfast evaluate runs/MountainCar-v0-perdqn-k16-s0
  holdfast evaluate RUN --episodes 100 --decision-tolerance 0.5
  holdfast evaluate RUN --render car.gif --episodes 1
  holdfast evaluate RUN -o pictures --axes position,velocity
  holdfast evaluate RUN --sweep-tolerance

With a decision tolerance, the policy holds its best action longer, as long as
that gives up no more than the tolerance in value. With an interrupt margin, it
drops a held action when another option is better by more than the margin.
"""

_BAR = 32


def add_parser(verbs: Any) -> None:
    """Add the verb to the command line."""
    parser = add_verb(
        verbs,
        "evaluate",
        "measure a run's best policy: return, decisions, holds; film it",
        _DESCRIPTION,
        _EXAMPLES,
    )
    add_policy_arguments(parser, "drop a held action when another option is better by more than this")
    parser.add_argument("--episodes", type=int, default=20, metavar="N", help="episodes to play (default: 20)")
    add_seed(parser, "random seed of the episodes")
    parser.add_argument(
        "--env",
        dest="environment",
        metavar="ENV",
        help="another environment; your own code (module:callable) must be named here",
    )
    add_pairs(parser, "--env-kwargs", "arguments of the environment", default=[])
    parser.add_argument(
        "--render",
        type=Path,
        metavar="FILE",
        help="also film the first episodes, as .gif or .mp4, with the held action and the steps left",
    )
    parser.add_argument(
        "--sweep-tolerance",
        action="store_true",
        help="play with a range of tolerances instead: return against decisions per episode",
    )
    add_output(
        parser,
        "also draw into this folder: the holds, the values at the first episode's decisions, and the policy "
        "as arrows on a grid or as a map over two observations",
    )
    parser.add_argument(
        "--axes",
        metavar="I,J",
        help="which two observations the map shows, by number from 0 or name (default: those that matter most)",
    )
    add_step_timeout(parser)
    parser.add_argument("--json", action="store_true", help="print the numbers as JSON")
    parser.set_defaults(execute=run)


def run(arguments: argparse.Namespace) -> int:
    """Play, print, draw."""
    from holdfast.cli.typed_values import allow_code, keyword_arguments
    from holdfast.core.checks import check_integer
    from holdfast.files import make_folders
    from holdfast.policies.actors import acting_as
    from holdfast.policies.evaluation import evaluation_seeds
    from holdfast.policies.opened import open_policy

    episodes = check_integer("episodes", arguments.episodes)
    seed = check_integer("seed", arguments.seed, 0)
    allow_code(arguments.environment)
    kwargs = keyword_arguments("--env-kwargs", arguments.env_kwargs)
    shown = open_policy(policy_folder(arguments), arguments.environment, kwargs)
    _refuse_what_would_be_ignored(arguments)
    axes = _axes(shown, arguments.axes)
    if arguments.out is not None:
        make_folders(arguments.out)
    actor = acting_as(shown.actor, *acting_options(arguments))
    seeds = evaluation_seeds(seed, 0, episodes)
    if arguments.sweep_tolerance:
        return _sweep(shown, seeds, arguments)
    from holdfast.policies.evaluation import evaluate

    # The film comes first: if it cannot be made, fail before playing the episodes.
    films = [] if arguments.render is None else [render(shown, actor, seeds, arguments.render)]
    env = shown.make_env()
    try:
        found = evaluate(actor, env, seeds, shown.longest)
    finally:
        env.close()
    written = [] if arguments.out is None else _pictures(shown, actor, found, seeds[0], axes, arguments.out)
    written += films
    if arguments.json:
        results().write(json.dumps(_as_json(shown, found, written), indent=2) + "\n")
    else:
        results().write(_as_text(shown, found, written))
    return 0


def _refuse_what_would_be_ignored(arguments: argparse.Namespace) -> None:
    if arguments.sweep_tolerance:
        for name in ("axes", "render", "decision_tolerance", "interrupt_margin"):
            if getattr(arguments, name) is not None:
                raise InputError(f"{name} must not be given with --sweep-tolerance", name)
    if arguments.axes is not None and arguments.out is None:
        raise InputError("--axes must be given with --out, the folder that the map is drawn into")


def _axes(shown: OpenedPolicy, given: str | None) -> tuple[int, int] | None:
    if given is None:
        return None
    from holdfast.policies.pictures import find_axes

    env = shown.make_env()
    try:
        return find_axes(given, env)
    finally:
        env.close()


def _pictures(
    shown: OpenedPolicy, actor: Any, found: Evaluation, seed: int, axes: tuple[int, int] | None, out: Path
) -> list[Path]:
    from holdfast.draw import draw_hold_histogram, save_figure
    from holdfast.policies.pictures import draw_decisions, draw_policy_over, take_trip

    env = shown.make_env()
    try:
        trip = take_trip(actor, env, seed, shown.longest)
        figures = {
            "holds.png": draw_hold_histogram(found.holds, _title(shown)),
            "values.png": draw_decisions(actor, env, trip),
            "policy.png": draw_policy_over(actor, env, trip, axes, _title(shown)),
        }
    finally:
        env.close()
    return [save_figure(figure, out / name) for name, figure in figures.items() if figure is not None]


def render(shown: OpenedPolicy, actor: Any, seeds: list[int], path: Path) -> Path:
    """Film the first episodes."""
    from holdfast.policies.video import FORMATS, film, write_film

    if path.suffix.lower() not in FORMATS:
        raise InputError(f"--render must name a file that ends in .gif or .mp4, not {str(path)!r}")
    # Nothing is shown on a screen, so pygame should neither look for one nor print its greeting.
    os.environ.setdefault("SDL_VIDEODRIVER", "dummy")
    os.environ.setdefault("PYGAME_HIDE_SUPPORT_PROMPT", "1")
    env = _env_with_pictures(shown)
    try:
        frames = film(actor, env, seeds[:3], shown.longest)
        pace = _frames_per_second(env)
    finally:
        env.close()
    return write_film(frames, path, pace)


def _frames_per_second(env: Any) -> int:
    """The environment's frame rate, within what films support; 30 if it gives no number."""
    try:
        return min(max(int(env.metadata.get("render_fps") or 30), 2), 50)
    except (AttributeError, TypeError, ValueError, OverflowError):
        return 30


def _env_with_pictures(shown: OpenedPolicy) -> Any:
    """The environment to film; a user's own may render without being told to."""
    try:
        return shown.make_env(render_mode="rgb_array")
    except InputError as error:
        if "render_mode" not in error.arguments:
            raise
    env = shown.make_env()
    if env.render_mode == "rgb_array":
        return env
    env.close()
    raise InputError(
        "--render needs an environment that renders as rgb_array: "
        f"{shown.environment} must accept render_mode as an argument and pass it on"
    )


def _title(shown: OpenedPolicy) -> str:
    return f"{shown.label}, {shown.algo}, policy of step {shown.step:,}"


def _as_text(shown: OpenedPolicy, found: Evaluation, written: list[Path]) -> str:
    import numpy as np

    from holdfast.stats.estimates import mean_interval

    mean, low, high = (float(part[0]) for part in mean_interval(found.returns[:, None]))
    between = "" if np.isnan(low) else f"   95 % interval [{low:.4g}, {high:.4g}]"
    n_decisions = int(found.decisions.sum())
    hold = f"{found.lengths.sum() / n_decisions:.3g}"
    lines = [
        f"{_title(shown)}: {counted(len(found.returns), 'episode')}",
        "",
        f"  return     {mean:>9.4g}{between}",
        f"  steps      {found.lengths.mean():>9.4g}   per episode",
        f"  decisions  {found.decisions.mean():>9.4g}   per episode, "
        + ("one every step" if hold == "1" else f"one every {hold} steps"),
        "",
        "  held for   share of decisions",
    ]
    largest = found.holds.max()
    for steps in np.flatnonzero(found.holds):
        count = int(found.holds[steps])
        bar = "█" * max(1, round(_BAR * count / largest))
        lines.append(f"  {steps:>8}   {bar} {count / n_decisions:.1%}")
    if written:
        lines += ["", *(f"wrote {path}" for path in written)]
    return "\n".join(lines) + "\n"


def _as_json(shown: OpenedPolicy, found: Evaluation, written: list[Path]) -> dict[str, Any]:
    import numpy as np

    from holdfast.stats.estimates import mean_interval

    mean, low, high = (float(part[0]) for part in mean_interval(found.returns[:, None]))
    return {
        "environment": shown.label,
        "algo": shown.algo,
        "policy_step": shown.step,
        "episodes": len(found.returns),
        "return_mean": mean,
        "return_interval": None if np.isnan(low) else [low, high],
        "returns": found.returns.tolist(),
        "lengths": found.lengths.tolist(),
        "decisions": found.decisions.tolist(),
        "holds": {str(steps): int(found.holds[steps]) for steps in np.flatnonzero(found.holds)},
        "files": [str(path) for path in written],
    }


def _sweep(shown: OpenedPolicy, seeds: list[int], arguments: argparse.Namespace) -> int:
    from holdfast.policies.tolerance_sweep import (
        random_return,
        sweep_tolerance,
        sweep_values,
        tolerance_verdict,
    )

    def told(done: int, of: int) -> None:
        if sys.stderr.isatty():
            sys.stderr.write(f"\r\x1b[2K{done} of {of} tolerances" if done < of else "\r\x1b[2K")
            sys.stderr.flush()

    env = shown.make_env()
    try:
        tolerances = sweep_values(shown.actor, env, seeds[0], shown.longest)
        points = sweep_tolerance(shown.actor, env, seeds, tolerances, shown.longest, told)
        by_chance = random_return(env, seeds, points[0], shown.longest)
    finally:
        env.close()
    told(len(tolerances), len(tolerances))
    written = [] if arguments.out is None else [_draw_sweep(shown, points, arguments.out)]
    verdict = tolerance_verdict(points, len(seeds), by_chance)
    if arguments.json:
        document = {
            "points": [_finite(vars(point)) for point in points],
            "random_return": by_chance,
            "verdict": vars(verdict),
            "files": [str(path) for path in written],
        }
        results().write(json.dumps(document, indent=2) + "\n")
        return 0
    lines = [
        f"{_title(shown)}: {counted(len(seeds), 'episode')} per tolerance",
        "",
        "  tolerance  decisions     return",
    ]
    lines += [
        f"  {point.tolerance:>9.3g}  {point.decisions:>9.4g}  {point.mean_return:>9.4g}"
        + ("" if point.low != point.low else f"   [{point.low:.4g}, {point.high:.4g}]")
        for point in points
    ]
    lines += [
        "",
        "Tolerances are in values, discounted as in training; returns are undiscounted.",
        "",
        *textwrap.wrap(verdict.sentence, 79, break_on_hyphens=False),
    ]
    lines += ["", *(f"wrote {path}" for path in written)] if written else []
    results().write("\n".join(lines) + "\n")
    return 0


def _finite(numbers: Mapping[str, Any]) -> dict[str, Any]:
    """The numbers by name, with None for NaN and infinity, which JSON lacks."""
    return {
        name: None if isinstance(value, float) and not math.isfinite(value) else value
        for name, value in numbers.items()
    }


def _draw_sweep(shown: OpenedPolicy, points: list[SweepPoint], out: Path) -> Path:
    from holdfast.draw import draw_tolerance_sweep, save_figure

    figure = draw_tolerance_sweep(
        [point.tolerance for point in points],
        [point.decisions for point in points],
        [point.mean_return for point in points],
        [point.low for point in points],
        [point.high for point in points],
        _title(shown),
    )
    return save_figure(figure, out / "tolerance.png")
