"""Every kind of broken environment meets every verb: one sentence, never a traceback or a fault of holdfast."""

from __future__ import annotations

import os
import subprocess
import sys

import pytest

from tests.architecture import ROOT
from tests.cli.broken_kinds import KINDS
from tests.cli.broken_table import NOT_RUN, codes_in_page, meet

VERBS = ("train", "evaluate", "explore", "sweep")


def check(kinds: tuple[str, ...], verbs: tuple[str, ...]) -> None:
    expected = codes_in_page()
    for how, verb, met in meet(kinds, verbs):
        told = (how, verb, met)
        code = str(met.code) if met.code >= 0 else f"signal {-met.code}"
        assert expected[how][VERBS.index(verb)] in (code, NOT_RUN), told
        assert met.code in (0, 1, 2) or how == "step aborts the process", told
        assert not any("Traceback" in line for line in met.said), told
        if met.code in (1, 2) and verb != "sweep":
            assert len([line for line in met.said if line.startswith("holdfast ")]) == 1, told


def test_the_page_has_every_kind() -> None:
    assert list(codes_in_page()) == list(KINDS)
    assert len(KINDS) >= 60


def test_some_kinds() -> None:
    os.environ.setdefault("OMP_NUM_THREADS", "1")
    check(("reward is NaN", "step recurses for ever", "making gives None"), ("evaluate", "explore"))


@pytest.mark.slow
@pytest.mark.parametrize("verb", VERBS[:3])
def test_all_kinds(verb: str) -> None:
    """Outside pytest, whose capture and warnings change what some kinds do; sweeps: the page's command."""
    code = f"from tests.cli.test_broken_kinds import KINDS, check; check(tuple(KINDS), ({verb!r},))"
    environment = {**os.environ, "OMP_NUM_THREADS": "1"}
    found = subprocess.run(
        [sys.executable, "-c", code], cwd=ROOT, env=environment, capture_output=True, text=True, timeout=1800
    )
    assert found.returncode == 0, found.stderr[-2000:]
