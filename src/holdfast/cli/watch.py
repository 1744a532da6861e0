"""``holdfast watch``: show the report of runs in a browser while training goes on."""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import Any

from holdfast.cli.streams import results
from holdfast.cli.verbs import add_verb

__all__ = ["add_parser"]

_DESCRIPTION = """\
Serve the report of runs, sweeps and campaigns to a browser on this machine. The
page follows the trainings: new runs appear, curves grow. It listens on
127.0.0.1 only, and shows nothing outside the named folders. Stop it with
Ctrl-C. Needs pip install 'holdfast-rl[report]'.
"""
_EXAMPLES = """\
examples:
  holdfast watch
  holdfast watch runs results/sweep --port 8800
"""


def add_parser(verbs: Any) -> None:
    """Add the verb to the command line."""
    parser = add_verb(
        verbs, "watch", "show the report in a browser while training goes on", _DESCRIPTION, _EXAMPLES
    )
    parser.add_argument(
        "what",
        metavar="WHAT",
        nargs="*",
        type=Path,
        default=[Path("runs")],
        help="folders of runs, sweeps and campaigns, or folders that contain them (default: runs)",
    )
    parser.add_argument("--port", type=int, default=0, metavar="N", help="port to listen on (default: a free one)")
    parser.add_argument("--title", metavar="TEXT", help="heading of the page (default: the environments)")
    parser.set_defaults(execute=run)


def run(arguments: argparse.Namespace) -> int:
    """Serve until interrupted."""
    from holdfast.report.serving import PageServer

    with PageServer(arguments.what, arguments.port, arguments.title) as server:
        try:
            results().write(f"open {server.address} in a browser on this machine; Ctrl-C stops watching\n")
            results().flush()
            server.serve_forever()
        except KeyboardInterrupt:
            results().write("stopped watching\n")
    return 0
