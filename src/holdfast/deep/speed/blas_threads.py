"""Products of compiled code on one thread.

Compiled code multiplies matrices with the BLAS of SciPy, which splits even small products among all cores; waiting
for each other then takes longer than the product. The number of threads is a setting of the process, so it is put
back.
"""

from __future__ import annotations

import functools
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

__all__ = ["one_blas_thread"]


@contextmanager
def one_blas_thread() -> Iterator[None]:
    """Inside, SciPy's BLAS uses one thread."""
    changed = [(library, before) for library in _libraries() if (before := library.get_num_threads()) != 1]
    for library, _ in changed:
        library.set_num_threads(1)
    try:
        yield
    finally:
        for library, before in changed:
            library.set_num_threads(before)


@functools.cache
def _libraries() -> tuple[Any, ...]:
    """Those that SciPy brings; none where it uses a BLAS that threadpoolctl does not know."""
    import scipy.linalg.cython_blas  # noqa: F401 - loads the library
    from threadpoolctl import ThreadpoolController

    found = ThreadpoolController().lib_controllers
    return tuple(library for library in found if library.user_api == "blas" and "scipy.libs" in library.filepath)
