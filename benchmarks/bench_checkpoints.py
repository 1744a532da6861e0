"""Checkpoints: the cost of one, and the share of training time that they take at the default interval."""

from __future__ import annotations

import tempfile
from collections.abc import Iterator
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import gymnasium

from benchmarks.harness import Row, Settings, Table, Timing, compare, format_bytes, growth
from benchmarks.noise_env import NoisePictures
from holdfast import PerDQN
from holdfast.runs import RunFolder, train
from holdfast.runs.options import DEFAULT_CHECKPOINT_SECONDS
from holdfast.runs.session import SHARE_OF_CHECKPOINTS

__all__ = ["tables"]


def tables(settings: Settings) -> Iterator[Table]:
    """The cost of a checkpoint by the size of the replay, then a training run with checkpoints."""
    sizes = (50, 100, 200) if settings.quick else (5_000, 15_000, 50_000)
    yield _cost("MountainCar", "MlpPolicy", lambda: gymnasium.make("MountainCar-v0"), sizes, settings)
    yield _cost(
        "84×84×4 images that share no frames", "CnnPolicy", partial(NoisePictures, 4, 500), sizes, settings
    )
    yield _training(settings)


def _cost(title: str, policy: str, make: Any, sizes: tuple[int, ...], settings: Settings) -> Table:
    cases, written = {}, {}
    with tempfile.TemporaryDirectory() as folder:
        for steps in sizes:
            agent = PerDQN(policy, make(), k_max=8, buffer_size=steps, learning_starts=steps + 1, seed=0)
            agent.learn(steps)
            run = RunFolder(Path(folder) / str(steps))
            run.create()

            def checkpoint(run: RunFolder = run, agent: PerDQN = agent) -> None:
                run.write_checkpoint("perdqn", {"agent": agent.state()}, keep=1)

            cases[f"{steps} steps"] = checkpoint
            checkpoint()
            written[f"{steps} steps"] = sum(path.stat().st_size for path in run.path.rglob("*") if path.is_file())
        rows = tuple(
            replace(row, facts={"on disk": format_bytes(written[row.case]), "share of time": _share(row.timing)})
            for row in compare(settings, cases)
        )
    slope = growth(sizes, [row.timing.median for row in rows])
    return Table(
        f"A checkpoint of PerDQN(8), {title}, by the steps in its replay",
        rows,
        (
            f"Taking the state, writing and flushing it; time grows as steps^{slope:.2f}. Share of time: one "
            f"every {DEFAULT_CHECKPOINT_SECONDS:g} s, or less often to stay below {SHARE_OF_CHECKPOINTS:.0%}.",
        ),
    )


def _share(cost: Timing) -> str:
    """Share of the time that checkpoints of this cost take at the default interval."""
    between = max(DEFAULT_CHECKPOINT_SECONDS, cost.median / SHARE_OF_CHECKPOINTS)
    return f"{cost.median / (between + cost.median):.2%}"


def _training(settings: Settings) -> Table:
    steps = 1500 if settings.quick else 50_000
    with tempfile.TemporaryDirectory() as folder:
        options = {
            "environment": "MountainCar-v0",
            "k_max": 8,
            "steps": steps,
            "eval_every": 0,
            "set": {"buffer_size": 50_000},
        }
        outcome = train(options, Path(folder) / "run")
        checkpoints = len((Path(folder) / "run/timing.csv").read_text().splitlines()) - 1
    whole, part = Timing((outcome.seconds,)), Timing((outcome.checkpoint_seconds,))
    rows = (
        Row("the whole run", whole, 1.0, {"checkpoints": str(checkpoints)}),
        Row("checkpoints only", part, part.median / whole.median, {"checkpoints": ""}),
    )
    return Table(
        f"holdfast train MountainCar-v0 --k-max 8 --steps {steps}, default checkpoints", rows, ("Run once.",)
    )
