"""Through how many files one has to follow the code: a step of PerDQN, a tabular run, a job of ``reproduce``.

``python -m tests.files_touched`` prints the files; ``tests/test_files_touched.py`` keeps their numbers small.

A step is traced while it runs, and so is a job, from the typed verb to its rows. Compiled code does not tell what
it calls, so of a tabular run the files are counted that one learner is made of: its own, and what that imports of
its package.
"""

from __future__ import annotations

import sys
import tempfile
import threading
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, redirect_stderr, redirect_stdout
from io import StringIO
from pathlib import Path
from types import FrameType
from typing import Any

from tests.architecture import SOURCE, imports_of

__all__ = ["by_a_job", "by_a_step", "by_a_tabular_run", "traced"]

_BEFORE, _STEPS = 1500, 200
"""Steps before the trace, so that nothing happens for the first time, and steps in it: episodes end among them."""


@contextmanager
def traced() -> Iterator[set[str]]:
    """Inside, collect the files of holdfast, relative to the package, of which a function is called."""
    found: set[str] = set()

    def note(frame: FrameType, event: str, _: Any) -> None:
        code = frame.f_code
        if event == "call" and code.co_name != "<module>" and code.co_filename.startswith(str(SOURCE)):
            found.add(Path(code.co_filename).relative_to(SOURCE).as_posix())

    before = sys.getprofile()
    threading.setprofile(note)
    sys.setprofile(note)
    try:
        yield found
    finally:
        sys.setprofile(before)
        threading.setprofile(None)


def by_a_step() -> set[str]:
    """Files of ``deep`` that steps of PerDQN with its default arguments go through, once training is under way."""
    from holdfast import PerDQN

    found: set[str] = set()
    with ExitStack() as trace:

        def watch(names: dict[str, Any], _: dict[str, Any]) -> bool:
            step = names["self"].num_timesteps
            if step == _BEFORE:
                trace.callback(found.update, trace.enter_context(traced()))
            elif step == _BEFORE + _STEPS:
                trace.close()
            return True

        # Nothing is logged meanwhile.
        PerDQN("MlpPolicy", "CartPole-v1", seed=0).learn(_BEFORE + _STEPS, callback=watch, log_interval=10**9)
    return {path for path in found if path.startswith("deep/")}


def by_a_tabular_run() -> set[str]:
    """Files of ``tabular`` that PerQ-learning is made of."""
    found, pending = set[str](), {"tabular/perq.py"}
    while pending:
        path = pending.pop()
        found.add(path)
        modules = (one.module for one in imports_of((SOURCE / path).read_text("utf-8"), path) if not one.lazy)
        named = {module.removeprefix("holdfast.").replace(".", "/") + ".py" for module in modules}
        pending |= {other for other in named if other.startswith("tabular/")} - found
    return found


def by_a_job(label: str = "sync") -> set[str]:
    """Files of ``cli`` and ``experiments`` from ``holdfast reproduce LABEL`` to the rows of a job."""
    from holdfast.cli.main import main as holdfast
    from holdfast.experiments.engines.base import Task, perform
    from holdfast.experiments.figures import find_experiment
    from holdfast.files import Entry

    with tempfile.TemporaryDirectory() as folder, redirect_stdout(StringIO()), redirect_stderr(StringIO()):
        with traced() as found:
            code = holdfast(["reproduce", label, "--scale", "smoke", "--out", f"{folder}/campaign"])
        assert code == 0, code
        experiment = find_experiment(label)
        job = experiment.jobs("smoke")[0]
        place = Entry(Path(folder))
        document = Task(job, experiment.reference, place, place, "").document()
        # In the process of the job.
        with traced() as in_job:
            perform(document, Path(folder) / "a_job")
    return {path for path in found | in_job if path.startswith(("cli/", "experiments/"))}


def main() -> None:
    """Print the files, and how many there are."""
    for what, files in (
        ("a step of PerDQN, in deep", by_a_step()),
        ("a tabular run, in tabular", by_a_tabular_run()),
        ("a job of reproduce, in cli and experiments", by_a_job()),
    ):
        sys.stdout.write(f"{what}: {len(files)}\n" + "".join(f"  {path}\n" for path in sorted(files)))


if __name__ == "__main__":
    main()
