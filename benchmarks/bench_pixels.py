"""Images and boards: how fast agents train on them, their size in the replay, and the cost of a checkpoint."""

from __future__ import annotations

import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from dataclasses import replace
from functools import partial
from pathlib import Path

import numpy as np
import torch as th
from numpy.typing import NDArray
from stable_baselines3.common.vec_env import DummyVecEnv, VecFrameStack

from benchmarks.harness import Row, Settings, Table, Timing, compare, format_bytes
from benchmarks.noise_env import NoisePictures
from benchmarks.pixel_training import board_tables, training_tables
from holdfast import PerDQN
from holdfast.deep.replay.frame_store import FrameStore
from holdfast.deep.replay.observation_store import ArrayStore, ObservationStore
from holdfast.runs import RunFolder

__all__ = ["tables"]

SHAPE = (4, 84, 84)
EPISODE = 200

PEAK = """
import sys
import numpy as np
from gymnasium import spaces
from holdfast.deep import OptionReplayBuffer
from holdfast.deep.speed.target_cache import TargetCache
from stable_baselines3.common.buffers import ReplayBuffer

kind, k_max, steps, episode = sys.argv[1], *map(int, sys.argv[2:])
space, actions = spaces.Box(0, 255, (4, 84, 84), np.uint8), spaces.Discrete(6)

def peak():
    with open("/proc/self/status") as file:
        return next(int(line.split()[1]) * 1024 for line in file if line.startswith("VmHWM:"))

def play(buffer, steps):
    random = np.random.default_rng(0)
    stack = np.zeros((1, 4, 84, 84), dtype=np.uint8)
    for step in range(steps):
        new = random.integers(0, 256, (1, 1 if kind != "ring of unrelated images" else 4, 84, 84), dtype=np.uint8)
        following = np.concatenate([stack[:, new.shape[1]:], new], axis=1)
        done = np.array([step % episode == episode - 1])
        over = () if kind == "sb3" else (done | (step % k_max == 0),)
        buffer.add(stack, following, np.array([[step % 6]]), np.array([1.0]), done, [{}], *over)
        stack = following
        if done[0]:
            stack = np.concatenate([stack[:, :3] * 0, new[:, -1:] ^ 1], axis=1)
    if kind != "sb3":
        kept, rows = TargetCache((6, k_max)), np.arange(len(buffer.written))
        one = lambda rows: np.ones((len(rows), 6, k_max), np.float32)
        kept.need(rows, buffer.written, ("a target network",), one)

def make(steps):
    if kind == "sb3":
        return ReplayBuffer(steps, space, actions, "cpu")
    return OptionReplayBuffer(steps, space, actions, "cpu", k_max=k_max)

play(make(20), 50)  # whatever is loaded and compiled
before = peak()
play(make(steps), steps + steps // 10)
print(peak() - before)
"""


def tables(settings: Settings) -> Iterator[Table]:
    """One table per question."""
    th.set_num_threads(1)
    yield from training_tables(settings)
    yield from board_tables(settings)
    yield _memory(settings)
    yield from _reading_and_writing(settings)
    yield _checkpoints(settings)


def _memory(settings: Settings) -> Table:
    """Peak memory of a full replay."""
    steps = 500 if settings.quick else 50_000
    cases = {
        "one ring, K = 4": ("ring", 4),
        "one ring, K = 8": ("ring", 8),
        "one ring, K = 8, no stacks": ("ring of unrelated images", 8),
        "SB3's buffer": ("sb3", 1),
    }
    rows: list[Row] = []
    for name, (kind, k_max) in cases.items():
        began = time.perf_counter()
        command = [sys.executable, "-c", PEAK, kind, str(k_max), str(steps), str(EPISODE)]
        grown = int(subprocess.run(command, check=True, capture_output=True, text=True).stdout)
        elapsed = Timing((time.perf_counter() - began,))
        ratio = elapsed.median / rows[0].timing.median if rows else 1.0
        rows.append(Row(name, elapsed, ratio, {"peak": format_bytes(grown)}))
    return Table(
        f"Peak memory of a replay of {steps} steps of 84×84×4 images, 6 actions, episodes of {EPISODE} steps",
        tuple(rows),
        (
            "Each in its own process, filled 1.1 times over; peak resident memory beyond that of the same process "
            "with a replay of 20 steps. All kept target values are included.",
        ),
    )


def _reading_and_writing(settings: Settings) -> Iterator[Table]:
    """Stacks made from frames, and stacks stored whole."""
    n_rows = 200 if settings.quick else 50_000
    stores: dict[str, ObservationStore] = {
        "kept whole": ArrayStore(n_rows, SHAPE, np.uint8),
        "as frames": FrameStore(n_rows, SHAPE, np.uint8),
    }
    film = _film()
    for row in range(n_rows):
        stack = next(film)
        for store in stores.values():
            store.put(np.array([row]), stack)
    random = np.random.default_rng(1)

    def reading(store: ObservationStore, batches: NDArray[np.int64]) -> Callable[[], object]:
        turns = iter(range(10**9))
        return lambda: store.get(batches[next(turns) % len(batches)])

    def writing(store: ObservationStore) -> Callable[[], object]:
        turns, film = iter(range(10**9)), _film()
        return lambda: store.put(np.array([next(turns) % n_rows]), next(film))

    for size in (128, 256):
        batches = random.integers(0, n_rows, (64, size))
        cases = {name: reading(store, batches) for name, store in stores.items()}
        yield Table(f"Reading {size} of {n_rows} stacks of 84×84×4, at random", compare(settings, cases))
    film = _film()
    cases = {"making it": lambda: next(film)}
    cases |= {f"and writing it, {name}": writing(store) for name, store in stores.items()}
    yield Table("Making a stack of 84×84×4 and writing it", compare(settings, cases))


def _film() -> Iterator[NDArray[np.uint8]]:
    """Stacks of four frames, each with one new frame."""
    noise = np.random.default_rng(0).integers(0, 256, (64, 1, 1, 84, 84), dtype=np.uint8)
    stack = np.zeros((1, *SHAPE), dtype=np.uint8)
    for step in range(10**12):
        new = noise[step % 64]
        new[0, 0, 0, :8] = np.array([step]).view(np.uint8)
        stack = np.concatenate([stack[:, 1:], new], axis=1)
        yield stack


def _checkpoints(settings: Settings) -> Table:
    """The size of a checkpoint, and the time that it takes."""
    steps = 100 if settings.quick else 50_000
    with tempfile.TemporaryDirectory() as folder:
        env = VecFrameStack(DummyVecEnv([partial(NoisePictures, 1, EPISODE)]), 4)
        agent = PerDQN("CnnPolicy", env, k_max=8, buffer_size=steps, learning_starts=steps + 1, seed=0)
        agent.learn(steps)
        assert agent.replay_buffer is not None
        run = RunFolder(Path(folder) / "run")
        run.create()
        replay = agent.replay_buffer
        state = {"replay": replay.state()}
        # Environments do not matter here, and this vector environment could not be restored.
        cases: dict[str, Callable[[], object]] = {
            "taking the state": replay.state,
            "taking and writing it": lambda: run.write_checkpoint("perdqn", {"replay": replay.state()}, keep=1),
            "restoring it": lambda: replay.restore(state["replay"]),
        }
        cases["taking and writing it"]()
        on_disk = sum(path.stat().st_size for path in run.path.rglob("*") if path.is_file())
        rows = tuple(
            replace(row, facts={"on disk": format_bytes(on_disk) if "writing" in row.case else ""})
            for row in compare(settings, cases)
        )
    return Table(f"A checkpoint of a replay of {steps} steps of 84×84×4 images, K = 8", rows)
