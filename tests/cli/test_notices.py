"""A first compilation says that it compiles: on a terminal, once, and only if there is something to compile."""

from __future__ import annotations

import os
import pty
import subprocess
import sys
from pathlib import Path

import pytest

SAID = "holdfast train: compiling machine code; later runs will reuse it"
TRAINING = ["-m", "holdfast", "train", "cliff", "--algo", "q", "--episodes", "2"]
SMALL = """\
import sys
from holdfast.cli.notices import notices
from holdfast.tabular.compiled import toward
with notices(sys.stderr, "holdfast train", is_quiet={}):
    toward(0.0, 1.0, 0.5)
    toward(0, 1.0, 0.5)  # compiled again, for other types
"""


def stderr_of(arguments: list[str], cache: Path, is_terminal: bool = True) -> str:
    """What a new Python process writes to its standard error, a terminal or not."""
    reader, writer = pty.openpty() if is_terminal else os.pipe()
    process = subprocess.Popen(
        [sys.executable, *arguments],
        stdout=subprocess.DEVNULL,
        stderr=writer,
        stdin=subprocess.DEVNULL,
        cwd=cache.parent,
        env={**os.environ, "NUMBA_CACHE_DIR": str(cache)},
    )
    os.close(writer)
    written = b""
    try:
        while chunk := os.read(reader, 65536):
            written += chunk
    except OSError:  # how a terminal ends on Linux
        pass
    os.close(reader)
    assert process.wait() == 0, written
    return written.decode()


def notices_in(text: str) -> list[str]:
    return [line.rpartition("\x1b[2K")[2] for line in text.splitlines() if "compiling" in line]


def test_a_verb_says_it_once_and_not_when_nothing_is_compiled(tmp_path: Path) -> None:
    cold, warm = (stderr_of([*TRAINING, "--name", name], tmp_path / "cache") for name in ("cold", "warm"))
    assert notices_in(cold) == [SAID]
    assert notices_in(warm) == []


def test_what_is_no_terminal_is_left_alone(tmp_path: Path) -> None:
    assert stderr_of(["-c", SMALL.format(False)], tmp_path / "cache", is_terminal=False) == ""
    assert any((tmp_path / "cache").rglob("*.nbi")), "it did compile"


def test_quiet_is_quiet(tmp_path: Path) -> None:
    assert stderr_of(["-c", SMALL.format(True)], tmp_path / "quiet") == ""
    assert notices_in(stderr_of(["-c", SMALL.format(False)], tmp_path / "loud")) == [SAID]


def test_where_nothing_can_be_kept_no_reuse_is_promised(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("NUMBA_CACHE_LOCATOR_CLASSES", "ZipCacheLocator")
    (said,) = notices_in(stderr_of(["-c", SMALL.format(False)], tmp_path / "cache"))
    assert said.startswith("holdfast train: compiling machine code, as in every run: the cache is not writable")


def test_where_compiling_is_switched_off_nothing_is_said(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("NUMBA_DISABLE_JIT", "1")
    assert stderr_of(["-c", SMALL.format(False)], tmp_path / "cache") == ""
