"""Files that take no room on the disk and say that they are large: refused before they cost memory or time."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from holdfast.files import write_arrays
from tests.files.seals import seal_anew
from tests.runs.doctored import copy_of
from tests.runs.small_runs import BOTH, trained

# What each verb reads, in a process of its own: the sentence, and megabytes that were needed beyond the beginning.
READING = """
import json, resource, sys
from pathlib import Path
from holdfast.core.errors import InputError
from holdfast.policies import load_policy
from holdfast.runs import train
from holdfast.runs.curves import holds_over_training, learning_curves
if sys.argv[4] == "network":
    import holdfast.runs.deep_training

verb, run, options = sys.argv[1], Path(sys.argv[2]), json.loads(sys.argv[3])
before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
said = "nothing"
try:
    if verb == "evaluate":
        load_policy(run)
    elif verb == "plot":
        learning_curves([run])
    elif verb == "plot evaluations":
        learning_curves([run], "evaluation")
    elif verb == "plot holds":
        holds_over_training(run)
    elif verb == "train":
        train(options, run)
    elif verb == "reproduce":
        from types import SimpleNamespace
        from holdfast.experiments.store import Store

        noted = SimpleNamespace(columns=("rung", "height"), digest_of=lambda job: None)
        Store(run).read("0123456789ab", noted)
except InputError as error:
    said = str(error)
print(json.dumps([said, (resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before) >> 10]))
"""


def read(verb: str, path: Path, options: dict[str, Any] | None = None, kind: str = "table") -> tuple[str, int]:
    command = [sys.executable, "-c", READING, verb, str(path), json.dumps(options), kind]
    found = subprocess.run(command, capture_output=True, text=True, check=True, timeout=300)
    said, megabytes = json.loads(found.stdout)
    return said, megabytes


def hollow_arrays(path: Path, shapes: dict[str, tuple[int, ...]], dtype: Any) -> None:
    """A file of arrays of these shapes, none of which is there."""
    width = np.dtype(dtype).itemsize
    header, place = {}, 0
    for name, shape in shapes.items():
        size = int(np.prod([*shape], dtype=object)) * width
        code = {"float32": "F32", "float64": "F64"}[np.dtype(dtype).name]
        header[name] = {"dtype": code, "shape": list(shape), "data_offsets": [place, place + size]}
        place += size
    text = json.dumps(header).encode()
    text += b" " * (-len(text) % 8)
    path.write_bytes(len(text).to_bytes(8, "little") + text)
    os.truncate(path, 8 + len(text) + place)


@pytest.fixture(scope="module")
def originals(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("originals")
    for name, options in BOTH.items():
        trained(options, folder / name)
    return folder


@pytest.fixture
def table(originals: Path, tmp_path: Path) -> Path:
    return copy_of(originals / "table", tmp_path / "runs" / "run")


@pytest.fixture
def network(originals: Path, tmp_path: Path) -> Path:
    return copy_of(originals / "network", tmp_path / "runs" / "run")


@pytest.mark.parametrize(
    ("states", "sentence"),
    [
        (2**30, "is too large: its arrays may have at most 1024 MB"),
        (11_184_800, "is damaged: it is nearly empty but claims to have 1023 MB"),
    ],
)
def test_a_policy_of_a_table(states: int, sentence: str, table: Path) -> None:
    hollow_arrays(table / "policy" / "policy.safetensors", {"tables/q": (states, 4, 3)}, np.float64)
    said, megabytes = read("evaluate", table)
    assert said.endswith(sentence)
    assert megabytes < 100


@pytest.mark.parametrize(
    ("width", "sentence"), [(100_000, "its arrays may have at most 1024 MB"), (12_000, "nearly empty but claims")]
)
def test_a_policy_of_a_network(width: int, sentence: str, network: Path) -> None:
    """The document asks for the layers that the file says it has."""
    document = json.loads((network / "policy" / "policy.json").read_text())
    document["arguments"]["net_arch"] = [width, width]
    (network / "policy" / "policy.json").write_text(json.dumps(document))
    seal_anew(network / "policy" / "policy.json")
    hollow_arrays(network / "policy" / "policy.safetensors", {"weights/a": (width, width)}, np.float32)
    said, megabytes = read("evaluate", network, kind="network")
    assert sentence in said
    assert megabytes < 100


@pytest.mark.parametrize(
    ("verb", "name", "megabytes", "sentence"),
    [
        ("plot", "metrics.csv", 900, "is damaged: it consists almost entirely of holes"),
        ("plot", "metrics.csv", 9000, "is too large: rows may have at most 1024 MB"),
        ("plot evaluations", "evaluations.csv", 900, "is damaged: it consists almost entirely of holes"),
        ("plot holds", "holds.csv", 900, "is damaged: it consists almost entirely of holes"),
    ],
)
def test_rows(verb: str, name: str, megabytes: int, sentence: str, table: Path) -> None:
    os.truncate(table / name, megabytes << 20)
    said, needed = read(verb, table)
    assert said.endswith(f"{name} {sentence}")
    assert needed < 50


def test_rows_of_a_campaign(tmp_path: Path) -> None:
    path = tmp_path / "rows" / "0123456789ab.csv"
    path.parent.mkdir()
    path.write_text("rung,height\n1,2\n")
    os.truncate(path, 1000 << 20)
    said, megabytes = read("reproduce", tmp_path)
    assert said.endswith("is damaged: it consists almost entirely of holes")
    assert megabytes < 50


def test_rows_of_which_the_checkpoint_says_that_all_are_needed(table: Path) -> None:
    state = table / "checkpoint" / "state.json"
    document = json.loads(state.read_text())
    length = document["run"]["bytes"]["metrics"] = 900 << 20
    state.write_text(json.dumps(document))
    seal_anew(state)
    with (table / "metrics.csv").open("r+b") as file:
        file.seek(length - 1)
        file.write(b"\n")
    said, megabytes = read("train", table, {**BOTH["table"], "episodes": 20})
    assert "metrics.csv is damaged" in said
    assert megabytes < 50


def test_tables_of_a_checkpoint(table: Path) -> None:
    hollow_arrays(
        table / "checkpoint" / "tensors.safetensors",
        {"agent/arrays/q": (2**26, 4, 3), "agent/arrays/carry": (1,)},
        np.float64,
    )
    said, megabytes = read("train", table, {**BOTH["table"], "episodes": 20})
    assert "is damaged: it is nearly empty but claims to have 6144 MB" in said
    assert megabytes < 50


def test_a_table_that_is_all_zeros_but_there_is_read(table: Path) -> None:
    """Zeros on the disk are no holes."""
    write_arrays(table / "policy" / "policy.safetensors", {"tables/q": np.zeros((800_000, 4, 3))})
    seal_anew(table / "policy" / "policy.safetensors")
    said, _ = read("evaluate", table)
    assert said == "nothing"
