"""An allocation that cannot succeed is refused before it is tried."""

from __future__ import annotations

import pytest

from holdfast.deep.replay import memory
from holdfast.deep.replay.memory import available_bytes, check_fits


def test_the_system_says_how_much_there_is():
    assert available_bytes() > 2**20


def test_what_fits_passes(monkeypatch):
    monkeypatch.setattr(memory, "available_bytes", lambda: 1000)
    check_fits("a thing", 1000)
    with pytest.raises(ValueError, match=r"a thing needs 3\.0 GB, but 0\.0 GB of memory are available: choose a"):
        check_fits("a thing", 3 * 10**9)


def test_a_system_that_says_nothing_is_trusted(monkeypatch):
    monkeypatch.setattr(memory, "available_bytes", lambda: None)
    check_fits("a thing", 10**18)


def test_without_meminfo_the_whole_memory_counts(monkeypatch):
    def missing(*arguments, **keywords):
        raise OSError

    monkeypatch.setattr(memory.Path, "read_text", missing)
    assert available_bytes() >= 2**20
