"""Shared by verbs that examine an environment: making it, and choosing the output folder."""

from __future__ import annotations

import argparse
import sys
import warnings
from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext, redirect_stdout
from pathlib import Path
from typing import TYPE_CHECKING, Any

from holdfast.core.errors import InputError

if TYPE_CHECKING:
    import gymnasium

__all__ = ["check_output_folder", "named_environment", "output_folder", "prints_apart", "warnings_as_lines"]


def named_environment(arguments: argparse.Namespace) -> gymnasium.Env[Any, Any]:
    """The environment as typed, with its ``--env-kwargs``; each of Gymnasium's warnings becomes one line."""
    from holdfast.cli.typed_values import allow_code, keyword_arguments
    from holdfast.envs import make_scoring_env

    allow_code(arguments.environment)
    given = keyword_arguments("--env-kwargs", arguments.env_kwargs)
    with warnings_as_lines(arguments.verb):
        try:
            return make_scoring_env(arguments.environment, **given)
        except InputError as error:
            lacking = [name for name in error.arguments if name not in given]
            if not lacking:
                raise
            how = " ".join(f"{name}=VALUE" for name in lacking)
            it = "them" if len(lacking) > 1 else "it"
            raise InputError(f"{error}: give {it} as --env-kwargs {how}") from error


@contextmanager
def warnings_as_lines(verb: str) -> Iterator[None]:
    """Print each warning raised within the block as one line, once the block has succeeded."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always", UserWarning)
        yield
    for sentence in dict.fromkeys(str(warning.message) for warning in caught):
        sys.stderr.write(f"holdfast {verb}: warning: {sentence}\n")


def output_folder(arguments: argparse.Namespace) -> Path | None:
    """The output folder: ``-o``, or results/VERB-ENVIRONMENT; None if JSON is printed and no folder was named.

    Raises:
        ValueError: A file is in the way.
    """
    from holdfast.cli.typed_values import environment_file_name

    out: Path | None = arguments.out
    if out is None and not arguments.json:
        out = Path("results") / f"{arguments.verb}-{environment_file_name(arguments.environment)}"
    if out is not None:
        check_output_folder(out)
    return out


def check_output_folder(out: Path) -> None:
    """Raise InputError if the folder's path is a file."""
    if out.exists() and not out.is_dir():
        raise InputError(f"-o must name a folder, but {out} is a file")


def prints_apart(arguments: argparse.Namespace) -> AbstractContextManager[Any]:
    """Within the block, send what an environment prints to standard error if standard output must be pure JSON."""
    return redirect_stdout(sys.stderr) if arguments.json else nullcontext()
