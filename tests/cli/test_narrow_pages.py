"""Pages on a narrow terminal."""

from __future__ import annotations

import io
import re
from pathlib import Path

import pytest

from holdfast.cli import docs, main
from holdfast.cli.narrow_pages import fitted
from tests.architecture import ROOT

PAGES = [*sorted((ROOT / "docs").glob("*.md")), ROOT / "CHANGELOG.md"]


def test_paragraphs_lists_and_quotations_are_filled_and_the_rest_stays() -> None:
    page = """\
# A heading that is longer than the line

One two three four
five six.
- seven eight nine ten
  eleven
10. twelve thirteen fourteen

> fifteen sixteen seventeen

| a table | of one wide line |

```sh
holdfast train a-long-command
# no heading
```
a/very/long/word/that/does/not/fit is kept
"""
    assert (
        fitted(page, 20)
        == """\
# A heading that is longer than the line

One two three four
five six.
- seven eight nine
  ten eleven
10. twelve thirteen
    fourteen

> fifteen sixteen
> seventeen

| a table | of one wide line |

```sh
holdfast train a-long-command
# no heading
```
a/very/long/word/that/does/not/fit
is kept
"""
    )


@pytest.mark.parametrize("path", PAGES, ids=lambda path: path.name)
def test_no_word_of_a_page_is_lost_and_its_paragraphs_fit(path: Path) -> None:
    page = path.read_text("utf-8")
    narrow = fitted(page, 80)
    assert [word for word in narrow.split() if word != ">"] == [word for word in page.split() if word != ">"]
    blocks = r"^```.*?^```$|^\|[^\n]*$"
    assert re.findall(blocks, narrow, re.S | re.M) == re.findall(blocks, page, re.S | re.M)
    outside = re.sub(r"^ *```.*?^ *```$", "", narrow, flags=re.S | re.M).splitlines()
    too_long = [line for line in outside if len(line) > 80 and not re.match(r" *(\||#|\$\$|<!--)", line)]
    assert [line for line in too_long if len(line.split()) > 2] == []


@pytest.mark.parametrize(
    ("columns", "is_terminal", "is_fitted"), [(80, True, True), (80, False, False), (300, True, False)]
)
def test_only_a_narrow_terminal_is_given_a_fitted_page(
    columns: int, is_terminal: bool, is_fitted: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    printed = io.StringIO()
    monkeypatch.setattr(printed, "isatty", lambda: is_terminal, raising=False)
    monkeypatch.setattr(docs, "results", lambda: printed)
    monkeypatch.setenv("COLUMNS", str(columns))
    assert main(["docs", "train"]) == 0
    page = (ROOT / "docs/train.md").read_text("utf-8")
    assert printed.getvalue() == (fitted(page, 80) if is_fitted else page)
    assert main(["docs", "constraints"]) == 0
    assert printed.getvalue().endswith((ROOT / "constraints.txt").read_text("utf-8"))
