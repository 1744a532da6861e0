"""What a careful reader would say."""

from __future__ import annotations

from holdfast.report.agents import group_tasks
from holdfast.report.cautions import cautions
from holdfast.report.records import Findings, Problem
from tests.report.made_records import record


def said(*records, problems=()):
    return " ".join(cautions(Findings(list(records), problems=list(problems)), group_tasks(records)))


def five(value, **more):
    return [record([0.0, value + 0.1 * seed], seed=seed, **more) for seed in range(5)]


def test_nothing_is_said_of_a_clear_comparison():
    assert said(*five(1.0), *five(9.0, agent="DQN", algo="dqn")) == ""


def test_one_seed_is_no_interval():
    assert "PerDQN has one seed" in said(record([1, 2]))
    assert "PerDQN has only two seeds" in said(record([1, 2]), record([1, 2], seed=1))


def test_an_interval_without_width_is_not_certainty():
    same = [record([0.0, 500.0], seed=seed) for seed in range(5)]
    assert "all seeds of PerDQN end with the same value" in said(*same)
    assert "same value" not in said(*same[:1])


def test_names_with_commas_are_told_apart():
    agents = [[record([1, 2], agent=f"PerDQN, {name}", seed=seed) for seed in (0, 1)] for name in "abcd"]
    text = said(*agents[0], *agents[1])
    assert "PerDQN, a; and PerDQN, b have only two seeds" in text
    assert "PerDQN, a; PerDQN, b; PerDQN, c; and 1 more have" in said(*(one for agent in agents for one in agent))


def test_intervals_that_overlap_with_the_best_are_named():
    text = said(*five(9.0), *five(9.1, agent="DQN", algo="dqn"), *five(1.0, agent="TempoRL", algo="temporl-dqn"))
    assert "DQN ends best, but the 95 % interval of PerDQN overlaps" in text
    assert "TempoRL" not in text


def test_runs_that_are_not_over_are_named_with_how_far_they_are():
    text = said(*five(1.0)[:4], record([1, 2], seed=4, status="unfinished", planned=150_000.0))
    assert "Unfinished: PerDQN-4 (200 of 150,000 steps)" in text
    assert "Failed: PerDQN-4" in said(*five(1.0)[:4], record([1, 2], seed=4, status="failed"))


def test_other_versions_and_commits_are_named():
    old, new = {"holdfast": "0.1.0", "torch": "2.8"}, {"holdfast": "0.2.0", "torch": "2.8"}
    text = said(*five(1.0, versions=old)[:4], record([0, 1], seed=4, versions=new, commit="a" * 40))
    assert "holdfast 0.1.0 and 0.2.0" in text
    assert "torch" not in text
    assert "commits aaaaaaa and bbbbbbb" in said(
        *five(1.0, commit="a" * 40)[:4], record([0, 1], seed=4, commit="b" * 40)
    )


def test_seeds_of_different_lengths_are_named():
    assert "different lengths, 200 to 400 steps" in said(*five(1.0)[:4], record([0, 1, 1, 1], seed=4))


def test_what_cannot_be_shown_is_named_first():
    assert said(record([1, 2]), problems=[Problem("runs/x", "it is damaged")]).startswith(
        "runs/x is missing, or shown only in part: it is damaged"
    )


def test_training_returns_alone_are_said_to_be_such():
    only = record([1, 2])
    only = record([1, 2], traces={"training": only.traces["greedy"]})
    assert "exploration included" in said(only)
