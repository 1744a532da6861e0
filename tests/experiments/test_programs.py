"""Sweeps, studies and figures from a program: what they do with what will not do, and how many run at once."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from holdfast.core.errors import InputError
from holdfast.experiments import Guest, LocalEngine, Range, RayEngine, run_figure, run_sweep, run_tuning
from holdfast.experiments.tuning import study
from holdfast.runs import train

OPTIONS: dict[str, Any] = {"environment": "cliff", "algo": "q", "episodes": 20, "eval_episodes": 1}


def tuned(**given: Any) -> Callable[[Path], Any]:
    return lambda folder: run_tuning(**{"options": OPTIONS, "trials": 1, **given}, folder=folder)


def swept(**given: Any) -> Callable[[Path], Any]:
    return lambda folder: run_sweep(**{"options": OPTIONS, "grid": {"alpha": [0.1]}, **given}, folder=folder)


def drawn(**given: Any) -> Callable[[Path], Any]:
    return lambda folder: run_figure(**{"label": "sync_env", **given}, folder=folder)


@pytest.mark.parametrize(
    ("call", "sentence"),
    [
        (tuned(ranges={}), "range must name at least one argument that is not fixed: there is nothing to tune"),
        (tuned(ranges=["alpha"]), "ranges must be a mapping such as {'gamma': None, "),
        (tuned(ranges={"alpha": (0.1, 0.5)}), "for alpha, not (0.1, 0.5)"),
        (tuned(ranges={"lr": None}), "range must say what lr is drawn from"),
        (
            tuned(options="cliff"),
            "options must be a mapping such as {'environment': 'cliff', 'algo': 'perq'}, not",
        ),
        (tuned(options={3: 4}), "options must be a mapping such as"),
        (tuned(engine="ray"), "engine must be a LocalEngine or a RayEngine, not 'ray'"),
        (tuned(engine=LocalEngine), "engine must be a LocalEngine or a RayEngine, not <class"),
        (tuned(engine=RayEngine(None, "auto")), "jobs must be given on a cluster: that many trials are drawn"),
        (tuned(trials=0), "trials must be a whole number of at least 1, not 0"),
        (swept(options="cliff"), "options must be a mapping such as"),
        (
            swept(grid={"alpha": 0.1}),
            "grid must have a list of values for each argument, as {'k_max': [2, 4]} has",
        ),
        (swept(grid={"alpha": "0.1"}), "grid must have a list of values for each argument"),
        (swept(grid={"alpha": []}), "grid must have a list of values for each argument"),
        (swept(grid=["alpha"]), "grid must have a list of values for each argument"),
        (swept(seeds=0), "seeds must be a whole number of at least 1, not 0"),
        (swept(engine=2), "engine must be a LocalEngine or a RayEngine, not 2"),
        (drawn(engine=2), "engine must be a LocalEngine or a RayEngine, not 2"),
        (
            drawn(guests=["perq"]),
            "guests must be a list such as [Guest('module:Class', {'k_max': 8})], not ['perq']",
        ),
        (drawn(guests="perq"), "guests must be a list such as"),
        (
            drawn(guests=[Guest("perq")]),
            "label must be a figure that compares agents, and fig:sync_env is not one",
        ),
        (lambda _: LocalEngine(0), "at_once must be a whole number of at least 1, not 0"),
        (lambda _: RayEngine(0), "at_once must be a whole number of at least 1, not 0"),
        (lambda _: RayEngine(1, cpus=0), "cpus must be a finite number above 0, not 0"),
        (lambda _: Range("a", "b"), "a range must go from a number to a greater one, and 'a' is not a number"),
        (lambda _: Range(choices="ab"), "choices must be a list such as [16, 32], not 'ab'"),
        (lambda _: Range(), "a range must go from a number to a greater one, not from None to None"),
        (lambda path: train("cliff", path), "options must be a mapping such as"),
        (lambda path: train(OPTIONS, path, on_evaluation=3), "on_evaluation must be a function, not 3"),
    ],
)
def test_bad_input_is_one_sentence_and_leaves_nothing(
    call: Callable[[Path], Any], sentence: str, tmp_path: Path
) -> None:
    with pytest.raises(InputError) as raised:
        call(tmp_path / "folder")
    assert sentence in str(raised.value)
    assert "\n" not in str(raised.value)
    assert not (tmp_path / "folder").exists()


def test_choices_may_be_a_list() -> None:
    assert Range(choices=[16, 32]) == Range(choices=(16, 32))


def test_as_many_trials_are_drawn_together_as_the_engine_runs(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    widths: list[int] = []

    def noted(study: Any, done: Any, width: int) -> Any:
        widths.append(width)
        return original(study, done, width)

    original = study._draw
    monkeypatch.setattr(study, "_draw", noted)
    ranges = {"alpha": Range(0.05, 0.5)}
    run_tuning(OPTIONS, tmp_path / "two", trials=2, ranges=ranges, engine=LocalEngine(2))
    assert widths == [2]
    run_tuning(OPTIONS, tmp_path / "one", trials=2, ranges=ranges, engine=LocalEngine(2), at_once=1)
    assert widths == [2, 1, 1]
