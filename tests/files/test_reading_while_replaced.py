"""Whoever reads what is being replaced sees the old or the new, whole, at whichever of the writer's steps."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from holdfast.core.errors import InputError
from holdfast.files import Entry
from holdfast.policies.policy_files import read_policy, write_policy
from holdfast.runs.directory import RunFolder
from tests.files.interleaving import interleaved

N_LOOKS = 30
"""A few more than a reader needs."""
N_STEPS = 11
"""A few more changes of names than a replacement has."""


def state_of(version: int) -> dict[str, Any]:
    return {"version": version, "weights": {"one": np.full(5, version), "two": np.full(3, version)}}


def version_in(state: Any) -> int:
    (version,) = {state["version"], *state["weights"]["one"].tolist(), *state["weights"]["two"].tolist()}
    return int(version)


def writing(run: Path, version: int) -> Callable[[], None]:
    return lambda: write_policy(run, state_of(version))


def at(look: int, n_steps: int) -> Callable[[int], int]:
    return lambda number: n_steps if number == look else 0


@pytest.mark.parametrize("named", ["", "policy"])
def test_a_policy_is_the_old_one_or_the_new_one(named: str, tmp_path: Path) -> None:
    write_policy(tmp_path, state_of(0))
    old, found_new = 0, []
    for n_steps in range(1, N_STEPS):
        for look in range(n_steps % 2, N_LOOKS, 2):
            with interleaved(writing(tmp_path, old + 1), at(look, n_steps)):
                found = version_in(read_policy(tmp_path / named))
            assert found in (old, old + 1)
            found_new.append(found == old + 1)
            old += 1
    # The writer was early enough to be seen, and late enough not to be.
    assert 0.1 < np.mean(found_new) < 0.9


@pytest.mark.parametrize("pace", [1, 2, 3, 5])
def test_a_policy_that_is_replaced_again_and_again_is_read_whole(pace: int, tmp_path: Path) -> None:
    """The number of a removed folder is soon another folder's: it must not be taken for the same one."""
    write_policy(tmp_path, state_of(0))

    def write() -> None:
        for version in range(1, 12):
            write_policy(tmp_path, state_of(version))

    for phase in range(pace):
        with interleaved(write, lambda number: int(number % pace == phase)):  # noqa: B023 (used at once)
            assert version_in(read_policy(tmp_path)) in range(12)


def test_a_checkpoint_that_is_replaced_is_not_called_damaged(tmp_path: Path) -> None:
    folder, reader = (RunFolder(tmp_path / "run") for _ in range(2))
    folder.create()
    said: list[str] = []

    def write(version: int) -> Callable[[], None]:
        return lambda: folder.write_checkpoint("perq", state_of(version), 2)

    with folder.locked():
        for version in range(2):
            write(version)()
        old = 1
        for n_steps in range(1, N_STEPS + 4, 2):
            for look in range(0, N_LOOKS, 2):
                with interleaved(write(old + 1), at(look, n_steps)):
                    found = reader.read_checkpoint("perq", said.append)
                assert version_in(found) in (old, old + 1)
                old += 1
    assert said == []


def test_the_first_checkpoint_is_there_or_not(tmp_path: Path) -> None:
    found = set()
    for n_steps in range(1, 6):
        for look in range(N_LOOKS):
            folder, reader = (RunFolder(tmp_path / f"{n_steps}-{look}") for _ in range(2))
            folder.create()

            def write(folder: RunFolder = folder) -> None:
                folder.write_checkpoint("perq", state_of(0), 2)

            with folder.locked(), interleaved(write, at(look, n_steps)):
                state = reader.read_checkpoint("perq")
            found.add(None if state is None else version_in(state))
    assert found == {None, 0}


def test_what_is_damaged_and_not_replaced_is_refused_at_once(tmp_path: Path, monkeypatch: Any) -> None:
    write_policy(tmp_path, state_of(0))
    damaged = tmp_path / "policy" / "policy.safetensors"
    damaged.write_bytes(damaged.read_bytes()[:-1])
    readings = []
    own = Entry.read
    monkeypatch.setattr(Entry, "read", lambda *arguments: readings.append(1) or own(*arguments))
    for path in (tmp_path, tmp_path / "policy"):
        with pytest.raises(InputError, match="checksum does not match"):
            read_policy(path)
    assert len(readings) == 2
