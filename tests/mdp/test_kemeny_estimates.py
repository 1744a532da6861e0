"""Estimates for large chains, against what is exact on smaller ones."""

from __future__ import annotations

import numpy as np
import pytest

from holdfast.envs import GridWorld, exploration_kernel, make_env
from holdfast.mdp import (
    ChainOperator,
    TabularMDP,
    estimate_kemeny,
    estimate_row_entropy,
    kemeny_constant,
    row_entropy,
    stationary_distribution,
)
from holdfast.mdp.kemeny_estimates import estimate_stationary_distribution


def open_grid(size: int) -> GridWorld:
    return GridWorld("\n".join(["S" + "." * (size - 1)] + ["." * size] * (size - 2) + ["." * (size - 1) + "G"]))


CHAINS = {
    "20x20, K = 1": ChainOperator(exploration_kernel(open_grid(20)).kernel, 10, 1),
    "20x20, K = 4": ChainOperator(exploration_kernel(open_grid(20)).kernel, 10, 4),
    "20x20, one hold": ChainOperator(exploration_kernel(open_grid(20)).kernel, 4, 64),
    "slippery": ChainOperator(exploration_kernel(make_env("zigzag", slip=0.2)).kernel, 5, 3),
    "restarting": ChainOperator(exploration_kernel(make_env("FrozenLake-v1"), "restart").kernel, 3, 3),
}


@pytest.mark.parametrize("name", CHAINS)
class TestAgainstWhatIsExact:
    def test_kemeny(self, name: str) -> None:
        exact = kemeny_constant(CHAINS[name].matrix(), "first_passage")
        value, error = estimate_kemeny(CHAINS[name], seed=1)
        assert abs(value - exact) <= 4.0 * error
        assert error < 0.02 * exact

    def test_row_entropy(self, name: str) -> None:
        value, error = estimate_row_entropy(CHAINS[name], n_rows=12)
        assert abs(value - row_entropy(CHAINS[name].matrix())) <= 4.0 * error
        assert error > 0.0

    def test_stationary_distribution(self, name: str) -> None:
        exact = stationary_distribution(CHAINS[name].matrix())
        assert np.abs(estimate_stationary_distribution(CHAINS[name]) - exact).max() < 1e-8


def test_estimates_are_right_in_the_mean_and_spread_as_they_say() -> None:
    chain = ChainOperator(exploration_kernel(open_grid(5)).kernel, 3, 3)
    estimates = np.array([estimate_kemeny(chain, n_probes=16, n_slow=2, seed=seed) for seed in range(60)])
    deviations = estimates[:, 0] - kemeny_constant(chain.matrix())
    spread = deviations.std(ddof=1)
    assert abs(deviations.mean()) <= 4.0 * spread / np.sqrt(60)
    assert 0.7 < spread / np.sqrt(np.mean(estimates[:, 1] ** 2)) < 1.4


def test_slow_modes_make_it_more_precise() -> None:
    chain = CHAINS["20x20, K = 1"]
    assert estimate_kemeny(chain).standard_error < 0.5 * estimate_kemeny(chain, n_slow=0).standard_error


def test_all_rows_are_no_estimate() -> None:
    chain = CHAINS["slippery"]
    value, error = estimate_row_entropy(chain, n_rows=1000)
    assert error == 0.0
    assert value == pytest.approx(row_entropy(chain.matrix()), abs=1e-12)


def test_a_chain_that_forgets_everything_at_once() -> None:
    drawing = ChainOperator(TabularMDP(np.full((40, 1, 40), 1 / 40), np.zeros((40, 1)), 1.0), 2, 2)
    assert estimate_kemeny(drawing).value == pytest.approx(39.0, abs=1e-9)


def test_a_periodic_chain() -> None:
    ring = ChainOperator(TabularMDP([[(s + 1) % 31] for s in range(31)], np.zeros((31, 1)), 1.0), 2, 2)
    value, error = estimate_kemeny(ring)
    assert abs(value - 15.0) <= 4.0 * error < 4.0


def test_the_seed_decides() -> None:
    chain = CHAINS["slippery"]
    assert estimate_kemeny(chain, seed=1) == estimate_kemeny(chain, seed=1)
    assert estimate_kemeny(chain, seed=1) != estimate_kemeny(chain, seed=2)


def test_chains_that_fall_into_parts_are_refused() -> None:
    swap = ChainOperator(TabularMDP([[1], [0]], np.zeros((2, 1)), 1.0), 2, 1)
    with pytest.raises(ValueError, match=r"but only 1 of 2 states can be reached from state 0: .*use another H$"):
        estimate_kemeny(swap)
    absorbed = ChainOperator(TabularMDP([[1], [2], [2]], np.zeros((3, 1)), 1.0), 1, 1)
    with pytest.raises(ValueError, match=r"but only 1 of 3 states can reach state 0: .*holes='restart'"):
        estimate_stationary_distribution(absorbed)


@pytest.mark.parametrize(("arguments", "name"), [({"n_probes": 1}, "n_probes"), ({"seed": -1}, "seed")])
def test_numbers_are_checked(arguments: dict[str, int], name: str) -> None:
    with pytest.raises(ValueError, match=f"^{name} must be a whole number of at least"):
        estimate_kemeny(CHAINS["slippery"], **arguments)
