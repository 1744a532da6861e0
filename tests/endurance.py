"""Trainings and campaigns for an hour: memory, open files and time per step must stay as they are.

``python -m tests.endurance --minutes 60`` runs a training with a network, one with a table and a campaign one
after the other, each for that long, looks at their processes from outside every few seconds, and fits a line to
each quantity after a fifth of the time. The interval of a slope is Student's 95 % interval of least squares; looks
that lie close together are not independent, so that intervals are rather too narrow. A quantity is flat if its
line rises by no more than 2 % of its mean in an hour, or its interval has 0 in it.
"""

from __future__ import annotations

import argparse
import json
import os
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

import numpy as np
from scipy import stats

ENDLESS = "1000000000"
SMALL = ("buffer_size=2000", "learning_starts=200", "batch_size=32", "policy_kwargs={'net_arch': [32]}")
COMMANDS = {
    "network": [
        *("train", "CartPole-v1", "--k-max", "4", "--steps", ENDLESS, "--eval-every", "5000"),
        *("--eval-episodes", "2", "--checkpoint-every", "5", "--set", *SMALL),
    ],
    "table": [
        *("train", "FrozenLake-v1", "--algo", "perq", "--k-max", "4", "--episodes", ENDLESS),
        *("--eval-every", "20000", "--eval-episodes", "2", "--checkpoint-every", "5"),
    ],
}


class Look(NamedTuple):
    """What a process needs at a moment: seconds, megabytes, open files, seconds of processors; and its steps."""

    time: float
    memory: float
    files: float
    processor: float
    done: float


def look_at(process: int, done: float) -> Look:
    """Look at a process from outside."""
    folder = Path("/proc") / str(process)
    memory = int((folder / "statm").read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE") / 2**20
    times = (folder / "stat").read_text().rpartition(")")[2].split()
    processor = (int(times[11]) + int(times[12])) / os.sysconf("SC_CLK_TCK")
    return Look(time.monotonic(), memory, len(list((folder / "fd").iterdir())), processor, done)


def slope(hours: np.ndarray, values: np.ndarray) -> tuple[float, float]:
    """Rise in an hour, and half its 95 % interval, by least squares."""
    if np.ptp(values) == 0.0:
        return 0.0, 0.0
    found = stats.linregress(hours, values)
    return float(found.slope), float(stats.t.ppf(0.975, len(hours) - 2) * found.stderr)


def verdicts(looks: list[Look]) -> dict[str, tuple[float, float, float, bool]]:
    """Mean, slope in an hour, half its interval and whether it is flat, of each quantity."""
    kept = np.array(looks[len(looks) // 5 :])
    hours = (kept[:, 0] - kept[0, 0]) / 3600.0
    middle = (hours[1:] + hours[:-1]) / 2.0
    steps = np.maximum(np.diff(kept[:, 4]), 1e-9)
    quantities = {
        "memory, MB": (hours, kept[:, 1]),
        "open files": (hours, kept[:, 2]),
        "processor, µs a step": (middle, np.diff(kept[:, 3]) / steps * 1e6),
    }
    found = {}
    for name, (times, values) in quantities.items():
        rise, half = slope(times, values)
        is_flat = abs(rise) <= max(half, 0.02 * float(values.mean()))
        found[name] = (float(values.mean()), rise, half, is_flat)
    return found


def training(name: str, folder: Path, seconds: float) -> list[Look]:
    """Look at a training until the time is over; it is then told to stop, and must end as it should."""
    command = [sys.executable, "-m", "holdfast", *COMMANDS[name], "--json", "--out", str(folder / name)]
    process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
    assert process.stdout is not None
    looks, until = [], time.monotonic() + seconds
    for line in process.stdout:
        event = json.loads(line)
        if event["event"] == "progress":
            looks.append(look_at(process.pid, event["steps"]))
        if time.monotonic() > until:
            process.send_signal(signal.SIGTERM)
            until = float("inf")
    assert process.wait() == 143
    return looks


def campaign(folder: Path, seconds: float) -> list[Look]:
    """Look at a campaign of many small jobs: at the process that runs them, by jobs done."""
    (folder / "many.py").write_text(
        "from dataclasses import replace\nfrom tests.experiments.ladders import LADDER\n"
        "MANY = replace(LADDER, label='many', plan=lambda scale: [({'rungs': 3}, n) for n in range(10**4)])\n"
    )
    command = [sys.executable, "-m", "holdfast", "reproduce", "many:MANY", "--jobs", "1", "-o", "many"]
    environment = {**os.environ, "PYTHONPATH": str(Path(__file__).parents[1])}
    process = subprocess.Popen(
        command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, cwd=folder, env=environment
    )
    looks, until = [], time.monotonic() + seconds
    while time.monotonic() < until and process.poll() is None:
        time.sleep(max(2.0, seconds / 300.0))
        rows = folder / "many/rows"
        done = len(list(rows.iterdir())) if rows.is_dir() else 0
        if done:
            looks.append(look_at(process.pid, done))
    process.send_signal(signal.SIGTERM)
    assert process.wait() == 143
    return looks


def main() -> int:
    """Run all; 0 if all is flat."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--minutes", type=float, default=60.0, help="of each part (default: 60)")
    given = parser.parse_args()
    good = True
    print(f"{'':10} {'quantity':22} {'looks':>6} {'mean':>9} {'rise in an hour (95 %)':>26}")
    with tempfile.TemporaryDirectory() as folder:
        parts: dict[str, Callable[[], list[Look]]] = {
            "network": lambda: training("network", Path(folder), given.minutes * 60.0),
            "table": lambda: training("table", Path(folder), given.minutes * 60.0),
            "campaign": lambda: campaign(Path(folder), given.minutes * 60.0),
        }
        for part, run in parts.items():
            looks = run()
            for name, (mean, rise, half, is_flat) in verdicts(looks).items():
                good = good and is_flat
                told = f"{rise:+.4g} ± {half:.3g}"
                mark = "" if is_flat else "  NOT FLAT"
                print(f"{part:10} {name:22} {len(looks):6} {mean:9.4g} {told:>26}{mark}", flush=True)
    return 0 if good else 1


if __name__ == "__main__":
    sys.exit(main())
