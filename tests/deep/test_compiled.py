"""The compiled half of an update follows the formulas in ``core`` when they change."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from tests.architecture import SOURCE
from tests.new_process import printed

# Three steps with reward 1 of one option and no discount, drawn from D_1..D_3; then a target of a reward 1 and a
# next value 5.
UPDATE = """
import numpy as np
from gymnasium import spaces
from holdfast.core.options import persistence_positions
from holdfast.deep.replay.ring import OptionReplayBuffer
from holdfast.deep.speed.target_cache import ValuedTuples, kept_targets

space = spaces.Box(-1.0, 1.0, (1,), np.float32)
buffer = OptionReplayBuffer(4, space, spaces.Discrete(2), k_max=3, gamma=1.0)
seen = np.zeros((1, 1), np.float32)
for over in (False, False, True):
    buffer.add(seen, seen, np.zeros(1, np.int64), np.ones(1), np.zeros(1, np.bool_), [{}], [over])
rewards = buffer.sample(64).rewards.max(axis=1)
row, one = np.zeros((1, 1), np.int64), np.ones((1, 1), np.float32)
values = np.full((1, 1, 1), 5.0, np.float32)
places, free = persistence_positions((1,)), 0 * one[0, 0]
target = kept_targets(values, row - 1, ValuedTuples(row, row, row, places, one, one, 0 * one, False, free))
print(*rewards, *target.ravel())
"""


def edit(file: Path, old: str, new: str) -> None:
    text = file.read_text("utf-8")
    assert text.count(old) == 1
    file.write_text(text.replace(old, new), "utf-8")


@pytest.mark.slow
def test_a_change_in_core_changes_what_the_replay_and_the_targets_compute(tmp_path: Path) -> None:
    house = tmp_path / "holdfast"
    shutil.copytree(SOURCE, house, ignore=shutil.ignore_patterns("__pycache__"))
    assert printed(UPDATE, tmp_path) == "1.0 2.0 3.0 6.0"
    # Neither file is one that numba looks at: those of the functions that are called are in deep.
    edit(house / "core" / "history.py", "    total = 0.0\n", "    total = 100.0\n")
    edit(house / "core" / "targets.py", "return reward + discount *", "return reward - discount *")
    assert printed(UPDATE, tmp_path) == "101.0 102.0 103.0 -4.0"
    edit(house / "core" / "decomposition.py", "row[:] = useful[", "row[:] = 1 + 0 * useful[")
    assert printed(UPDATE, tmp_path) == "101.0 101.0 101.0 -4.0"
