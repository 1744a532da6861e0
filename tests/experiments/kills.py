"""Campaigns that are killed at random moments and gone on with, and one that is not."""

from __future__ import annotations

import random
import shutil
import signal
import time
from pathlib import Path
from typing import Any

from tests.experiments.campaigns import begin, contents, finish, prepare

COMMAND = ("ladders:LADDER", "--jobs", "2")


def killed_campaigns(folder: Path, n_kills: int, seed: int) -> dict[str, Any]:
    """Kill a campaign ``n_kills`` times, go on each time, and compare its rows with those of another one."""
    draw = random.Random(seed)
    prepare(folder)
    whole, killed = folder / "whole", folder / "killed"
    code, _, err = finish(begin(folder, *COMMAND, "-o", str(whole), "--csv", "whole.csv"))
    if code != 0:
        return {"problem": err}
    expected = contents(whole)
    n_killed = n_compared = 0
    within: list[int] = []
    while n_killed < n_kills:
        process = begin(folder, *COMMAND, "-o", str(killed), "--resume")
        stored = _count(killed)
        until = stored + draw.randint(0, 3)
        while process.poll() is None and _count(killed) < until:
            time.sleep(0.005)
        time.sleep(draw.uniform(0.0, 0.6))
        process.send_signal(signal.SIGKILL)
        code, _, err = finish(process)
        if code == -signal.SIGKILL:
            n_killed += 1
            within.append(_count(killed))
        elif code != 0:
            return {"problem": err}
        else:
            # It came to its end before the kill: what follows happens to another one.
            n_compared += 1
            if contents(killed) != expected:
                return {"problem": "rows differ"}
            shutil.rmtree(killed)
    code, _, err = finish(begin(folder, *COMMAND, "-o", str(killed), "--resume", "--csv", "killed.csv"))
    if code != 0:
        return {"problem": err}
    is_equal = contents(killed) == expected
    is_equal &= (folder / "killed.csv").read_bytes() == (folder / "whole.csv").read_bytes()
    return {"kills": n_killed, "stored_at_kills": within, "campaigns": n_compared + 1, "equal": is_equal}


def _count(campaign: Path) -> int:
    return len(list((campaign / "rows").glob("*.csv"))) if (campaign / "rows").is_dir() else 0
