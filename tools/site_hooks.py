"""What the site does to our pages: links out of ``docs`` lead to the repository, and names get their arguments.

The pages themselves are written for a clone and for ``holdfast docs``, where ``../src/...`` is a file and nothing
renders a directive.
"""

from __future__ import annotations

import re
from typing import Any

_OUTSIDE = re.compile(r"(!?)\[([^\]]*)\]\(\.\./([^)\s]+)\)")
_NAME = re.compile(r"^### `(\w+)`$", flags=re.MULTILINE)


def on_page_markdown(markdown: str, page: Any, config: Any, files: Any) -> str:
    """The page as the site shows it."""
    repository = str(config["repo_url"]).rstrip("/")

    def absolute(link: re.Match[str]) -> str:
        image, words, target = link.groups()
        if target.startswith("README.md"):
            return f"{image}[{words}]({repository}#readme)"
        return f"{image}[{words}]({repository}/{'raw' if image else 'blob'}/HEAD/{target})"

    markdown = _OUTSIDE.sub(absolute, markdown)
    return _with_arguments(markdown) if page.file.src_uri == "api.md" else markdown


def _with_arguments(markdown: str) -> str:
    """Behind each name's own words and example, what its docstring says of its arguments."""
    parts = _NAME.split(markdown)
    found = [parts[0]]
    for name, text in zip(parts[1::2], parts[2::2], strict=True):
        # The next group's heading, if there is one, comes behind.
        own, heading, rest = text.partition("\n## ")
        directive = "" if name.startswith("__") else f"\n::: holdfast.{name}\n"
        found.append(f'<span id="holdfast.{name}"></span>\n\n### `{name}`\n{own}{directive}{heading}{rest}')
    return "".join(found)
