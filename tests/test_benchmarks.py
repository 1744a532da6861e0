"""The benchmarks run and say what they should; how fast anything is, is not tested."""

from __future__ import annotations

import subprocess
import sys

import pytest

from benchmarks.__main__ import discover, main
from benchmarks.bench_solve import tables
from benchmarks.harness import (
    WIDTH,
    Row,
    Settings,
    Table,
    Timing,
    compare,
    format_bytes,
    format_seconds,
    format_table,
    growth,
    peak_bytes,
)
from tests.architecture import ROOT


@pytest.mark.parametrize("name", discover())
def test_every_benchmark_runs_in_quick_mode(name: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main([name, "--quick"]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert len(lines) > 5
    assert max(map(len, lines)) <= WIDTH


def test_the_rows_of_the_solver() -> None:
    by_states, by_k_max, *two_ways, one_application, by_states_again = tables(Settings(quick=True))
    assert [row.case for row in by_states.rows] == ["36 states", "64 states", "144 states"]
    assert [row.case for row in by_k_max.rows] == ["K_max = 1", "K_max = 2", "K_max = 4"]
    assert [len(table.rows) for table in two_ways] == [2, 2]
    assert [row.case for row in one_application.rows][2:] == ["H^κ, κ = 1", "H^κ, κ = 2", "H^κ, κ = 4"]
    assert [row.case for row in by_states_again.rows] == [row.case for row in by_states.rows]
    for table in (by_states, by_k_max, *two_ways, one_application, by_states_again):
        assert table.rows[0].ratio == 1.0
        for row in table.rows:
            assert len(row.timing.seconds) == 5
            assert row.timing.median > 0.0
            assert row.ratio > 0.0
    assert "no dense (S,A,S) array" in by_states.notes[1]
    assert (
        by_states.rows[-1].facts["sweeps"] == "24"
    )  # 22 steps along the longest way, one to notice, one to spare


def test_unknown_names_and_too_few_repetitions_are_refused(capsys: pytest.CaptureFixture[str]) -> None:
    for arguments, sentence in ((["nothing"], "name must be one of"), (["--repetitions", "4"], "at least 5")):
        with pytest.raises(SystemExit) as caught:
            main(arguments)
        assert caught.value.code == 2
        assert sentence in capsys.readouterr().err
    with pytest.raises(ValueError, match="at least 5"):
        Settings(repetitions=4)


def test_threads_can_be_set_before_numpy_is_loaded() -> None:
    code = "import sys, benchmarks.__main__; sys.exit('numpy' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], cwd=ROOT).returncode == 0


def test_cases_are_interleaved_after_a_burn_in() -> None:
    calls: list[str] = []

    def case(name: str) -> None:
        calls.append(name)
        sum(range(100_000))  # longer than the shortest time that is measured in quick mode

    timings = Settings(quick=True).measure({"a": lambda: case("a"), "b": lambda: case("b")})
    assert [len(timing.seconds) for timing in timings.values()] == [5, 5]
    assert calls[:2] == ["a", "a"]
    assert calls[-10:] == list("abbaabbaab")


def test_timing_summaries() -> None:
    timing = Timing((2.0, 4.0, 3.0, 5.0, 4.0))
    assert timing.median == 4.0
    assert timing.spread == pytest.approx(3.0 / 8.0)
    assert timing.ratio_to(Timing((1.0, 1.0, 1.0, 5.0, 2.0))) == 2.0


def test_growth_finds_the_exponent() -> None:
    sizes = [10.0, 100.0, 1000.0]
    assert growth(sizes, [7.0 * size**1.5 for size in sizes]) == pytest.approx(1.5)
    with pytest.raises(ValueError, match="at least 3"):
        growth([1.0, 2.0], [1.0, 2.0])


def test_peak_memory_sees_a_large_array_once() -> None:
    assert 8_000_000 < peak_bytes(lambda: bytearray(8_000_000)) < 8_100_000


def test_the_first_case_is_the_baseline() -> None:
    rows = compare(Settings(quick=True), {"a": lambda: sum(range(1000)), "b": list}, {"b": {"size": "0"}})
    assert [(row.case, dict(row.facts)) for row in rows] == [("a", {}), ("b", {"size": "0"})]
    assert rows[0].ratio == 1.0


def test_tables_and_numbers_are_readable() -> None:
    row = Row("a case with a long name " * 5, Timing((1e-3,) * 5), 1.0, {"memory": format_bytes(1_230_000)})
    text = format_table(Table("A title", (row,), ("A note. " * 20,)))
    assert "1.00 ms" in text
    assert "1.23 MB" in text
    assert "…" in text
    assert max(map(len, text.splitlines())) <= WIDTH
    assert [format_seconds(s) for s in (2.0, 0.0123, 4.56e-5, 7e-9)] == ["2.00 s", "12.3 ms", "45.6 µs", "7.00 ns"]
