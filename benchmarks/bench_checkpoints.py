"""Checkpoints: what one costs, and what part of a training they take at the default interval."""

from __future__ import annotations

import tempfile
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import gymnasium
import numpy as np

from benchmarks.harness import Row, Settings, Table, Timing, compare, format_bytes, growth
from holdfast import PerDQN
from holdfast.runs import RunFolder, train
from holdfast.runs.config import DEFAULT_CHECKPOINT_SECONDS
from holdfast.runs.session import SHARE_OF_CHECKPOINTS

__all__ = ["tables"]


class Pictures(gymnasium.Env[Any, Any]):
    """Noise of 84×84×4, episodes of 500 steps."""

    observation_space = gymnasium.spaces.Box(0, 255, (84, 84, 4), np.uint8)
    action_space = gymnasium.spaces.Discrete(6)

    def reset(self, *, seed: int | None = None, options: Any = None) -> tuple[Any, dict[str, Any]]:
        """Begin an episode."""
        super().reset(seed=seed)
        self._step = 0
        return self._picture(), {}

    def step(self, action: Any) -> tuple[Any, float, bool, bool, dict[str, Any]]:
        """One step."""
        self._step += 1
        return self._picture(), 0.0, False, self._step == 500, {}

    def _picture(self) -> Any:
        return self.np_random.integers(0, 256, (84, 84, 4), dtype=np.uint8)


def tables(settings: Settings) -> Iterator[Table]:
    """The cost of a checkpoint by the size of the replay, then a training with checkpoints."""
    sizes = (50, 100, 200) if settings.quick else (5_000, 15_000, 50_000)
    yield _cost("MountainCar", "MlpPolicy", lambda: gymnasium.make("MountainCar-v0"), sizes, settings)
    yield _cost("84×84×4 images that share no frames", "CnnPolicy", Pictures, sizes, settings)
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
                run.write_checkpoint("perdqn", {"agent": agent.state()})

            cases[f"{steps} steps"] = checkpoint
            checkpoint()
            written[f"{steps} steps"] = sum(path.stat().st_size for path in run.path.rglob("*") if path.is_file())
        rows = tuple(
            replace(row, facts={"on disk": format_bytes(written[row.case]), "of the time": _share(row.timing)})
            for row in compare(settings, cases)
        )
    slope = growth(sizes, [row.timing.median for row in rows])
    return Table(
        f"A checkpoint of PerDQN(8), {title}, by the steps in its replay",
        rows,
        (
            f"Taking the state, writing and flushing it; time grows as steps^{slope:.2f}. Of the time: one every "
            f"{DEFAULT_CHECKPOINT_SECONDS:g} s, or less often to stay under {SHARE_OF_CHECKPOINTS:.0%}.",
        ),
    )


def _share(cost: Timing) -> str:
    """Part of the time that checkpoints of this cost take at the default interval."""
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
        Row("the whole training", whole, 1.0, {"checkpoints": str(checkpoints)}),
        Row("of it, checkpoints", part, part.median / whole.median, {"checkpoints": ""}),
    )
    return Table(
        f"holdfast train MountainCar-v0 --k-max 8 --steps {steps}, checkpoints as by default", rows, ("Once.",)
    )
