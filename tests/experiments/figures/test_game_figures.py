"""The figures of games: who trains on what, a training of a moment, and what is drawn and said of made-up rows."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

import numpy as np
import pytest

from holdfast.deep import PerDQN
from holdfast.draw import save_figure
from holdfast.experiments.figures import find_experiment
from holdfast.experiments.spec import SCALES
from holdfast.experiments.tables import Table, select
from holdfast.policies import find_algorithm
from holdfast.runs.options import make_config
from holdfast.runs.training import check_agent
from tests.experiments.smoke import check_summary, rows_of

LABELS = ("atari", "atariK", "freeway_extended", "freeway_comp", "minatar", "minatarK")


def drivers_by_game(label: str, scale: str) -> dict[str, set[str]]:
    found: dict[str, set[str]] = {}
    for job in find_experiment(label).jobs(scale):
        found.setdefault(job.setting["game"], set()).add(job.setting["driver"])
    return found


def test_the_papers_games() -> None:
    everybody = {"DQN", "PerDQN(4)", "TempoRL(4)", "MSA-DQN(4)"}
    five = ("Freeway", "Kangaroo", "Alien", "Breakout", "MsPacman")
    assert drivers_by_game("atari", "paper") == {
        **{f"atari:{game}": everybody for game in five},
        "atari:Seaquest": everybody - {"MSA-DQN(4)"},
    }
    longer = {"DQN", "PerDQN(4)", "PerDQN(8)"}
    assert drivers_by_game("atariK", "paper") == {f"atari:{game}": longer for game in five}
    assert drivers_by_game("freeway_extended", "paper") == {
        "atari:Freeway": {"PerDQN(4)", "PerDQN(8)", "TempoRL(4)", "TempoRL(8)"}
    }
    assert drivers_by_game("freeway_comp", "paper") == {"atari:Freeway": {"PerDQN(4)", "DQN", "DQN(x4)"}}


@pytest.mark.parametrize("label", LABELS[:4])
def test_atari_at_the_papers_scale_has_the_papers_settings(label: str) -> None:
    paper = PerDQN.paper_atari()
    for job in find_experiment(label).jobs("paper"):
        setting = job.setting
        assert setting["steps"] == 2_500_000
        assert job.seed in range(5)
        known, given = find_algorithm(setting["algorithm"]).arguments(), setting["arguments"]
        for name in set(paper) & set(known) - {"k_max", "policy_kwargs", "learning_starts", "batch_size"}:
            assert given[name] == paper[name], name
        assert given["policy_kwargs"] == {"net_arch": [], "features_extractor_class": "ConvFeatures"}
        assert given["learning_starts"] == (2000 if setting["game"] == "atari:Freeway" else 1000)
        assert given["batch_size"] == (128 if setting["driver"] == "DQN(x4)" else 32)


def test_atari_on_a_laptop() -> None:
    jobs = find_experiment("atari").jobs("laptop")
    assert [(job.setting["driver"], job.setting["game"], job.setting["steps"], job.seed) for job in jobs] == [
        ("PerDQN(4)", "atari:Freeway", 60_000, 0),
        ("DQN", "atari:Freeway", 60_000, 0),
    ]
    assert all(job.setting["arguments"]["shared_draws"] for job in jobs)


def test_minatar_on_a_laptop() -> None:
    jobs = find_experiment("minatar").jobs("laptop")
    counted = Counter((job.setting["game"].partition(":")[2], job.setting["driver"]) for job in jobs)
    pairs = [("Freeway", "Asterix", "Breakout", "Seaquest"), ("PerDQN(4)", "DQN")]
    expected = {(game, driver): 3 for game in pairs[0] for driver in pairs[1]}
    expected |= {("Seaquest", "PerDQN(4), interrupted"): 3}
    expected |= {(game, "PerDQN(4), own draws"): 3 for game in ("Freeway", "Asterix")}
    assert counted == expected
    assert {job.setting["steps"] for job in jobs} == {200_000}


def test_dqn_differs_from_perdqn_in_nothing_but_persistences() -> None:
    jobs = {job.setting["driver"]: job.setting["arguments"] for job in find_experiment("minatar").jobs("laptop")}
    ours, theirs = jobs["PerDQN(4)"], jobs["DQN"]
    assert (ours["k_max"], ours["persistences"]) == (4, None)
    assert {name: ours[name] for name in theirs} == theirs
    assert set(ours) - set(theirs) == {"k_max", "persistences", "decision_cost"}
    assert {name for name in ours if ours[name] != jobs["PerDQN(4), own draws"][name]} == {"shared_draws"}
    assert {name for name in ours if ours[name] != jobs["PerDQN(4), interrupted"][name]} == {"interrupt_margin"}


@pytest.mark.parametrize("scale", SCALES)
def test_figures_of_a_family_share_their_trainings(scale: str) -> None:
    both = [{job.id for job in find_experiment(label).jobs(scale)} for label in ("minatar", "minatarK")]
    # PerDQN(4) and DQN.
    assert len(both[0] & both[1]) == {"smoke": 2, "laptop": 18, "paper": 40}[scale]


@pytest.mark.slow
def test_every_agent_of_every_scale_can_be_made() -> None:
    made = set()
    for label in LABELS:
        for scale in SCALES:
            for job in find_experiment(label).jobs(scale):
                setting = job.setting
                # One game of each family tells.
                kind = (setting["game"].partition(":")[0], setting["driver"], str(setting["arguments"]))
                if kind in made:
                    continue
                made.add(kind)
                options = {"environment": setting["game"], "algo": setting["algorithm"], "steps": 100}
                small = {**setting["arguments"], "buffer_size": 100}
                check_agent(make_config({**options, "set": small}))
    assert len(made) > 20


@pytest.fixture(scope="module")
def all_rows(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Table]:
    """All figures at the smallest scale; who is in several of them is trained once."""
    known: dict[str, bytes] = {}
    folder = tmp_path_factory.mktemp("games")
    return {label: rows_of(find_experiment(label), folder / label, known=known) for label in LABELS}


@pytest.mark.parametrize("label", LABELS)
def test_a_training_of_a_moment(label: str, all_rows: dict[str, Table], tmp_path: Path) -> None:
    rows, experiment = all_rows[label], find_experiment(label)
    jobs = experiment.jobs("smoke")
    assert sorted(rows["driver"].tolist()) == sorted(2 * [job.setting["driver"] for job in jobs])
    for job in jobs:
        own = select(rows, driver=job.setting["driver"], game=job.setting["game"])
        assert own["step"].tolist() == [60.0, 120.0]
        assert (own["score"] >= 0.0).all()
        assert (own["length"] >= own["decisions"]).all()
        if "DQN" in job.setting["driver"][:3]:
            assert own["length"].tolist() == own["decisions"].tolist()
    figure = experiment.draw(rows)
    # Scores and decisions of each game.
    assert len(figure.axes) == 2 * len(set(rows["game"]))
    assert save_figure(figure, tmp_path / "games.png").stat().st_size > 10_000
    check_summary(experiment, rows)


def made_up() -> Table:
    """Two drivers, two seeds, five evaluations: the last of them is the last fifth."""
    scores = {"PerDQN(4)": {0: 30.0, 1: 50.0}, "DQN": {0: 20.0, 1: 50.0}}
    parts = [
        {
            "driver": driver,
            "game": "minatar:Freeway",
            "seed": float(seed),
            "step": 1000.0 * (n + 1),
            "score": score if n == 4 else -1000.0,
            "decisions": 50.0,
            "length": 100.0,
            "training_return": 0.0,
        }
        for driver, seeds in scores.items()
        for seed, score in seeds.items()
        for n in range(5)
    ]
    return {name: np.array([part[name] for part in parts]) for name in parts[0]}


def test_the_table_by_hand() -> None:
    lines = check_summary(find_experiment("minatar"), made_up())
    assert lines[0] == "minatar:Freeway, last fifth:"
    # Mean 40 of two seeds: t = 12.706 with one degree of freedom, and a standard error of 10; then 15.
    assert lines[2].split() == ["PerDQN(4)", "40.0", "±127.1", "30.0", "50.0", "2.00", "2"]
    assert lines[3].split() == ["DQN", "35.0", "±190.6", "20.0", "50.0", "2.00", "2"]
    assert lines[4:] == ["  PerDQN(4) is ahead of DQN with 1 of 2 seeds, level with 1."]


def test_curves_are_means_over_seeds() -> None:
    figure = find_experiment("minatar").draw(made_up())
    first = {line.get_label(): line.get_ydata() for line in figure.axes[0].lines}
    np.testing.assert_allclose(first["PerDQN(4), 2 runs"], [-1000.0] * 4 + [40.0])
    np.testing.assert_allclose(first["DQN, 2 runs"], [-1000.0] * 4 + [35.0])
    assert [axes.get_title() for axes in figure.axes] == [
        "minatar:Freeway: score of a game",
        "minatar:Freeway: decisions in a game",
    ]
