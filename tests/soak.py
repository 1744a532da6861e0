"""Long versions of tests that are about chance: ``make soak`` runs them and prints what happened.

Kills at random moments, 30 for each kind of run and 20 of a campaign of many jobs, and thousands of random changes
of a run's files.
"""

from __future__ import annotations

import argparse
import json
import os
import random
import resource
import subprocess
import sys
import tempfile
import time
from collections import Counter
from pathlib import Path

from tests.experiments.kills import killed_campaigns
from tests.runs import kills
from tests.runs.doctored import copy_of, mutate, use
from tests.runs.small_runs import BOTH, trained

LONGER = {"table": {"episodes": 14}, "network": {"steps": 90}}
MOST_MEMORY = 8 * 2**30


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
            f"kills     {name:10} {'equal' if is_good else 'NOT EQUAL'}  {json.dumps(found)}  {seconds:.0f} s",
            flush=True,
        )
    return good


def soak_campaigns(n_kills: int, seed: int) -> bool:
    """Kill a campaign ``n_kills`` times; whether its rows were those of one that was not killed."""
    began = time.monotonic()
    with tempfile.TemporaryDirectory() as folder:
        found = killed_campaigns(Path(folder), n_kills, seed)
    is_good = found.get("kills") == n_kills and found.get("equal") is True
    print(
        f"kills     campaign   {'equal' if is_good else 'NOT EQUAL'}  {json.dumps(found)}  "
        f"{time.monotonic() - began:.0f} s",
        flush=True,
    )
    return is_good


def soak_mutations(n_mutations: int, seed: int) -> bool:
    """Change runs at random ``n_mutations`` times; whether each was read, or refused in one sentence."""
    resource.setrlimit(resource.RLIMIT_AS, (MOST_MEMORY, MOST_MEMORY))
    draw = random.Random(seed)
    good = True
    with tempfile.TemporaryDirectory() as folder:
        top = Path(folder)
        mark = top / "mark"
        for kind, options in BOTH.items():
            trained(options, top / kind)
        for kind, options in BOTH.items():
            began, outcomes = time.monotonic(), Counter[str]()
            for _ in range(n_mutations // len(BOTH)):
                run = copy_of(top / kind, top / "run")
                done = mutate(run, draw, mark)
                try:
                    refused = use(run, {**options, **LONGER[kind]})
                    outcomes["refused" if refused else "read"] += 1
                except Exception as error:
                    outcomes["failed"] += 1
                    print(f"mutation  {kind}: {done}: {type(error).__name__}: {error}", flush=True)
                if mark.exists():
                    outcomes["executed"] += 1
                    mark.unlink()
            good = good and not outcomes["failed"] and not outcomes["executed"]
            print(f"mutations {kind:10} {dict(outcomes)}  {time.monotonic() - began:.0f} s", flush=True)
    return good


def main() -> int:
    """Run all; 0 if all went well."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--kills", type=int, default=30, help="for each kind of run (default: 30)")
    parser.add_argument("--campaign-kills", type=int, default=20, help="of a campaign (default: 20)")
    parser.add_argument("--mutations", type=int, default=2000, help="in all (default: 2000)")
    parser.add_argument("--seed", type=int, default=int(time.time()), help="of what is drawn (default: the time)")
    given = parser.parse_args()
    print(f"seed {given.seed}", flush=True)
    mutated = soak_mutations(given.mutations, given.seed)
    campaigns = soak_campaigns(given.campaign_kills, given.seed)
    killed = soak_kills(given.kills, given.seed)
    return 0 if mutated and killed and campaigns else 1


if __name__ == "__main__":
    sys.exit(main())
