"""Which study suits an environment, and what comes with it."""

from __future__ import annotations

import json
from typing import Any

import gymnasium
import numpy as np
import pytest

from holdfast.advice.exploring import explore
from holdfast.envs import GridWorld, exploration_kernel, make_env
from holdfast.mdp import TabularMDP, persistent_mdp, q_star
from holdfast.mdp.exploration import exploration_curves


def test_a_grid_is_looked_at_as_a_chain() -> None:
    env = make_env("cliff")
    found = explore(env, "cliff", [4, 1, 2, 2], horizon=10)
    assert found.visits is None
    assert found.chain is not None
    assert found.holes == "wall"
    (expected,) = exploration_curves(exploration_kernel(env, "wall").kernel, [1, 2, 4], H=[10])
    assert found.chain.k_max.tolist() == [1, 2, 4]
    assert found.chain.kemeny == pytest.approx(expected.kemeny, rel=1e-12)
    assert found.advice.k_max == expected.best_k_max == 4
    assert found.notes == ()


def test_fixed_skips_come_with_every_model() -> None:
    found = explore(make_env("cliff"), "cliff", [1, 3], gamma=0.9)
    assert found.skips is not None
    mdp = TabularMDP.from_gymnasium(make_env("cliff"), 0.9)
    held = q_star(persistent_mdp(mdp, 3)).max(axis=1)[0]
    assert [skip.k for skip in found.skips] == [1, 3]
    assert found.skips[0].loss == 0.0
    # Down 3, right 9, up 3: every piece is a multiple of three steps, so that nothing is lost.
    assert found.skips[1].value == pytest.approx(held) == pytest.approx(0.9**14)
    assert found.skips[1].loss == pytest.approx(0.0, abs=1e-12)


def test_without_a_map_ends_restart() -> None:
    found = explore(gymnasium.make("FrozenLake-v1"), "FrozenLake-v1", [1, 2])
    assert found.holes == "restart"
    assert found.chain is not None


def test_other_environments_are_played() -> None:
    found = explore(gymnasium.make("CartPole-v1"), "CartPole-v1", [1, 4], steps=300)
    assert found.chain is None
    assert found.skips is None
    assert found.visits is not None
    assert [result.k_max for result in found.visits.results] == [1, 4]
    assert all(300 <= result.steps < 800 for result in found.visits.results)
    assert found.notes == found.visits.notes


def test_a_grid_is_played_where_that_is_asked_for() -> None:
    found = explore(make_env("cliff"), "cliff", [1, 4], study="visits", steps=2000, fixed=True)
    assert found.chain is None
    assert found.visits is not None
    assert {result.mode for result in found.visits.results} == {"dynamic", "fixed"}
    assert found.skips is not None


class Trapped(gymnasium.Env):  # type: ignore[type-arg]
    """0 leads to 1 for good."""

    observation_space = gymnasium.spaces.Discrete(2)
    action_space = gymnasium.spaces.Discrete(2)

    def tabular_mdp(self, gamma: float) -> TabularMDP:
        return TabularMDP(np.array([[0, 1], [1, 1]]), np.zeros((2, 2)), gamma, initial=0)

    def reset(self, *, seed: int | None = None, options: object = None) -> tuple[int, dict[str, object]]:
        super().reset(seed=seed)
        self.state = 0
        return 0, {}

    def step(self, action: int) -> tuple[int, float, bool, bool, dict[str, object]]:
        self.state = max(self.state, int(action))
        return self.state, 0.0, False, True, {}


def test_what_cannot_be_a_chain_is_played_and_that_is_said() -> None:
    found = explore(Trapped(), "trapped", [1, 2], steps=20)
    assert found.visits is not None
    assert found.notes[0].startswith("Episodes were played because the chain could not be studied: ")
    with pytest.raises(ValueError, match="closed class"):
        explore(Trapped(), "trapped", [1, 2], study="chain")


def test_a_chain_that_was_asked_for_needs_a_table() -> None:
    with pytest.raises((TypeError, ValueError), match="transition table"):
        explore(gymnasium.make("CartPole-v1"), "CartPole-v1", [1, 2], study="chain")


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"study": "both"}, "^study must be one of 'auto', 'chain', 'visits'"),
        ({"horizon": 0}, "^horizon must be a whole number of at least 1"),
        ({"holes": "pits"}, "^holes must be one of 'wall', 'restart', 'free'"),
        ({"steps": 0}, "^steps must be a whole number of at least 1"),
        ({"steps": 10**9 + 1}, "^steps must be at most 1,000,000,000, not 1,000,000,001$"),
        ({"gamma": 1.5}, "^gamma must be"),
        ({"seed": -1}, "^seed must be"),
    ],
)
def test_what_arguments_must_be(arguments: dict[str, object], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        explore(make_env("cliff"), "cliff", [1, 2], **arguments)  # type: ignore[arg-type]


@pytest.mark.parametrize("study", ["auto", "chain"])
@pytest.mark.parametrize("given", [{"steps": 100}, {"fixed": True}, {"axes": (0, 1)}], ids=str)
def test_what_is_about_episodes_is_refused_where_the_chain_is_looked_at(study: str, given: dict[str, Any]) -> None:
    (name,) = given
    with pytest.raises(ValueError, match=f"^{name} must be given with study='visits', which plays episodes$"):
        explore(make_env("cliff"), "cliff", [1, 2], study=study, **given)


class Unplayable(gymnasium.Env):  # type: ignore[type-arg]
    """Whoever plays it fails."""

    observation_space = gymnasium.spaces.Box(0.0, 1.0, (2,))
    action_space = gymnasium.spaces.Discrete(2)


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"horizon": 30}, "^horizon is about the chain, but there is no transition table here$"),
        ({"holes": "wall"}, "^holes is about the chain, but there is no transition table here$"),
        ({"gamma": 0.99}, "^gamma is about exact frame skips, but there is no transition table here$"),
        (
            {"horizon": 30, "study": "visits"},
            "^horizon is about the chain, but study='visits' plays",
        ),
        ({"study": "chain"}, "^study must be 'visits' or 'auto' without a transition table: "),
    ],
)
def test_what_has_no_effect_is_refused_before_anything_is_played(given: dict[str, Any], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        explore(Unplayable(), "nowhere", [1, 2], **given)


def test_the_discount_is_about_the_skips_of_a_table_that_is_played() -> None:
    found = explore(make_env("cliff"), "cliff", [1, 2], study="visits", steps=200, gamma=0.5)
    assert found.gamma == 0.5
    assert found.skips is not None
    with pytest.raises(ValueError, match=r"^holes is about the chain"):
        explore(make_env("cliff"), "cliff", [1, 2], study="visits", holes="wall")


def test_what_is_about_the_chain_is_refused_where_there_is_none() -> None:
    with pytest.raises(ValueError, match=r"^holes must be 'restart'"):
        explore(gymnasium.make("FrozenLake-v1"), "FrozenLake-v1", [1, 2], holes="wall")
    with pytest.raises(ValueError, match="closed class"):
        explore(Trapped(), "trapped", [1, 2], horizon=3)
    many = GridWorld("S" + 20_000 * "." + "G", step_limit=20)
    with pytest.raises(
        ValueError, match=r"^horizon is about the chain, and 20002 states are many for a chain: give"
    ):
        explore(many, "far", [1], horizon=3)
    notes = explore(many, "far", [1], steps=20).notes
    assert (
        notes[0]
        == "Episodes were played because 20002 states are many for a chain; the study 'chain' estimates it "
        "anyway."
    )


class Switches(gymnasium.Wrapper):  # type: ignore[type-arg]
    """CartPole with more switches than any agent takes, of which the first one counts.

    Args:
        number: Of switches.
    """

    def __init__(self, number: int = 11) -> None:
        super().__init__(gymnasium.make("CartPole-v1"))
        self.action_space = gymnasium.spaces.MultiBinary(number)

    def step(self, action: Any) -> Any:
        return self.env.step(int(action[0]))


@pytest.mark.parametrize(
    ("make", "kind"),
    [
        (lambda: gymnasium.make("Pendulum-v1"), None),
        (lambda: gymnasium.make("CartPole-v1"), None),
        (lambda: Switches(10), None),
        (Switches, "MultiBinary(11)"),
    ],
)
def test_actions_that_no_agent_learns_are_said_to_be_so(make: Any, kind: str | None) -> None:
    notes = explore(make(), "an environment", [1, 2], steps=200).notes
    said = [note for note in notes if note.startswith("holdfast's agents learn continuous actions")]
    about = f"but these are {kind}: the advice is about exploration only."
    assert [note.partition("combinations, ")[2] for note in said] == ([] if kind is None else [about])


def test_the_document_is_plain() -> None:
    for env, name in ((make_env("bridge"), "bridge"), (gymnasium.make("MountainCar-v0"), "MountainCar-v0")):
        found = explore(env, name, [1, 2])
        document = json.loads(json.dumps(found.document(), allow_nan=False))
        assert document["environment"] == name
        assert document["advice"]["k_max"] in (1, 2)
        assert (document["chain"] is None) != (document["visits"] is None)
