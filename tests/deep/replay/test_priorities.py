"""K priority trees: their sums, their draws and their weights, against plain lists."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats

from holdfast.deep.replay.priorities import PriorityTrees, importance_weight


def rows_of(*rows):
    return np.array(rows, dtype=np.int64)


def spans(n_trees, *spans):
    """Which of ``n_trees`` views each row enters: those from one number up to another."""
    return np.array([[first <= tree < last for tree in range(n_trees)] for first, last in spans])


def trees_with(priorities, alpha=1.0):
    """Trees whose view k has ``priorities[k]`` at row 0, 1, ...; 0 stays out."""
    table = np.array(priorities, dtype=np.float64)
    trees = PriorityTrees(*table.shape, alpha)
    for tree, row in itertools.product(*map(range, table.shape)):
        if table[tree, row] > 0.0:
            trees.enter(rows_of(row), spans(table.shape[0], (tree, tree + 1)))
            only = np.full((table.shape[0], 1), row)
            # Rows that are out of the other views stay out, those that are in keep what they have.
            values = np.array([[table[other, row] or 1.0] for other in range(table.shape[0])])
            trees.update(only, values)
    return trees


# Against lists ---------------------------------------------------------------------------------------------


class ListPriorities:
    """One list of priorities per view, everything recomputed when asked. α is 1, priorities are quarters."""

    def __init__(self, n_trees, capacity):
        self.tables = [[0.0] * capacity for _ in range(n_trees)]
        self.largest = [1.0] * n_trees

    def enter(self, row, members):
        for tree in np.flatnonzero(members):
            self.tables[tree][row] = self.largest[tree]

    def remove(self, row):
        for table in self.tables:
            table[row] = 0.0

    def update(self, tree, row, priority):
        if self.tables[tree][row] > 0.0:
            self.tables[tree][row] = priority
            self.largest[tree] = max(self.largest[tree], priority)

    def draw(self, tree, b, batch, uniform):
        table = self.tables[tree]
        mass = (b + uniform) * (sum(table) / batch)
        reached = 0.0
        for row, priority in enumerate(table):
            reached += priority
            if priority > 0.0 and mass < reached:
                return row
        raise AssertionError("mass beyond the total")

    def weight(self, tree, row, beta):
        table = self.tables[tree]
        count = sum(priority > 0.0 for priority in table)
        weights = [(count * priority / sum(table)) ** -beta for priority in table if priority > 0.0]
        return (count * table[row] / sum(table)) ** -beta / max(weights)


@given(st.data())
@settings(max_examples=100)
def test_trees_equal_lists(data):
    n_trees = data.draw(st.integers(1, 3), label="views")
    capacity = data.draw(st.integers(1, 9), label="capacity")
    trees, lists = PriorityTrees(n_trees, capacity, alpha=1.0), ListPriorities(n_trees, capacity)
    row = st.integers(0, capacity - 1)
    some = st.lists(st.booleans(), min_size=n_trees, max_size=n_trees)
    quarters = st.integers(1, 40).map(lambda number: number / 4)
    commands = st.one_of(
        st.tuples(st.just("enter"), row, some),
        st.tuples(st.just("enter"), row, st.just([True] * n_trees)),
        st.tuples(st.just("remove"), row, st.none()),
        st.tuples(st.just("update"), row, st.lists(quarters, min_size=n_trees, max_size=n_trees)),
    )
    for name, where, details in data.draw(st.lists(commands, max_size=40), label="commands"):
        if name == "enter":
            trees.enter(rows_of(where), np.array([details]))
            lists.enter(where, details)
        elif name == "remove":
            trees.remove(rows_of(where))
            lists.remove(where)
        else:
            trees.update(np.full((n_trees, 1), where), np.array(details)[:, None])
            for tree, priority in enumerate(details):
                lists.update(tree, where, priority)
    assert [trees.priorities(tree).tolist() for tree in range(n_trees)] == lists.tables
    assert trees.totals.tolist() == [sum(table) for table in lists.tables]
    assert trees.largest.tolist() == lists.largest
    batch = data.draw(st.sampled_from([1, 2, 4, 8]), label="batch")
    eighths = st.integers(0, 7).map(lambda number: number / 8)
    flat = data.draw(st.lists(eighths, min_size=n_trees * batch, max_size=n_trees * batch), label="uniforms")
    uniforms = np.array(flat).reshape(n_trees, batch)
    draw = trees.sample(uniforms, beta=0.5)
    for tree, b in itertools.product(range(n_trees), range(batch)):
        if not any(lists.tables[tree]):
            assert (draw.rows[tree, b], draw.weights[tree, b]) == (0, 0.0)
            continue
        assert draw.rows[tree, b] == lists.draw(tree, b, batch, uniforms[tree, b])
        assert draw.weights[tree, b] == pytest.approx(lists.weight(tree, draw.rows[tree, b], 0.5))


@given(st.data())
@settings(max_examples=50)
def test_every_node_is_the_sum_and_the_least_of_its_halves(data):
    capacity = data.draw(st.integers(1, 20), label="capacity")
    trees = PriorityTrees(2, capacity, alpha=0.6)
    for _ in range(data.draw(st.integers(0, 15), label="commands")):
        row = rows_of(data.draw(st.integers(0, capacity - 1)))
        match data.draw(st.sampled_from(["enter", "update", "remove"])):
            case "enter":
                trees.enter(row, spans(2, (0, 2)))
            case "update":
                trees.update(np.stack([row, row]), np.array([[data.draw(st.floats(1e-6, 1e6))]] * 2))
            case "remove":
                trees.remove(row)
    for tree in range(2):
        for node in range(1, trees.size):
            assert trees.sums[tree, node] == trees.sums[tree, 2 * node] + trees.sums[tree, 2 * node + 1]
            assert trees.least[tree, node] == min(trees.least[tree, 2 * node], trees.least[tree, 2 * node + 1])
        leaves, least = trees.sums[tree, trees.size :], trees.least[tree, trees.size :]
        np.testing.assert_array_equal(least, np.where(leaves > 0.0, leaves, np.inf))


# The distribution ------------------------------------------------------------------------------------------


@pytest.mark.parametrize("alpha", [0.0, 0.6, 1.0])
def test_draws_follow_the_priorities(alpha):
    random = np.random.default_rng(5)
    td = random.exponential(size=(2, 20))
    td[0, [3, 11]] = 0.0  # not in the first view
    trees = trees_with(td, alpha)
    counts = np.zeros((2, 20))
    for _ in range(4000):
        rows = trees.sample(random.random((2, 1)), beta=0.4).rows
        counts[[0, 1], rows[:, 0]] += 1
    for tree in range(2):
        inside = td[tree] > 0.0
        shares = td[tree, inside] ** alpha / (td[tree, inside] ** alpha).sum()
        assert counts[tree, ~inside].sum() == 0
        assert stats.chisquare(counts[tree, inside], 4000 * shares).pvalue > 0.01


def test_a_batch_follows_the_priorities_more_evenly_than_chance():
    random = np.random.default_rng(8)
    td = random.exponential(size=(1, 12))
    trees = trees_with(td)
    counts = np.zeros(12)
    for _ in range(200):
        counts += np.bincount(trees.sample(random.random((1, 32)), beta=0.4).rows[0], minlength=12)
    expected = 6400 * td[0] / td.sum()
    assert stats.chisquare(counts, expected).pvalue > 0.9


def test_each_draw_comes_from_its_own_share_of_the_total():
    trees = trees_with([[1.0, 1.0, 2.0, 4.0]])
    for uniform in (0.0, 0.5, 0.999):
        assert trees.sample(np.full((1, 8), uniform), beta=0.0).rows.tolist() == [[0, 1, 2, 2, 3, 3, 3, 3]]


def test_alpha_zero_draws_uniformly_and_weighs_everything_alike():
    trees = trees_with([[0.5, 100.0, 3.0, 0.0, 8.0]], alpha=0.0)
    assert trees.priorities(0).tolist() == [1.0, 1.0, 1.0, 0.0, 1.0]
    draw = trees.sample(np.full((1, 4), 0.5), beta=1.0)
    assert draw.rows.tolist() == [[0, 1, 2, 4]]
    assert draw.weights.tolist() == [[1.0] * 4]


def test_rounding_never_draws_a_row_that_is_out():
    random = np.random.default_rng(2)
    trees = PriorityTrees(1, 1000, alpha=0.6)
    inside = np.sort(random.choice(1000, size=37, replace=False))
    trees.enter(inside, np.ones((37, 1), dtype=np.bool_))
    trees.update(inside[None], 10.0 ** random.uniform(-6, 3, size=(1, 37)))
    almost_one = np.full((1, 4096), np.nextafter(1.0, 0.0))
    for uniforms in (almost_one, np.zeros((1, 4096)), random.random((1, 4096))):
        assert set(trees.sample(uniforms, beta=0.4).rows[0]) <= set(inside)


# Weights ---------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("beta", [0.0, 0.4, 1.0])
def test_weights_are_the_formula(beta):
    priorities = np.array([0.5, 1.0, 2.0, 4.0])
    probabilities = priorities / priorities.sum()
    unscaled = (4 * probabilities) ** -beta
    draw = trees_with([priorities]).sample(np.full((1, 15), 0.5), beta)
    np.testing.assert_allclose(draw.weights[0], (unscaled / unscaled.max())[draw.rows[0]])


def test_the_largest_weight_is_the_views_not_the_batchs():
    trees = trees_with([[1.0, 1000.0]])
    draw = trees.sample(np.full((1, 1), 0.9), beta=1.0)
    assert draw.rows.tolist() == [[1]]
    assert draw.weights[0, 0] == pytest.approx(1e-3)
    assert importance_weight(1000.0, 1.0, 1.0) == pytest.approx(1e-3)


def test_an_empty_view_has_weight_zero():
    draw = trees_with([[0.0, 0.0], [1.0, 3.0]]).sample(np.full((2, 4), 0.5), beta=0.4)
    assert draw.weights[0].tolist() == [0.0] * 4
    assert draw.rows[0].tolist() == [0] * 4
    assert (draw.weights[1] > 0.0).all()


# Coming and going ------------------------------------------------------------------------------------------


def test_new_rows_enter_at_the_largest_priority_so_far_of_each_view():
    trees = PriorityTrees(2, 4, alpha=0.5)
    trees.enter(rows_of(0), spans(2, (0, 2)))
    assert [trees.priorities(tree)[0] for tree in (0, 1)] == [1.0, 1.0]
    trees.update(np.array([[0], [0]]), np.array([[9.0], [0.25]]))
    trees.enter(rows_of(1), spans(2, (0, 2)))
    assert [trees.priorities(tree)[1] for tree in (0, 1)] == [3.0, 1.0]
    trees.update(np.array([[0], [0]]), np.array([[0.01], [0.01]]))
    trees.enter(rows_of(2), spans(2, (0, 2)))
    assert [trees.priorities(tree)[2] for tree in (0, 1)] == [3.0, 1.0]


def test_rows_enter_the_views_they_are_given():
    trees = PriorityTrees(3, 3, alpha=0.6)
    trees.enter(rows_of(0, 2), spans(3, (0, 2), (1, 3)))
    assert [trees.priorities(tree).tolist() for tree in range(3)] == [[1, 0, 0], [1, 0, 1], [0, 0, 1]]


def test_updates_of_rows_that_have_left_stay_out():
    trees = PriorityTrees(2, 4, alpha=0.6)
    trees.enter(rows_of(1, 2), spans(2, (0, 2), (0, 2)))
    trees.remove(rows_of(1))
    trees.update(np.array([[1], [1]]), np.array([[50.0], [50.0]]))
    assert [trees.priorities(tree).tolist() for tree in (0, 1)] == [[0, 0, 1, 0]] * 2
    assert trees.largest.tolist() == [1.0, 1.0]


def test_the_memory_that_is_announced_is_the_memory_that_is_used():
    for capacity in (1, 2, 3, 64, 65, 1000):
        trees = PriorityTrees(3, capacity, alpha=0.6)
        assert PriorityTrees.bytes_needed(3, capacity) == trees.sums.nbytes + trees.least.nbytes
