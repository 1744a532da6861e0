"""Files that were changed at random, read by every verb that reads them: each is read, or refused in one sentence.

``python -m tests.fuzzing --mutations 1000`` changes files by what they are (a value in a document, a header,
a row, checksums made anew); ``tests/coverage_fuzzing.py`` looks for inputs that reach new code. Each trial has 10
seconds and a gigabyte beyond what Python and the libraries need; it may write into its own folder alone, which is
watched by Python's audit events, and it may execute nothing that a file names.
"""

from __future__ import annotations

import argparse
import contextlib
import io
import json
import os
import random
import resource
import shutil
import signal
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import Any

from tests.runs.doctored import FILES, mutate, payload
from tests.runs.small_runs import ACTOR, NETWORK, TABLE, trained

SECONDS = 10
PATIENCE = 4.0
"""Seconds after which a training that a file asks for is told to stop: it may ask for a billion steps."""
MEMORY = 2**30
AT_ONCE = 25
"""Trials of one process."""

MAP = "#####\n#S.G#\n#...#\n#####\n"
TOML = 'environment = "cliff"\nalgo = "perq"\nk_max = 3\nepisodes = 4\neval_episodes = 1\n[set]\ngamma = 0.9\n'
EVIL = "from pathlib import Path\nPath({mark!r}).touch()\ndef make(): raise SystemExit\n"

REPORT = ["report", "it", "-o", "page.html", "--no-pictures"]

_WRITES = os.O_WRONLY | os.O_RDWR | os.O_CREAT | os.O_TRUNC | os.O_APPEND
_NAMED = {"os.remove", "os.rmdir", "os.mkdir", "os.truncate", "os.symlink", "os.chmod", "os.link"}
_EXECUTES = {
    *("subprocess.Popen", "os.system", "os.exec", "os.posix_spawn", "os.spawn"),
    *("pickle.find_class", "socket.connect"),
}


# What is changed, and who reads it -------------------------------------------------------------------------------


def originals(top: Path) -> None:
    """One of each kind of folder."""
    small = {"episodes": 6, "eval_every": 3, "eval_episodes": 1}
    trained({**TABLE, **small}, top / "table")
    trained({**TABLE, **small, "algo": "temporl-q"}, top / "temporl")
    trained({**NETWORK, "steps": 60}, top / "network")
    trained({**ACTOR, "steps": 60}, top / "actor")
    (top / "files").mkdir()
    (top / "files/map.txt").write_text(MAP)
    (top / "files/options.toml").write_text(TOML)
    shutil.copytree(Path(__file__).parents[1] / "results/sync", top / "kept")


def readers(kind: str, name: str) -> list[list[str]]:
    """The verbs that read a file of a folder ``it``."""
    if kind == "files":
        if name == "map.txt":
            return [
                ["solve", "it/map.txt", "--k-max", "2", "-o", "solved"],
                ["train", "it/map.txt", "--algo", "q", "--episodes", "2", "--out", "new", "--quiet"],
            ]
        return [["train", "--config", "it/options.toml", "--out", "new", "--quiet"]]
    if kind == "kept":
        return [["plot", "fig:sync", "it", "-o", "picture.png"], REPORT]
    found = [["runs", "."]]
    if name.startswith("policy"):
        found += [["evaluate", "it", "--episodes", "1"], ["export", "it", "policy.onnx", "--check", "5"]]
    if name.startswith(("checkpoint", "policy")) and kind == "network":
        found.append(["explore", "--run", "it"])
    if name.endswith(".csv"):
        found += [["plot", "it", "-o", "picture.png"], ["plot", "it", "--show", "holds", "-o", "picture.png"]]
        found += [["plot", "it", "--show", "evaluation", "-o", "picture.png"], REPORT]
    if name == "config.json":
        found += [["plot", "it", "-o", "picture.png"], REPORT]
        found.append(["train", "--config", "it/config.json", "--out", "new", "--quiet"])
    if not name.startswith("policy"):
        longer = ["--steps", "70"] if kind in ("network", "actor") else ["--episodes", "8"]
        found.append(["train", "--resume", "it", "--quiet", *longer])
    return found


def change(kind: str, it: Path, draw: random.Random, mark: Path) -> tuple[str, str]:
    """Change one file; its name and what was done."""
    if kind not in ("files", "kept"):
        done = mutate(it, draw, mark)
        return next(name for name in FILES if f" in {name}" in done), done
    path = draw.choice(sorted(path for path in it.iterdir() if path.is_file()))
    data = bytearray(path.read_bytes())
    how = draw.choice(["flip", "cut", "insert", "line", "pickle", "number"])
    if how == "flip":
        for _ in range(draw.randint(1, 6)):
            data[draw.randrange(len(data))] ^= 1 << draw.randrange(8)
    elif how == "cut":
        del data[draw.randrange(len(data)) :]
    elif how == "insert":
        place = draw.randrange(len(data))
        data[place:place] = draw.randbytes(draw.randint(1, 40))
    elif how == "line":
        lines = data.split(b"\n")
        lines.insert(draw.randrange(len(lines)), draw.choice(lines))
        del lines[draw.randrange(len(lines))]
        data = bytearray(b"\n".join(lines))
    elif how == "pickle":
        data = bytearray(payload(mark))
    else:
        digits = [place for place, byte in enumerate(data) if chr(byte).isdigit()]
        for place in draw.sample(digits, min(len(digits), 2)):
            data[place : place + 1] = draw.choice([b"-1", b"1e308", b"nan", b"99999999999", b"", b"x"])
    path.write_bytes(bytes(data))
    return path.name, f"{how} in {path.name}"


# One trial -------------------------------------------------------------------------------------------------------


_HARMLESS = ("uname", ["uname", "-p"])
"""Python's own ``platform.processor`` starts it, whichever library asks."""


class Watch:
    """Notes what is written or executed elsewhere than in a folder."""

    def __init__(self) -> None:
        self.folder: Path | None = None
        self.seen: list[str] = []
        sys.addaudithook(self._hear)

    def _hear(self, event: str, arguments: tuple[Any, ...]) -> None:
        if self.folder is None:
            return
        if event in _EXECUTES and arguments[:2] != _HARMLESS:
            self.seen.append(f"{event} {arguments!r}"[:200])
        elif event == "open":
            path, _, flags = arguments
            if isinstance(flags, int) and flags & _WRITES:
                self._check(event, path)
        elif event in _NAMED:
            self._check(event, arguments[0])
        elif event == "os.rename":
            self._check(event, arguments[0])
            self._check(event, arguments[1])

    def _check(self, event: str, path: Any) -> None:
        # A name alone is one in a folder that was opened without following links.
        if isinstance(path, int) or "/" not in os.fsdecode(path):
            return
        whole = Path(os.path.realpath(os.fsdecode(path)))
        assert self.folder is not None
        if not whole.is_relative_to(self.folder) and whole != Path("/dev/null"):
            self.seen.append(f"{event} {path!r}"[:200])


def attempt(command: list[str]) -> tuple[str, str]:
    """Type a command; ``"read"``, ``"refused"`` or ``"failed"``, and what was said."""
    from holdfast.cli import main

    out, err = io.StringIO(), io.StringIO()
    signal.alarm(SECONDS)
    if command[0] in ("train", "evaluate"):
        signal.signal(signal.SIGPROF, lambda *_: os.kill(os.getpid(), signal.SIGINT))
        signal.setitimer(signal.ITIMER_PROF, PATIENCE)
    try:
        with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
            code = main(command)
    except BaseException as error:
        return "failed", f"{type(error).__name__}: {error}"
    finally:
        signal.setitimer(signal.ITIMER_PROF, 0.0)
        signal.alarm(0)
    said = [line for line in err.getvalue().splitlines() if line and ": warning:" not in line]
    if code == 0:
        return "read", ""
    if code == 130:
        return "stopped", ""
    is_sentence = len(said) >= 1 and len(said[-1]) < 1000 and "Traceback" not in err.getvalue()
    # A training says what it begins with before it finds something wrong.
    is_good = code in (1, 2) and is_sentence and len(said) <= 2
    return ("refused", said[-1]) if is_good else ("failed", f"exit code {code}: {err.getvalue()[-400:]}")


def trials(top: Path, work: Path, seed: int, count: int, answer: int) -> None:
    """In a process of its own: some trials, each told before and after."""
    watch, draw = Watch(), random.Random(seed)
    address_space = int(Path("/proc/self/statm").read_text().split()[0]) * resource.getpagesize()
    resource.setrlimit(resource.RLIMIT_AS, (address_space + MEMORY, address_space + MEMORY))
    for _ in range(count):
        kind = draw.choice(["table", "network", "temporl", "actor", "files", "kept"])
        shutil.rmtree(work, ignore_errors=True)
        work.mkdir()
        os.chdir(work)
        mark = work / "mark"
        (work / "evil.py").write_text(EVIL.format(mark=str(mark)))
        shutil.copytree(top / kind, work / "it")
        name, done = change(kind, work / "it", draw, mark)
        for command in readers(kind, name):
            os.write(answer, (json.dumps(["began", kind, name, done, " ".join(command)]) + "\n").encode())
            watch.folder, watch.seen = work, []
            outcome, said = attempt(command)
            watch.folder = None
            if mark.exists():
                outcome, said = "failed", "it was executed"
                mark.unlink()
            if watch.seen:
                outcome, said = "failed", f"elsewhere: {watch.seen[0]}"
            os.write(answer, (json.dumps(["ended", outcome, said]) + "\n").encode())


def battery(count: int, seed: int) -> Iterator[tuple[str, str, str, str]]:
    """Change files ``count`` times: kind and name of the file, the verb, what came of it, and what was said."""
    import matplotlib.figure  # noqa: F401
    import onnxruntime  # noqa: F401

    import holdfast.advice.fixed_skips.skips
    import holdfast.policies.onnx_policies
    import holdfast.runs.deep_training  # noqa: F401

    with tempfile.TemporaryDirectory() as folder:
        top = Path(folder).resolve()
        originals(top)
        done = 0
        while done < count:
            some = min(AT_ONCE, count - done)
            yield from _told(partial(trials, top, top / "work", seed + done, some))
            done += some


def _told(work: Callable[[int], None]) -> Iterator[tuple[str, str, str, str]]:
    """What a forked process tells; one that dies has failed at what it had begun."""
    ours, theirs = os.pipe()
    child = os.fork()
    if child == 0:
        os.close(ours)
        code = 1
        try:
            work(theirs)
            code = 0
        finally:
            os._exit(code)
    os.close(theirs)
    begun: list[str] | None = None
    with os.fdopen(ours) as lines:
        for line in lines:
            what, *details = json.loads(line)
            if what == "began":
                begun = details
            elif begun is not None:
                kind, name, done, command = begun
                yield f"{kind}/{name}", command.split()[0], details[0], f"{done}: {command}: {details[1]}"
                begun = None
    code = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
    if begun is not None or code != 0:
        where = begun or ["?", "?", "?", "?"]
        yield f"{where[0]}/{where[1]}", where[3].split()[0], "failed", f"{where[2]}: {where[3]}: ended with {code}"


# All of it -------------------------------------------------------------------------------------------------------


def summary(found: list[tuple[str, str, str, str]]) -> str:
    """A table: kind of file, trials and what came of them."""
    counts: dict[str, Counter[str]] = {}
    for kind, _, outcome, _ in found:
        counts.setdefault(kind, Counter())[outcome] += 1
    lines = [f"{'file':34} {'reads':>6} {'read':>6} {'refused':>8} {'stopped':>8} {'failed':>7}"]
    for kind, of_it in sorted(counts.items()):
        cells = [of_it[name] for name in ("read", "refused", "stopped", "failed")]
        lines.append(f"{kind:34} {of_it.total():6} {cells[0]:6} {cells[1]:8} {cells[2]:8} {cells[3]:7}")
    return "\n".join(lines)


def main() -> int:
    """Run it; 0 if nothing failed."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--mutations", type=int, default=2000, help="changes of files (default: 2000)")
    parser.add_argument("--seed", type=int, default=int(time.time()), help="of what is drawn (default: the time)")
    given = parser.parse_args()
    print(f"seed {given.seed}", flush=True)
    began, found = time.monotonic(), []
    for trial in battery(given.mutations, given.seed):
        found.append(trial)
        if trial[2] == "failed":
            print(f"FAILED {trial[0]}: {trial[3]}", flush=True)
    failed = sum(trial[2] == "failed" for trial in found)
    print(summary(found))
    seconds = time.monotonic() - began
    print(f"{given.mutations} changes, {len(found)} reads, {failed} failed, {seconds:.0f} s", flush=True)
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
