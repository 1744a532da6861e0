"""The folder of a run: its files, its lock and its status."""

from __future__ import annotations

import errno
import math
import os
from collections.abc import Callable, Mapping, Sequence
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
    NewerFormatError,
    find_folders,
    folder_in_use,
    make_folders,
    read_document,
    read_last_rows,
    read_newest,
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
from holdfast.runs.config import RunConfig
from holdfast.runs.options import read_options, stored_config

__all__ = ["RunFolder", "RunInUseError", "RunStatus", "find_runs", "is_run_among"]

_CONFIG = "config.json"
_CHECKPOINT = "checkpoint"
_PLACES: Mapping[str, tuple[str, ...]] = {"tensors.safetensors": (), "replay.safetensors": ("agent", "replay")}
_BROKEN = (errno.EIO, getattr(errno, "EUCLEAN", errno.EIO), errno.EBADMSG)
"""Error numbers for a file that the disk or the file system has lost."""
_RECENT = 20
_MOST = 2**53
"""Whole numbers up to this are exact in a file of rows."""


RunInUseError = FolderInUseError
"""Another process is training the run."""


@dataclass(frozen=True)
class RunStatus:
    """The status of a run.

    Attributes:
        path: Its folder.
        status: ``"finished"``, ``"resumable"``, ``"in use"`` or ``"damaged"``.
        config: Its configuration; None if it cannot be read.
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
        path: The folder; it need not exist yet. A path may be a link. An entry is a folder within another one, and
            nothing on the way to it may be a link.
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
        self._damaged: list[Entry] = []

    @property
    def is_run(self) -> bool:
        """Whether the folder contains a run."""
        return self.config_file.is_there

    def create(self) -> list[Path]:
        """Make the folder if it is missing; otherwise it must contain a run or nothing.

        Returns:
            The folders that were made: this one and those above it.

        Raises:
            ValueError: It contains something else.
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
            raise InputError(
                f"the run's folder must be empty or contain a run, and {self.path} contains something else"
            )
        return made

    def remove(self, made: list[Path]) -> None:
        """Remove the folders that ``create`` made, if empty, because no run has begun."""
        with suppress(OSError):
            for path in made:
                Entry(path.parent, (path.name,)).remove_empty()

    def remove_lock(self) -> None:
        """Remove the lock file; call this only while holding the lock."""
        remove_lock(self.entry)

    def write_config(self, config: RunConfig) -> None:
        """Write the run's configuration."""
        replace_json(self.config_file, config.document())

    def read_config(self) -> RunConfig:
        """The run's configuration; nothing that its file names is made or imported.

        Raises:
            ValueError: The file is damaged.
        """
        return stored_config(read_options(self.config_file), self.config_file.path)

    def tidy(self, keep_checkpoints: int) -> None:
        """Remove what a killed process left behind; call this only while holding the lock."""
        tidy_folder(self._checkpoint, keep_checkpoints)
        tidy_folder(self.entry / POLICY)
        tidy_files(self.entry)

    def write_checkpoint(self, algorithm: str, state: Mapping[str, Any], keep: int) -> None:
        """Write the next checkpoint; the old ones stay until it is complete.

        Args:
            algorithm: The algorithm it belongs to.
            state: Its contents.
            keep: Number of checkpoints to keep, including this one. Checkpoints found damaged do not count, and
                are removed.
        """
        self.check_lock()
        while self._damaged:
            self._damaged.pop().remove_all()
        with replace_folder(self._checkpoint, keep) as unfinished:
            write_state(unfinished, {"algo": algorithm, **state}, _PLACES)

    def write_policy(self, state: Mapping[str, Any]) -> None:
        """Replace the run's policy; see ``holdfast.policies.policy_files``."""
        self.check_lock()
        write_policy(self.entry, state)

    def read_checkpoint(self, algorithm: str, say: Callable[[str], None] | None = None) -> dict[str, Any] | None:
        """The last undamaged checkpoint, or None before the first.

        Args:
            algorithm: The algorithm it must belong to.
            say: Called with one sentence if a damaged checkpoint was passed over.

        Raises:
            ValueError: All checkpoints are damaged, or it is of another algorithm or from a newer version.
        """
        return self._last_undamaged(algorithm, _checked, say)

    def _last_undamaged(
        self,
        algorithm: str,
        read: Callable[[Entry], dict[str, Any]],
        say: Callable[[str], None] | None = None,
    ) -> dict[str, Any] | None:
        """What ``read`` returns for the first checkpoint, newest first, that it does not find damaged."""
        found, damaged = read_newest(
            lambda: find_folders(self._checkpoint), lambda folder: (folder, read(folder)), _is_damage
        )
        self._damaged = [folder for folder, _ in damaged]
        problems = [" ".join(str(error).split())[:300] for _, error in damaged]
        if found is None:
            if problems:
                others = f"; all {len(problems)} checkpoints are damaged" if len(problems) > 1 else ""
                raise InputError(f"{problems[0]}{others}: remove the run's folder, or restore it from a copy")
            # A folder appeared only now: it is the training's first checkpoint.
            if self._checkpoint.is_there and not self._checkpoint.is_folder:
                raise InputError(f"{self._checkpoint} is damaged: it must be a folder")
            return None
        folder, state = found
        if take(state, "algo") != algorithm:
            raise InputError(
                f"{folder} must be a checkpoint of {algorithm}, not of {str(take(state, 'algo'))[:40]!r}"
            )
        if problems and say is not None:
            say(f"{problems[0]}; using the checkpoint before it, {folder.path.name}")
        return state

    def status(self, is_thorough: bool = True) -> RunStatus:
        """The run's status; checksums of arrays are not checked, because that would read gigabytes.

        Args:
            is_thorough: Whether to open the checkpoint's arrays, too, and check that they fit its document.
        """
        config = None
        try:
            config = self.read_config()
            in_use = folder_in_use(self.entry)
            steps, episodes, last_return = self._progress()
            finished = False
            if not in_use:
                state = self._last_undamaged(config.algo, _outlined if is_thorough else read_document)
                if state is not None:
                    run = take_mapping(state, "run")
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


def _is_damage(error: Exception) -> bool:
    """Whether a reader's exception says that a checkpoint is damaged."""
    if isinstance(error, OSError):
        return error.errno in _BROKEN
    return not isinstance(error, NewerFormatError)


def _checked(folder: Entry) -> dict[str, Any]:
    """A checkpoint whose files all match their checksums."""
    return read_state(folder, _PLACES)


def _outlined(folder: Entry) -> dict[str, Any]:
    """A checkpoint whose document matches its checksum; the numbers in its arrays are not read."""
    return read_state(folder, _PLACES, are_numbers_checked=False)


def find_runs(folder: str | os.PathLike[str]) -> list[RunStatus]:
    """The runs in a folder and in the folders below it, by name.

    Raises:
        ValueError: There is no such folder.
    """
    top = Path(folder)
    if not top.is_dir():
        raise InputError(f"folder must contain runs, and there is no folder {str(top)!r}", "folder")
    found = []
    for place, inner, files in walk_folders(top):
        if is_run_among(inner, files):
            found.append(place)
            inner.clear()
        inner[:] = [name for name in inner if not name.startswith(".")]
    return [RunFolder(path).status() for path in sorted(found)]


def is_run_among(folders: Sequence[str], files: Sequence[str]) -> bool:
    """Whether a folder with these folders and files in it is a run's."""
    return _CONFIG in files and bool({"metrics.csv", LOCK} & set(files) or _CHECKPOINT in folders)
