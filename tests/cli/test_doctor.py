"""``holdfast doctor``."""

from __future__ import annotations

import json

import pytest

import holdfast
from holdfast.cli import doctor, main


def test_what_is_here(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["doctor", "--json"]) == 0
    found = json.loads(capsys.readouterr().out)
    assert found["holdfast"] == holdfast.__version__
    assert all(found["packages"].values())
    assert found["processors"] >= 1
    assert found["devices"][0] == "cpu"
    assert main(["doctor"]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert max(map(len, lines)) <= 80
    assert any(line.split()[:1] == ["torch"] for line in lines)


def test_what_is_missing_is_said(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(doctor, "_NEEDED", ("numpy", "no-such-package"))
    assert main(["doctor"]) == 1
    assert "MISSING: pip install no-such-package" in capsys.readouterr().out


def test_the_optional_parts_are_the_extras_of_the_project() -> None:
    import tomllib

    from tests.architecture import ROOT

    extras = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]["optional-dependencies"]
    assert set(doctor._OPTIONAL) == set(extras) - {"test", "dev"}
    for extra, (package, _) in doctor._OPTIONAL.items():
        assert any(requirement.startswith(package) for requirement in extras[extra])
