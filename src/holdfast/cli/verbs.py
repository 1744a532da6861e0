"""Add a verb to the command line, with the options that several verbs share."""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from holdfast.cli.typed_values import whole_number, whole_numbers

__all__ = [
    "add_agent_options",
    "add_device",
    "add_eval_every",
    "add_holds",
    "add_lengths",
    "add_output",
    "add_pairs",
    "add_seed",
    "add_step_timeout",
    "add_verb",
]


def add_verb(
    verbs: Any, name: str, summary: str, description: str, examples: str | None = None, **options: Any
) -> argparse.ArgumentParser:
    """Add a verb and return its parser; its description and examples are shown exactly as written.

    Args:
        verbs: The subparsers of the command line.
        name: The verb as typed.
        summary: The line in the list of all verbs.
        description: The beginning of its help.
        examples: The end of its help.
        options: Passed on to the parser.
    """
    parser: argparse.ArgumentParser = verbs.add_parser(
        name,
        help=summary,
        description=description,
        epilog=examples,
        formatter_class=argparse.RawDescriptionHelpFormatter,
        **options,
    )
    return parser


def add_pairs(
    parser: argparse.ArgumentParser, option: str, meaning: str, default: Sequence[str] | None = None
) -> None:
    """Add an option that takes any number of NAME=VALUE pairs and may be repeated."""
    parser.add_argument(option, nargs="+", action="extend", default=default, metavar="NAME=VALUE", help=meaning)


def add_holds(parser: argparse.ArgumentParser, k_max_help: str, persistences_help: str | None = None) -> None:
    """Add ``--k-max`` and ``--persistences``, which exclude each other."""
    held = parser.add_mutually_exclusive_group()
    held.add_argument("--k-max", type=whole_number, metavar="K", help=k_max_help)
    held.add_argument(
        "--persistences",
        type=whole_numbers,
        metavar="1,K,...",
        help=persistences_help or "the persistences to choose from, such as 1,2,4,8, instead of all up to --k-max",
    )


def add_lengths(parser: argparse.ArgumentParser, steps: str, episodes: str) -> None:
    """Add ``--steps`` and ``--episodes``, with their meanings: how long to train."""
    parser.add_argument("--steps", type=whole_number, metavar="N", help=steps)
    parser.add_argument("--episodes", type=whole_number, metavar="N", help=episodes)


def add_eval_every(parser: argparse.ArgumentParser, meaning: str) -> None:
    """Add ``--eval-every``: the interval between evaluations."""
    parser.add_argument("--eval-every", type=whole_number, metavar="N", help=meaning)


def add_agent_options(parser: argparse.ArgumentParser, meaning: str) -> None:
    """Add ``--set`` with its meaning, ``--env-kwargs`` and ``--device``."""
    add_pairs(parser, "--set", meaning)
    add_pairs(parser, "--env-kwargs", "arguments of the environment")
    add_device(parser)


def add_device(parser: argparse.ArgumentParser) -> None:
    """Add ``--device``."""
    parser.add_argument("--device", metavar="D", help="PyTorch device: auto, cpu, cuda, ... (default: auto)")


def add_seed(parser: argparse.ArgumentParser, meaning: str) -> None:
    """Add ``--seed`` (default: 0)."""
    parser.add_argument("--seed", type=int, default=0, metavar="S", help=f"{meaning} (default: 0)")


def add_output(parser: argparse.ArgumentParser, meaning: str, metavar: str = "DIR") -> None:
    """Add ``-o``: the file or folder to write."""
    parser.add_argument("-o", "--out", type=Path, metavar=metavar, help=meaning)


def add_step_timeout(parser: argparse.ArgumentParser) -> None:
    """Add ``--step-timeout``, which ``main`` or the engine of a campaign applies."""
    parser.add_argument(
        "--step-timeout",
        type=float,
        metavar="SECONDS",
        help="stop and say where it hangs if one environment step or reset takes longer (default: no limit)",
    )
