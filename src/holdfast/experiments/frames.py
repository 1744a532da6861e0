"""The rows of a campaign as a pandas frame."""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from holdfast.core.errors import InputTypeError
from holdfast.experiments.tuning.trials import TUNE
from holdfast.runs.frames import argument_cell, argument_column, as_frame

if TYPE_CHECKING:
    import pandas as pd

__all__ = ["read_campaign"]


def read_campaign(folder: str | os.PathLike[str]) -> pd.DataFrame:
    """The rows of all jobs that are done, with the columns of their settings and the seed.

    Settings that are whole numbers, such as a trial's number, are whole in the frame too. The arguments that a
    study draws have a column each, as in the frame of ``read_runs``.

    Args:
        folder: That of a campaign of ``reproduce``, ``sweep``, ``tradeoff`` or ``tune``, or one of kept rows.

    Raises:
        ValueError: There is no campaign, there are no rows yet, or pandas is not installed.
    """
    from holdfast.experiments.store import read_manifest_and_rows

    if not isinstance(folder, str | os.PathLike):
        raise InputTypeError(f"folder must be a folder, not {folder!r}", "folder")
    manifest, rows = read_manifest_and_rows(folder)
    settings = [entry["setting"] for entry in manifest.jobs.values()]
    whole = (name for name in settings[0] if all(type(one.get(name)) is int for one in settings))
    columns = {**rows, **{name: rows[name].astype(int) for name in whole if name not in manifest.columns}}
    return as_frame(_with_arguments(columns) if manifest.label == TUNE.label else columns)


def _with_arguments(columns: Mapping[str, Any]) -> dict[str, Any]:
    """The columns of a study, with one for each argument that it draws in place of all in one."""
    drawn = [json.loads(text) for text in columns["parameters"]]
    arguments = {argument_column(name, columns): [argument_cell(own[name]) for own in drawn] for name in drawn[0]}
    return {
        other: values
        for name, column in columns.items()
        for other, values in (arguments.items() if name == "parameters" else [(name, column)])
    }
