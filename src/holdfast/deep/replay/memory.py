"""Refusing an allocation that cannot succeed before it is tried."""

from __future__ import annotations

import os
from pathlib import Path

from holdfast.core.errors import InputError

__all__ = ["available_bytes", "check_fits"]


def available_bytes() -> int | None:
    """Memory available without swapping, if the system reports it; otherwise all memory."""
    try:
        for line in Path("/proc/meminfo").read_text(encoding="ascii").splitlines():
            if line.startswith("MemAvailable:"):
                return int(line.split()[1]) * 1024
    except (OSError, ValueError):
        pass
    try:
        return os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
    except (AttributeError, ValueError, OSError):
        return None


def check_fits(what: str, n_bytes: int) -> None:
    """Raise ValueError if ``what`` needs more memory than there is."""
    available = available_bytes()
    if available is not None and n_bytes > available:
        raise InputError(
            f"{what} needs {n_bytes / 1e9:.1f} GB, but {available / 1e9:.1f} GB of memory are available: "
            "choose a smaller one"
        )
