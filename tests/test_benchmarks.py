"""The benchmarks run and say what they should; how fast anything is, is not tested."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from pathlib import Path

import pytest

from benchmarks.__main__ import discover, main
from benchmarks.bench_solve import memory_note, tables, winding_corridor
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
from holdfast.mdp import q_star
from tests.architecture import ROOT


@pytest.mark.slow
@pytest.mark.parametrize("name", discover())
def test_every_benchmark_runs_in_quick_mode(name: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main([name, "--quick"]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert len(lines) > 5
    assert max(map(len, lines)) <= WIDTH


def test_the_rows_of_the_solver() -> None:
    by_states, by_states_slipping, waves, corridor, by_k_max, by_gamma, *rest = tables(Settings(quick=True))
    *two_ways, one_application, by_states_again = rest
    assert [row.case for row in by_states.rows] == ["36 states", "64 states", "144 states"]
    assert [row.case for row in by_states_slipping.rows] == [row.case for row in by_states.rows]
    assert "slip = 0.0, K_max = 8, gamma = 0.99," in by_states.title
    assert "slip = 0.2, K_max = 8, gamma = 0.99," in by_states_slipping.title
    assert [row.case[-9:] for row in by_k_max.rows[1:]] == ["K_max = 1", "K_max = 2", "K_max = 4"]
    assert [row.case for row in by_gamma.rows] == [f"gamma = {gamma}" for gamma in (0.8, 0.9, 0.99, 0.999)]
    assert [len(table.rows) for table in two_ways] == [2, 2]
    assert [row.case for row in one_application.rows][2:] == ["H^κ, κ = 1", "H^κ, κ = 2", "H^κ, κ = 4"]
    assert [row.case for row in by_states_again.rows] == [row.case for row in by_states.rows]
    ways = ("policies in waves", "value iteration")
    assert [row.case for row in waves.rows] == [f"{way}, {n} states" for n in (36, 64, 144) for way in ways]
    assert [row.ratio for row in waves.rows[::2]] == [1.0, 1.0, 1.0]
    assert [row.case for row in corridor.rows] == ["25 states", "49 states", "121 states"]
    first = (by_states, by_states_slipping, waves, corridor, by_k_max, by_gamma)
    for table in (*first, *two_ways, one_application, by_states_again):
        assert table.rows[0].ratio == 1.0
        for row in table.rows:
            assert len(row.timing.seconds) == 5
            assert row.timing.median > 0.0
            assert row.ratio > 0.0
    # Two sides of 8 cells are 14 steps: that many sweeps, one to notice, one to spare.
    assert two_ways[0].rows[0].facts["sweeps"] == "16"


def test_a_winding_corridor_is_as_long_as_it_can_be() -> None:
    # Rows 0, 2 and 4 of five cells, joined by one cell each: 17 cells, 16 steps. Of 7: 4 rows of 7 and 3 cells.
    for side, steps in ((5, 16), (7, 30)):
        assert q_star(winding_corridor(side)).max(axis=1)[0] == pytest.approx(0.99 ** (steps - 1))


def test_a_dense_array_is_denied_only_where_the_peak_is_smaller_than_it() -> None:
    denial = "no dense (S,A,S) array is formed, which alone would take 3.00 kB"
    assert memory_note(2_999, 1_000, 3_000) == (
        f"Arrays, including those to build the model, take at most 3.0 times the result (S,A,K): {denial}."
    )
    assert memory_note(3_000, 1_000, 3_000) == (
        "Arrays, including those to build the model, take at most 3.0 times the result (S,A,K)."
    )


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


COUNT_THREADS = """
import os
import numpy
numbers = numpy.ones((600, 600))
numbers @ numbers
print("threads:", len(os.listdir("/proc/self/task")))
"""

RUN_AND_COUNT_THREADS = f"""
import runpy, subprocess, sys
sys.argv = ["benchmarks", "--quick", "solve"]
try:
    runpy.run_module("benchmarks", run_name="__main__", alter_sys=True)
except SystemExit as ending:
    print("exit code:", ending.code, flush=True)
code = {COUNT_THREADS!r}
exec(code)
import numba
print("threads of numba:", numba.config.NUMBA_NUM_THREADS, flush=True)
subprocess.run([sys.executable, "-c", code], check=True)
"""


@pytest.fixture(scope="module")
def lines_of_a_run() -> list[str]:
    """What ``python -m benchmarks`` prints on a terminal of Windows, asked for four threads by its environment."""
    names = ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS", "NUMBA_NUM_THREADS")
    environment = {**os.environ, **dict.fromkeys(names, "4"), "PYTHONIOENCODING": "cp1252"}
    done = subprocess.run(
        [sys.executable, "-c", RUN_AND_COUNT_THREADS], cwd=ROOT, env=environment, capture_output=True
    )
    assert done.stderr.decode("cp1252") == ""
    return done.stdout.decode("cp1252").splitlines()


def test_letters_that_a_terminal_lacks_are_replaced(lines_of_a_run: list[str]) -> None:
    assert "exit code: 0" in lines_of_a_run
    assert any(line.startswith("H^?, ? = 1 ") for line in lines_of_a_run)


@pytest.mark.skipif(not Path("/proc/self/task").is_dir(), reason="needs Linux to count a process's threads")
def test_the_benchmarks_and_their_child_processes_have_one_thread(lines_of_a_run: list[str]) -> None:
    assert lines_of_a_run[-3:] == ["threads: 1", "threads of numba: 1", "threads: 1"]


def test_cases_are_interleaved_after_a_burn_in() -> None:
    calls: list[str] = []

    def case(name: str) -> None:
        calls.append(name)
        sum(range(100_000))  # longer than the shortest time that is measured in quick mode

    timings = Settings(quick=True).measure({"a": lambda: case("a"), "b": lambda: case("b")})
    assert [len(timing.seconds) for timing in timings.values()] == [5, 5]
    assert "a" in calls[:-10]
    assert "b" in calls[:-10]
    assert calls[-10:] == list("abbaabbaab")


def test_a_long_case_burns_in_once() -> None:
    calls: list[float] = []

    def long() -> None:
        calls.append(0.0)
        time.sleep(0.006)

    Settings(quick=True).measure({"long": long})
    assert len(calls) == 1 + 5


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
