"""Names that a page repeats in every chart and table, cut to a length that it has room for."""

from __future__ import annotations

import hashlib
from dataclasses import replace

from holdfast.report.records import Exhibit, Problem, Record

__all__ = ["LONGEST_NAME", "short_digest", "short_exhibit", "short_name", "short_problem", "short_record"]

LONGEST_NAME = 300
"""Characters of a name."""
_LONGEST_SENTENCE = 2000
_DIGITS = 8


def short_name(text: str, longest: int = LONGEST_NAME) -> str:
    """The beginning of a long text, ``…`` and a few digits that differ where texts do, so that they stay apart."""
    if len(text) <= longest:
        return text
    return f"{text[: longest - _DIGITS - 1]}…{short_digest(text)}"


def short_digest(text: str) -> str:
    """A few digits that differ where texts do."""
    return hashlib.sha256(text.encode(errors="surrogatepass")).hexdigest()[:_DIGITS]


def short_record(record: Record) -> Record:
    """The same with short names; its folder and the values of its settings stay as they are."""
    return replace(
        record,
        name=short_name(record.name),
        task=short_name(record.task),
        agent=short_name(record.agent),
        setting={short_name(name): value for name, value in record.setting.items()},
        versions={short_name(name): short_name(value) for name, value in record.versions.items()},
    )


def short_exhibit(exhibit: Exhibit) -> Exhibit:
    """The same with a short title and source."""
    return replace(exhibit, title=short_name(exhibit.title), source=short_name(exhibit.source))


def short_problem(problem: Problem) -> Problem:
    """The same with a short name and a sentence that is not too long."""
    return Problem(short_name(problem.name), short_name(problem.sentence, _LONGEST_SENTENCE))
