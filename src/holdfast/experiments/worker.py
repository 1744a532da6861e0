"""A process that runs one job: ``python -m holdfast.experiments.worker``.

The job is read from the standard input, a line of JSON, and its rows are written to the standard output. Whatever
else is printed goes to the standard error. The standard input stays open for as long as somebody waits for the
rows; when it closes, the process ends at once, and with it all that it has started.
"""

from __future__ import annotations

import json
import os
import signal
import sys
import threading
from pathlib import Path

__all__ = ["main"]


def main() -> int:
    """Run the job; 0 if it has rows."""
    answer = os.dup(sys.stdout.fileno())
    os.dup2(sys.stderr.fileno(), sys.stdout.fileno())
    request = json.loads(_first_line())
    threading.Thread(target=_end_with_the_asker, daemon=True).start()
    from holdfast.experiments.engines.base import perform, print_failure

    try:
        data = perform(request, Path(request["place"]))
    except (Exception, SystemExit) as error:
        if isinstance(error, SystemExit) and error.code not in (0, None):
            raise
        # An exit with 0 is no answer either.
        print_failure(error)
        return 1
    with os.fdopen(answer, "wb") as file:
        file.write(data)
    return 0


def _first_line() -> bytes:
    # Not through sys.stdin: a thread that waits in its buffer could not be left at the end.
    line = b""
    while not line.endswith(b"\n"):
        part = os.read(0, 65536)
        if not part:
            raise SystemExit(1)
        line += part
    return line


def _end_with_the_asker() -> None:
    while os.read(0, 1024):
        pass
    try:
        if hasattr(os, "killpg"):
            os.killpg(os.getpid(), signal.SIGKILL)
    finally:
        os._exit(1)


if __name__ == "__main__":
    sys.exit(main())
