"""Tests of the number of files that one has to follow the code through, and of the trace that counts them."""

from __future__ import annotations

import pytest

from holdfast.core.clock import OptionClock
from holdfast.core.durations import option_epsilon
from tests.files_touched import by_a_job, by_a_step, by_a_tabular_run, traced


def test_a_trace_tells_the_files_of_what_was_called_inside_it():
    OptionClock(1)
    with traced() as found:
        option_epsilon(0.1, 2.0, 2.0)
    OptionClock(1)
    assert found == {"core/durations.py"}


@pytest.mark.parametrize(
    ("touched", "most", "expected"),
    [
        (by_a_step, 12, {"deep/agents/per_dqn.py", "deep/replay/ring.py", "deep/networks/option_network.py"}),
        (by_a_tabular_run, 10, {"tabular/perq.py", "tabular/option_loop.py", "tabular/learning_rule.py"}),
        (by_a_job, 20, {"cli/reproduce.py", "experiments/campaign.py", "experiments/figures/sync.py"}),
    ],
)
def test_what_is_read_to_follow_it_is_few_files(touched, most, expected):
    found = touched()
    assert expected <= found
    assert len(found) <= most, sorted(found)
