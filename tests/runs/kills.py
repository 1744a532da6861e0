"""Trainings that are killed and gone on with, and what is compared with one that was not.

Run as a program it is the experiment itself: it imports everything once and forks, so that a kill costs no second
start of Python, and so that the one who kills has used no thread of PyTorch.
"""

from __future__ import annotations

import argparse
import json
import os
import random
import shutil
import signal
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

DEEP = [
    "CartPole-v1",
    *("--steps", "400", "--seed", "5", "--eval-every", "150", "--eval-episodes", "2"),
    *("--set", "policy_kwargs={'net_arch': [16]}", "head_arch=[8]", "batch_size=8", "learning_starts=60"),
    *("buffer_size=250", "target_update_interval=50"),
]
TABULAR = [
    *("FrozenLake-v1", "--episodes", "4000", "--seed", "5", "--eval-every", "900", "--eval-episodes", "2"),
]
NETWORKS = ("perdqn", "dqn", "msa-dqn", "temporl-dqn", "ez-dqn")
TABLES = ("perq", "q", "msa-q", "temporl-q", "ez-q")
CONTINUOUS = [
    *("Pendulum-v1", "--algo", "pertd3", "--steps", "420", "--seed", "5", "--eval-every", "200"),
    *("--eval-episodes", "1", "--set", "policy_kwargs={'net_arch': [16]}", "batch_size=8", "learning_starts=60"),
    "buffer_size=250",
]
GAME = [
    *("--k-max", "2", "--steps", "400", "--seed", "5", "--eval-every", "150", "--eval-episodes", "1"),
    *("--set", "batch_size=4", "learning_starts=60", "buffer_size=250", "train_freq=4"),
]
ATARI = ["atari:Breakout", *GAME, "--env-kwargs", "size=36", "max_frames=800"]
COMMANDS = {
    **{f"{algo}-1": [*DEEP, "--algo", algo, *([] if algo == "dqn" else ["--k-max", "3"])] for algo in NETWORKS},
    "perdqn-2": [*DEEP, "--algo", "perdqn", "--k-max", "3", "--n-envs", "2"],
    "perdqn-3": [*DEEP, "--algo", "perdqn", "--k-max", "3", "--n-envs", "3"],
    "dqn-3": [*DEEP, "--algo", "dqn", "--n-envs", "3"],
    "pertd3-1": CONTINUOUS,
    "pertd3-3": [*CONTINUOUS, "--n-envs", "3"],
    **{
        f"{algo}-1": [algo if part == "pertd3" else part for part in CONTINUOUS]
        for algo in ("td3", "persac", "sac")
    },
    "persac-3": [*("persac" if part == "pertd3" else part for part in CONTINUOUS), "--n-envs", "3"],
    **{f"{algo}-1": [*TABULAR, "--algo", algo, *([] if algo == "q" else ["--k-max", "4"])] for algo in TABLES},
    "atari-1": [*ATARI, "--n-envs", "1"],
    "atari-3": [*ATARI, "--n-envs", "3"],
    "minatar-3": ["minatar:Breakout", *GAME, "--n-envs", "3"],
}
"""By algorithm or kind of game, and number of environments."""


def contents(run: Path) -> dict[str, Any]:
    """Everything of a run that must not depend on when it was stopped: files as bytes, the rest as documents."""
    files = ("metrics.csv", "evaluations.csv", "holds.csv", "policy/policy.json", "policy/policy.safetensors")
    arrays = ("checkpoint/tensors.safetensors", "checkpoint/replay.safetensors")
    document = json.loads((run / "checkpoint/state.json").read_text())
    agent = document["agent"] or {}
    for episode in agent.get("episodes") or []:
        del episode["t"]  # SB3's Monitor notes the time, so that the document's own checksum is another one
    del document["sha256"]["state.json"]
    found = {name: (run / name).read_bytes() for name in (*files, *arrays) if (run / name).exists()}
    return {"state": document, **found}


def steps_kept(run: Path) -> int:
    """The steps of the last complete checkpoint of a run; 0 before the first."""
    from holdfast.runs import RunFolder

    folder = RunFolder(run)
    if not folder.is_run:
        return 0
    state = folder.read_checkpoint(folder.read_config().algo)
    return 0 if state is None else int(state["run"]["steps"])


def killed_in(calls: int) -> Callable[[], None]:
    """Let this process kill itself at one of the calls that make a checkpoint: the ``calls``-th from now."""
    left = [calls]

    def counted(original: Callable[..., Any]) -> Callable[..., Any]:
        def call(*arguments: Any, **keywords: Any) -> Any:
            left[0] -= 1
            if left[0] == 0:
                os.kill(os.getpid(), signal.SIGKILL)
            return original(*arguments, **keywords)

        return call

    def install() -> None:
        os.fsync = counted(os.fsync)
        os.rename = counted(os.rename)
        os.mkdir = counted(os.mkdir)
        os.rmdir = counted(os.rmdir)
        os.unlink = counted(os.unlink)

    return install


def train(command: list[str], out: Path, prepare: Callable[[], None] = lambda: None) -> int:
    """Train in a process of its own; its number."""
    child = os.fork()
    if child:
        return child
    code = 99
    try:
        from holdfast.cli import main
        from holdfast.runs import session

        # As many checkpoints as there can be.
        session.SHARE_OF_CHECKPOINTS = 1.0
        prepare()
        code = main(["train", *command, "--out", str(out), "--checkpoint-every", "0.01", "--quiet"])
    finally:
        os._exit(code)


def wait(child: int) -> int:
    """The child's exit code, or minus the number of the signal that killed it."""
    return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])


def experiment(command: list[str], folder: Path, kills: int, seed: int) -> dict[str, Any]:
    """Train once as it is and once with ``kills`` kills at random moments; what happened."""
    draw = random.Random(seed)
    began = time.monotonic()
    if wait(train(command, folder / "whole")) != 0:
        return {"problem": "the training without kills failed"}
    length = time.monotonic() - began
    one = contents(folder / "whole")
    n_killed, at_calls, n_compared, kept = 0, 0, 0, 0
    different: set[str] = set()

    def compare() -> None:
        two = contents(folder / "killed")
        different.update(name for name in {*one, *two} if one.get(name) != two.get(name))

    for number in range(40 * kills):
        if n_killed == kills:
            break
        if number % 2 == 0:
            child = train(command, folder / "killed")
            time.sleep(draw.uniform(0.05, 0.6) * length)
            os.kill(child, signal.SIGKILL)
        else:
            child = train(command, folder / "killed", killed_in(draw.randint(1, 60)))
        code = wait(child)
        if code == -signal.SIGKILL:
            n_killed += 1
            at_calls += number % 2
            done = steps_kept(folder / "killed")
            if done < kept:
                return {"problem": f"{kept} steps were kept, and after a kill {done}"}
            kept = done
        elif code != 0:
            return {"problem": f"a training ended with exit code {code}"}
        else:
            # It came to its end between two kills: what follows happens to another one.
            compare()
            n_compared, kept = n_compared + 1, 0
            shutil.rmtree(folder / "killed")
    code = wait(train(command, folder / "killed"))
    if code != 0:
        return {"problem": f"the last training ended with exit code {code}"}
    compare()
    return {
        "kills": n_killed,
        "within_checkpoints": at_calls,
        "trainings": n_compared + 1,
        "different": sorted(different),
    }


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("name", choices=COMMANDS)
    parser.add_argument("folder", type=Path)
    parser.add_argument("kills", type=int)
    parser.add_argument("seed", type=int)
    given = parser.parse_args()
    if given.name.removesuffix("-1") in TABLES:
        import holdfast.runs.tabular_training
    else:
        import holdfast.runs.deep_training  # noqa: F401
    found = experiment(COMMANDS[given.name], given.folder, given.kills, given.seed)
    sys.stdout.write(json.dumps(found) + "\n")
