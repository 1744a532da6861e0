"""Curves over K_max."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import holdfast.mdp.exploration as exploration
from holdfast.envs import exploration_kernel, make_env
from holdfast.mdp import (
    TabularMDP,
    exploration_curves,
    kemeny_constant,
    persistent_chain,
    row_entropy,
    stationary_entropy,
)
from holdfast.mdp.kernels import kernel_from

KERNEL = exploration_kernel(make_env("zigzag")).kernel


def test_a_curve_is_one_chain_after_the_other() -> None:
    short, long = exploration_curves(KERNEL, [4, 1, 2, 4], H=[5, 12])
    assert (short.H, long.H) == (5, 12)
    assert long.k_max.tolist() == [1, 2, 4]
    chains = [persistent_chain(KERNEL, 12, k) for k in (1, 2, 4)]
    constants = [kemeny_constant(chain) for chain in chains]
    assert long.kemeny == pytest.approx(constants, abs=1e-8)
    assert long.normalised_kemeny == pytest.approx(np.array(constants) / constants[0])
    assert long.row_entropy == pytest.approx([row_entropy(chain) for chain in chains])
    assert long.stationary_entropy == pytest.approx([stationary_entropy(chain) for chain in chains])
    assert long.is_exact
    assert not long.kemeny_error.any()
    assert not long.normalised_error.any()


def test_what_is_compared_with_is_one_step() -> None:
    (with_one,) = exploration_curves(KERNEL, [1, 3], H=[6])
    (without,) = exploration_curves(KERNEL, [3], H=[6])
    assert with_one.normalised_kemeny[0] == 1.0
    assert without.normalised_kemeny[0] == with_one.normalised_kemeny[1]


def test_the_policy_counts() -> None:
    pi = [0.1, 0.4, 0.4, 0.1]
    (curve,) = exploration_curves(KERNEL, [3], H=[6], pi=pi)
    assert curve.kemeny[0] == pytest.approx(kemeny_constant(persistent_chain(KERNEL, 6, 3, pi=pi)), abs=1e-8)


# The minima of the paper's grids with H = 30 are where they have been found to be, with holes as walls: holding
# brings random walks about faster, by 2 to 7 in 100.
@pytest.mark.parametrize(
    ("name", "best", "least"),
    [("open", 7, 0.9786), ("cliff", 5, 0.9617), ("bridge", 3, 0.9635), ("zigzag", 5, 0.9272)],
)
def test_minima_of_the_grids(name: str, best: int, least: float) -> None:
    (curve,) = exploration_curves(exploration_kernel(make_env(name)).kernel, range(1, 10), H=[30])
    assert curve.best_k_max == best
    assert curve.normalised_kemeny[curve.best] == pytest.approx(least, abs=1e-4)


def test_estimates_are_marked_as_such(monkeypatch: pytest.MonkeyPatch) -> None:
    (exact,) = exploration_curves(KERNEL, [1, 4], H=[6], method="exact")
    monkeypatch.setattr(exploration, "LARGEST_EXACT_CHAIN", 10)
    (estimated,) = exploration_curves(KERNEL, [1, 4], H=[6])
    (asked,) = exploration_curves(KERNEL, [1, 4], H=[6], method="estimate")
    assert not estimated.is_exact
    assert np.array_equal(estimated.kemeny, asked.kemeny)
    assert np.all(estimated.kemeny_error > 0.0)
    assert np.all(np.abs(estimated.kemeny - exact.kemeny) <= 4.0 * estimated.kemeny_error)
    assert estimated.normalised_kemeny[0] == 1.0
    assert estimated.normalised_error[0] == 0.0
    assert estimated.normalised_error[1] > 0.0
    assert estimated.stationary_entropy == pytest.approx(exact.stationary_entropy, abs=1e-6)
    (again,) = exploration_curves(KERNEL, [1, 4], H=[6], method="exact")
    assert np.array_equal(again.kemeny, exact.kemeny)


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        ({"k_max": []}, "k_max and H must each have at least one number"),
        ({"k_max": [1], "H": []}, "k_max and H must each have at least one number"),
        ({"k_max": [0]}, "k_max must be a whole number of at least 1, not 0"),
        ({"k_max": [1], "H": [0]}, "H must be a whole number of at least 1, not 0"),
        ({"k_max": [1], "method": "fast"}, "method must be one of 'auto', 'exact', 'estimate', not 'fast'"),
    ],
)
def test_what_is_refused(arguments: dict[str, Any], sentence: str) -> None:
    with pytest.raises(ValueError, match=f"^{sentence}$"):
        exploration_curves(KERNEL, **arguments)


def test_a_model_with_ends_is_refused() -> None:
    mdp = TabularMDP.from_gymnasium(make_env("cliff"), gamma=0.9)
    with pytest.raises(ValueError, match=r"it has 19 closed classes and 41 states that it leaves .*restart"):
        exploration_curves(mdp, [1])


def test_of_constants_that_differ_by_rounding_the_first_is_the_least() -> None:
    """With H = 1 every hold is cut to one step, so that K changes nothing but the order of additions."""
    (curve,) = exploration_curves(exploration_kernel(make_env("cliff")).kernel, [1, 2, 3, 7, 16, 64], H=[1])
    np.testing.assert_allclose(curve.kemeny, curve.kemeny[0], rtol=1e-9)
    assert curve.best_k_max == 1


def test_a_single_state_is_refused() -> None:
    with pytest.raises(ValueError, match="must have two states or more"):
        exploration_curves(kernel_from(np.zeros((1, 2), dtype=np.int64)), [1, 2])
