"""TensorBoard's own reader reads our events."""

from __future__ import annotations

import signal
from pathlib import Path
from typing import Any

import pytest
from tensorboard.backend.event_processing.event_accumulator import EventAccumulator

from holdfast.files import read_rows
from holdfast.runs import train
from holdfast.runs.events import Events
from holdfast.runs.stopping import StopRequest
from tests.runs.small_runs import BOTH, NETWORK, TABLE, trained
from tests.runs.test_training import Stopping


def curves(run: Path) -> dict[str, list[tuple[int, float]]]:
    reader = EventAccumulator(str(run), size_guidance={"scalars": 0})
    reader.Reload()
    return {
        name: [(event.step, event.value) for event in reader.Scalars(name)] for name in reader.Tags()["scalars"]
    }


def test_what_is_written_is_read(tmp_path: Path) -> None:
    events = Events(tmp_path, 0)
    events.scalars(3, {"a": 1.5, "b": 2.0, "c": float("nan")})
    events.scalars(7, {"a": 2.5})
    events.close()
    assert curves(tmp_path) == {"a": [(3, 1.5), (7, 2.5)], "b": [(3, 2.0)]}


def test_what_did_not_happen_is_forgotten(tmp_path: Path) -> None:
    first = Events(tmp_path, 0)
    for step in range(10):
        first.scalars(step, {"a": 0.0})
    first.close()
    second = Events(tmp_path, 6)
    second.scalars(6, {"a": 1.0})
    second.close()
    assert curves(tmp_path)["a"] == [*((step, 0.0) for step in range(6)), (6, 1.0)]


@pytest.mark.parametrize("options", BOTH.values(), ids=BOTH)
def test_the_curves_of_a_run(options: dict[str, Any], tmp_path: Path) -> None:
    stop = StopRequest()
    train(options, tmp_path, Stopping(stop, 40), stop)
    assert stop.signal == signal.SIGTERM
    trained(options, tmp_path)
    found = curves(tmp_path)
    expected = {"rollout/ep_rew_mean", "rollout/decisions_mean", "rollout/hold_mean", "eval/mean_reward"}
    assert expected <= set(found)
    for points in found.values():
        steps = [step for step, _ in points]
        assert steps == sorted(set(steps))
    evaluations = read_rows(tmp_path / "evaluations.csv")
    assert found["eval/mean_reward"] == [
        (step, pytest.approx(mean))
        for step, mean in zip(evaluations["step"], evaluations["return_mean"], strict=True)
    ]


def test_a_network_logs_what_sb3_logs(tmp_path: Path) -> None:
    trained(NETWORK, tmp_path, steps=150)
    assert {"train/loss", "time/fps", "train/loss_k1", "rollout/exploration_rate"} <= set(curves(tmp_path))


def test_a_table_logs_its_exploration(tmp_path: Path) -> None:
    trained(TABLE, tmp_path)
    assert curves(tmp_path)["rollout/exploration_rate"][-1][1] == pytest.approx(0.99**11)
