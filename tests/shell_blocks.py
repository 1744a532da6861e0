"""The shell blocks of a document, run as they are typed, at a budget of seconds.

A folder of stand-ins comes first on PATH. ``holdfast`` is the real one behind smaller numbers, in a child of a
process that has imported everything already. What would install, clone or serve something is not run, but must be
possible: make must know the target, the project the extra.
"""

from __future__ import annotations

import os
import re
import signal
import stat
import subprocess
import sys
import tempfile
import time
import tomllib
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from tests.architecture import ROOT

__all__ = ["command_server", "run_document", "run_holdfast", "shell_documents", "smaller"]

_BLOCK = re.compile(r"^```(\w+)\n(.*?)^```$", flags=re.MULTILINE | re.DOTALL)
_NAMED = re.compile(r"# ([\w./-]+\.(?:py|toml))\n")

_SMALLER = {"--steps": 250, "--episodes": 20, "--eval-every": 250}
"""What numbers are divided by: alike for all, so that longer stays longer."""
_DEFAULTS = {"deep": ["--steps", "400"], "table": ["--episodes", "30"]}


def shell_documents(documents: list[Path]) -> list[Path]:
    """Those with a shell block."""
    return [path for path in documents if "```sh\n" in path.read_text(encoding="utf-8")]


@contextmanager
def command_server(folder: Path) -> Iterator[Path]:
    """The socket of a process that runs ``holdfast`` for others, for as long as the block lasts."""
    path = folder / "server"
    server = subprocess.Popen(
        [sys.executable, "-m", "tests.shell_server", str(path)],
        cwd=folder,
        env={**os.environ, "PYTHONPATH": f"{ROOT}:{ROOT / 'src'}"},
        start_new_session=True,
    )
    try:
        until = time.monotonic() + 120.0
        while not path.exists():
            assert server.poll() is None, "the server of commands has ended"
            assert time.monotonic() < until, "the server of commands does not begin"
            time.sleep(0.05)
        yield path
    finally:
        os.killpg(server.pid, signal.SIGKILL)
        server.wait()


def run_document(document: Path, folder: Path, server: Path) -> None:
    """Run all shell blocks of a document in ``folder``, one after the other, with the files that it shows."""
    stand_ins = folder / ".stand-ins"
    stand_ins.mkdir()
    for name in ("holdfast", "make", "pip", "git", "tensorboard", "python"):
        script = stand_ins / name
        client = f"-S {ROOT / 'tests' / 'shell_server.py'} {server}"
        asked = client if name == "holdfast" else f"-m tests.shell_blocks {name}"
        script.write_text(f'#!/bin/sh\nexec {sys.executable} {asked} "$@"\n')
        script.chmod(script.stat().st_mode | stat.S_IXUSR)
    for language, text in _BLOCK.findall(document.read_text(encoding="utf-8")):
        named = _NAMED.match(text)
        if language in ("python", "toml") and named is not None:
            (folder / named[1]).write_text(text, encoding="utf-8")
        if language != "sh":
            continue
        done = subprocess.run(
            ["bash", "-euc", text],
            cwd=folder,
            env={
                "PATH": f"{stand_ins}:/usr/bin:/bin",
                "PYTHONPATH": f"{ROOT}:{ROOT / 'src'}",
                "HOME": str(folder),
                "OMP_NUM_THREADS": "1",
                "TMPDIR": tempfile.gettempdir(),
            },
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            timeout=300,
        )
        assert done.returncode == 0, f"{document.name}:\n{text}\n{done.stdout}\n{done.stderr}"


def smaller(arguments: list[str]) -> list[str]:
    """The arguments of ``holdfast`` with less to do."""
    found = list(arguments)
    for place, word in enumerate(found[:-1]):
        if word in _SMALLER:
            found[place + 1] = str(max(2, int(float(found[place + 1])) // _SMALLER[word]))
    verb, rest = found[0], found[1:]
    if verb == "demo" and "--quick" not in rest and "--help" not in rest:
        found.append("--quick")
    if verb == "train" and not {"--steps", "--episodes", "--config", "--resume", "--help"} & set(rest):
        algorithm = rest[rest.index("--algo") + 1] if "--algo" in rest else "perdqn"
        found += _DEFAULTS["deep" if "dqn" in algorithm else "table"]
    return found


def check_make(arguments: list[str]) -> None:
    """That ``make`` would find its targets."""
    targets = re.findall(r"^([a-z-]+):.* ## ", (ROOT / "Makefile").read_text(encoding="utf-8"), re.MULTILINE)
    wanted = [word for word in arguments if "=" not in word]
    assert wanted, "make must have a target"
    assert set(wanted) <= set(targets), wanted


def check_pip(arguments: list[str]) -> None:
    """That ``pip install`` names files and extras that there are."""
    assert arguments[0] == "install", arguments
    extras = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]["optional-dependencies"]
    for word in arguments[1:]:
        named = re.fullmatch(r"(?:holdfast-rl|\.)\[([\w,]+)\]", word)
        assert named is None or set(named[1].split(",")) <= set(extras), word
        assert not word.endswith(".txt") or (ROOT / word).exists(), word


def check_python(arguments: list[str]) -> None:
    """That ``python`` is given a file or module of the repository."""
    module = arguments[1].replace(".", "/") if arguments[0] == "-m" else arguments[0]
    places = [ROOT / module, ROOT / f"{module}.py", Path(module)]
    assert any(place.exists() for place in places), arguments


def run_holdfast(arguments: list[str]) -> int:
    """What ``holdfast`` does, with less to do."""
    from holdfast.cli import main

    sys.argv[0] = "holdfast"
    return main(smaller(arguments))


if __name__ == "__main__":
    program, *given = sys.argv[1:]
    checks = {"make": check_make, "pip": check_pip, "python": check_python}
    if program in checks:
        checks[program](given)
