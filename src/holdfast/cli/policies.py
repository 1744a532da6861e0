"""Arguments shared by verbs about a policy: which policy, and how it acts."""

from __future__ import annotations

import argparse
from pathlib import Path

__all__ = ["acting_options", "add_policy_arguments", "listed_folder", "policy_folder"]


def add_policy_arguments(parser: argparse.ArgumentParser, margin_help: str) -> None:
    """Add the policy, the decision tolerance and the interrupt margin."""
    parser.add_argument(
        "policy", metavar="RUN_OR_POLICY", type=Path, help="the folder of a run, or of a policy (RUN/policy)"
    )
    parser.add_argument(
        "--decision-tolerance",
        type=float,
        metavar="D",
        help="hold longer if that costs at most this in value (default: as trained)",
    )
    parser.add_argument("--interrupt-margin", type=float, metavar="M", help=f"{margin_help} (default: as trained)")


def policy_folder(arguments: argparse.Namespace) -> Path:
    """The folder of the policy that was named."""
    return listed_folder(arguments.policy)


def listed_folder(path: Path) -> Path:
    """The named folder, or the run of that name in runs/, as ``holdfast runs`` lists it."""
    listed = Path("runs") / path
    return listed if not path.exists() and listed.is_dir() else path


def acting_options(arguments: argparse.Namespace) -> tuple[float | None, float | None]:
    """The decision tolerance and interrupt margin, each None if not given.

    Raises:
        ValueError: One of them is negative or not a finite number.
    """
    from holdfast.core.checks import check_real

    tolerance, margin = arguments.decision_tolerance, arguments.interrupt_margin
    return (
        None if tolerance is None else check_real("decision_tolerance", tolerance, 0.0),
        None if margin is None else check_real("interrupt_margin", margin, 0.0),
    )
