"""``holdfast report``: runs, sweeps and campaigns as one page to look at."""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import Any

from holdfast.cli.streams import results
from holdfast.cli.verbs import add_output, add_verb

__all__ = ["add_parser"]

_DESCRIPTION = """\
Write one HTML page about runs, sweeps and campaigns: the agents, how well they
do and how certain that is, how fast they learn, how often they decide, what
they learned, and what exactly was run. The page opens without a network.
Needs pip install 'holdfast-rl[report]'.
"""
_EXAMPLES = """\
examples:
  holdfast report runs
  holdfast report runs/car runs/dqn -o car.html
  holdfast report results/sweep results/suite --title "Last week"
"""


def add_parser(verbs: Any) -> None:
    """Add the verb to the command line."""
    parser = add_verb(verbs, "report", "show runs, sweeps and campaigns on one page", _DESCRIPTION, _EXAMPLES)
    parser.add_argument(
        "what",
        metavar="WHAT",
        nargs="+",
        type=Path,
        help="folders of runs, sweeps and campaigns, or folders that contain them",
    )
    add_output(parser, "the page (default: report.html)", metavar="FILE")
    parser.add_argument("--title", metavar="TEXT", help="heading of the page (default: the environments)")
    parser.add_argument(
        "--no-pictures",
        action="store_true",
        help="draw no policy maps (up to six; for each, the policy plays an episode)",
    )
    parser.set_defaults(execute=run)


def run(arguments: argparse.Namespace) -> int:
    """Write the page and print its path."""
    from holdfast.report.page import write_report

    out = arguments.out or Path("report.html")
    path = write_report(arguments.what, out, arguments.title, not arguments.no_pictures)
    results().write(f"wrote {path}\n")
    return 0
