"""What is in the sdist and the wheel. ``make dist`` also installs the wheel and runs it, which takes minutes."""

from __future__ import annotations

import email.message
import email.parser
import re
import shutil
import subprocess
import sys
import tarfile
import tomllib
import zipfile
from dataclasses import dataclass
from pathlib import Path

import pytest

import holdfast
from tests.architecture import ROOT, SOURCE

REPOSITORY = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]["urls"]["Repository"]


@dataclass(frozen=True)
class Distribution:
    """The names in both archives, without the folder that an sdist has around everything."""

    sdist: set[str]
    wheel: set[str]
    metadata: email.message.Message
    entry_points: str
    pages: dict[str, bytes]


def build(kind: str, folder: Path) -> Path:
    """Build as pip and build do, but with the setuptools that is installed here."""
    code = f"from setuptools import build_meta; build_meta.build_{kind}('built')"
    done = subprocess.run([sys.executable, "-c", code], cwd=folder, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    (built,) = (folder / "built").iterdir()
    return built


@pytest.fixture(scope="module")
def distribution(tmp_path_factory: pytest.TempPathFactory) -> Distribution:
    clone = tmp_path_factory.mktemp("build") / "clone"
    clone.mkdir()
    for name in ("src", "docs", "examples", "tests", "benchmarks", "tools"):
        shutil.copytree(ROOT / name, clone / name, ignore=shutil.ignore_patterns("__pycache__", "*.egg-info"))
    for path in ROOT.iterdir():
        if path.is_file():
            shutil.copy(path, clone)
    sdist = build("sdist", clone)
    with tarfile.open(sdist) as archive:
        archive.extractall(clone.parent, filter="data")
        names = {member.name.partition("/")[2] for member in archive.getmembers() if member.isfile()}
    # From the sdist, as those who install it do: what it lacks, the wheel would lack.
    wheel = build("wheel", clone.parent / sdist.name.removesuffix(".tar.gz"))
    with zipfile.ZipFile(wheel) as archive:
        about = f"{wheel.name.removesuffix('-py3-none-any.whl')}.dist-info"
        return Distribution(
            names,
            set(archive.namelist()),
            email.parser.BytesParser().parsebytes(archive.read(f"{about}/METADATA")),
            archive.read(f"{about}/entry_points.txt").decode(),
            {Path(name).name: archive.read(name) for name in archive.namelist() if "/pages/" in name},
        )


def source_files() -> set[str]:
    found = [*SOURCE.rglob("*.py"), SOURCE / "py.typed", *(SOURCE / "report" / "templates").iterdir()]
    return {path.relative_to(SOURCE.parent).as_posix() for path in found}


def test_the_wheel_has_the_package_the_pages_and_nothing_else(distribution: Distribution) -> None:
    about = {
        name for name in distribution.wheel if name.startswith(f"holdfast_rl-{holdfast.__version__}.dist-info/")
    }
    pages = {name for name in distribution.wheel if name.startswith("holdfast/pages/")}
    assert distribution.wheel - about - pages == source_files()
    assert any(name.endswith("licenses/LICENSE") for name in about)


def test_the_wheel_has_the_pages_that_a_clone_shows(distribution: Distribution) -> None:
    from holdfast.cli.docs import find_pages

    assert distribution.pages == {path.name: path.read_bytes() for path in find_pages().values()}


def test_the_sdist_has_what_belongs_in_it_and_no_tests(distribution: Distribution) -> None:
    beside = {
        "README.md",
        "CHANGELOG.md",
        "CITATION.cff",
        "LICENSE",
        "constraints.txt",
        "pyproject.toml",
        "setup.py",
    }
    documents = {path.relative_to(ROOT).as_posix() for path in (ROOT / "docs").rglob("*") if path.is_file()}
    examples = {path.relative_to(ROOT).as_posix() for path in (ROOT / "examples").glob("*.*")}
    expected = beside | documents | examples | {f"src/{name}" for name in source_files()}
    assert expected <= distribution.sdist
    made = {"MANIFEST.in", "PKG-INFO", "setup.cfg"}
    others = distribution.sdist - expected - made
    assert {name for name in others if not name.startswith("src/holdfast_rl.egg-info/")} == set()


def test_the_metadata_say_what_and_where_it_is(distribution: Distribution) -> None:
    metadata = distribution.metadata
    assert (metadata["Name"], metadata["Version"]) == ("holdfast-rl", holdfast.__version__)
    urls = dict(line.split(", ", 1) for line in metadata.get_all("Project-URL", []))
    assert {"Homepage", "Repository", "Documentation", "Changelog", "Issues"} <= set(urls)
    assert all(url == REPOSITORY or url.startswith(f"{REPOSITORY}/") for url in urls.values())
    assert "holdfast = holdfast.__main__:main" in distribution.entry_points


def test_every_link_of_the_description_is_absolute_and_leads_to_a_file(distribution: Distribution) -> None:
    text = distribution.metadata.get_payload()
    assert distribution.metadata["Description-Content-Type"] == "text/markdown"
    targets = re.findall(r"\]\(([^)]+)\)", str(text))
    assert len(targets) > 20
    for target in targets:
        assert target.startswith("https://"), target
        own = re.fullmatch(rf"{re.escape(REPOSITORY)}/(?:blob|raw)/HEAD/([^#]+)(?:#.*)?", target)
        assert own is None or (ROOT / own[1]).is_file(), target
    assert sum(f"{REPOSITORY}/raw/" in target for target in targets) == 4, "pictures, as files"


def test_the_citation_is_of_the_same_version_and_place() -> None:
    citation = (ROOT / "CITATION.cff").read_text("utf-8")
    assert f"\nversion: {holdfast.__version__}\n" in citation
    assert f"\nrepository-code: {REPOSITORY}\n" in citation
