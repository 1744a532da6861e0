"""What a user can mend: the exception, and the names that it carries."""

from __future__ import annotations

import pickle
from typing import Any

import numpy as np
import pytest

from holdfast.core.checks import check_choice, check_duration, check_integer, check_probability, check_real
from holdfast.core.errors import InputError, InputTypeError
from holdfast.deep.argument_checks import UnsupportedActionsError
from holdfast.files import FolderInUseError
from holdfast.mdp import NoConvergenceError
from holdfast.runs.curves import NothingToShowError


@pytest.mark.parametrize(
    ("kind", "bases"),
    [
        (InputError, (ValueError,)),
        (InputTypeError, (InputError, TypeError)),
        (FolderInUseError, (InputError,)),
        (NothingToShowError, (InputError,)),
        (UnsupportedActionsError, (InputError, AssertionError)),
    ],
)
def test_it_travels_between_processes_as_it_is(kind: type[InputError], bases: tuple[type, ...]) -> None:
    error = pickle.loads(pickle.dumps(kind("n_envs must be 1 with algo='q'", "n_envs", "algo")))
    assert type(error) is kind
    assert isinstance(error, bases)
    assert str(error) == "n_envs must be 1 with algo='q'"
    assert error.arguments == ("n_envs", "algo")


def test_a_search_that_does_not_end_travels_with_where_it_was() -> None:
    error = pickle.loads(pickle.dumps(NoConvergenceError("no fixed point", np.arange(3.0))))
    assert isinstance(error, InputError)
    assert (str(error), error.value.tolist()) == ("no fixed point", [0.0, 1.0, 2.0])


@pytest.mark.parametrize(
    ("call", "names"),
    [
        (lambda: check_integer("k_max", "x"), ("k_max",)),
        (lambda: check_integer("k_max", True), ("k_max",)),
        (lambda: check_integer("k_max", 0), ("k_max",)),
        (lambda: check_real("alpha", "x"), ("alpha",)),
        (lambda: check_real("alpha", [1, 2]), ("alpha",)),
        (lambda: check_real("alpha", 10**400), ("alpha",)),
        (lambda: check_real("alpha", 2.0, 0.0, 1.0), ("alpha",)),
        (lambda: check_probability("slip", 7), ("slip",)),
        (lambda: check_choice("loop", "none", ("auto",)), ("loop",)),
        (lambda: check_duration("k", 9, 8), ("k", "k_max")),
    ],
)
def test_checks_carry_the_name_of_the_argument(call: Any, names: tuple[str, ...]) -> None:
    with pytest.raises(InputError) as caught:
        call()
    assert caught.value.arguments == names
