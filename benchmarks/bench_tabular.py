"""The tabular learners: how fast they train, what compilation gains and costs, and how long the figures take."""

from __future__ import annotations

import importlib
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import ProcessPoolExecutor
from multiprocessing import get_context
from pathlib import Path
from types import ModuleType
from typing import Any

import numba
import numpy as np

from benchmarks.harness import Row, Settings, Table, Timing, compare, growth
from holdfast import tabular
from holdfast.core.schedules import tabulate
from holdfast.envs import make_env
from holdfast.experiments.figures import find_experiment
from holdfast.tabular.run import EpisodeOutcomes
from holdfast.tabular.simulator import FlatModel, flat_model

__all__ = ["tables"]

STEP_LIMIT = 100
PROCESSES = 2
FIGURES = ("sync", "tabular_perf", "tabular_noboot", "tabular_multi")

FIRST_CALL = """
import time
began = time.perf_counter()
from holdfast.envs import make_env
from holdfast.experiments.figures import find_experiment
from holdfast.tabular import PerQLearning
imported = time.perf_counter()
PerQLearning(8).fit(make_env("cliff"), 1)
print(imported - began, time.perf_counter() - imported)
"""


def tables(settings: Settings) -> Iterator[Table]:
    """One table per question."""
    yield _compiled_or_not(settings)
    yield _learners(settings)
    yield _growth_with_k_max(settings)
    yield _loops(settings)
    yield _first_call(settings)
    yield _figures(settings)


def _compiled_or_not(settings: Settings) -> Table:
    """The same source twice in one process: compiled, and as plain Python."""
    episodes = 5 if settings.quick else 300
    plain = _uncompiled_package()
    model = flat_model(_cliff())
    cases = {
        "compiled": _training(tabular.PerQLearning(8), model, episodes),
        "the same code uncompiled": _training(plain.PerQLearning(8), model, episodes),
    }
    steps = cases["compiled"]()
    if cases["the same code uncompiled"]() != steps:
        raise AssertionError("compiled and uncompiled code must take the same steps")
    rows = _with_speed(compare(settings, cases), dict.fromkeys(cases, steps))
    return Table(
        f"PerQ(8) with all updates of Algorithm 1 on Cliff, {episodes} training episodes",
        rows,
        (f"Compiled, it is {rows[1].ratio:.0f} times as fast, with the same steps; nothing is evaluated.",),
    )


def _learners(settings: Settings) -> Table:
    episodes = 20 if settings.quick else 600
    model = flat_model(_cliff())
    learners = {
        "Q-learning": tabular.QLearning(),
        "PerQ(8)": tabular.PerQLearning(8),
        "PerQ(8), primitive target": tabular.PerQLearning(8, target_value="primitive"),
        "PerQ(8), interrupted": tabular.PerQLearning(8, interrupt_margin=0.0),
        "MSA(8), padded": tabular.MSAQLearning(8, pad_terminal=True),
        "TempoRL(8)": tabular.TempoRLQLearning(8),
        "εz-greedy(8)": tabular.EZGreedyQLearning(8),
        "Q-learning, updates equal to PerQ(8)": tabular.QLearning(
            updates_per_step=tabular.equal_updates_per_step(8)
        ),
    }
    cases = {name: _training(learner, model, episodes) for name, learner in learners.items()}
    steps = {name: case() for name, case in cases.items()}
    return Table(
        f"Training on Cliff, {episodes} episodes, compiled",
        _with_speed(compare(settings, cases), steps),
        ("Runs differ in their number of steps: compare steps/s.",),
    )


def _growth_with_k_max(settings: Settings) -> Table:
    durations = (1, 2, 4) if settings.quick else (1, 2, 4, 8, 16, 32)
    episodes = 20 if settings.quick else 600
    model = flat_model(_cliff())
    cases = {
        f"K_max = {k_max}": _training(tabular.PerQLearning(k_max, epsilon=1.0), model, episodes)
        for k_max in durations
    }
    steps = {name: case() for name, case in cases.items()}
    rows = _with_speed(compare(settings, cases), steps)
    costs = [row.timing.median / steps[row.case] for row in rows]
    return Table(
        f"PerQ-learning on Cliff by K_max, {episodes} episodes of random options",
        rows,
        (f"Time per step grows as K^{growth(durations, costs):.2f}; holds end early in holes.",),
    )


def _loops(settings: Settings) -> Table:
    episodes = 3 if settings.quick else 60
    env = make_env("cliff")
    learner = tabular.PerQLearning(8)

    def case(loop: str) -> Callable[[], int]:
        return lambda: int(learner.fit(env, episodes, loop=loop, evaluate=False).steps.sum())

    cases = {"compiled loop": case("compiled"), "Python loop, compiled updates": case("python")}
    steps = {name: run() for name, run in cases.items()}
    return Table(
        f"PerQ(8) on Cliff through fit(), {episodes} episodes, set-up included",
        _with_speed(compare(settings, cases), steps),
        ("The Python loop is for any Gymnasium environment with Discrete spaces.",),
    )


def _first_call(settings: Settings) -> Table:
    """Import and first call in new processes, with an empty cache and with a filled one."""
    with tempfile.TemporaryDirectory() as cache:
        variables = {**os.environ, "NUMBA_CACHE_DIR": cache}
        cold = _seconds_in_new_process(variables)
        warm = [_seconds_in_new_process(variables) for _ in range(1 if settings.quick else settings.repetitions)]
    first, later = Timing((cold[1],)), Timing(tuple(call for _, call in warm))
    rows = (
        Row("first call ever: compiles", first, 1.0, {"import": f"{cold[0]:.2f} s"}),
        Row(
            "first call in a later process: from the cache",
            later,
            later.median / first.median,
            {"import": f"{np.median([imported for imported, _ in warm]):.2f} s"},
        ),
    )
    return Table("PerQ(8).fit of one episode in a new process", rows)


def _figures(settings: Settings) -> Table:
    """The curves of the paper's tabular figures, on two cores, in processes that are started once."""
    scale = "smoke" if settings.quick else "paper"
    tasks = [(label, n, scale) for label in FIGURES for n in range(len(find_experiment(label).jobs(scale)))]
    began = time.perf_counter()
    with ProcessPoolExecutor(PROCESSES, mp_context=get_context("spawn")) as pool:
        computing = sum(pool.map(_job_seconds, *zip(*tasks, strict=True)))
    seconds = Timing((time.perf_counter() - began,))
    return Table(
        f"The jobs of {', '.join(FIGURES)} at scale {scale}, {PROCESSES} processes",
        (Row(f"{len(tasks)} jobs", seconds, 1.0, {"computing": f"{computing:.0f} s"}),),
        (
            "The median is the wall time, including starting the processes and loading the compiled code; "
            "computing is the processor time of the jobs themselves. `holdfast reproduce` has a process per job.",
        ),
    )


def _job_seconds(label: str, number: int, scale: str) -> float:
    """Processor seconds of one job of a figure."""
    experiment = find_experiment(label)
    job = experiment.jobs(scale)[number]
    began = time.process_time()
    experiment.run(job, Path("not-used"))
    return time.process_time() - began


def _training(learner: Any, model: FlatModel, episodes: int) -> Callable[[], int]:
    """A case that trains from the start, without evaluation; it returns the number of steps."""
    epsilons = tabulate(learner.epsilon, episodes)
    fresh = learner.start(_cliff(), loop="compiled")

    def train() -> int:
        state, log = fresh.copy(), EpisodeOutcomes.empty(episodes, evaluate=False)
        learner.run_compiled(model, state, epsilons, STEP_LIMIT, log)
        return int(log.steps.sum())

    return train


def _with_speed(rows: tuple[Row, ...], steps: Mapping[str, int]) -> tuple[Row, ...]:
    return tuple(
        Row(row.case, row.timing, row.ratio, {"steps/s": _thousands(steps[row.case] / row.timing.median)})
        for row in rows
    )


def _thousands(number: float) -> str:
    return f"{number / 1e6:.2f} M" if number >= 1e6 else f"{number / 1e3:.1f} k"


def _cliff() -> Any:
    return make_env("cliff").unwrapped.tabular_mdp(0.99)  # type: ignore[attr-defined]


def _uncompiled_package() -> ModuleType:
    """A second copy of ``holdfast.tabular`` whose functions are not compiled."""

    def ours() -> list[str]:
        return [name for name in sys.modules if name.startswith("holdfast.tabular")]

    compiled = {name: sys.modules.pop(name) for name in ours()}
    settings: Any = numba.config
    settings.DISABLE_JIT = 1
    try:
        return importlib.import_module("holdfast.tabular")
    finally:
        settings.DISABLE_JIT = 0
        for name in ours():
            del sys.modules[name]
        sys.modules.update(compiled)


def _seconds_in_new_process(variables: Mapping[str, str]) -> tuple[float, float]:
    """Seconds for the imports and for the first call."""
    command = [sys.executable, "-c", FIRST_CALL]
    printed = subprocess.run(command, env=variables, capture_output=True, text=True, check=True).stdout
    imported, called = map(float, printed.split())
    return imported, called
