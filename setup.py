"""What pyproject.toml cannot say: the package contains the pages, and the links of PyPI's page are absolute."""

from __future__ import annotations

import re
import shutil
import tomllib
from pathlib import Path

from setuptools import setup
from setuptools.command.build_py import build_py

ROOT = Path(__file__).resolve().parent
PAGES = ("docs/*.md", "CHANGELOG.md", "CITATION.cff", "constraints.txt")
"""What ``holdfast docs`` shows. In a clone it finds them here, in a wheel in ``holdfast/pages``."""


class BuildWithPages(build_py):
    """Copies the pages into the package; the installation of a clone needs no copy."""

    def run(self) -> None:
        """Build."""
        super().run()
        if self.editable_mode:
            return
        target = Path(self.build_lib, "holdfast", "pages")
        self.mkpath(str(target))
        for pattern in PAGES:
            for page in sorted(ROOT.glob(pattern)):
                shutil.copyfile(page, target / page.name)


def readme() -> str:
    """The README, with links that lead to the repository from wherever it is shown."""
    repository = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]["urls"]["Repository"]

    def absolute(link: re.Match[str]) -> str:
        image, words, target = link.groups()
        return f"{image}[{words}]({repository}/{'raw' if image else 'blob'}/HEAD/{target})"

    return re.sub(r"(!?)\[([^\]]*)\]\(([^):]+)\)", absolute, (ROOT / "README.md").read_text("utf-8"))


setup(
    cmdclass={"build_py": BuildWithPages},
    long_description=readme(),
    long_description_content_type="text/markdown",
)
