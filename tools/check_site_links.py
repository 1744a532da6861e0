"""Looks at every link and picture of a built site: ``python tools/check_site_links.py FOLDER``.

mkdocs looks at links between Markdown pages; this reads what it built, with anchors and what the theme adds. Links
to other sites are not followed.
"""

from __future__ import annotations

import sys
from html.parser import HTMLParser
from pathlib import Path
from urllib.parse import unquote, urlsplit


class _Page(HTMLParser):
    """The anchors of a page, and what it links to."""

    def __init__(self) -> None:
        super().__init__()
        self.anchors: set[str] = set()
        self.links: list[str] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        found = dict(attrs)
        self.anchors |= {str(found[name]) for name in ("id", "name") if found.get(name)}
        self.links += [str(found[name]) for name in ("href", "src") if found.get(name)]


def broken_links(site: Path) -> list[str]:
    """Sentences about links that lead nowhere."""
    pages = {}
    for path in sorted(site.rglob("*.html")):
        page = _Page()
        page.feed(path.read_text(encoding="utf-8"))
        pages[path.resolve()] = page
    found = []
    for path, page in pages.items():
        # This one is shown under any address, and has links that begin at the top.
        if path.name == "404.html":
            continue
        for link in page.links:
            parts = urlsplit(link)
            if parts.scheme or parts.netloc:
                continue
            target = (path.parent / unquote(parts.path)).resolve() if parts.path else path
            target = target / "index.html" if target.is_dir() else target
            where = path.relative_to(site.resolve())
            if not target.exists():
                found.append(f"{where}: {link} leads to nothing")
            elif parts.fragment and target in pages and unquote(parts.fragment) not in pages[target].anchors:
                found.append(f"{where}: {link} leads to a page without that anchor")
    return found


def main() -> int:
    """Print what is broken; 1 if anything is."""
    site = Path(sys.argv[1])
    if not (site / "index.html").is_file():
        sys.stderr.write(f"{site} must be a built site, and has no index.html\n")
        return 2
    found = broken_links(site)
    sys.stderr.write("".join(f"{sentence}\n" for sentence in found))
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
