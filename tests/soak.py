"""Long versions of tests that are about chance: ``make soak`` runs them and prints what happened.

Kills at random moments of each kind of run and campaign, thousands of random changes of files and of inputs by
coverage, and hours of training. Each part can be made shorter, or left out with 0.
"""

from __future__ import annotations

import argparse
import importlib.util
import json
import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from tests.experiments.kills import COMMANDS, killed_campaigns
from tests.runs import kills


def soak_kills(n_kills: int, seed: int) -> bool:
    """Kill every kind of run ``n_kills`` times; whether all ended as they should."""
    good = True
    for name in kills.COMMANDS:
        began = time.monotonic()
        with tempfile.TemporaryDirectory() as folder:
            program = [sys.executable, kills.__file__, name, folder, str(n_kills), str(seed)]
            environment = {**os.environ, "OMP_NUM_THREADS": "1"}
            run = subprocess.run(program, capture_output=True, text=True, check=False, env=environment)
        found = json.loads(run.stdout.splitlines()[-1]) if run.stdout else {"problem": run.stderr}
        is_good = found.get("kills") == n_kills and found.get("different") == []
        good = good and is_good
        seconds = time.monotonic() - began
        print(
            f"kills     {name:13} {'equal' if is_good else 'NOT EQUAL'}  {json.dumps(found)}  {seconds:.0f} s",
            flush=True,
        )
    return good


def soak_campaigns(n_kills: int, seed: int) -> bool:
    """Kill campaigns ``n_kills`` times each; whether their rows were those of ones that were not killed."""
    good = True
    for verb in COMMANDS:
        began = time.monotonic()
        with tempfile.TemporaryDirectory() as folder:
            found = killed_campaigns(Path(folder), n_kills, seed, verb)
        is_good = found.get("kills") == n_kills and found.get("equal") is True
        good = good and is_good
        print(
            f"kills     {verb:13} {'equal' if is_good else 'NOT EQUAL'}  {json.dumps(found)}  "
            f"{time.monotonic() - began:.0f} s",
            flush=True,
        )
    return good


def other_program(name: str, *arguments: str) -> bool:
    """Run another battery, which prints what it finds; whether all went well."""
    return subprocess.run([sys.executable, "-m", name, *arguments], check=False).returncode == 0


def main() -> int:
    """Run all; 0 if all went well."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--kills", type=int, default=12, help="for each kind of run (default: 12)")
    parser.add_argument("--campaign-kills", type=int, default=20, help="of each kind of campaign (default: 20)")
    parser.add_argument("--mutations", type=int, default=10_000, help="changes of files (default: 10000)")
    parser.add_argument("--inputs", type=int, default=100_000, help="inputs by coverage (default: 100000)")
    parser.add_argument("--minutes", type=float, default=60.0, help="of each part of the endurance (default: 60)")
    parser.add_argument("--seed", type=int, default=int(time.time()), help="of what is drawn (default: the time)")
    given = parser.parse_args()
    print(f"seed {given.seed}", flush=True)
    seed = ("--seed", str(given.seed))
    good = []
    if given.campaign_kills:
        good.append(soak_campaigns(given.campaign_kills, given.seed))
    if given.kills:
        good.append(soak_kills(given.kills, given.seed))
    if given.mutations:
        good.append(other_program("tests.fuzzing", "--mutations", str(given.mutations), *seed))
    if given.inputs and importlib.util.find_spec("atheris") is not None:
        good.append(other_program("tests.coverage_fuzzing", "--inputs", str(given.inputs), *seed))
    if given.minutes:
        good.append(other_program("tests.endurance", "--minutes", str(given.minutes)))
    return 0 if all(good) else 1


if __name__ == "__main__":
    sys.exit(main())
