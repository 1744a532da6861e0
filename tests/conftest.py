"""What every test shares.

One thread per worker, no windows, one temporary folder that goes with the run, the same examples on every run,
long files first.
"""

from __future__ import annotations

import os
import shutil
import tempfile

# Before NumPy or torch is imported: pytest already runs one worker per core.
for variable in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS", "NUMBA_NUM_THREADS"):
    os.environ.setdefault(variable, "1")
os.environ.setdefault("OMP_WAIT_POLICY", "PASSIVE")
os.environ.setdefault("MPLBACKEND", "Agg")

import pytest  # noqa: E402  (after the environment is set)
from hypothesis import settings  # noqa: E402

# No deadline: an example may wait for a busy core. To look for new counterexamples: --hypothesis-profile=search.
settings.register_profile("steady", deadline=None, derandomize=True)
settings.register_profile("search", deadline=None, max_examples=1000)
settings.load_profile("steady")

_LONG = ("test_shell_blocks.py", "test_kills.py", "test_temporl_dqn.py", "test_demo.py", "test_ray.py")
"""Files that take longest. Begun last, one of them would be what a single worker is still busy with at the end."""


def pytest_configure(config: pytest.Config) -> None:
    """Keep temporary files, those of libraries and child processes too, in one folder that is removed at the end.

    SB3 makes a folder for every training that is not given a logger, and never removes one. pytest's own folders
    stay where they are, so that what a failed test has written can be looked at.
    """
    if hasattr(config, "workerinput"):  # a worker of xdist, which has the folder of its controller
        return
    os.environ.setdefault("PYTEST_DEBUG_TEMPROOT", tempfile.gettempdir())
    # A short name: Ray makes sockets in it, whose paths may have about a hundred characters.
    folder = tempfile.mkdtemp(prefix="holdfast-")
    config.add_cleanup(lambda: shutil.rmtree(folder, ignore_errors=True))
    os.environ["TMPDIR"] = tempfile.tempdir = folder


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Begin with the long files; workers take whole files in this order."""
    order = {name: place for place, name in enumerate(_LONG)}
    items.sort(key=lambda item: order.get(item.path.name, len(_LONG)))
