"""Sentences about arguments in the words of the command line."""

from __future__ import annotations

import argparse
from pathlib import Path

import pytest

from holdfast.cli.option_names import as_typed
from holdfast.core.errors import InputError, InputTypeError


def parser() -> argparse.ArgumentParser:
    found = argparse.ArgumentParser()
    found.add_argument("environment", metavar="ENV", nargs="?")
    found.add_argument("--n-envs", type=int)
    found.add_argument("--seed", type=int, default=0)
    found.add_argument("--k-max", type=int)
    found.add_argument("--algo")
    found.add_argument("--budget", dest="steps", type=int)
    found.add_argument("--study", default="auto")
    found.add_argument("--resume", action="store_true")
    found.add_argument("-o", "--out", type=Path)
    found.add_argument("--set", nargs="+", action="extend", metavar="NAME=VALUE")
    found.add_argument("--env-kwargs", nargs="+", default=[], metavar="NAME=VALUE")
    found.add_argument("--grid", action="append", metavar="NAME=V1,V2,...")
    found.add_argument("--stop-with", dest="pid", help=argparse.SUPPRESS)
    return found


@pytest.mark.parametrize(
    ("given", "error", "sentence"),
    [
        ("", InputError("n_envs must be 1 for q", "n_envs"), "--n-envs must be 1 for q"),
        ("", InputTypeError("environment must be a text", "environment"), "ENV must be a text"),
        ("", InputError("env must expose its table", "env"), "ENV must expose its table"),
        ("", InputError("out must be a folder", "out"), "--out must be a folder"),
        (
            "",
            InputError("steps must be given, for steps count", "steps"),
            "--budget must be given, for steps count",
        ),
        ("", InputError("steps needs study='visits'", "steps", "study"), "--budget needs --study visits"),
        ("", InputError("give k_max=4, or seed=-1", "k_max", "seed"), "give --k-max 4, or --seed -1"),
        ("", InputError("give resume=True to go on", "resume"), "give --resume to go on"),
        ("", InputError("set must not name 'k_max'", "set", "k_max"), "--set must not name 'k_max'"),
        ("", InputError("my_k_max, k_max_2 and k_max", "k_max"), "my_k_max, k_max_2 and --k-max"),
        ("", InputError("n_envs must be 1"), "n_envs must be 1"),
        ("", InputError("tau must be 1", "tau"), "tau must be 1"),
        ("", InputError("pid must be 1", "pid"), "pid must be 1"),
        ("--set tau=5", InputError("tau must be 1, not 5", "tau"), "--set: tau must be 1, not 5"),
        ("--set tau=5", InputError("a and tau must be 1", "a", "tau"), "--set: a and tau must be 1"),
        ("--env-kwargs a=1 slip=7", InputError("slip must be 1", "slip"), "--env-kwargs: slip must be 1"),
        ("--grid tau=1,5", InputError("tau must be 1, not 5", "tau"), "--grid: tau must be 1, not 5"),
        # Names that can be given in two ways.
        ("--set k_max=0", InputError("k_max must be 1, not 0", "k_max"), "--set: k_max must be 1, not 0"),
        ("--k-max 0", InputError("k_max must be 1, not 0", "k_max"), "--k-max must be 1, not 0"),
        ("--k-max 0 --set k_max=2", InputError("k_max must be 1, not 0", "k_max"), "--k-max must be 1, not 0"),
        ("--seed 3 --env-kwargs seed=x", InputError("seed must be 1, not 'x'", "seed"), "--env-kwargs: seed must"),
        ("--seed 3 --env-kwargs seed=4", InputError("seed must be 1, not 3", "seed"), "--seed must be 1, not 3"),
        ("--algo q --grid algo=q,x", InputError("algo must be q, not 'x'", "algo"), "--grid: algo must be q, not"),
    ],
)
def test_arguments_are_named_as_they_are_typed(given: str, error: InputError, sentence: str) -> None:
    found = as_typed(error, parser(), parser().parse_args(given.split()))
    assert found.startswith(sentence)
    assert len(found) == len(sentence) or sentence.endswith(("must", "not"))
