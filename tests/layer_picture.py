"""The layers as a picture and a table for docs/contributing.md, made of what ``tests.architecture`` enforces.

``python -m tests.layer_picture`` writes them into the page, between the lines that say so.
"""

from __future__ import annotations

import ast

from tests.architecture import LAYERS, ROOT, SOURCE

PAGE = ROOT / "docs" / "contributing.md"
BEGIN, END = "<!-- layers: begin -->\n", "<!-- layers: end -->"


def packages() -> list[str]:
    """The packages, lowest first."""
    return list(LAYERS)


def levels() -> list[list[str]]:
    """The packages by height, highest first: each stands above everything that it may import."""
    height: dict[str, int] = {}
    for package in packages():
        below = [height[lower] for lower in LAYERS[package].packages]
        height[package] = 1 + max(below, default=-1)
    return [[package for package in height if height[package] == h] for h in sorted(set(height.values()))[::-1]]


def picture() -> str:
    """One line per level."""
    rows = levels()
    cell = max(map(len, packages())) + 4
    width = cell * max(map(len, rows))
    lines = ["".join(package.center(cell) for package in row).center(width).rstrip() for row in rows]
    return "\n".join(["```text", *lines, "```"])


def table() -> str:
    """What each package holds, by its own words, and what it may import."""
    lines = ["| package | what it holds | may import | and |", "|---|---|---|---|"]
    for package in reversed(packages()):
        layer = LAYERS[package]
        lines.append(
            f"| `{package}` | {_words(package)} | {', '.join(layer.packages)} | {', '.join(layer.libraries)} |"
        )
    return "\n".join(lines)


def layers() -> str:
    """What stands between the two lines of the page."""
    return f"\n{picture()}\n\n{table()}\n\n"


def page() -> str:
    """The page with the layers as they are."""
    text = PAGE.read_text("utf-8")
    before, begin, rest = text.partition(BEGIN)
    _, end, after = rest.partition(END)
    if not begin or not end:
        raise ValueError(f"{PAGE.name} must have the lines {BEGIN.strip()} and {END}")
    return f"{before}{begin}{layers()}{end}{after}"


def _words(package: str) -> str:
    """The first line of a package's docstring."""
    source = (SOURCE / package / "__init__.py").read_text("utf-8")
    described = ast.get_docstring(ast.parse(source)) or ""
    return described.splitlines()[0].replace("``", "`")


if __name__ == "__main__":
    PAGE.write_text(page(), encoding="utf-8")
