"""Random small MDPs for property tests: stochastic or not, in every form of P, with and without terminals.

Probabilities and rewards are simple fractions, so that a counterexample can be read and worked out by hand.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import scipy.sparse as sp
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp
from numpy.typing import NDArray

from holdfast.mdp import TabularMDP

Floats = NDArray[np.float64]

STOCHASTIC_FORMS = ("dense", "sparse", "stacked")
ALL_FORMS = (*STOCHASTIC_FORMS, "next states")

# One application of an operator is as quick at γ = .9999 as at .5; value iteration is not.
ANY_GAMMA = st.one_of(st.sampled_from([0.0, 0.5, 0.99, 0.9999]), st.floats(0.0, 0.9999))
GAMMA_TO_ITERATE = st.one_of(st.sampled_from([0.0, 0.5, 0.99]), st.floats(0.0, 0.95))

# For tests that compare many things, or iterate, in each example.
half_as_many_examples = settings(max_examples=settings.default.max_examples // 2)


@dataclass(frozen=True, eq=False)
class RandomMDP:
    """The arguments of a ``TabularMDP`` as plain arrays; what P and r say of terminal states is arbitrary."""

    P: Floats  # (S,A,S)
    r: Floats  # (S,A)
    gamma: float
    terminal: NDArray[np.bool_]  # (S,)
    form: str = "dense"

    def tabular(self, form: str | None = None) -> TabularMDP:
        """The model under test, with P in one of ``ALL_FORMS``."""
        return TabularMDP(in_form(self.P, form or self.form), self.r, self.gamma, terminal=self.terminal)

    def plain(self) -> tuple[Floats, Floats, float]:
        """P, r and γ with terminal states spelt out: each leads to itself with reward 0."""
        P, r = self.P.copy(), self.r.copy()
        for s in range(len(P)):
            if self.terminal[s]:
                P[s] = np.eye(len(P))[s]
                r[s] = 0.0
        return P, r, self.gamma

    @property
    def forms(self) -> tuple[str, ...]:
        """The forms in which this P can be written."""
        return ALL_FORMS if np.all((self.P == 0.0) | (self.P == 1.0)) else STOCHASTIC_FORMS


def in_form(P: Floats, form: str) -> Any:
    """A dense P, rewritten."""
    if form == "next states":
        return P.argmax(axis=2)
    if form == "stacked":
        return sp.coo_array(P.reshape(-1, len(P)))
    if form == "sparse":
        return [sp.csr_array(P[:, a]) for a in range(P.shape[1])]
    return P


@st.composite
def random_mdps(
    draw: st.DrawFn,
    gamma: st.SearchStrategy[float] = ANY_GAMMA,
    max_states: int = 4,
    max_actions: int = 3,
    deterministic: bool | None = None,
    terminals: bool | None = None,
) -> RandomMDP:
    """Any small MDP; ``deterministic`` and ``terminals`` ask for it or exclude it, None leaves it open."""
    S = draw(st.integers(1, max_states), label="S")
    A = draw(st.integers(1, max_actions), label="A")
    if deterministic is None:
        deterministic = draw(st.booleans(), label="deterministic")
    if deterministic:
        P = np.eye(S)[draw(hnp.arrays(np.int64, (S, A), elements=st.integers(0, S - 1)), label="next states")]
    else:
        weights = draw(hnp.arrays(np.int64, (S, A, S), elements=st.integers(0, 3)), label="weights")
        weights[:, :, 0] += weights.sum(axis=2) == 0
        P = weights / weights.sum(axis=2, keepdims=True)
    r = draw(hnp.arrays(np.int64, (S, A), elements=st.integers(-8, 8)), label="4r") / 4.0
    terminal = np.zeros(S, dtype=np.bool_)
    if terminals is None or terminals:
        terminal = draw(hnp.arrays(np.bool_, S), label="terminal")
        terminal[-1] |= bool(terminals)
    mdp = RandomMDP(P, r, draw(gamma, label="gamma"), terminal)
    form = draw(st.sampled_from(mdp.forms), label="form")
    return RandomMDP(mdp.P, mdp.r, mdp.gamma, mdp.terminal, form)


def values_like(*shape: int) -> st.SearchStrategy[Floats]:
    """Arbitrary values of a given shape."""
    return hnp.arrays(np.float64, shape, elements=st.floats(-100.0, 100.0, width=32))


def policies_over_options(*shape: int) -> st.SearchStrategy[Floats]:
    """ψ(a,k|s), (S,A,K)."""
    weights = hnp.arrays(np.int64, shape, elements=st.integers(0, 3))
    return weights.map(lambda w: w + (w.sum(axis=(1, 2), keepdims=True) == 0)).map(
        lambda w: w / w.sum(axis=(1, 2), keepdims=True)
    )
