"""``holdfast explore``: what it prints, what it writes, and what it says of bad input."""

from __future__ import annotations

import json
import shlex
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from holdfast.advice import study_visitation
from holdfast.advice.fixed_skips.skip_verdict import skip_verdict
from holdfast.advice.fixed_skips.skips import SkipEstimate
from holdfast.cli import main
from holdfast.cli.explore_text import _visits_table, estimates_text
from holdfast.stats.estimates import Estimate

OWN = '''
import gymnasium


class Far(gymnasium.Env):
    """Ten steps to the right end the episode; continuous actions push by their sign."""

    observation_space = gymnasium.spaces.Box(-20.0, 20.0, (2,))
    action_space = gymnasium.spaces.Box(-1.0, 1.0, (1,))

    def reset(self, *, seed=None, options=None):
        super().reset(seed=seed)
        self.place, self.time = 0.0, 0
        return self._seen(), {}

    def step(self, action):
        self.place += 1.0 if action[0] > 0 else -1.0
        self.time += 1
        return self._seen(), -1.0, self.place >= 10, self.time >= 40, {}

    def _seen(self):
        import numpy as np

        return np.array([self.place, self.time], dtype=np.float32)


def make():
    return Far()
'''


@pytest.fixture(autouse=True)
def _in_a_folder_of_its_own(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)


def numbers(arguments: list[str], capsys: pytest.CaptureFixture[str]) -> dict[str, Any]:
    assert main(["explore", *arguments, "--json"]) == 0
    captured = capsys.readouterr()
    assert captured.err == ""
    return json.loads(captured.out)


def test_a_grid_as_a_table(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["explore", "zigzag", "--k-max", "1,4,16", "-o", "out"]) == 0
    text = capsys.readouterr().out
    lines = text.splitlines()
    assert lines[0] == "zigzag: 30 steps of random options as one step of a chain; holes: wall"
    (lowest,) = [line for line in lines if "← lowest" in line]
    assert lowest.split()[0] == "4"
    assert lowest.split()[2] == "0.930"
    assert "k_max = 4: Kemeny's constant of 30 steps" in text
    assert "If every action had to be held for the same k steps" in text
    assert lines[-4:-2] == ["wrote out/explore.json", "wrote out/explore.png"]
    assert lines[-2:] == ["", "next: holdfast train zigzag --k-max 4"]
    assert all(len(line) <= 80 for line in lines)
    assert (tmp_path / "out" / "explore.png").read_bytes().startswith(b"\x89PNG")
    written = json.loads((tmp_path / "out" / "explore.json").read_text(encoding="utf-8"))
    assert written["advice"]["k_max"] == 4
    assert [skip["k"] for skip in written["fixed_skips"]["results"]] == [1, 4, 16]


def test_a_dip_that_is_not_advised_is_not_marked(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["explore", "bridge", "--holes", "restart", "--k-max", "1,2", "-o", "out"]) == 0
    text = capsys.readouterr().out
    assert "2 does not lower Kemeny's constant" in text
    assert "lowest" not in text


def test_episodes_as_a_table(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    asked = ["MountainCar-v0", "--k-max", "1,32", "--budget", "40000", "--fixed", "-o", "out"]
    assert main(["explore", *asked]) == 0
    text = capsys.readouterr().out
    assert "MountainCar-v0: random options, 40,000 steps for each k_max" in text
    assert [line.split()[:2] for line in text.splitlines()[3:7]] == [
        ["≤", "1"],
        ["≤", "32"],
        ["=", "1"],
        ["=", "32"],
    ]
    assert "k_max = 32: random actions held for up to 32 steps reach success" in text
    assert all(len(line) <= 80 for line in text.splitlines())
    assert (tmp_path / "out" / "explore.png").exists()


def test_advice_from_too_few_episodes_is_said_once_and_leads_to_a_longer_study(
    capsys: pytest.CaptureFixture[str],
) -> None:
    assert main(["explore", "MountainCar-v0", "--budget", "6000", "-o", "out"]) == 0
    text = " ".join(capsys.readouterr().out.split())
    assert text.count("30 episodes") == 1
    assert "k_max = 64: random actions held for up to 64 steps return" in text
    assert "This is provisional, with only 30 episodes for some k_max: play more steps before you train." in text
    assert text.endswith("next: holdfast explore MountainCar-v0 --budget 60000 --out out")


def test_a_longer_study_is_the_same_one(capsys: pytest.CaptureFixture[str]) -> None:
    asked = ["zigzag", "--budget", "200", "--k-max", "1,2", "--study", "visits", "--gamma", "0.9"]
    asked += ["--seed", "3", "--fixed"]
    assert main(["explore", *asked]) == 0
    last = capsys.readouterr().out.splitlines()[-1]
    assert last.startswith("next: holdfast explore zigzag --budget 2000")
    assert main(shlex.split(last.removeprefix("next: holdfast "))) == 0
    text = capsys.readouterr().out
    assert "zigzag: random options, 2,000 steps for each k_max" in text
    assert "exact, discount 0.9" in " ".join(text.split())
    assert [line.split()[:2] for line in text.splitlines()[3:7]] == [
        ["≤", "1"],
        ["≤", "2"],
        ["=", "1"],
        ["=", "2"],
    ]


def test_json_is_the_numbers_alone_and_writes_nothing(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    found = numbers(["cliff", "--k-max", "1,2"], capsys)
    assert found["chain"]["k_max"] == [1, 2]
    assert found["chain"]["normalised_kemeny"][0] == 1.0
    assert found["files"] == []
    assert list(tmp_path.iterdir()) == []


def test_without_a_folder_files_go_to_results(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["explore", "holdfast/Cliff-v0", "--k-max", "1,2"]) == 0
    assert "wrote results/explore-holdfast-Cliff-v0/explore.json" in capsys.readouterr().out
    assert (tmp_path / "results" / "explore-holdfast-Cliff-v0" / "explore.png").exists()


def test_an_environment_of_ones_own_with_continuous_actions(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "own_far_place.py").write_text(OWN, encoding="utf-8")
    found = numbers(["own_far_place:make", "--k-max", "1,16", "--budget", "8000"], capsys)
    assert found["visits"]["results"][1]["success"]["value"] > found["visits"]["results"][0]["success"]["value"]
    assert found["advice"]["k_max"] == 16
    assert found["advice"]["basis"] == "success"
    assert not any("learn" in note for note in found["notes"])
    assert main(["explore", "own_far_place:make", "--k-max", "1,16", "--budget", "1600", "-o", "out"]) == 0
    assert "holdfast train own_far_place:make --algo pertd3 --k-max" in capsys.readouterr().out


AWKWARD = """
import gymnasium


class Awkward(gymnasium.Env):
    observation_space = gymnasium.spaces.Discrete(4)
    action_space = gymnasium.spaces.Discrete(2)

    def __init__(self):
        print("being made")

    def reset(self, *, seed=None, options=None):
        super().reset(seed=seed)
        self.time = 0
        return 0, {}

    def step(self, action):
        print("a step")
        self.time += 1
        return self.time, 0.0, self.time == 3, False, {}

    def close(self):
        raise RuntimeError("it does not want to")


class OneState(Awkward):
    P = {0: {0: [(1.0, 0, 0.0, False)], 1: [(1.0, 0, 0.0, False)]}}
    initial_state_distrib = [1.0]


class Odd(Awkward):
    # The first action leads to and fro between 0 and 1; the second ends in 2 if it is taken in 1.
    P = {
        0: {0: [(1.0, 1, -1.0, False)], 1: [(1.0, 0, -1.0, False)]},
        1: {0: [(1.0, 0, -1.0, False)], 1: [(1.0, 2, -1.0, True)]},
        2: {0: [(1.0, 2, 0.0, True)], 1: [(1.0, 2, 0.0, True)]},
    }
    initial_state_distrib = [1.0, 0.0, 0.0]
"""


@pytest.fixture
def awkward(tmp_path: Path) -> str:
    (tmp_path / "own_awkward_place.py").write_text(AWKWARD, encoding="utf-8")
    return "own_awkward_place"


def test_what_an_environment_prints_is_not_among_the_numbers(
    awkward: str, capsys: pytest.CaptureFixture[str]
) -> None:
    """Nor does it matter that it cannot be closed."""
    assert main(["explore", f"{awkward}:Awkward", "--k-max", "1,2", "--budget", "9", "--json"]) == 0
    captured = capsys.readouterr()
    assert json.loads(captured.out)["environment"] == "own_awkward_place:Awkward"
    assert captured.err == "being made\n" + 18 * "a step\n"


def test_a_table_of_one_state_is_played(awkward: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["explore", f"{awkward}:OneState", "--study", "chain"]) == 2
    assert "the chain must have two states or more" in capsys.readouterr().err
    assert main(["explore", f"{awkward}:OneState", "--k-max", "1,2", "--budget", "9", "--json"]) == 0
    assert "the chain must have two states or more" in json.loads(capsys.readouterr().out)["notes"][0]


def test_a_skip_without_a_value_and_a_long_name_stay_within_the_screen(
    awkward: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["explore", f"{awkward}:Odd", "--k-max", "1,2", "--gamma", "1", "-o", "out"]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert "  1             -2     0" in lines
    assert "  2              –     –" in lines
    assert "k = 2: without a discount, holding every action for 2 steps has no finite" in lines
    assert all(len(line) <= 80 for line in lines)


def test_a_table_that_is_too_wide_loses_a_column() -> None:
    """The widest numbers that there may be."""
    study = study_visitation("cliff", [1], steps=100)
    wide = replace(
        study.results[0],
        k_max=999_999,
        success=Estimate(2e-5, 3.5e-6, 1.1e-4),
        mean_return=Estimate(-2.4642e5, -2.4742e5, -2.4542e5),
    )
    lines = _visits_table("cliff", replace(study, results=(wide,))).splitlines()
    assert "upper tenth" not in lines[2]
    assert "upper tenth" in _visits_table("cliff", study)
    assert lines[3].split()[-2:] == [f"{100.0 * wide.coverage:.0f}", "%"]
    assert all(len(line) <= 79 for line in lines)


def said(*estimates: SkipEstimate) -> str:
    return " ".join(estimates_text("run", estimates, skip_verdict(estimates), 0.99, 200, []).split())


def test_what_the_residual_may_hide_decides_whether_an_index_ranks() -> None:
    values = {1: -6.4, 2: -7.6, 4: -8.9, 8: -10.6, 12: -12.9}
    rows = [SkipEstimate(k, 900, value, -6.4 - value, 1.0, value - 35.0 + 2 * k) for k, value in values.items()]
    text = said(*rows)
    assert "k samples value loss return residual B_k" in text
    assert "12 900 -12.9 6.5 – 1 -23.9" in text
    assert "how much less that is than with k = 1." in text
    assert (
        "B_k ranks the policies that could be fitted from this replay (PFQI), not the skips. It decides nothing "
        "here: the residual may hide up to 33 (value − B_k), and the values are only 6.5 apart." in text
    )
    certain = [replace(row, index=row.value - 0.1 * row.k) for row in rows if row.value is not None]
    assert "not the skips. The largest is that of k = 1: -6.5." in said(*certain)


def test_of_numbers_that_say_nothing_none_is_the_largest() -> None:
    empty = SkipEstimate(1, 500, -100.0, None, 0.0, -100.0, "all samples pay the same")
    two, four = SkipEstimate(2, 500, -90.0, 0.0, 1.0, -91.0), SkipEstimate(4, 500, -99.0, 9.0, 1.0, -99.5)
    assert "B_k ranks" not in said(empty, two)
    text = said(empty, two, four)
    assert "The largest is that of k = 2: -91." in text
    assert "than with k = 2, for multiples of it." in text


def test_a_multiple_that_came_out_better_tells_how_far_estimates_are_off() -> None:
    one, two, three, four = (
        SkipEstimate(k, 500, value, -63.0 - value, 1.0, value)
        for k, value in ((1, -63.0), (2, -100.0), (3, -99.0), (4, -72.7))
    )
    off = "k = 4 came out 27.3 above k = 2: differences of that size are noise here."
    assert off in said(one, two, three, four)
    assert "came out" not in said(one, two, three)
    assert "k = 2 came out 0.5 above k = 1" in said(one, replace(two, value=-62.5, loss=-0.5))


def test_where_samples_are_few_it_is_said_what_to_do() -> None:
    one = SkipEstimate(1, 500, -90.0, 0.0, 1.0, -91.0)
    hint = "train with a larger --k-max or with random options (see: holdfast docs fixed_skip)."
    assert hint in said(one, SkipEstimate(8, 12, note="12 samples of holding for 8 steps are too few"))
    assert hint not in said(one)


def test_help_is_within_the_screen(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["explore", "--help"]) == 0
    assert all(len(line) <= 80 for line in capsys.readouterr().out.splitlines())


def test_the_same_seed_is_the_same_study(capsys: pytest.CaptureFixture[str]) -> None:
    asked = ["CartPole-v1", "--k-max", "1,4", "--budget", "500"]
    assert numbers(asked, capsys) == numbers(asked, capsys)
    assert numbers(asked, capsys) != numbers([*asked, "--seed", "1"], capsys)


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("runs") / "pole"
    asked = ["train", "CartPole-v1", "--algo", "perdqn", "--k-max", "2", "--steps", "1500"]
    assert main([*asked, "-o", str(folder), "--quiet", "--set", "learning_starts=200"]) == 0
    return folder


def test_fixed_skips_of_a_run(run: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["explore", "--run", str(run)]) == 0
    text = capsys.readouterr().out
    assert text.startswith("pole: every action held for the same k steps, estimated from its replay")
    assert text.splitlines()[2].split() == ["k", "samples", "value", "loss", "return", "residual", "B_k"]
    assert "B_k ranks the policies that could be fitted from this replay" in text
    assert all(len(line) <= 80 for line in text.splitlines())
    found = numbers(["--run", str(run), "--k-max", "1,2"], capsys)
    assert [skip["k"] for skip in found["fixed_skips"]] == [1, 2]
    one, two = found["fixed_skips"]
    assert (one["loss"], two["loss"]) == (0.0, one["value"] - two["value"])
    # A pole that stands for n steps returns n, whatever the discount is.
    assert 8.0 < one["undiscounted"] <= found["horizon"] + 1e-6
    assert found["gamma"] == 0.99
    assert found["verdict"]["sentence"] in " ".join(text.split())
    assert "Values are discounted by 0.99 per step; returns are undiscounted" in text
    assert all(skip["tuples"] > 100 and skip["residual"] >= 0.0 for skip in found["fixed_skips"])


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        ([], "give either ENV or --run\n"),
        (["cliff", "--run", "there"], "give either ENV or --run, not both"),
        (
            ["cliff", "--k-max", "1,two"],
            "--k-max must be whole numbers from 1 to 999,999, separated by commas, not '1,two'",
        ),
        (
            ["cliff", "--k-max", "0"],
            "--k-max must be whole numbers from 1 to 999,999, separated by commas, not '0'",
        ),
        (["cliff", "--k-max", ""], "--k-max must be whole numbers from 1 to 999,999, separated by commas, not ''"),
        (["cliff", "--horizon", "0"], ": --horizon must be a whole number of at least 1, not 0"),
        (["cliff", "--k-max", "1000000"], "from 1 to 999,999, separated by commas, not '1000000'"),
        (["cliff", "--budget", "1e12"], ": --budget must be at most 1,000,000,000, not 1,000,000,000,000"),
        (["cliff", "--budget", "9"], ": --budget must be given with --study visits, which plays episodes"),
        (["cliff", "--axes", "0,1"], ": --axes must be given with --study visits, which plays episodes"),
        (["cliff", "--fixed"], ": --fixed must be given with --study visits, which plays episodes"),
        (
            ["CartPole-v1", "--horizon", "30"],
            ": --horizon is about the chain, but there is no transition table here",
        ),
        (
            ["CartPole-v1", "--gamma", "0.9"],
            ": --gamma is about exact frame skips, but there is no transition table",
        ),
        (["cliff", "--budget", "0"], ": --budget must be a whole number of at least 1, not 0"),
        (["cliff", "--gamma", "1.5"], ": --gamma must be a number in [0, 1], not 1.5"),
        (["cliff", "--seed", "-1"], ": --seed must be a whole number of at least 0, not -1"),
        (["--run", "there", "--gamma", "0.9"], ": --gamma must not be given with --run"),
        (["--run", "there", "--study", "visits"], ": --study must not be given with --run"),
        (["CartPole-v1", "--study", "chain"], "transition table"),
        (["CartPole-v1", "--study", "chain"], ": --study must be 'visits' or 'auto' without a transition table: "),
        (["FrozenLake-v1", "--holes", "wall", "--study", "chain"], ": --holes must be 'restart'"),
        (["no_such_module:make"], "importing no_such_module raised ModuleNotFoundError"),
        (["CliffHanger-v0"], "CliffHanger"),
        (["--run", "nowhere"], ": --run must be the folder of a run of holdfast train, but 'nowhere' is not one"),
        (["MountainCar-v0", "--axes", "position,height", "--budget", "10"], "axes"),
    ],
)
def test_bad_input_is_one_sentence(
    arguments: list[str], sentence: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["explore", *arguments]) == 2
    captured = capsys.readouterr()
    assert sentence in captured.err
    assert captured.err.startswith("holdfast explore: ")
    assert captured.err.count("\n") == 1
    assert captured.out == ""
    assert list(tmp_path.iterdir()) == []


NEEDY = """
import gymnasium


class Tank(gymnasium.Env):
    observation_space = gymnasium.spaces.Box(0.0, 1.0, (2,))
    action_space = gymnasium.spaces.Discrete(2)

    def __init__(self, size, *, depth=1):
        self.size = size

    def reset(self, *, seed=None, options=None):
        super().reset(seed=seed)
        self.time = 0
        return self.observation_space.sample(), {}

    def step(self, action):
        self.time += 1
        return self.observation_space.sample(), 0.0, self.time == self.size, False, {}


def make(size, depth):
    return Tank(size)
"""


@pytest.mark.parametrize(
    ("name", "sentence"),
    [
        ("Tank", "needs the argument 'size': give it as --env-kwargs size=VALUE"),
        ("make", "needs the arguments 'size' and 'depth': give them as --env-kwargs size=VALUE depth=VALUE"),
    ],
)
def test_arguments_that_lack_are_said_with_how_to_give_them(
    name: str, sentence: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "own_needy_place.py").write_text(NEEDY, encoding="utf-8")
    assert main(["explore", f"own_needy_place:{name}"]) == 2
    assert capsys.readouterr().err == f"holdfast explore: environment 'own_needy_place:{name}' {sentence}\n"


def test_the_command_that_follows_has_the_arguments_too(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "own_needy_place.py").write_text(NEEDY, encoding="utf-8")
    asked = ["own_needy_place:Tank", "--env-kwargs", "size=3", "--k-max", "1,2", "--budget", "30", "-o", "out"]
    assert main(["explore", *asked]) == 0
    last = capsys.readouterr().out.splitlines()[-1]
    # Three episodes tell nothing.
    assert (
        last
        == "next: holdfast explore own_needy_place:Tank --budget 300 --k-max 1,2 --out out --env-kwargs size=3"
    )
    asked[asked.index("30")] = "3000"
    assert main(["explore", *asked]) == 0
    last = capsys.readouterr().out.splitlines()[-1]
    assert last == "next: holdfast train own_needy_place:Tank --k-max 1 --env-kwargs size=3"


def test_a_file_in_the_way_is_said_before_the_work(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "out").write_text("mine", encoding="utf-8")
    assert main(["explore", "--run", "nowhere", "-o", "out"]) == 2
    assert capsys.readouterr().err == "holdfast explore: -o must name a folder, but out is a file\n"
    assert main(["explore", "cliff", "-o", "out"]) == 2
    assert capsys.readouterr().err == "holdfast explore: -o must name a folder, but out is a file\n"
    assert (tmp_path / "out").read_text(encoding="utf-8") == "mine"
