"""Campaigns that are killed at random moments and gone on with, and one that is not."""

from __future__ import annotations

import random
import shutil
import signal
import time
from pathlib import Path
from typing import Any

from tests.experiments.campaigns import begin, contents, finish, prepare

COMMANDS: dict[str, tuple[str, ...]] = {
    "reproduce": ("ladders:LADDER", "--jobs", "2"),
    "sweep": (
        *("--env", "cliff", "--algo", "perq", "--k-max", "2,4", "--seeds", "2", "--episodes", "4000"),
        *("--eval-every", "0", "--jobs", "2"),
    ),
    "tune": (
        *("cliff", "--algo", "q", "--trials", "4", "--seeds", "2", "--episodes", "400", "--eval-episodes", "1"),
        *("--jobs", "2"),
    ),
}
"""What is typed, by verb."""


def killed_campaigns(folder: Path, n_kills: int, seed: int, verb: str = "reproduce") -> dict[str, Any]:
    """Kill a campaign ``n_kills`` times, go on each time, and compare its rows with those of another one."""
    command = COMMANDS[verb]
    draw = random.Random(seed)
    prepare(folder)
    whole, killed = folder / "whole", folder / "killed"
    code, _, err = finish(begin(folder, *command, "-o", str(whole), *_more(verb, "whole"), verb=verb))
    if code != 0:
        return {"problem": err}
    expected = _results(folder, "whole")
    n_killed = n_compared = 0
    within: list[int] = []
    while n_killed < n_kills:
        process = begin(folder, *command, "-o", str(killed), "--resume", verb=verb)
        stored = _count(killed)
        until = stored + draw.randint(0, 3)
        while process.poll() is None and _count(killed) < until:
            time.sleep(0.005)
        time.sleep(draw.uniform(0.0, 0.6))
        process.send_signal(signal.SIGKILL)
        code, _, err = finish(process)
        if code == -signal.SIGKILL:
            n_killed += 1
            if _count(killed) < stored:
                return {"problem": f"{stored} jobs were done, and after a kill {_count(killed)}"}
            within.append(_count(killed))
        elif code != 0:
            return {"problem": err}
        else:
            # It came to its end before the kill: what follows happens to another one.
            n_compared += 1
            if contents(killed) != contents(whole):
                return {"problem": "rows differ"}
            shutil.rmtree(killed)
    more = _more(verb, "killed")
    code, _, err = finish(begin(folder, *command, "-o", str(killed), "--resume", *more, verb=verb))
    if code != 0:
        return {"problem": err}
    is_equal = _results(folder, "killed") == expected
    return {"kills": n_killed, "stored_at_kills": within, "campaigns": n_compared + 1, "equal": is_equal}


def _more(verb: str, name: str) -> tuple[str, ...]:
    """A study's trials are in its rows, and its best one in a file of its own."""
    return () if verb == "tune" else ("--csv", f"{name}.csv")


def _results(folder: Path, name: str) -> dict[str, bytes]:
    """Everything that must not depend on kills: rows, their table, and the best trial of a study."""
    files = (folder / f"{name}.csv", folder / name / "best.json", folder / name / "study.json")
    return contents(folder / name) | {
        file.name.replace(name, "rows"): file.read_bytes() for file in files if file.exists()
    }


def _count(campaign: Path) -> int:
    return len(list((campaign / "rows").glob("*.csv"))) if (campaign / "rows").is_dir() else 0
