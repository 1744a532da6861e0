"""The cache of compiled code notices every change, in whatever file and package it was made."""

from __future__ import annotations

import importlib
import os
import py_compile
from pathlib import Path
from types import FunctionType

import pytest

from holdfast.core import clock
from holdfast.core.compiling import compiled, fingerprint
from tests.architecture import SOURCE
from tests.new_process import printed

FAR = "def far(x):\n    return x + {}\n"
NEAR = "FACTOR = {}\n"
HELPER = """
from holdfast.core.compiling import compiled
import far_away

far = compiled(far_away.far)
"""
CALLER = """
from holdfast.core.compiling import compiled
from helper import far
from near import FACTOR

@compiled
def outer(x):
    return inner(x)

@compiled
def inner(x):
    return FACTOR * far(x)
"""
CALL = "import caller; print(caller.outer(1), sum(caller.outer.stats.cache_hits.values()))"


def test_the_cache_hits_in_a_second_process_and_misses_when_anything_changes(tmp_path: Path) -> None:
    for name, text in (("helper", HELPER), ("caller", CALLER)):
        (tmp_path / f"{name}.py").write_text(text)
    (tmp_path / "far_away.py").write_text(FAR.format(1))
    (tmp_path / "near.py").write_text(NEAR.format(10))
    assert printed(CALL, tmp_path) == "20 0"
    assert printed(CALL, tmp_path) == "20 1"
    # Neither of these is the file of the function that is called, which is all that numba looks at.
    (tmp_path / "far_away.py").write_text(FAR.format(2))
    assert printed(CALL, tmp_path) == "30 0"
    (tmp_path / "near.py").write_text(NEAR.format(100))
    assert printed(CALL, tmp_path) == "300 0"
    assert printed(CALL, tmp_path) == "300 1"


PLAIN = """
from formulas.parts import twice

def formula(x):
    return twice(x) + 1
"""
PARTS = "def twice(x):\n    return {} * x\n"


def test_plain_functions_of_a_package_are_compiled_with_the_one_that_calls_them(tmp_path: Path) -> None:
    package = tmp_path / "formulas"
    package.mkdir()
    (package / "__init__.py").write_text("")
    (package / "whole.py").write_text(PLAIN)
    (package / "parts.py").write_text(PARTS.format(2))
    call = (
        "from holdfast.core.compiling import compiled; from formulas import whole; f = compiled(whole.formula); "
        "print(f(3), sum(f.stats.cache_hits.values()), whole.formula.__globals__['twice'].__name__)"
    )
    assert printed(call, tmp_path) == "7 0 twice"
    assert printed(call, tmp_path) == "7 1 twice"
    (package / "parts.py").write_text(PARTS.format(4))
    assert printed(call, tmp_path) == "13 0 twice"


PAIR = "from typing import NamedTuple\n\nclass Pair(NamedTuple):\n    {}: float\n    {}: float\n"
READER = """
from holdfast.core.compiling import compiled
from pair import Pair

@compiled
def left(pair):
    return pair.left
"""
READ = (
    "import reader; print(reader.left(reader.Pair(left=1.0, right=2.0)), "
    "sum(reader.left.stats.cache_hits.values()))"
)


def test_the_cache_misses_when_the_fields_of_a_named_tuple_change(tmp_path: Path) -> None:
    (tmp_path / "reader.py").write_text(READER)
    (tmp_path / "pair.py").write_text(PAIR.format("left", "right"))
    assert printed(READ, tmp_path) == "1.0 0"
    assert printed(READ, tmp_path) == "1.0 1"
    (tmp_path / "pair.py").write_text(PAIR.format("right", "left"))
    assert printed(READ, tmp_path) == "1.0 0"
    assert printed(READ, tmp_path) == "1.0 1"


CONSTANTS = """
from enum import IntEnum
import numpy as np

class Gear(IntEnum):
    LOW = {}

STEPS = ({}, 2)
TABLE = np.array([{}.0])
FAR = {}
"""
USER = """
from holdfast.core.compiling import compiled
from house import constants
from house.constants import STEPS, TABLE, Gear

@compiled
def total(x):
    return x + Gear.LOW.value + STEPS[0] + TABLE[0] + constants.FAR
"""


@pytest.mark.parametrize("changed", range(4), ids=["an enumeration", "a tuple", "an array", "one of a module"])
def test_the_cache_misses_when_a_constant_changes_whatever_its_kind(changed: int, tmp_path: Path) -> None:
    call = "from house.user import total; print(int(total(1)))"
    house = tmp_path / "house"
    house.mkdir()
    (house / "__init__.py").touch()
    (house / "user.py").write_text(USER)
    numbers = [10, 100, 1000, 10_000]
    for amount in (0, 5):
        numbers[changed] += amount
        (house / "constants.py").write_text(CONSTANTS.format(*numbers))
        assert printed(call, tmp_path) == str(1 + sum(numbers))


ALONE = "from holdfast.core.compiling import compiled\n\n@compiled\ndef double(x):\n    return 2 * x\n"
CALL_ALONE = "import alone; print(alone.double(21), len(alone.double.signatures))"


def test_where_no_cache_can_be_written_it_compiles_all_the_same(tmp_path: Path) -> None:
    (tmp_path / "alone.py").write_text(ALONE)
    assert printed(CALL_ALONE, tmp_path, NUMBA_CACHE_LOCATOR_CLASSES="ZipCacheLocator") == "42 1"


def test_without_its_source_it_compiles_all_the_same(tmp_path: Path) -> None:
    source = tmp_path / "alone.py"
    source.write_text(ALONE)
    py_compile.compile(str(source), cfile=str(tmp_path / "alone.pyc"))
    source.unlink()
    assert printed(CALL_ALONE, tmp_path) == "42 1"


def test_the_original_keeps_its_name() -> None:
    assert clock.left_after_step.__qualname__ == "left_after_step"
    compiled(clock.left_after_step)
    assert clock.left_after_step.__qualname__ == "left_after_step"


# The code of holdfast --------------------------------------------------------------------------------------


def compiled_functions() -> dict[str, FunctionType]:
    """What was compiled, by module and name."""
    found: dict[str, FunctionType] = {}
    for path in sorted(SOURCE.glob("*/**/*.py")):
        if "holdfast.core.compiling import" in path.read_text("utf-8"):
            name = ".".join(("holdfast", *path.relative_to(SOURCE).with_suffix("").parts))
            module = importlib.import_module(name)
            for key, value in vars(module).items():
                if hasattr(value, "py_func"):
                    found[f"{name}.{key}"] = value.py_func
    return found


@pytest.mark.skipif(os.environ.get("NUMBA_DISABLE_JIT") == "1", reason="nothing is compiled")
def test_what_a_compiled_function_builds_in_was_there_when_its_fingerprint_was_taken() -> None:
    functions = compiled_functions()
    assert {name.split(".")[1] for name in functions} == {"advice", "deep", "tabular"}
    late = [
        name for name, function in functions.items() if not function.__qualname__.endswith(fingerprint(function))
    ]
    assert late == [], "constants and compiled functions of other files must stand above what uses them"
