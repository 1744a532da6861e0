"""Tables of rows, by hand."""

from __future__ import annotations

import csv
from pathlib import Path

import numpy as np
import pytest

from holdfast.experiments.tables import matrix, select, setting_column, with_interval, write_csv

ROWS = {
    "rule": np.array(["q", "q", "q", "q", "perq"]),
    "seed": np.array([1, 0, 1, 0, 0]),
    "episode": np.array([2.0, 2.0, 1.0, 1.0, 1.0]),
    "return": np.array([12.0, 2.0, 11.0, 1.0, 5.0]),
}


def test_rows_are_selected() -> None:
    assert select(ROWS, rule="q", seed=1)["return"].tolist() == [12.0, 11.0]
    assert select(ROWS, rule=["perq", "msa"])["return"].tolist() == [5.0]
    assert select(ROWS, rule="none")["return"].tolist() == []
    with pytest.raises(
        ValueError, match="rows must have the column 'k', but they have rule, seed, episode, return"
    ):
        select(ROWS, k=1)


def test_runs_become_the_rows_of_a_matrix() -> None:
    episodes, returns = matrix(select(ROWS, rule="q"), "return", "episode")
    assert episodes.tolist() == [1.0, 2.0]
    assert returns.tolist() == [[1.0, 2.0], [11.0, 12.0]]


def test_runs_that_do_not_go_together_are_refused() -> None:
    with pytest.raises(ValueError, match="same number of values of episode for each seed"):
        matrix(ROWS, "return", "episode")
    shifted = {**select(ROWS, rule="q"), "episode": np.array([2.0, 3.0, 1.0, 2.0])}
    with pytest.raises(ValueError, match="the same values of episode for each seed"):
        matrix(shifted, "return", "episode")
    with pytest.raises(ValueError, match="at least one"):
        matrix(select(ROWS, rule="none"), "return", "episode")


def test_settings_become_columns() -> None:
    assert setting_column(["a", "b"], [2, 1]).tolist() == ["a", "a", "b"]
    assert setting_column([True, False], [1, 1]).dtype == bool
    np.testing.assert_array_equal(setting_column([4, None, 0.5], [1, 1, 2]), [4.0, np.nan, 0.5, 0.5])
    assert setting_column([[1, 2], None, "x", 3], [1, 1, 1, 1]).tolist() == ["[1, 2]", "", "x", "3"]
    assert setting_column([True, None], [1, 1]).tolist() == ["true", ""]


def test_a_flat_file_has_the_same_numbers(tmp_path: Path) -> None:
    numbers = np.array([0.1, 1 / 3, -0.0, 5e-324, 1e300, np.nan, 3.0])
    table = {
        "text": np.array(["a,b", 'say "x"', "ε", "", "e", "f", "g"]),
        "is": numbers > 0,
        "seed": np.arange(7),
        "number": numbers,
    }
    write_csv(table, tmp_path / "deep" / "flat.csv")
    with (tmp_path / "deep" / "flat.csv").open(newline="", encoding="utf-8") as file:
        rows = list(csv.DictReader(file))
    assert [row["text"] for row in rows] == table["text"].tolist()
    assert [row["is"] for row in rows[:3]] == ["true", "true", "false"]
    assert [int(row["seed"]) for row in rows] == list(range(7))
    read = np.array([float(row["number"] or "nan") for row in rows])
    assert read.tobytes() == numbers.tobytes()


def test_a_mean_with_half_of_its_interval() -> None:
    # Mean 2, standard error 1/√3, and Student's t of 2 degrees of freedom is 4.303.
    assert with_interval(np.array([1.0, 2.0, 3.0])) == "2.0 ±2.5"
    assert with_interval(np.array([1.5])) == "1.5"
