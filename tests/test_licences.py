"""The page of licences has every package that holdfast is tested with, and says what those say that are here."""

from __future__ import annotations

from tests.licences import PAGE, pinned


def test_every_pinned_package_is_listed() -> None:
    rows = [line.split("|")[1].strip() for line in PAGE.read_text().splitlines() if line.startswith("| ")]
    assert rows[1:] == pinned()
    assert "not installed here" not in PAGE.read_text()
