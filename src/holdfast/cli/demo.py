"""``holdfast demo``: an agent that holds its actions beside one that does not, from scratch to pictures."""

from __future__ import annotations

import argparse
import os
import shlex
import shutil
import subprocess
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from holdfast.cli.streams import results
from holdfast.cli.verbs import add_output, add_seed, add_verb
from holdfast.core.errors import InputError
from holdfast.runs.stopping import StopRequest, stop_on_signals

if TYPE_CHECKING:
    from holdfast.policies import Evaluation
    from holdfast.policies.opened import OpenedPolicy

__all__ = ["add_parser"]

_DESCRIPTION = """\
Train PerDQN on MountainCar-v0, from scratch to a policy that reaches the flag,
and plain DQN beside it. Draw what both learned. Takes a minute or two on two
cores. With --quick: PerQ-learning and Q-learning on a grid, in half a minute.
If it stops, start it again and it continues where it was.
"""

_WAITING = 0.2
"""Seconds between two checks on the other training."""


@dataclass(frozen=True)
class Demo:
    """Two trainings to compare.

    Attributes:
        environment: Name of the environment.
        agents: Names of the two algorithms; the first is the one to look at.
        titles: Their names in the table.
        options: Options of ``holdfast train`` for both.
        own: Options for the first only.
        episodes: Greedy episodes that the policies are compared on.
        success: What a good episode achieves.
        succeeded: Tells which episodes were good.
    """

    environment: str
    agents: tuple[str, str]
    titles: tuple[str, str]
    options: tuple[str, ...]
    own: tuple[str, ...]
    episodes: int
    success: str
    succeeded: Callable[[Evaluation], Any]

    def command(self, number: int, seed: int, out: Path) -> list[str]:
        """The ``holdfast`` command that trains one of them."""
        own = self.own if number == 0 else ()
        arguments = ["train", self.environment, "--algo", self.agents[number], *own, *self.options]
        return [*arguments, "--seed", str(seed), "-o", str(self.folder(number, out))]

    def folder(self, number: int, out: Path) -> Path:
        """The run folder of one of them."""
        return out / self.agents[number]


_FULL = Demo(
    "MountainCar-v0",
    ("perdqn", "dqn"),
    ("PerDQN", "DQN"),
    ("--steps", "40000"),
    (),
    50,
    "reached the flag",
    lambda found: found.returns > -200.0,
)
_QUICK = Demo(
    "zigzag",
    ("perq", "q"),
    ("PerQ, K=8", "Q-learning"),
    ("--episodes", "600"),
    ("--k-max", "8", "--set", "decision_tolerance=0.001"),
    20,
    "reached the goal",
    lambda found: found.returns > 0.0,
)


def add_parser(verbs: Any) -> None:
    """Add the verb to the command line."""
    parser = add_verb(
        verbs,
        "demo",
        "compare an agent that holds its actions with one that does not",
        _DESCRIPTION,
    )
    parser.add_argument("--quick", action="store_true", help="use tables on a grid: half a minute")
    add_seed(parser, "random seed of both trainings")
    add_output(parser, "output folder (default: demo, or demo/quick with --quick)")
    parser.set_defaults(execute=run)


def run(arguments: argparse.Namespace) -> int:
    """Train both, compare them, draw and print."""
    from holdfast.core.checks import check_integer
    from holdfast.files import make_folders

    demo = _QUICK if arguments.quick else _FULL
    out = arguments.out or Path("demo", "quick" if arguments.quick else "")
    seed = check_integer("seed", arguments.seed, 0)
    # Fail here, once, rather than in both trainings.
    make_folders(out)
    results().write(f"{demo.titles[0]} and, at the same time, {demo.titles[1]} on {demo.environment}:\n\n")
    for number in (0, 1):
        results().write(_as_typed(demo.command(number, seed, out)) + "\n\n")
    results().flush()
    code = _train_both(demo, seed, out)
    if code != 0:
        return code
    return _show(demo, out)


def _as_typed(command: list[str]) -> str:
    """A command ready to type, on lines of at most 78 characters."""
    lines = [f"  {_program()}"]
    for word in map(shlex.quote, command):
        if len(lines[-1]) + len(word) > 76:
            lines[-1] += " \\"
            lines.append("   ")
        lines[-1] += f" {word}"
    return "\n".join(lines)


def _program() -> str:
    """How to call ``holdfast`` here: its virtual environment may not be active."""
    typed = Path(sys.argv[0])
    is_found = shutil.which("holdfast") is not None or typed.stem != "holdfast"
    return "holdfast" if is_found else shlex.quote(str(typed))


# Training -------------------------------------------------------------------------------------------------------


def _train_both(demo: Demo, seed: int, out: Path) -> int:
    """Train both at the same time, each in a process; return 0 or the exit code of the first that failed."""
    with stop_on_signals() as stop:
        stop.is_obeyed_later = True
        trainings = [_start(demo.command(number, seed, out), is_shown=number == 0) for number in (0, 1)]
        try:
            codes = _wait(trainings, stop, demo, out)
        finally:
            for training in trainings:
                if training.poll() is None:
                    training.terminate()
            said = [training.communicate()[1] or "" for training in trainings]
    for number, code in enumerate(codes):
        sys.stderr.write(said[number] if code else "")
        if code is not None and code < 0:
            sys.stderr.write(f"holdfast demo: the training of {demo.titles[number]} was ended by signal {-code}\n")
    if stop or any(code is not None and code < 0 for code in codes):
        sys.stderr.write("holdfast demo: type the same command again to continue\n")
    failed = next((code for code in codes if code), 0)
    return stop.exit_code if stop else 128 - failed if failed < 0 else failed


def _start(command: list[str], is_shown: bool) -> subprocess.Popen[str]:
    # In its own session, so that Ctrl-C reaches it only once, from here.
    return subprocess.Popen(
        [
            *(sys.executable, "-m", "holdfast", *command, "--stop-with", str(os.getpid())),
            *(() if is_shown else ("--quiet",)),
        ],
        stdin=subprocess.DEVNULL,
        stderr=None if is_shown else subprocess.PIPE,
        text=True,
        start_new_session=True,
    )


def _wait(trainings: list[subprocess.Popen[str]], stop: StopRequest, demo: Demo, out: Path) -> list[int | None]:
    """Wait until both have ended, one has failed, or a signal asks to stop; return the exit codes so far."""
    from holdfast.runs.directory import RunFolder

    told = False
    codes: list[int | None] = [None, None]
    while not stop:
        codes = [training.poll() for training in trainings]
        if None not in codes or any(codes):
            break
        if codes[0] is not None and sys.stderr.isatty():
            steps = RunFolder(demo.folder(1, out)).status().steps
            sys.stderr.write(f"\r\x1b[2Kwaiting for {demo.titles[1]}, at step {steps:,}")
            sys.stderr.flush()
            told = True
        time.sleep(_WAITING)
    if told:
        sys.stderr.write("\r\x1b[2K")
    return codes


# What they learned ----------------------------------------------------------------------------------------------


def _show(demo: Demo, out: Path) -> int:
    from holdfast.policies.evaluation import evaluate, evaluation_seeds
    from holdfast.policies.opened import open_policy

    # Seeds that no evaluation during training used.
    seeds = evaluation_seeds(0, 1_000_000, demo.episodes)
    shown = [open_policy(demo.folder(number, out)) for number in (0, 1)]
    found = []
    for policy in shown:
        env = policy.make_env()
        try:
            found.append(evaluate(policy.actor, env, seeds, policy.longest))
        finally:
            env.close()
    results().write(_table(demo, shown, found))
    results().flush()
    results().write(_draw(demo, shown[0], found[0], seeds[0], out))
    results().write(_next(demo.folder(0, out)))
    return 0


def _table(demo: Demo, shown: list[OpenedPolicy], found: list[Evaluation]) -> str:
    from holdfast.stats.estimates import mean_interval

    rows: list[tuple[str, list[str]]] = [
        ("best policy, from step", [f"{policy.step:,}" for policy in shown]),
        ("return", []),
        ("  95 % interval", []),
        (demo.success, [f"{float(demo.succeeded(one).mean()):.0%}" for one in found]),
        ("steps per episode", [f"{one.lengths.mean():.1f}" for one in found]),
        ("decisions per episode", [f"{one.decisions.mean():.1f}" for one in found]),
    ]
    for one in found:
        mean, low, high = (float(part[0]) for part in mean_interval(one.returns[:, None]))
        rows[1][1].append(f"{mean:.4g}")
        rows[2][1].append(f"[{low:.4g}, {high:.4g}]")
    lines = [f"\n{demo.episodes} greedy episodes, the same for both:\n"]
    lines.append(f"  {'':<24}{demo.titles[0]:>18}{demo.titles[1]:>18}")
    lines += [f"  {name:<24}{cells[0]:>18}{cells[1]:>18}" for name, cells in rows]
    return "\n".join(lines) + "\n\n"


def _draw(demo: Demo, shown: OpenedPolicy, found: Evaluation, seed: int, out: Path) -> str:
    from holdfast.draw import draw_curves, draw_hold_histogram, draw_holds_over_training, save_figure
    from holdfast.policies.pictures import draw_decisions, draw_policy_over, take_trip
    from holdfast.runs.curves import QUANTITIES, holds_over_training, learning_curves

    runs = [demo.folder(number, out) for number in (0, 1)]
    env = shown.make_env()
    try:
        trip = take_trip(shown.actor, env, seed, shown.longest)
        policy = draw_policy_over(shown.actor, env, trip)
        decisions = draw_decisions(shown.actor, env, trip)
    finally:
        env.close()
    title = f"{shown.label}, {demo.titles[0]}"
    curves = draw_curves(learning_curves(runs, "evaluation"), "steps", QUANTITIES["evaluation"].title)
    steps, shares, of_what = holds_over_training(runs[0])
    figures = {
        "curves.png": ("return of both as they learn", curves),
        "policy.png": ("what it does where, and for how long", policy),
        "values.png": ("what each action is worth, held for 1, 2, ... steps", decisions),
        "holds.png": ("for how long it holds", draw_hold_histogram(found.holds, title)),
        "training.png": ("how that changed as it learned", draw_holds_over_training(steps, shares, of_what)),
    }
    drawn = [
        (save_figure(figure, out / name), told) for name, (told, figure) in figures.items() if figure is not None
    ]
    width = max(len(str(path)) for path, _ in drawn)
    lines = [f"  {path!s:<{width}}  {told}" for path, told in drawn]
    return "\n".join([*lines, _film(shown, seed, out, width)]) + "\n"


def _film(shown: OpenedPolicy, seed: int, out: Path, width: int) -> str:
    from holdfast.cli.evaluate import render

    try:
        film = render(shown, shown.actor, [seed], out / "film.gif")
        return f"  {film!s:<{width}}  an episode, with what is held"
    except InputError as error:
        # If the environment cannot be rendered here, show the rest of the demo anyway.
        return f"  no film: {error}"


def _next(folder: Path) -> str:
    program, run = _program(), shlex.quote(str(folder))
    commands = {
        f"{program} evaluate {run} --sweep-tolerance": "decide less often",
        f"{program} export {run} policy.onnx": "deploy it",
        f"{program} train --help": "train your own",
    }
    width = max(map(len, commands))
    lines = [f"  {command:<{width}}  # {told}" for command, told in commands.items()]
    return "\n".join(["\nWhat to type next:\n", *lines]) + "\n"
