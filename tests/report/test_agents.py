"""Records become agents: by task and setting, with labels that tell them apart."""

from __future__ import annotations

import pytest

from holdfast.report.agents import differing_settings, group_tasks
from holdfast.report.chart_data import MOST_POINTS, chart_data, hold_classes
from holdfast.report.page import make_report
from holdfast.report.page_tables import agent_rows, run_rows, setting_tables
from tests.architecture import ROOT
from tests.report.made_records import record


def test_runs_that_differ_in_their_seed_are_one_agent():
    (task,) = group_tasks([record([1, 2], seed=seed) for seed in (2, 0, 1)])
    (agent,) = task.agents
    assert (agent.label, [one.seed for one in agent.records]) == ("PerDQN", [0, 1, 2])
    assert task.quantity == "greedy"


def test_the_best_comes_first_and_settings_are_told_where_they_differ():
    low = record([0, 1], setting={"k_max": 1, "gamma": 0.9})
    high = record([0, 5], setting={"k_max": 8, "gamma": 0.9})
    other = record([0, 3], agent="DQN", algo="dqn", setting={"gamma": 0.9})
    (task,) = group_tasks([low, high, other])
    assert [agent.label for agent in task.agents] == ["PerDQN, k_max=8", "DQN", "PerDQN, k_max=1"]
    assert len({(agent.color, agent.dash) for agent in task.agents}) == 3
    assert task.goal == pytest.approx(0.9 * 5)


def test_an_agent_looks_the_same_in_all_tasks_and_no_two_of_a_task_do():
    tasks = group_tasks(
        [
            *(record([1, 2], setting={"k": 8}, seed=seed) for seed in range(3)),
            record([3, 9], setting={"k": 1}),
            record([1, 2], setting={"k": 8}, task="Acrobot-v1"),
            record([1, 9], setting={"k": 1}, task="Acrobot-v1"),
        ]
    )
    looks = [{agent.label: agent.dash for agent in task.agents} for task in tasks]
    assert looks == [{"PerDQN, k=1": 1, "PerDQN, k=8": 0}] * 2


def test_of_two_runs_of_one_seed_the_longer_counts():
    (task,) = group_tasks([record([1, 2], name="short"), record([1, 2, 3], name="long")])
    (agent,) = task.agents
    assert [one.name for one in agent.records] == ["long"]
    assert [one.name for one in agent.dropped] == ["short"]


def test_settings_that_differ_are_told_from_those_that_some_agents_do_not_have():
    assert differing_settings([{"a": 1, "b": 2}, {"a": 1, "b": 3, "c": None}]) == ["b", "c"]
    (table,) = setting_tables(
        group_tasks(
            [
                record([1], setting={"a": 1, "b": 2, "c": None}),
                record([2], setting={"a": 1, "b": 3, "c": None}),
                record([3], setting={"a": 1, "b": 2, "c": True}),
                record([0], setting={"a": 1, "d": 0.5}, agent="DQN", algo="dqn"),
            ]
        )
    )
    told = {group: {row["name"]: row["values"] for row in table[group]} for group in ("differ", "some", "same")}
    assert told == {
        "differ": {"b": ["2", "3", "2", "–"], "c": ["True", "None", "None", "–"]},
        "some": {"d": ["–", "–", "–", "0.5"]},
        "same": {"a": ["1", "1", "1", "1"]},
    }
    # Only what most agents do not have is highlighted, and nothing that is missing.
    assert [row["odd"] for row in table["differ"]] == [
        [False, True, False, False],
        [True, False, False, False],
    ]


def test_of_two_values_neither_is_the_usual_one():
    (table,) = setting_tables(group_tasks([record([1], setting={"b": 2}), record([2], setting={"b": 3})]))
    assert [row["odd"] for row in table["differ"]] == [[True, True]]


def test_what_the_columns_are_called_is_no_row():
    settings = [{"agent": "PerDQN"}, {"agent": "DQN"}]
    (table,) = setting_tables(
        group_tasks([record([2 - n], agent=one["agent"], setting=one) for n, one in enumerate(settings)])
    )
    assert table["differ"] == []


def test_an_algorithm_of_a_campaign_is_one_family_whatever_its_agents_are_called():
    (task,) = group_tasks([record([1], agent="defaults"), record([2], agent="without dueling")])
    assert {agent.family for agent in task.agents} == {"PerDQN"}
    assert {agent.label for agent in task.agents} == {"defaults", "without dueling"}


def test_a_training_is_listed_with_what_tells_its_agent_apart_and_with_units():
    records = [
        record([1], setting={"k_max": 1}),
        record([2], setting={"k_max": 8}, done=40.0, unit="episodes"),
    ]
    rows = run_rows(records, group_tasks(records))
    assert [(row["agent"], row["done"]["text"]) for row in rows] == [
        ("PerDQN, k_max=1", "100 steps"),
        ("PerDQN, k_max=8", "40 episodes"),
    ]


def test_the_table_has_the_numbers_with_their_intervals():
    rows = agent_rows(group_tasks([record([0.0, 10.0 + seed], seed=seed) for seed in range(3)]))
    (row,) = rows
    # 11 ± 4.303 · 1 / √3.
    assert row["final"] == {"text": "11 [8.516, 13.48]", "number": 11.0}
    assert row["worst"]["text"] == "10"
    assert row["soon"] == {"text": "200 steps", "number": 200.0}


def test_charts_have_few_numbers_however_long_a_training_was():
    tasks = group_tasks([record([float(i % 7) for i in range(50_000)], seed=seed) for seed in (0, 1)])
    data, missing = chart_data(tasks, 10**6)
    assert missing == []
    (agent,) = data["tasks"][0]["agents"]
    assert len(agent["curves"]["greedy"]["x"]) <= MOST_POINTS
    assert all(len(run["x"]) <= MOST_POINTS for run in agent["runs"]["greedy"])


@pytest.mark.parametrize(
    ("n_agents", "n_seeds", "n_points", "room", "missing"),
    [
        (130, 1, 10, 10**5, []),
        (401, 1, 10, 10**6, []),
        (2, 2, 24, 2000, []),
        (2, 2, 50, 2000, ["all but 31 points of each single seed's curve", "all but 31 points of each curve"]),
        (2, 2, 50, 1000, ["the curves of single seeds", "all but 15 points of each curve"]),
        (201, 2, 3, 10**6, ["the curves of single seeds"]),
    ],
)
def test_charts_lack_only_what_there_was(n_agents, n_seeds, n_points, room, missing):
    values = [float(i) for i in range(n_points)]
    seeds = [(number, seed) for number in range(n_agents) for seed in range(n_seeds)]
    tasks = group_tasks([record(values, seed=seed, setting={"k_max": number}) for number, seed in seeds])
    assert chart_data(tasks, room)[1] == missing


def test_holds_are_told_apart_by_powers_of_two():
    assert hold_classes(1) == [(1, 1)]
    assert hold_classes(12) == [(1, 1), (2, 2), (3, 4), (5, 8), (9, 12)]


def test_labels_that_would_be_long_name_the_fewest_settings_that_tell_agents_apart():
    trials = [
        record(
            [1], setting={"rate": 0.1 * trial, "net": [64] * trial, "trial": trial, "starts": 1000 * (trial % 2)}
        )
        for trial in range(1, 9)
    ]
    (task,) = group_tasks(trials)
    assert {agent.label for agent in task.agents} == {f"PerDQN, rate={0.1 * trial:.4g}" for trial in range(1, 9)}
    # One name is not enough here, and the second and the fourth say nothing new.
    (task,) = group_tasks(
        [
            record(
                [1], setting={"the first of two": a, "the longest name of all of them": a, "second": b, "other": b}
            )
            for a in (1, 2)
            for b in (1, 2)
        ]
    )
    assert {agent.label for agent in task.agents} == {
        f"PerDQN, the first of two={a}, second={b}" for a in (1, 2) for b in (1, 2)
    }


def test_labels_differ_even_where_values_are_cut_or_rounded():
    settings = [{"net": [16] * 20}, {"net": [16] * 21}, {"net": 0.1}, {"net": 0.1 + 1e-9}]
    (task,) = group_tasks([record([1], setting=setting) for setting in settings])
    assert len({agent.label for agent in task.agents}) == 4
    (table,) = setting_tables([task])
    # The table has the values as they are.
    assert set(table["differ"][0]["values"]) == {repr(setting["net"]) for setting in settings}


def test_the_trials_of_a_study_have_short_labels():
    (task,) = make_report([ROOT / "results" / "tune_mountain_car"], pictures=False).tasks
    assert {len(agent.label) <= 60 for agent in task.agents} == {True}
    assert len({agent.label for agent in task.agents}) == len(task.agents) == 30
