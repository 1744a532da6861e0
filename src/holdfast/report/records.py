"""What a report is made of: trainings, each with what it was and what was measured on its way."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from holdfast.core.array_types import Floats

__all__ = ["QUANTITIES", "Exhibit", "Findings", "Holds", "Problem", "Record", "Trace"]


QUANTITIES: Mapping[str, str] = {
    "greedy": "return of greedy evaluations",
    "return": "return",
    "training": "return of training episodes",
    "decisions": "decisions per episode",
    "hold": "steps per decision",
    "length": "steps per episode",
}
"""What a curve may show, by name, the most telling first."""


@dataclass(frozen=True, eq=False)
class Trace:
    """One quantity of one training.

    Attributes:
        x: (n,) steps, episodes or iterations, rising.
        y: (n,) the quantity there.
    """

    x: Floats
    y: Floats


@dataclass(frozen=True, eq=False)
class Holds:
    """How long the actions of greedy evaluations were held.

    Attributes:
        steps: (n,) when the evaluations were.
        shares: (n, K) part of their decisions that was held for 1..K steps.
    """

    steps: Floats
    shares: Floats


@dataclass(frozen=True)
class Record:
    """One training.

    Attributes:
        name: What it is called on the page: its folder, or its campaign and job.
        task: The environment, with its arguments.
        agent: What its kind is called, such as PerDQN.
        algo: Name of the algorithm, as users type it; what a colour goes by.
        setting: Everything that was set, by name, as JSON values, but not the seed.
        seed: The seed.
        axis: What its traces are over, such as "steps".
        traces: By the names of ``QUANTITIES``.
        status: ``"finished"``, ``"unfinished"``, ``"in use"``, ``"failed"`` or ``"stopped early"``.
        done: Steps or episodes done.
        planned: Those that were planned; None if unknown.
        versions: Of holdfast and of what it was run with.
        commit: Of the code; None where nobody has noted it.
        seconds: That it took; None where nobody has noted it.
        holds: Of its evaluations.
        folder: Of the run, if it has one.
        unit: What ``done`` and ``planned`` count; that of the traces where None.
        again: The command that runs it again; None where nobody has noted how it was run.
    """

    name: str
    task: str
    agent: str
    algo: str
    setting: Mapping[str, Any]
    seed: int
    axis: str
    traces: Mapping[str, Trace]
    status: str
    done: float
    planned: float | None = None
    versions: Mapping[str, str] = field(default_factory=dict)
    commit: str | None = None
    seconds: float | None = None
    holds: Holds | None = None
    folder: str | None = None
    unit: str | None = None
    again: str | None = None

    @property
    def done_text(self) -> str:
        """How far it is, with its unit."""
        return f"{self.done:,.0f} {self.unit or self.axis}"


@dataclass(frozen=True)
class Exhibit:
    """Something to look at: a picture, a film, or lines of numbers.

    Attributes:
        title: What it shows.
        kind: ``"image"``, ``"video"`` or ``"text"``.
        content: As a data URI, or the text.
        source: Where it comes from.
        is_wide: Whether it takes the whole width of a page.
    """

    title: str
    kind: str
    content: str
    source: str
    is_wide: bool = False

    @property
    def n_bytes(self) -> int:
        """Bytes of its content in a page."""
        return len(self.content.encode())


@dataclass(frozen=True)
class Problem:
    """Something that was asked for and cannot be shown.

    Attributes:
        name: What.
        sentence: Why.
    """

    name: str
    sentence: str


@dataclass
class Findings:
    """All that was found in the folders of a report.

    Attributes:
        records: The trainings.
        exhibits: Pictures and films.
        problems: What cannot be shown.
        n_unread: Number of further pictures and films, which there is no room for beside those.
        n_beyond: Number of pictures and films that no page shows: too large, or too many of one run.
    """

    records: list[Record] = field(default_factory=list)
    exhibits: list[Exhibit] = field(default_factory=list)
    problems: list[Problem] = field(default_factory=list)
    n_unread: int = 0
    n_beyond: int = 0
