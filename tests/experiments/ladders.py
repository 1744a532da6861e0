"""Small experiments, as a user has them in a module of her own; tests copy this file to where they are typed."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from dataclasses import replace
from pathlib import Path

import numpy as np

from holdfast.experiments.spec import Experiment


def run(job, place):
    """Climb: heights that depend on the seed alone, after a while."""
    setting = job.setting
    time.sleep(setting.get("pause", 0.0))
    heights = np.random.default_rng(job.seed).normal(size=setting["rungs"]).cumsum()
    return {"rung": np.arange(setting["rungs"]), "height": heights}


def draw(rows):
    from matplotlib.figure import Figure

    figure = Figure()
    figure.add_subplot().plot(rows["rung"], rows["height"], ".")
    return figure


def summary(rows):
    return [f"{len(rows['rung'])} rungs, the last at {rows['height'][-1]:.6f}"]


def run_and_fall(job, place):
    """The same, but for those who fall in one way or another."""
    fall = job.setting["fall"]
    sys.stdout.write(f"going to fall: {fall}\n")
    if fall == "raise":
        raise ValueError("the ladder is too short")
    if fall == "exit":
        sys.exit(0)
    if fall == "fork and die":
        # Its child keeps the pipe open for which somebody waits.
        if os.fork() == 0:
            time.sleep(60)
            os._exit(0)
        os.kill(os.getpid(), signal.SIGKILL)
    if fall == "columns":
        return {"rung": [1.0]}
    if fall == "die":
        os.kill(os.getpid(), signal.SIGKILL)
    return run(job, place)


def run_and_slip(job, place):
    """The same, but who is to slip dies the first time; a file beside the campaign's folder remembers it."""
    mark = place.parent.parent.with_suffix(".slipped")
    if job.setting.get("slips") and not mark.exists():
        mark.touch()
        os.kill(os.getpid(), signal.SIGKILL)
    return run(job, place)


def run_and_wait(job, place):
    """Wait for a minute, with a child; their numbers are in files."""
    child = subprocess.Popen([sys.executable, "-c", "import time; time.sleep(60)"])
    Path(f"waiting-{job.seed}").write_text(f"{os.getpid()} {child.pid}")
    time.sleep(60)
    return run(job, place)


LADDER = Experiment(
    label="ladder",
    title="a ladder",
    columns=("rung", "height"),
    plan=lambda scale: [
        ({"rungs": rungs, "pause": 0.1}, seed) for rungs in (3, 5) for seed in range({"smoke": 4}.get(scale, 2))
    ],
    run=run,
    draw=draw,
    summary=summary,
)
TALL = replace(LADDER, label="tall", plan=lambda scale: [({"rungs": 4000}, seed) for seed in range(2)])
FALLING = replace(
    LADDER,
    label="falling",
    plan=lambda scale: [
        ({"rungs": 2, "fall": fall}, 0) for fall in ("raise", "columns", "die", "exit", "fork and die", "never")
    ],
    run=run_and_fall,
)
SLIPPING = replace(
    LADDER,
    label="slipping",
    plan=lambda scale: [({"rungs": 4, "slips": True}, 0), *(({"rungs": 4, "slips": False}, n) for n in range(3))],
    run=run_and_slip,
)
WAITING = replace(
    LADDER, label="waiting", plan=lambda scale: [({"rungs": 1}, seed) for seed in range(2)], run=run_and_wait
)
STEPS = replace(LADDER, label="steps", plan=lambda scale: [({"rungs": 2}, n) for n in range(2)], shared="climbs")
HIGHER = replace(LADDER, label="higher", plan=lambda scale: [({"rungs": 2}, n) for n in range(3)], shared="climbs")
BLURRED = replace(STEPS, label="blurred", shared=None, draw=lambda rows: rows["nothing"])
NO_EXPERIMENT = 3
