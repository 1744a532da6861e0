"""What every test shares: one thread per worker, no windows, and the same examples on every run."""

from __future__ import annotations

import os

# Before NumPy or torch is imported: pytest already runs one worker per core.
for variable in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS", "NUMBA_NUM_THREADS"):
    os.environ.setdefault(variable, "1")
os.environ.setdefault("OMP_WAIT_POLICY", "PASSIVE")
os.environ.setdefault("MPLBACKEND", "Agg")

from hypothesis import settings  # noqa: E402  (after the environment is set)

# No deadline: an example may wait for a busy core. To look for new counterexamples: --hypothesis-profile=search.
settings.register_profile("steady", deadline=None, derandomize=True)
settings.register_profile("search", deadline=None, max_examples=1000)
settings.load_profile("steady")
