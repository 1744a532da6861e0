"""Reports: time to write one, its size, and time until a browser shows the first picture."""

from __future__ import annotations

import json
import os
import shutil
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.harness import Row, Settings, Table, compare, format_bytes
from holdfast.report.page import write_report
from holdfast.runs import train
from holdfast.runs.session import METRIC_COLUMNS

__all__ = ["tables"]

_BROWSERS = ("chromium", "chromium-browser", "google-chrome", "chrome")


def tables(settings: Settings) -> Iterator[Table]:
    """Many runs of some rows, and one run of many."""
    runs, rows, longest = (4, 100, 1000) if settings.quick else (200, 10_000, 1_000_000)
    with tempfile.TemporaryDirectory() as top:
        places = {
            f"{runs} runs of {rows:,} rows": _folder(Path(top) / "many", runs, rows),
            f"one run of {longest:,} rows": _folder(Path(top) / "long", 1, longest),
        }
        pages = {case: place.with_suffix(".html") for case, place in places.items()}

        def writing(case: str) -> Any:
            return lambda: write_report([places[case]], pages[case], pictures=False)

        rows_of_writing = compare(settings, {case: writing(case) for case in places})
        sizes = {case: format_bytes(page.stat().st_size) for case, page in pages.items()}
        yield Table(
            "Writing a report",
            tuple(Row(r.case, r.timing, r.ratio, {"page": sizes[r.case]}) for r in rows_of_writing),
        )
        yield from _opening(settings, pages)


def _folder(place: Path, runs: int, rows: int) -> Path:
    """Copies of a real run, each with as many episodes as are wanted; what they say is made up."""
    first = place / "run-0"
    train({"environment": "cliff", "algo": "perq", "episodes": 20, "eval_every": 5, "eval_episodes": 2}, first)
    config = json.loads((first / "config.json").read_text(encoding="utf-8"))
    generator = np.random.default_rng(0)
    for number in range(runs):
        run = place / f"run-{number}"
        if number:
            shutil.copytree(first, run)
        seeded = {**config, "seed": number % 10, "set": {**config["set"], "k_max": 1 + number // 10}}
        (run / "config.json").write_text(json.dumps(seeded), encoding="utf-8")
        lengths = generator.integers(5, 100, rows)
        columns = {
            "episode": np.arange(1, rows + 1),
            "step": np.cumsum(lengths),
            "environment": np.zeros(rows),
            "return": np.round(generator.normal(size=rows), 4),
            "length": lengths,
            "decisions": np.maximum(lengths // 3, 1),
            "epsilon": np.full(rows, 0.1),
        }
        table = np.stack([columns[name] for name in METRIC_COLUMNS], axis=1)
        header = ",".join(METRIC_COLUMNS)
        np.savetxt(run / "metrics.csv", table, "%.10g", delimiter=",", header=header, comments="")
    return place


def _opening(settings: Settings, pages: dict[str, Path]) -> Iterator[Table]:
    path = os.environ.get("HOLDFAST_BROWSER") or next(filter(None, map(shutil.which, _BROWSERS)), None)
    if path is None:
        return
    try:
        from playwright.sync_api import sync_playwright
    except ImportError:
        return
    with sync_playwright() as started:
        browser = started.chromium.launch(executable_path=path, args=["--no-sandbox"])

        def opening(case: str) -> Any:
            def open_page() -> None:
                page = browser.new_page()
                page.goto(pages[case].as_uri())
                page.wait_for_selector("html[data-drawn]", timeout=120_000)
                page.close()

            return open_page

        rows = compare(settings, {case: opening(case) for case in pages})
        browser.close()
    yield Table("Opening it: until all charts are drawn", rows)
