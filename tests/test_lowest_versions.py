"""The lowest versions that are tried are the lowest that are allowed."""

from __future__ import annotations

import re
import tomllib

from tests.architecture import ROOT


def test_the_lowest_versions_are_those_that_are_allowed() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]
    allowed = dict(re.fullmatch(r"([\w-]+)>=([\d.]+)", needed).groups() for needed in project["dependencies"])
    lines = (ROOT / "constraints-min.txt").read_text().splitlines()
    tried = dict(line.split("==") for line in lines if line and not line.startswith("#"))
    assert set(tried) == set(allowed) - {"torch"}
    for name, version in tried.items():
        assert version.startswith(allowed[name]), name
