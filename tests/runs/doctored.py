"""Run folders that somebody has tampered with, and what reading them may do: work, or say one sentence."""

from __future__ import annotations

import json
import pickle
import random
import shutil
from contextlib import suppress
from pathlib import Path
from typing import Any

from holdfast.core.errors import InputError
from holdfast.policies import load_policy
from holdfast.runs import RunFolder, train
from holdfast.runs.curves import learning_curves
from tests.files.seals import seal_anew

FILES = (
    "config.json",
    "metrics.csv",
    "evaluations.csv",
    "holds.csv",
    "checkpoint/state.json",
    "checkpoint/tensors.safetensors",
    "checkpoint/replay.safetensors",
    "policy/policy.json",
    "policy/policy.safetensors",
)


class Payload:
    """Leaves a mark when it is unpickled."""

    def __init__(self, mark: Path) -> None:
        self._mark = mark

    def __reduce__(self) -> Any:
        return (Path.touch, (self._mark,))


def payload(mark: Path) -> bytes:
    """A pickle that leaves a mark."""
    return pickle.dumps(Payload(mark))


def use(run: Path, options: dict[str, Any] | None) -> list[str]:
    """Do everything with a run that reads its files; the sentences of what was refused.

    Any other exception than a refusal comes through. Without options it is not trained any further.
    """
    refused = []

    def attempt(action: Any) -> None:
        try:
            action()
        except (InputError, OSError) as error:
            refused.append(" ".join(str(error).split()))

    problem = RunFolder(run).status().problem
    if problem is not None:
        refused.append(problem)
    attempt(lambda: load_policy(run))
    attempt(lambda: learning_curves([run], "evaluation"))
    if options is not None:
        attempt(lambda: train(options, run))
    return refused


def mutate(run: Path, draw: random.Random, mark: Path) -> str:
    """Change one file of a run at random; what was done."""
    name = draw.choice(FILES)
    path = run / name
    data = bytearray(path.read_bytes())
    kinds = ["flip", "cut", "insert", "overwrite", "pickle", "swap", "zero"]
    if name.endswith(".json"):
        kinds += ["value"] * 6
    kind = draw.choice(kinds)
    if kind == "flip":
        # Headers are where it is interesting.
        for _ in range(draw.randint(1, 8)):
            data[min(int(len(data) * draw.random() ** 3), len(data) - 1)] ^= 1 << draw.randrange(8)
    elif kind == "cut":
        del data[draw.randrange(len(data)) :]
    elif kind == "insert":
        place = draw.randrange(len(data))
        data[place:place] = draw.randbytes(draw.randint(1, 64))
    elif kind == "overwrite":
        place = draw.randrange(len(data))
        noise = draw.randbytes(draw.randint(1, 64))
        data[place : place + len(noise)] = noise
    elif kind == "pickle":
        data = bytearray(payload(mark))
    elif kind == "swap":
        data = bytearray((run / draw.choice(FILES)).read_bytes())
    elif kind == "zero":
        data = bytearray(len(data))
    else:
        data = bytearray(json.dumps(_with_another_value(json.loads(data), draw)).encode())
    path.write_bytes(bytes(data))
    if path.parent != run and draw.random() < 0.5:
        # Somebody who knows of checksums makes them anew.
        with suppress(ValueError):
            seal_anew(path)
            return f"{kind} in {name}, sealed anew"
    return f"{kind} in {name}"


_STRANGE = (
    None,
    True,
    -1,
    0,
    1,
    2,
    10**6,
    2**40,
    2**63,
    10**400,
    0.5,
    -1e308,
    1e308,
    "",
    "x",
    "../../x",
    "perq",
    "dqn",
    "os:system",
    [],
    [1, [2]],
    {},
    {"$array": "agent/networks"},
    {"$float": "nan"},
)


def _with_another_value(document: Any, draw: random.Random) -> Any:
    """The document with one value in it replaced, removed or added."""
    places: list[tuple[Any, Any]] = []

    def walk(part: Any) -> None:
        for key in part if isinstance(part, dict) else range(len(part)):
            places.append((part, key))
            if isinstance(part[key], dict | list):
                walk(part[key])

    walk(document)
    part, key = draw.choice(places)
    if isinstance(part, dict) and draw.random() < 0.2:
        del part[key]
    elif isinstance(part, dict) and draw.random() < 0.1:
        part["another"] = draw.choice(_STRANGE)
    else:
        part[key] = draw.choice(_STRANGE)
    return document


def copy_of(run: Path, path: Path) -> Path:
    """A copy of a run to tamper with."""
    shutil.rmtree(path, ignore_errors=True)
    shutil.copytree(run, path)
    return path
