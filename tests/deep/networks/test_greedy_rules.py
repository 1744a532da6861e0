"""How options are read off tables of many states."""

from __future__ import annotations

import numpy as np

from holdfast.deep.networks.option_network import OptionRule
from holdfast.deep.networks.skip_network import SkipRule

# One state, two actions, two persistences.
OPTIONS = np.array([[[0.0, 2.0], [1.0, 1.5]]], np.float32)
# Q(s,a) first, then J(s,1|a) and J(s,2|a).
SKIPS = np.array([[[1.0, 5.0, 6.0], [2.0, 0.5, 0.25]]], np.float32)


def test_options_are_chosen_as_one():
    rule = OptionRule()
    np.testing.assert_array_equal(rule.options(OPTIONS), OPTIONS)
    assert rule.best(OPTIONS).tolist() == [2.0]
    assert [part.tolist() for part in rule.choose(OPTIONS, None)] == [[0], [2]]
    assert rule.hold(OPTIONS, np.array([1]), None).tolist() == [2]


def test_a_tolerance_prefers_longer_holds():
    table = np.array([[[2.0, 1.9], [1.0, 1.5]]], np.float32)
    assert [part.tolist() for part in OptionRule().choose(table, 0.2)] == [[0], [2]]
    assert [part.tolist() for part in OptionRule().choose(table, None)] == [[0], [1]]


def test_skips_come_after_the_action():
    rule = SkipRule()
    np.testing.assert_array_equal(rule.options(SKIPS), SKIPS[:, :, 1:])
    assert rule.best(SKIPS).tolist() == [2.0]
    assert [part.tolist() for part in rule.choose(SKIPS, None)] == [[1], [1]]
    assert [part.tolist() for part in rule.choose(SKIPS, 0.3)] == [[1], [2]]
    assert rule.hold(SKIPS, np.array([0]), None).tolist() == [2]
