"""Every test that asks for ``make`` runs with every agent of the list."""

from __future__ import annotations

import pytest

from tests.conformance.agents import AGENTS


@pytest.fixture(params=list(AGENTS))
def make(request):
    return AGENTS[request.param]
