"""Markdown for a terminal narrower than the page: paragraphs are refilled, everything else stays."""

from __future__ import annotations

import re
import textwrap

__all__ = ["fitted"]

_FENCE = re.compile(r"\s*(```|~~~)")
_ITEM = re.compile(r"\s*(?:[-*+]|\d+[.)])\s+")
_QUOTE = re.compile(r"\s*>\s?")
_AS_IT_IS = re.compile(r"\s*(?:$|#|\||\$\$|<!--)")
"""Empty lines, headings, tables, formulas and comments."""


def fitted(page: str, width: int) -> str:
    """The page with the lines of its paragraphs, lists and quotations no longer than ``width``.

    Code blocks, tables and headings stay as they are, and so does a word that is longer than a line.
    """
    lines: list[str] = []
    paragraph: list[str] = []
    fence = ""
    for line in page.splitlines():
        mark = _FENCE.match(line)
        if fence or mark or _AS_IT_IS.match(line):
            lines += [*_filled(paragraph, width), line]
            paragraph = []
            if mark:
                fence = mark[1] if not fence else "" if mark[1] == fence else fence
            continue
        if _ITEM.match(line):
            lines += _filled(paragraph, width)
            paragraph = []
        paragraph.append(line)
    return "\n".join([*lines, *_filled(paragraph, width)]) + "\n"


def _filled(paragraph: list[str], width: int) -> list[str]:
    """The lines of one paragraph, item of a list, or quotation."""
    if not paragraph:
        return []
    item, quote = _ITEM.match(paragraph[0]), _QUOTE.match(paragraph[0])
    if quote:
        first = rest = quote[0]
        paragraph = [_QUOTE.sub("", line, count=1) for line in paragraph]
    elif item:
        first, rest = item[0], " " * len(item[0])
        paragraph = [paragraph[0][len(first) :], *paragraph[1:]]
    else:
        first = rest = paragraph[0][: len(paragraph[0]) - len(paragraph[0].lstrip())]
    return textwrap.wrap(
        " ".join(line.strip() for line in paragraph),
        width,
        initial_indent=first,
        subsequent_indent=rest,
        break_long_words=False,
        break_on_hyphens=False,
    )
