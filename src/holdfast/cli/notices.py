"""Log messages that someone at a terminal wants to see: that code is being compiled."""

from __future__ import annotations

import logging
from collections.abc import Iterator
from contextlib import contextmanager
from typing import IO

__all__ = ["notices"]

_LOGGER = "holdfast.compiling"


@contextmanager
def notices(stream: IO[str], who: str, is_quiet: bool = False) -> Iterator[None]:
    """Within the block, write each notice to ``stream`` as a line, if it is a terminal.

    Args:
        stream: Where to write; ignored if it is not a terminal.
        who: The beginning of each line.
        is_quiet: Whether to write nothing at all.
    """
    if is_quiet or not stream.isatty():
        yield
        return
    handler = logging.StreamHandler(stream)
    # A progress display may be on the line: erase it; its owner redraws it.
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
