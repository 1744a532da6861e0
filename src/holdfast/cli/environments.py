"""What verbs that look at an environment have in common: making it, and where their files go."""

from __future__ import annotations

import argparse
import sys
import warnings
from contextlib import AbstractContextManager, nullcontext, redirect_stdout
from pathlib import Path
from typing import TYPE_CHECKING, Any

from holdfast.core.errors import InputError

if TYPE_CHECKING:
    import gymnasium

__all__ = ["check_output_folder", "named_environment", "output_folder", "prints_apart"]


def named_environment(arguments: argparse.Namespace) -> gymnasium.Env[Any, Any]:
    """The environment that was typed, with its ``--env-kwargs``; what Gymnasium warns of is said in a line."""
    from holdfast.cli.typed_values import allow_code, keyword_arguments
    from holdfast.envs import make_scoring_env

    allow_code(arguments.environment)
    given = keyword_arguments("--env-kwargs", arguments.env_kwargs)
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always", UserWarning)
        try:
            env = make_scoring_env(arguments.environment, **given)
        except InputError as error:
            lacking = [name for name in error.arguments if name not in given]
            if not lacking:
                raise
            how = " ".join(f"{name}=VALUE" for name in lacking)
            it = "them" if len(lacking) > 1 else "it"
            raise InputError(f"{error}: give {it} as --env-kwargs {how}") from error
    for sentence in dict.fromkeys(str(warning.message) for warning in caught):
        sys.stderr.write(f"holdfast {arguments.verb}: warning: {sentence}\n")
    return env


def output_folder(arguments: argparse.Namespace) -> Path | None:
    """Where files go: ``-o``, or results/VERB-ENVIRONMENT; None where JSON is printed and no folder was named.

    Raises:
        ValueError: A file is in the way.
    """
    from holdfast.cli.typed_values import file_name

    out: Path | None = arguments.out
    if out is None and not arguments.json:
        out = Path("results") / f"{arguments.verb}-{file_name(arguments.environment)}"
    if out is not None:
        check_output_folder(out)
    return out


def check_output_folder(out: Path) -> None:
    """ValueError if a file is where a folder is to be."""
    if out.exists() and not out.is_dir():
        raise InputError(f"-o must name a folder, but {out} is a file")


def prints_apart(arguments: argparse.Namespace) -> AbstractContextManager[Any]:
    """While it is entered, what an environment prints goes to the errors, if standard output is for JSON alone."""
    return redirect_stdout(sys.stderr) if arguments.json else nullcontext()
