"""One definition of each argument: what agents show, take, refuse, hand on and save follows from it."""

from __future__ import annotations

import inspect
import pydoc

import pytest

from holdfast.deep import EZGreedyDQN, OptionDQN, PerDQN, TempoRLDQN
from holdfast.deep.arguments import OWN_ARGUMENTS, POLICY_ARGUMENTS, SB3_ARGUMENTS

AGENTS = (PerDQN, TempoRLDQN, EZGreedyDQN)


def made(agent: type[OptionDQN], *positional: object, **given: object) -> OptionDQN:
    return agent("MlpPolicy", "CartPole-v1", *positional, **{"buffer_size": 50, **given})


@pytest.mark.parametrize("agent", [OptionDQN, *AGENTS])
def test_help_explains_every_argument(agent):
    shown = [name for name in inspect.signature(agent).parameters if not name.startswith("_")]
    assert len(shown) >= 30
    text = pydoc.plain(pydoc.render_doc(agent))
    explained = [line.strip(" |").partition(": ")[0] for line in text.splitlines() if ": " in line]
    assert [name for name in shown if name not in explained] == []


@pytest.mark.parametrize("agent", AGENTS)
def test_a_default_is_what_an_agent_has_that_is_given_nothing(agent):
    model = made(agent)
    defaults = {name: found.default for name, found in inspect.signature(agent).parameters.items()}
    if defaults.get("persistences") is not None:
        # Which says what the largest is.
        defaults["k_max"] = defaults["persistences"][-1]
    for argument in agent.own_arguments:
        value, default = getattr(model, argument.name), defaults[argument.name]
        assert (tuple(value) if isinstance(value, list) else value) == default
    for name, value in agent.stands_for.items():
        assert getattr(model, name) == value
        assert name not in inspect.signature(agent).parameters


def test_a_largest_persistence_stands_for_all_up_to_it_and_a_set_for_its_largest():
    assert (made(PerDQN, k_max=3).k_max, made(PerDQN, k_max=3).persistences) == (3, None)
    sparse = made(PerDQN, persistences=[1, 5], k_max=5)
    assert (sparse.k_max, sparse.persistences) == (5, (1, 5))
    with pytest.raises(ValueError, match=r"^k_max must be 5, the last of persistences, or not be given, not 3$"):
        made(PerDQN, persistences=[1, 5], k_max=3)


def test_nothing_beside_the_papers_update_is_left_in_plain_settings():
    plain = PerDQN.plain()
    defaults = {argument.name: argument.default for argument in OWN_ARGUMENTS}
    assert all(plain[name] != defaults[name] for name in plain)
    model = made(PerDQN, **plain)
    assert {name: getattr(model, name) for name in plain} == plain
    plain["dueling"] = "options"
    assert PerDQN.plain()["dueling"] is False


def test_an_explanation_anew_replaces_the_one_of_all_agents():
    assert "k_max: Largest persistence K" in PerDQN.__doc__
    assert "k_max: Largest persistence K" not in EZGreedyDQN.__doc__
    assert "Longest duration K of an exploratory action." in EZGreedyDQN.__doc__


def test_the_order_of_sb3_holds_for_arguments_without_a_name():
    model = made(PerDQN, 1e-3, buffer_size=60)
    assert model.learning_rate == 1e-3
    assert PerDQN("MlpPolicy", "CartPole-v1", 1e-3, 70, 5).learning_starts == 5
    with pytest.raises(TypeError, match="buffer_size must be given to PerDQN once"):
        PerDQN("MlpPolicy", "CartPole-v1", 1e-3, 70, buffer_size=70)
    with pytest.raises(TypeError, match="PerDQN takes at most 25 arguments without a name"):
        PerDQN("MlpPolicy", "CartPole-v1", *range(24))


@pytest.mark.parametrize("agent", AGENTS)
def test_an_unknown_argument_is_told_of_its_neighbour(agent):
    with pytest.raises(TypeError, match=rf"^{agent.__name__} has no argument 'kmax'; did you mean k_max\?$"):
        made(agent, kmax=4)


def test_a_policy_knows_its_arguments_too():
    with pytest.raises(TypeError, match="MlpPolicy has no argument 'duelling'; did you mean dueling"):
        made(PerDQN, policy_kwargs={"duelling": True})
    with pytest.raises(TypeError, match=r"MlpPolicy has no argument 'netarch'; did you mean net_arch"):
        made(PerDQN, policy_kwargs={"netarch": [8]})


@pytest.mark.parametrize("argument", POLICY_ARGUMENTS, ids=lambda argument: argument.name)
def test_what_is_the_policys_gets_there_from_the_agent_alone(argument):
    with pytest.raises(ValueError, match=f"policy_kwargs must not have '{argument.name}'"):
        made(PerDQN, policy_kwargs={argument.name: argument.default})
    given = {"persistences": (1, 3), "head_arch": [5], "dueling": "options", "normalize_observations": "space"}
    given |= {"decision_tolerance": 0.25, "interrupt_margin": 0.5, "layer_norm": True, "average_rate": 0.125}
    given |= {"decision_cost": 0.125}
    policy = made(PerDQN, **given).policy
    assert getattr(policy, argument.name) == (given | {"k_max": 3})[argument.name]


@pytest.mark.parametrize(
    "name",
    [
        "alpha",
        "gamma",
        "prioritized",
        "bootstrap",
        "k_max",
        "pad_terminal",
        "persistences",
        "shared_draws",
        "importance",
    ],
)
def test_what_is_the_replays_gets_there_from_the_agent_alone(name):
    with pytest.raises(ValueError, match=f"replay_buffer_kwargs must not have '{name}'"):
        made(PerDQN, replay_buffer_kwargs={name: 1})
    model = made(TempoRLDQN, k_max=3, gamma=0.5, prioritized=False, priority_alpha=0.3, pad_terminal=False)
    expected = {"alpha": 0.3, "gamma": 0.5, "prioritized": False, "bootstrap": False, "k_max": 3}
    expected |= {"pad_terminal": False, "persistences": None, "shared_draws": False, "importance": "batch"}
    assert getattr(model.replay_buffer, name) == expected[name]
    levers = {"persistences": (1, 4), "shared_draws": False, "importance": "buffer"}
    if name in levers:
        assert getattr(made(PerDQN, **levers).replay_buffer, name) == levers[name]


def test_a_saved_state_is_of_the_arguments_that_training_depends_on():
    identifying = {found.name for found in (*SB3_ARGUMENTS, *OWN_ARGUMENTS) if found.identifies}
    model = made(TempoRLDQN)
    assert identifying | {"pad_terminal"} <= set(model.state()["made_of"])
    with pytest.raises(ValueError, match="must be of an agent with pad_terminal=False, not True"):
        made(TempoRLDQN, pad_terminal=False).restore(model.state())


def test_a_subclass_with_a_constructor_of_its_own():
    class Named(OptionDQN):
        def __init__(self, *arguments, nickname="x", **keywords):
            self.nickname = nickname
            super().__init__(*arguments, **keywords)

    assert "nickname" in inspect.signature(Named).parameters
