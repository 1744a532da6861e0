"""Pictures, films and numbers of a report, as text that a page can hold."""

from __future__ import annotations

import base64
import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from matplotlib.figure import Figure

from holdfast.core.errors import InputError
from holdfast.draw import figure_bytes
from holdfast.envs import EnvironmentFailedError
from holdfast.files import Entry
from holdfast.policies.evaluation import evaluation_seeds
from holdfast.policies.opened import open_policy
from holdfast.policies.pictures import draw_policy_over, take_trip
from holdfast.report.records import Exhibit, Record
from holdfast.report.short_names import short_name

__all__ = [
    "MOST_FILES",
    "RUN_ROOM",
    "RunFiles",
    "figure_exhibit",
    "files_of_run",
    "page_bytes",
    "policy_exhibits",
    "text_exhibit",
]

_TYPES = {
    ".png": ("image", "image/png"),
    ".gif": ("image", "image/gif"),
    ".mp4": ("video", "video/mp4"),
}
"""Kind and media type of files that a page can show."""
_LONGEST_HEAD = len("data:image/png;base64,")
_PLACES = ("", "pictures")
_LARGEST = {"image": 2**21, "video": 6 * 2**20}
"""Bytes of a file."""
MOST_FILES = 12
"""Files of a run."""
RUN_ROOM = 10_700_000
"""Bytes of a page for the files of a run together: the largest film and some pictures."""
_MOST_POLICIES = 6
_DPI = 110


def figure_exhibit(figure: Figure, title: str, source: str, is_wide: bool = False) -> Exhibit:
    """A figure of matplotlib's."""
    return Exhibit(title, "image", _data_uri(figure_bytes(figure, _DPI), "image/png"), source, is_wide)


def text_exhibit(text: str, title: str, source: str) -> Exhibit:
    """Lines of numbers."""
    return Exhibit(title, "text", text, source, is_wide=True)


@dataclass
class RunFiles:
    """Pictures and films of a run.

    Attributes:
        exhibits: Those to show.
        n_unread: Number of those that the page has no room for beside the other runs'.
        n_beyond: Number of those that no page shows: too large, or beyond what a run may show.
    """

    exhibits: list[Exhibit] = field(default_factory=list)
    n_unread: int = 0
    n_beyond: int = 0


def files_of_run(record: Record, room: int) -> RunFiles:
    """Pictures and films that lie in a run's folder, or in ``pictures`` there.

    Args:
        record: The run.
        room: Bytes that they may take in the page (``page_bytes``); a file that does not fit takes none.
    """
    found = RunFiles()
    own_room = RUN_ROOM
    for place, name, entry in _pictures_and_films(record):
        kind, media_type = _TYPES[Path(name).suffix.lower()]
        status = entry.status()
        if status is None:
            continue
        needed = page_bytes(status.st_size)
        is_one_too_many = len(found.exhibits) + found.n_unread == MOST_FILES
        if is_one_too_many or status.st_size > _LARGEST[kind] or needed > own_room:
            found.n_beyond += 1
            continue
        if needed > room:
            found.n_unread += 1
            own_room -= needed
            continue
        try:
            content = entry.read(_LARGEST[kind], "a picture")
        except (InputError, OSError):
            continue
        own_room -= page_bytes(len(content))
        room -= page_bytes(len(content))
        title = short_name(f"{Path(name).stem.replace('_', ' ')} of {record.name}")
        source = "/".join(filter(None, (record.name, place, name)))
        found.exhibits.append(Exhibit(title, kind, _data_uri(content, media_type), source))
    return found


def _pictures_and_films(record: Record) -> Iterator[tuple[str, str, Entry]]:
    """Where they lie, what they are called, and they themselves."""
    if record.folder is None:
        return
    for place in _PLACES:
        folder = Entry(Path(record.folder)) / place if place else Entry(Path(record.folder))
        if folder.is_folder:
            for name in sorted(folder.listed()):
                if Path(name).suffix.lower() in _TYPES and (folder / name).is_file:
                    yield place, name, folder / name


def page_bytes(n_bytes: int) -> int:
    """Bytes that a file of so many takes in a page."""
    return _LONGEST_HEAD + 4 * math.ceil(n_bytes / 3)


def policy_exhibits(records: Sequence[Record]) -> list[Exhibit]:
    """What the best policies do, and for how long: one map for each of some runs.

    Environments that are the user's code are left out: for safety, code named in a file is never run.
    """
    found: list[Exhibit] = []
    for record in records:
        if len(found) == _MOST_POLICIES:
            break
        if record.folder is None:
            continue
        try:
            shown = open_policy(record.folder)
            env = shown.make_env()
            try:
                trip = take_trip(shown.actor, env, evaluation_seeds(0, 0, 1)[0], shown.longest)
                title = f"{record.task}: what {record.agent} does, and for how long"
                figure = draw_policy_over(shown.actor, env, trip, None, title)
            finally:
                env.close()
        except (InputError, OSError, EnvironmentFailedError):
            # Without a policy yet, without its environment's library, or with one that is code.
            continue
        if figure is not None:
            found.append(figure_exhibit(figure, f"{title} (policy of step {shown.step:,})", record.name))
    return found


def _data_uri(content: bytes, media_type: str) -> str:
    return f"data:{media_type};base64,{base64.b64encode(content).decode('ascii')}"
