"""Arguments that an agent hands on, and those that it stands for."""

from __future__ import annotations

import inspect

import pytest

from holdfast.deep.agents.arguments import completed_by, with_fixed


class Base:
    def __init__(self, env, rate=0.1, *, shape="round", size=3):
        self.given = (env, rate, shape, size)


class Round(Base):
    @completed_by(Base, {"shape": "round"})
    def __init__(self, env, *arguments, size=5, own=True, **keywords):
        super().__init__(env, *arguments, size=size, **with_fixed("Round", keywords, {"shape": "round"}))


def test_a_constructor_shows_what_it_hands_on_and_not_what_is_fixed():
    parameters = inspect.signature(Round).parameters
    assert list(parameters) == ["env", "rate", "size", "own"]
    assert parameters["rate"].default == 0.1
    assert parameters["size"].default == 5


def test_what_is_handed_on_arrives():
    assert Round("here", 0.5).given == ("here", 0.5, "round", 5)
    assert Round("here", rate=0.2, size=1).given == ("here", 0.2, "round", 1)


def test_what_is_fixed_cannot_be_given():
    with pytest.raises(TypeError, match="shape must not be given to Round, which stands for shape='round'"):
        Round("here", shape="round")
    with pytest.raises(TypeError, match="never_heard_of"):
        Round("here", never_heard_of=1)


def test_the_given_arguments_are_not_written_to():
    given = {"a": 1}
    assert with_fixed("Agent", given, {"b": 2}) == {"a": 1, "b": 2}
    assert given == {"a": 1}
