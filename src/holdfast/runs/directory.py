"""The folder of a run: what is in it, who may write it, and how it stands."""

from __future__ import annotations

import math
import os
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from holdfast.core.errors import InputError
from holdfast.core.saved_fields import take, take_integer, take_mapping
from holdfast.files import (
    LOCK,
    Entry,
    FolderInUseError,
    LockableFolder,
    find_folder,
    folder_in_use,
    make_folders,
    read_document,
    read_last_rows,
    read_state,
    remove_lock,
    replace_folder,
    replace_json,
    tidy_files,
    tidy_folder,
    walk_folders,
    write_state,
)
from holdfast.policies.policy_files import FOLDER as POLICY
from holdfast.policies.policy_files import write_policy
from holdfast.runs.config import RunConfig, read_options, stored_config

__all__ = ["FORMAT", "RunFolder", "RunInUseError", "RunStatus", "find_runs"]

FORMAT = 1
"""Number of the layout of a checkpoint."""

_CONFIG = "config.json"
_CHECKPOINT = "checkpoint"
_PLACES: Mapping[str, tuple[str, ...]] = {"tensors.safetensors": (), "replay.safetensors": ("agent", "replay")}
_RECENT = 20
_MOST = 2**53
"""Whole numbers up to this are exact in a file of rows."""


RunInUseError = FolderInUseError
"""Another process is training the run."""


@dataclass(frozen=True)
class RunStatus:
    """How a run stands.

    Attributes:
        path: Its folder.
        status: ``"finished"``, ``"resumable"``, ``"in use"`` or ``"damaged"``.
        config: What it is; None where that cannot be read.
        steps: Steps done, by its metrics.
        episodes: Episodes done.
        last_return: Mean return of the last 20 episodes; None before the first.
        problem: What is damaged, in one sentence.
    """

    path: Path
    status: str
    config: RunConfig | None
    steps: int = 0
    episodes: int = 0
    last_return: float | None = None
    problem: str | None = None


class RunFolder(LockableFolder):
    """The files of one run.

    Args:
        path: The folder; it need not exist yet. As an entry it is one within another folder, and none on the way
            there may be a link; a path may be one.
    """

    def __init__(self, path: str | os.PathLike[str] | Entry) -> None:
        super().__init__(path if isinstance(path, Entry) else Entry(Path(path)))
        self.path = self.entry.path
        self.metrics = self.entry / "metrics.csv"
        self.evaluations = self.entry / "evaluations.csv"
        self.holds = self.entry / "holds.csv"
        self.timing = self.entry / "timing.csv"
        self.config_file = self.entry / _CONFIG
        self._checkpoint = self.entry / _CHECKPOINT

    @property
    def is_run(self) -> bool:
        """Whether there is a run in it."""
        return self.config_file.is_there

    def create(self) -> list[Path]:
        """Make the folder, if it is not there; it must hold a run or nothing.

        Returns:
            The folders that were made: this one and those above it.

        Raises:
            ValueError: There is something else in it.
            OSError: It cannot be made.
        """
        try:
            str(self.path).encode("utf-8")
        except UnicodeEncodeError:
            # TensorBoard's files could not be written there.
            raise InputError(f"the run's folder must have a name in UTF-8, not {str(self.path)!r}") from None
        if self.path.exists() and not self.path.is_dir():
            raise InputError(f"the run's folder must be a folder, but {self.path} is a file")
        root = self.entry.root
        made = [path for path in (self.path, *self.path.parents) if not path.exists()]
        make_folders(root)
        for depth in range(1, len(self.entry.names) + 1):
            Entry(root, self.entry.names[:depth]).make_folder()
        for path in made:
            Entry(path.parent).flush()
        if not self.is_run and any(not name.startswith(".") for name in self.entry.listed()):
            raise InputError(f"the run's folder must be empty or hold a run, and {self.path} holds something else")
        return made

    def remove(self, made: list[Path]) -> None:
        """Remove the folders that ``create`` has made, as far as they are empty: no run has begun."""
        with suppress(OSError):
            for path in made:
                Entry(path.parent, (path.name,)).remove_empty()

    def remove_lock(self) -> None:
        """Remove the lock's file; only for who holds it."""
        remove_lock(self.entry)

    def write_config(self, config: RunConfig) -> None:
        """Write down what the run is."""
        replace_json(self.config_file, config.document())

    def read_config(self) -> RunConfig:
        """What the run is; nothing is made or imported that its file names.

        Raises:
            ValueError: The file is damaged.
        """
        return stored_config(read_options(self.config_file), self.config_file.path)

    def tidy(self) -> None:
        """Clear away what a killed process left behind; only for who holds the lock."""
        tidy_folder(self._checkpoint)
        tidy_folder(self.entry / POLICY)
        tidy_files(self.entry)

    def write_checkpoint(self, algorithm: str, state: Mapping[str, Any]) -> None:
        """Replace the checkpoint; the old one stays until the new one is complete."""
        self.check_lock()
        with replace_folder(self._checkpoint) as unfinished:
            write_state(unfinished, {"format": FORMAT, "algo": algorithm, **state}, _PLACES)

    def write_policy(self, state: Mapping[str, Any]) -> None:
        """Replace the run's policy; see ``holdfast.policies.policy_files``."""
        self.check_lock()
        write_policy(self.entry, state)

    def read_checkpoint(self, algorithm: str) -> dict[str, Any] | None:
        """The last complete checkpoint, or None before the first.

        Raises:
            ValueError: It is damaged, of another algorithm, or of a newer format.
        """
        folder = find_folder(self._checkpoint)
        if folder is None:
            if self._checkpoint.is_there:
                raise InputError(f"{self._checkpoint} is damaged: it must be a folder")
            return None
        state = _checked(read_state(folder, _PLACES), folder)
        if take(state, "algo") != algorithm:
            raise InputError(
                f"{folder} must be a checkpoint of {algorithm}, not of {str(take(state, 'algo'))[:40]!r}"
            )
        return state

    def status(self) -> RunStatus:
        """How the run stands."""
        config = None
        try:
            config = self.read_config()
            in_use = folder_in_use(self.entry)
            steps, episodes, last_return = self._progress()
            finished = False
            folder = find_folder(self._checkpoint)
            if folder is not None and not in_use:
                if self.read_checkpoint(config.algo) is None:
                    raise InputError(f"{folder} vanished")
                run = take_mapping(read_document(folder), "run")
                steps, episodes = take_integer(run, "steps"), take_integer(run, "episodes")
                finished = take(run, "finished") is True and config.is_reached(steps, episodes)
        except (InputError, OSError, ArithmeticError, MemoryError, RecursionError) as error:
            return RunStatus(self.path, "damaged", config, problem=" ".join(str(error).split()))
        status = "in use" if in_use else "finished" if finished else "resumable"
        return RunStatus(self.path, status, config, steps, episodes, last_return)

    def _progress(self) -> tuple[int, int, float | None]:
        if not self.metrics.is_there:
            return 0, 0, None
        rows = read_last_rows(self.metrics, ("episode", "step", "return"), _RECENT)
        if not rows["episode"]:
            return 0, 0, None
        for name, numbers in rows.items():
            if not all(map(math.isfinite, numbers)):
                raise InputError(f"{self.metrics} is damaged: it must have finite numbers as {name}")
        last = {name: rows[name][-1] for name in ("step", "episode")}
        for name, number in last.items():
            if not (number.is_integer() and 0 <= number <= _MOST):
                raise InputError(
                    f"{self.metrics} is damaged: it must have whole numbers as {name}, not {number:g}"
                )
        recent = rows["return"]
        return int(last["step"]), int(last["episode"]), sum(recent) / len(recent)


def _checked(state: dict[str, Any], folder: Entry) -> dict[str, Any]:
    found = take_integer(state, "format")
    if found != FORMAT:
        raise InputError(f"{folder} has format {found}, and this version of holdfast reads {FORMAT}")
    return state


def find_runs(folder: str | os.PathLike[str]) -> list[RunStatus]:
    """The runs in a folder and in the folders below it, by name.

    Raises:
        ValueError: There is no such folder.
    """
    top = Path(folder)
    if not top.is_dir():
        raise InputError(f"folder must be one with runs, and there is no folder {str(top)!r}", "folder")
    found = []
    for place, inner, files in walk_folders(top):
        if _CONFIG in files and ({"metrics.csv", LOCK} & set(files) or _CHECKPOINT in inner):
            found.append(place)
            inner.clear()
        inner[:] = [name for name in inner if not name.startswith(".")]
    return [RunFolder(path).status() for path in sorted(found)]
