"""What the library logs and someone at a terminal wants to know: that code is being compiled."""

from __future__ import annotations

import logging
from collections.abc import Iterator
from contextlib import contextmanager
from typing import IO

__all__ = ["notices"]

_LOGGER = "holdfast.compiling"


@contextmanager
def notices(stream: IO[str], who: str, is_quiet: bool = False) -> Iterator[None]:
    """Within this, write a line to ``stream`` for each notice, if it is a terminal.

    Args:
        stream: Where to. What is no terminal is left alone.
        who: What the lines begin with.
        is_quiet: Whether a terminal is left alone too.
    """
    if is_quiet or not stream.isatty():
        yield
        return
    handler = logging.StreamHandler(stream)
    # A progress display may be on the line; it is wiped away, and drawn anew by its owner.
    handler.setFormatter(logging.Formatter(f"\r\x1b[2K{who}: %(message)s"))
    logger = logging.getLogger(_LOGGER)
    level, propagates = logger.level, logger.propagate
    logger.setLevel(logging.INFO)
    logger.propagate = False
    logger.addHandler(handler)
    try:
        yield
    finally:
        logger.removeHandler(handler)
        logger.setLevel(level)
        logger.propagate = propagates
