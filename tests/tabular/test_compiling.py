from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from holdfast.core import clock
from holdfast.core.history import k_step_return
from holdfast.tabular import compiled as helpers
from holdfast.tabular import temporl
from holdfast.tabular.compiling import compiled, fingerprint, in_python
from tests.architecture import ROOT
from tests.tabular.run_everything import numbers


def run(code: str, folder: Path, **environment: str) -> str:
    """What a new Python process prints."""
    variables = {**os.environ, "PYTHONPATH": str(folder), "PYTHONDONTWRITEBYTECODE": "1", **environment}
    command = [sys.executable, "-W", "error", "-c", code]
    done = subprocess.run(command, capture_output=True, text=True, env=variables, cwd=folder, check=False)
    assert done.returncode == 0, done.stderr
    return done.stdout.strip()


def test_compiled_and_uncompiled_give_the_same_bits(tmp_path: Path) -> None:
    file = tmp_path / "uncompiled.npz"
    main = "runpy.run_module('tests.tabular.run_everything', run_name='__main__')"
    code = f"import runpy, sys; sys.argv = ['', {str(file)!r}]; {main}"
    run(code, ROOT, NUMBA_DISABLE_JIT="1")
    ours = numbers()
    with np.load(file) as theirs:
        assert set(theirs) == set(ours)
        for name, array in ours.items():
            assert array.tobytes() == theirs[name].tobytes(), name


FAR = "def far(x):\n    return x + {}\n"
NEAR = "FACTOR = {}\n"
HELPER = """
from holdfast.tabular.compiling import compiled
import far_away

far = compiled(far_away.far)
"""
CALLER = """
from holdfast.tabular.compiling import compiled
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
    assert run(CALL, tmp_path) == "20 0"
    assert run(CALL, tmp_path) == "20 1"
    # Neither of these is the file of the function that is called, which is all that numba looks at.
    (tmp_path / "far_away.py").write_text(FAR.format(2))
    assert run(CALL, tmp_path) == "30 0"
    (tmp_path / "near.py").write_text(NEAR.format(100))
    assert run(CALL, tmp_path) == "300 0"
    assert run(CALL, tmp_path) == "300 1"


PAIR = "from typing import NamedTuple\n\nclass Pair(NamedTuple):\n    {}: float\n    {}: float\n"
READER = """
from holdfast.tabular.compiling import compiled
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
    assert run(READ, tmp_path) == "1.0 0"
    assert run(READ, tmp_path) == "1.0 1"
    (tmp_path / "pair.py").write_text(PAIR.format("right", "left"))
    assert run(READ, tmp_path) == "1.0 0"
    assert run(READ, tmp_path) == "1.0 1"


def test_where_no_cache_can_be_written_it_compiles_all_the_same(tmp_path: Path) -> None:
    (tmp_path / "alone.py").write_text(
        "from holdfast.tabular.compiling import compiled\n\n@compiled\ndef double(x):\n    return 2 * x\n"
    )
    code = "import alone; print(alone.double(21), len(alone.double.signatures))"
    assert run(code, tmp_path, NUMBA_CACHE_LOCATOR_CLASSES="ZipCacheLocator") == "42 1"


def test_a_learner_is_loaded_from_the_cache_by_a_second_process() -> None:
    code = (
        "from holdfast.tabular import QLearning; from holdfast.envs import make_env; "
        "from holdfast.tabular.q_learning import run_q_learning; "
        "QLearning().fit(make_env('cliff'), 1); print(sum(run_q_learning.stats.cache_hits.values()))"
    )
    run(code, ROOT)
    assert run(code, ROOT) == "1"


def test_the_original_keeps_its_name() -> None:
    assert clock.left_after_step.__qualname__ == "left_after_step"
    compiled(clock.left_after_step)
    assert clock.left_after_step.__qualname__ == "left_after_step"


def test_the_fingerprint_is_part_of_the_name() -> None:
    twin = in_python(helpers.left_after_step)
    assert twin.__qualname__ == f"left_after_step_{fingerprint(clock.left_after_step)}"
    assert twin(3, False) == 2


def test_core_and_compiled_leaf_functions_are_the_same() -> None:
    rewards = np.array([1.0, -2.0, 3.0])
    assert temporl.k_step_return(rewards, 1, 2, 0.9) == k_step_return(rewards, 1, 2, 0.9)
    for ended in (False, True):
        assert helpers.left_after_step(4, ended) == clock.left_after_step(4, ended)
    for margin in (0.0, 0.5, np.inf):
        assert helpers.is_interrupted(1.0, 0.5, margin) == clock.is_interrupted(1.0, 0.5, margin)
    clocked = clock.OptionClock(1)
    clocked.begin([True], [0], [3])
    left = 3
    for ended in (False, True):
        clocked.tick([ended])
        left = helpers.left_after_step(left, ended)
        assert clocked.left[0] == left


@pytest.mark.parametrize("n", [1, 2, 1000])
def test_draws_are_the_same_bits_compiled_and_not(n: int) -> None:
    one, other = np.random.Generator(np.random.PCG64(n)), np.random.Generator(np.random.PCG64(n))
    values = np.zeros((3, 4))
    for _ in range(n):
        assert helpers.draw_option(values, 0.5, one) == in_python(helpers.draw_option)(values, 0.5, other)
    assert one.bit_generator.state == other.bit_generator.state
