"""The TD targets on tensors and on kept values: hand-computed cases, and the NumPy twins of ``holdfast.core``."""

from __future__ import annotations

import numpy as np
import pytest
import torch as th
from hypothesis import given
from hypothesis import strategies as st

from holdfast.core import targets as core
from holdfast.core.choice import best_option
from holdfast.core.history import PartialHistory
from holdfast.core.options import flat_index, persistence_positions
from holdfast.core.targets import empirical_all_persistence
from holdfast.deep.agents.targets import (
    all_persistence_targets,
    held_values,
    skip_targets,
    state_values,
)
from holdfast.deep.arguments import TARGET_VALUES
from holdfast.deep.speed.shortcuts import SHORT_CUT_TARGET_VALUES
from holdfast.deep.speed.target_cache import ValuedTuples, kept_targets

# Two next states, two actions, three persistences.
TARGET_Q = th.tensor(
    [
        [[1.0, 2.0, 3.0], [4.0, 5.0, -6.0]],
        [[7.0, 0.0, -1.0], [2.0, 9.0, 8.0]],
    ]
)
ONLINE_Q = th.tensor(
    [
        [[0.0, 0.0, 9.0], [1.0, 1.0, 1.0]],
        [[0.0, 5.0, 0.0], [0.0, 0.0, 0.0]],
    ]
)


FREE = np.float32(0.0)


def kept_target(kind, reward, discount, done, rest, action, next_state, q, cost=FREE):
    """The same from values that are kept by row, of which this one needs the last."""
    values = np.concatenate([np.full_like(q, np.nan), q[next_state : next_state + 1]])
    rows = np.full((1, 1), len(values) - 1)
    numbers = (np.full((1, 1), number, dtype=q.dtype) for number in (reward, discount, done))
    actions, rests = np.full((1, 1), action), np.full((1, 1), rest)
    best = core_choice(ONLINE_Q[next_state].numpy()) if kind == "double" else -1
    chosen, positions = np.full((1, 1), best), persistence_positions(range(1, q.shape[2] + 1))
    tuples = ValuedTuples(rows, actions, rests, positions, *numbers, kind == "primitive", cost)
    return kept_targets(values, chosen, tuples).item()


def core_choice(values):
    """The best option as a flat index."""
    (action,), (k,) = best_option(values[None])
    return flat_index(action, k, values.shape[1])


def target(kind="options", *, reward, discount, done, k, length, action, next_state, q=TARGET_Q):
    """The target of one tuple of D_k, which is the same in both forms if there are two."""
    found = tensor_target(kind, reward, discount, done, k - length, action, next_state, q)
    if kind not in SHORT_CUT_TARGET_VALUES:
        return found
    kept = kept_target(kind, reward, discount, done, k - length, action, next_state, q.numpy())
    assert kept == pytest.approx(found, rel=1e-6, abs=1e-6)
    return found


def tensor_target(kind, reward, discount, done, rest, action, next_state, q):
    rest = th.tensor([[rest]])
    at, held = th.tensor([[next_state]]), th.tensor([[action]])
    return all_persistence_targets(
        th.tensor([[reward]]),
        th.tensor([[discount]]),
        th.tensor([[float(done)]]),
        rest == 0,
        state_values(kind, q, ONLINE_Q)[at],
        held_values(q, at, held, rest - 1),
    ).item()


# By hand ---------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("kind", "expected"), [("options", [5.0, 9.0]), ("primitive", [4.0, 7.0])])
def test_state_values(kind, expected):
    assert state_values(kind, TARGET_Q).tolist() == expected


def test_double_chooses_with_the_online_and_values_with_the_target_network():
    assert state_values("double", TARGET_Q, ONLINE_Q).tolist() == [3.0, 0.0]


@pytest.mark.parametrize(
    ("kind", "expected"), [("options", 1 + 0.25 * 5), ("primitive", 1 + 0.25 * 4), ("double", 1 + 0.25 * 3)]
)
def test_a_complete_window_goes_on_with_the_best_option(kind, expected):
    found = target(kind, reward=1.0, discount=0.25, done=False, k=2, length=2, action=0, next_state=0)
    assert found == expected


@pytest.mark.parametrize("kind", TARGET_VALUES)
def test_a_window_cut_short_goes_on_holding(kind):
    cut = {"reward": 1.0, "discount": 0.5, "done": False, "length": 1}
    assert target(kind, k=2, action=1, next_state=0, **cut) == 1 + 0.5 * 4
    assert target(kind, k=3, action=1, next_state=0, **cut) == 1 + 0.5 * 5
    assert target(kind, k=3, action=0, next_state=1, **cut) == 1 + 0.5 * 0
    half = {**cut, "length": 2, "discount": 0.25}
    assert target(kind, k=3, action=0, next_state=1, **half) == 1 + 0.25 * 7


@pytest.mark.parametrize("kind", TARGET_VALUES)
@pytest.mark.parametrize("length", [1, 3])
def test_nothing_is_to_be_had_beyond_a_terminal(kind, length):
    found = target(kind, reward=-2.0, discount=0.125, done=True, k=3, length=length, action=0, next_state=1)
    assert found == -2.0


def test_a_truncated_end_is_live():
    found = target(reward=1.0, discount=0.5, done=False, k=3, length=1, action=1, next_state=1)
    assert found == 1 + 0.5 * 9


def test_one_persistence_is_dqn():
    q = TARGET_Q[:, :, :1]
    for kind, value in (("options", 4.0), ("primitive", 4.0)):
        found = target(kind, reward=1.0, discount=0.5, done=False, k=1, length=1, action=0, next_state=0, q=q)
        assert found == 1 + 0.5 * value


def test_target_value_must_be_known():
    with pytest.raises(
        ValueError, match="target_value must be one of 'options', 'primitive', 'double', not 'max'"
    ):
        state_values("max", TARGET_Q)


@pytest.mark.parametrize("primitive", [False, True])
def test_a_value_that_is_no_number_is_not_overlooked(primitive):
    zero, one = np.zeros((1, 1), dtype=np.int64), np.ones((1, 1), dtype=np.float32)
    tuples = ValuedTuples(zero, zero, zero, persistence_positions((1, 2)), one, one, 0 * one, primitive, FREE)
    for action in range(3):
        values = np.arange(6, dtype=np.float32).reshape(1, 3, 2)
        values[0, action, 0] = np.nan
        assert np.isnan(kept_targets(values, zero - 1, tuples)).all()


# Against the NumPy twins -----------------------------------------------------------------------------------


@given(
    seed=st.integers(0, 2**31), n_states=st.integers(1, 4), n_actions=st.integers(1, 3), k_max=st.integers(1, 4)
)
def test_state_values_equal_their_numpy_twins(seed, n_states, n_actions, k_max):
    random = np.random.default_rng(seed)
    target_q, online_q = random.integers(-5, 6, size=(2, n_states, n_actions, k_max)).astype(np.float32)
    tensors = th.as_tensor(target_q), th.as_tensor(online_q)
    np.testing.assert_array_equal(state_values("options", tensors[0]), core.options_state_value(target_q))
    np.testing.assert_array_equal(state_values("primitive", tensors[0]), core.primitive_state_value(target_q))
    np.testing.assert_array_equal(state_values("double", *tensors), core.double_state_value(online_q, target_q))


@given(seed=st.integers(0, 2**31), k_max=st.integers(1, 4), batch=st.integers(1, 5))
def test_targets_equal_their_numpy_twin(seed, k_max, batch):
    random = np.random.default_rng(seed)
    shape = (k_max, batch)
    rewards, discounts, next_values, held = random.normal(size=(4, *shape))
    dones, complete = random.integers(2, size=(2, *shape))
    expected = core.all_persistence_target(rewards, discounts, complete == 1, next_values, held, dones == 1)
    found = all_persistence_targets(
        *map(th.as_tensor, (rewards, discounts, dones, complete == 1, next_values, held))
    )
    np.testing.assert_allclose(found, expected, rtol=1e-12, atol=1e-14)


@given(
    seed=st.integers(0, 2**31),
    n_rows=st.integers(1, 5),
    n_actions=st.integers(1, 3),
    k_max=st.integers(1, 4),
    batch=st.integers(1, 5),
    kind=st.sampled_from(["options", "primitive"]),
    in_quarters=st.booleans(),
)
def test_kept_targets_equal_both_twins(seed, n_rows, n_actions, k_max, batch, kind, in_quarters):
    random = np.random.default_rng(seed)
    shape = (k_max, batch)

    def numbers(size):
        # Quarters times powers of 1/2 are exact in 32 bits, whatever the order.
        found = random.integers(-20, 21, size=size) / 4 if in_quarters else random.normal(size=size)
        return found.astype(np.float32)

    values, rewards = numbers((n_rows, n_actions, k_max)), numbers(shape)
    next_rows, actions = random.integers(n_rows, size=shape), random.integers(n_actions, size=shape)
    rest = random.integers(np.arange(1, k_max + 1)[:, None], size=shape)
    lengths = np.arange(1, k_max + 1)[:, None] - rest
    discounts = ((0.5 if in_quarters else 0.97) ** lengths).astype(np.float32)
    dones = random.integers(2, size=shape).astype(np.float32)
    # Nothing but the rows that are named may be looked at.
    kept = np.where(np.isin(np.arange(n_rows), next_rows)[:, None, None], values, np.float32(np.nan))
    largest, positions = np.full(shape, -1), persistence_positions(range(1, k_max + 1))
    tuples = ValuedTuples(
        next_rows, actions, rest, positions, rewards, discounts, dones, kind == "primitive", FREE
    )
    found = kept_targets(kept, largest, tuples)
    assert found.dtype == np.float32

    at_end = values[next_rows]
    held = at_end[(*np.indices(shape), actions, np.maximum(rest, 1) - 1)]
    by_numpy = core.all_persistence_target(
        rewards, discounts, rest == 0, core.state_value(at_end, kind), held, dones == 1.0
    )
    q, where, numbered, left = map(th.as_tensor, (values, next_rows, actions, rest))
    by_torch = all_persistence_targets(
        *map(th.as_tensor, (rewards, discounts, dones)),
        left == 0,
        state_values(kind, q)[where],
        held_values(q, where, numbered, left - 1),
    )
    if in_quarters:
        np.testing.assert_array_equal(found, by_numpy)
        np.testing.assert_array_equal(found, by_torch)
    np.testing.assert_allclose(found, by_numpy, rtol=1e-5, atol=1e-6)
    np.testing.assert_allclose(found, by_torch, rtol=1e-5, atol=1e-6)


@given(seed=st.integers(0, 2**31), kappa=st.integers(1, 4), k_max=st.integers(1, 4), terminated=st.booleans())
def test_the_tuples_of_a_history_give_the_empirical_operator(seed, kappa, k_max, terminated):
    random = np.random.default_rng(seed)
    kappa = min(kappa, k_max)
    q = random.normal(size=(6, 2, k_max))
    history = PartialHistory(random.integers(6, size=kappa + 1), 1, random.normal(size=kappa), terminated)
    tensor = th.as_tensor(q)
    for kind in ("options", "primitive"):
        expected = empirical_all_persistence(q, history, 0.9, kind)
        for k in range(1, k_max + 1):
            length = min(k, kappa)
            found = target(
                kind,
                reward=history.k_step_return(0, length, 0.9),
                discount=0.9**length,
                done=terminated and length == kappa,
                k=k,
                length=length,
                action=1,
                next_state=int(history.states[length]),
                q=tensor,
            )
            assert found == pytest.approx(expected[k - 1], rel=1e-5, abs=1e-6)


# TempoRL ----------------------------------------------------------------------------------------------------


def test_skip_targets_by_hand():
    # Two last states, two actions: online the second is best in the first state, the first in the second.
    target_q, online_q = th.tensor([[[5.0], [2.0]], [[3.0], [8.0]]]), th.tensor([[[0.0], [1.0]], [[1.0], [0.0]]])
    found = skip_targets(
        rewards=th.tensor([[1.0, 1.0], [0.5, 0.5]]),
        discounts=th.tensor([[0.5, 0.5], [0.25, 0.25]]),
        dones=th.tensor([[0.0, 1.0], [0.0, 0.0]]),
        target_q=target_q,
        online_q=online_q,
        next_index=th.tensor([[0, 0], [0, 1]]),
    )
    # 1 + ½·2, then nothing beyond an end, then ½ + ¼·2 and ½ + ¼·3.
    assert found.tolist() == [[2.0, 1.0], [1.0, 1.25]]


@given(seed=st.integers(0, 2**31))
def test_skip_targets_equal_their_numpy_twin(seed):
    random = np.random.default_rng(seed)
    target_q, online_q = random.normal(size=(2, 5, 3))
    index = random.integers(5, size=(4, 6))
    rewards, discounts = random.normal(size=(2, 4, 6))
    dones = random.integers(2, size=(4, 6)).astype(np.float64)
    expected = core.skip_target(rewards, discounts, online_q[index], target_q[index], dones)
    tensors = (
        th.as_tensor(array) for array in (rewards, discounts, dones, target_q[..., None], online_q[..., None])
    )
    np.testing.assert_allclose(skip_targets(*tensors, th.as_tensor(index)), expected, rtol=1e-12)


@pytest.mark.parametrize(("kind", "value"), [("options", 9.0), ("double", 0.0)])
def test_a_decision_is_paid_for_where_it_is_made(kind: str, value: float) -> None:
    # Next state 1, c = 3, r = 1, γ = ½. Complete: 1 + ½(V − 3). Held on for one more step of action 1: 1 + ½·2,
    # where nothing is decided. Terminal: 1.
    cost = np.float32(3.0)
    paid = state_values(kind, TARGET_Q, ONLINE_Q, 3.0)
    assert paid[1].item() == value - 3.0
    q = TARGET_Q.numpy()
    assert kept_target(kind, 1.0, 0.5, 0.0, 0, 1, 1, q, cost) == 1.0 + 0.5 * (value - 3.0)
    assert kept_target(kind, 1.0, 0.5, 0.0, 1, 1, 1, q, cost) == 1.0 + 0.5 * 2.0
    assert kept_target(kind, 1.0, 0.5, 1.0, 0, 1, 1, q, cost) == 1.0
    assert paid[1].item() == core.undecided_value(value, 3.0)
