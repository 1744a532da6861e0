"""Runs benchmarks and prints their tables: ``python -m benchmarks [--quick] [name ...]``."""

from __future__ import annotations

import argparse
import importlib
import io
import platform
import sys
import time
from collections.abc import Sequence
from importlib.metadata import version
from pathlib import Path

from benchmarks.harness import FEWEST_REPETITIONS, Settings, format_table, use_one_thread

__all__ = ["discover", "main"]


def discover() -> dict[str, str]:
    """Names of the benchmarks and their modules: every ``bench_<name>.py`` beside this file."""
    files = sorted(Path(__file__).parent.glob("bench_*.py"))
    return {file.stem.removeprefix("bench_"): f"benchmarks.{file.stem}" for file in files}


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the named benchmarks, or all of them."""
    available = discover()
    known = ", ".join(available)
    parser = argparse.ArgumentParser(prog="python -m benchmarks", description="Measure how fast holdfast is.")
    parser.add_argument("names", nargs="*", metavar="name", help=f"benchmarks to run: {known} (default: all)")
    parser.add_argument("--quick", action="store_true", help="tiny sizes, to check that everything runs")
    parser.add_argument(
        "--repetitions",
        type=int,
        default=FEWEST_REPETITIONS,
        metavar="N",
        help=f"timings per case, at least {FEWEST_REPETITIONS} (default: %(default)s)",
    )
    options = parser.parse_args(arguments)
    for name in options.names:
        if name not in available:
            parser.error(f"name must be one of {known}, not {name!r}")
    if options.repetitions < FEWEST_REPETITIONS:
        parser.error(f"--repetitions must be at least {FEWEST_REPETITIONS}, not {options.repetitions}")
    settings = Settings(quick=options.quick, repetitions=options.repetitions)

    print(f"Python {platform.python_version()}, NumPy {version('numpy')}, {platform.machine()}, one thread")
    print(f"medians of {settings.repetitions} interleaved repetitions, ± half the range, after a burn-in")
    for name in options.names or available:
        began = time.perf_counter()
        module = importlib.import_module(available[name])
        for table in module.tables(settings):
            print(f"\n{format_table(table)}", flush=True)
        print(f"\n{name}: {time.perf_counter() - began:.0f} s in total")
    return 0


if __name__ == "__main__":
    use_one_thread()
    if isinstance(sys.stdout, io.TextIOWrapper):
        # A terminal that lacks a character shows a question mark instead.
        sys.stdout.reconfigure(errors="replace")
    sys.exit(main())
