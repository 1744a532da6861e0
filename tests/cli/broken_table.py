"""What each verb does with each kind of broken environment; ``python -m tests.cli.broken_table`` writes it."""

from __future__ import annotations

import contextlib
import io
import os
import re
import shutil
import signal
import sys
import tempfile
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import NamedTuple

from tests.cli.broken_kinds import KINDS

PAGE = Path(__file__).parents[2] / "docs/broken_environments.md"
BEGIN, END = "<!-- table: begin -->", "<!-- table: end -->"
SMALL = ("learning_starts=10", "batch_size=4", "buffer_size=100", "policy_kwargs={'net_arch': [4]}")
ENV = "broken_kinds:make"
LIMIT = "2"
NOT_RUN = "·"


class Met(NamedTuple):
    """What a verb ended with: its exit code (negative for a signal) and the lines that it said."""

    code: int
    said: list[str]


def commands(how: str) -> dict[str, list[str]]:
    """What is typed, by verb."""
    given = ["--env-kwargs", f"how={how}"]
    limit = ["--step-timeout", LIMIT]
    train = ["--steps", "40", "--eval-every", "0", "--set", *SMALL]
    return {
        "train": ["train", ENV, *given, *train, *limit, "--quiet", "--out", "run"],
        "evaluate": ["evaluate", "good", "--env", ENV, *given, "--episodes", "9", *limit],
        "explore": ["explore", ENV, *given, "--k-max", "1,2", "--budget", "100", *limit, "--json"],
        "sweep": ["sweep", "--env", ENV, *given, "--k-max", "2", "--seeds", "1", *train, *limit, "-o", "s"],
    }


def meet(kinds: Iterable[str], verbs: Iterable[str]) -> Iterator[tuple[str, str, Met]]:
    """Let each verb meet each kind, in processes of their own."""
    import holdfast.advice.exploring
    import holdfast.cli
    import holdfast.runs.deep_training

    with tempfile.TemporaryDirectory() as folder:
        top = Path(folder)
        shutil.copy(Path(__file__).with_name("broken_kinds.py"), top / "broken_kinds.py")
        sys.path.insert(0, folder)
        good = str(top / "good")
        # In this process, so that those forked from it have everything imported and compiled.
        assert holdfast.cli.main(["train", ENV, "--steps", "40", "--set", *SMALL, "--quiet", "--out", good]) == 0
        for command in (
            ["evaluate", good, "--env", ENV],
            ["explore", ENV, "--k-max", "1,2", "--budget", "100", "--json"],
        ):
            with contextlib.redirect_stdout(io.StringIO()):
                assert holdfast.cli.main(command) == 0
        for how in kinds:
            for verb in verbs:
                yield how, verb, _typed(commands(how)[verb], top)
                for left in ("run", "s", "results"):
                    shutil.rmtree(top / left, ignore_errors=True)


def _typed(command: list[str], folder: Path) -> Met:
    log = folder / "log"
    child = os.fork()
    if child == 0:
        code = 99
        try:
            signal.alarm(300)
            os.chdir(folder)
            null, said = os.open(os.devnull, os.O_RDWR), os.open(log, os.O_WRONLY | os.O_CREAT | os.O_TRUNC)
            os.dup2(null, 1)
            os.dup2(said, 2)
            if command[0] == "sweep":
                os.dup2(said, 1)
            # Whoever runs the tests may have put others in their place.
            sys.stdout, sys.stderr = (open(number, "w", closefd=False) for number in (1, 2))  # noqa: SIM115
            from holdfast.cli import main

            code = main(command)
            sys.stdout.flush()
            sys.stderr.flush()
        finally:
            os._exit(code)
    code = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
    said = [line for line in log.read_text(errors="replace").splitlines() if line.strip()]
    if command[0] == "sweep":
        said = [line for line in said if line.startswith("holdfast")] or said
    return Met(code, said)


def sentence_of(met: Met) -> str:
    """What is told, without the verb's name and what differs from one machine to the next."""
    told = next((line for line in met.said if line.startswith("holdfast ")), met.said[-1] if met.said else "")
    told = told.partition(": ")[2] if told.startswith("holdfast ") else told
    told = re.sub(r" at 0x[0-9a-f]+", "", told)
    return told.replace("|", "/").replace("the same command again goes on from the last checkpoint", "...")[:160]


def table(found: Iterable[tuple[str, str, Met]]) -> str:
    """The table of the page: exit codes by verb, and what ``train`` says."""
    rows: dict[str, dict[str, Met]] = {}
    for how, verb, met in found:
        rows.setdefault(how, {})[verb] = met
    verbs = ("train", "evaluate", "explore", "sweep")
    lines = [
        "| what is broken | train | evaluate | explore | sweep | what `train` says |",
        "|---|---|---|---|---|---|",
    ]
    for how, by_verb in rows.items():
        codes = " | ".join(_code(by_verb[verb].code) if verb in by_verb else NOT_RUN for verb in verbs)
        lines.append(f"| {how} | {codes} | {sentence_of(by_verb['train'])} |")
    return "\n".join(lines)


def _code(code: int) -> str:
    return str(code) if code >= 0 else f"signal {-code}"


def codes_in_page() -> dict[str, list[str]]:
    """The exit codes in the page, by kind."""
    text = PAGE.read_text().split(BEGIN)[1].split(END)[0]
    rows = [line.strip("| ").split(" | ") for line in text.strip().splitlines()[2:]]
    return {row[0]: row[1:5] for row in rows}


if __name__ == "__main__":
    made = table(meet(KINDS, ("train", "evaluate", "explore", "sweep")))
    before, _, rest = PAGE.read_text().partition(BEGIN)
    PAGE.write_text(f"{before}{BEGIN}\n\n{made}\n\n{END}{rest.partition(END)[2]}")
