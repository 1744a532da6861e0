"""The page of all names, and the check of the site's links."""

from __future__ import annotations

import re

import holdfast
from tests.architecture import ROOT
from tools.check_site_links import broken_links


def test_every_name_has_a_sentence_and_an_example() -> None:
    page = (ROOT / "docs" / "api.md").read_text(encoding="utf-8")
    parts = re.split(r"^### `(\w+)`$", page, flags=re.MULTILINE)
    found = dict(zip(parts[1::2], parts[2::2], strict=True))
    assert set(found) == set(holdfast.__all__)
    for name, text in found.items():
        assert re.match(r"\s*[A-Z].+[.:]\s", text.partition("```")[0], flags=re.DOTALL), name
        assert re.search(rf"```python\n.*\b{name}\b.*```", text, flags=re.DOTALL), name


def test_the_site_lists_every_page_once() -> None:
    listed = re.findall(r"^ +- (\w+\.md)$", (ROOT / "mkdocs.yml").read_text(encoding="utf-8"), flags=re.MULTILINE)
    assert sorted(listed) == sorted(path.name for path in (ROOT / "docs").glob("*.md"))


def test_links_that_lead_nowhere_are_found(tmp_path) -> None:
    (tmp_path / "other").mkdir()
    (tmp_path / "other" / "index.html").write_text('<h2 id="there">There</h2>', encoding="utf-8")
    links = ("other/", "other/#there", "other/#nowhere", "missing.html", "https://elsewhere.example/", "#here")
    anchors = "".join(f'<a href="{link}">x</a>' for link in links)
    (tmp_path / "index.html").write_text(f'<p id="here">{anchors}</p><img src="gone.png">', encoding="utf-8")
    assert broken_links(tmp_path) == [
        "index.html: other/#nowhere leads to a page without that anchor",
        "index.html: missing.html leads to nothing",
        "index.html: gone.png leads to nothing",
    ]
