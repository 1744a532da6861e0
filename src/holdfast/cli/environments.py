"""What verbs that look at an environment have in common: making it, and where their files go."""

from __future__ import annotations

import argparse
import sys
import warnings
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import gymnasium

__all__ = ["named_environment", "output_folder"]


def named_environment(arguments: argparse.Namespace) -> gymnasium.Env[Any, Any]:
    """The environment that was typed, with its ``--env-kwargs``; what Gymnasium warns of is said in a line."""
    from holdfast.cli.code import allow_code
    from holdfast.cli.values import keyword_arguments
    from holdfast.envs import make_env

    allow_code(arguments.environment)
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always", UserWarning)
        env = make_env(arguments.environment, **keyword_arguments("--env-kwargs", arguments.env_kwargs))
    for sentence in dict.fromkeys(str(warning.message) for warning in caught):
        sys.stderr.write(f"holdfast {arguments.verb}: warning: {sentence}\n")
    return env


def output_folder(arguments: argparse.Namespace) -> Path | None:
    """Where files go: ``-o``, or results/VERB-ENVIRONMENT; None where JSON is printed and no folder was named.

    Raises:
        ValueError: A file is in the way.
    """
    from holdfast.cli.values import file_name

    out: Path | None = arguments.out
    if out is None and not arguments.json:
        out = Path("results") / f"{arguments.verb}-{file_name(arguments.environment)}"
    if out is not None and out.exists() and not out.is_dir():
        raise ValueError(f"-o must name a folder, but {out} is a file")
    return out
