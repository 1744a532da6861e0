"""What documents say of committed rows is what the rows say."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from matplotlib.figure import Figure

from tests.architecture import ROOT
from tests.evidence import DOCS, EVIDENCE, Evidence, drawn_digest


@pytest.mark.parametrize("evidence", EVIDENCE, ids=lambda one: one.name)
def test_documents_say_what_the_rows_say(evidence: Evidence) -> None:
    page = (DOCS / evidence.document).read_text("utf-8")
    assert evidence.replaced(page, evidence.block()) == page, f"{evidence.document} is old: run make evidence"


def test_every_block_that_claims_to_be_written_is() -> None:
    known = {one.comments[0] for one in EVIDENCE}
    for page in DOCS.glob("**/*.md"):
        claimed = [line for line in page.read_text("utf-8").splitlines() if line.startswith("<!-- begin ")]
        assert set(claimed) <= known, page


def test_every_folder_of_committed_rows_is_cited() -> None:
    rows = {path.parent.name for path in (ROOT / "results").glob("*/rows.csv")}
    assert rows <= {name for one in EVIDENCE for name in (one.source, *one.others)}


# That it can fail:


def line(y: list[float]) -> Figure:
    figure = Figure()
    figure.add_subplot(title="a line").plot([1.0, 2.0], y)
    return figure


def small(y: list[float]) -> Evidence:
    return Evidence(
        "small", "page.md", "small", lambda folder: f"{y[1]:g}\n", "line.png", lambda folder: line(y), "x"
    )


def test_a_page_that_is_out_of_date_is_found(tmp_path: Path) -> None:
    evidence = small([1.0, 2.0])
    evidence.draw(tmp_path, tmp_path)
    block = evidence.block(tmp_path, tmp_path)
    page = f"before\n\n{block}\n\nafter\n"
    assert evidence.replaced(page, block) == page
    assert block.splitlines()[2] == "![x](line.png)"
    # Rows that say something else, and a picture of something else.
    assert small([1.0, 3.0]).block(tmp_path, tmp_path) != block
    save = (tmp_path / "line.png").read_bytes()
    small([1.0, 2.5]).draw(tmp_path, tmp_path)
    assert (tmp_path / "line.png").read_bytes() != save
    assert evidence.block(tmp_path, tmp_path) != block


def test_a_block_must_be_there_once() -> None:
    evidence = small([1.0, 2.0])
    begin, end = evidence.comments
    assert evidence.replaced(f"a\n{begin}\nold\n{end}\nb", "new") == "a\nnew\nb"
    for page in ("nothing", f"{begin}{end}{begin}{end}", begin):
        with pytest.raises(ValueError, match=r"docs/page.md must have the comments of small once"):
            evidence.replaced(page, "new")


def test_the_digest_of_a_picture_is_that_of_its_arrays() -> None:
    assert drawn_digest(line([1.0, 2.0])) == drawn_digest(line([1.0, 2.0 + 1e-12]))
    assert drawn_digest(line([1.0, 2.0])) != drawn_digest(line([1.0, 2.001]))
    with_band, without = line([1.0, 2.0]), line([1.0, 2.0])
    with_band.axes[0].fill_between([1.0, 2.0], np.zeros(2), np.ones(2))
    assert drawn_digest(with_band) != drawn_digest(without)


def test_without_rows_a_block_says_so(tmp_path: Path) -> None:
    suite = next(one for one in EVIDENCE if one.name == "suite")
    assert "No rows are kept in `results/suite/` yet." in suite.block(tmp_path, tmp_path)
