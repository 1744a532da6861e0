"""What the learners compile is what they would do uncompiled, and is kept for later processes."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from holdfast.core import clock
from holdfast.core.compiling import fingerprint, in_python
from holdfast.core.history import k_step_return
from holdfast.tabular import compiled as helpers
from tests.architecture import ROOT
from tests.new_process import printed
from tests.tabular.run_everything import numbers


def test_compiled_and_uncompiled_give_the_same_bits(tmp_path: Path) -> None:
    file = tmp_path / "uncompiled.npz"
    main = "runpy.run_module('tests.tabular.run_everything', run_name='__main__')"
    code = f"import runpy, sys; sys.argv = ['', {str(file)!r}]; {main}"
    printed(code, ROOT, NUMBA_DISABLE_JIT="1")
    ours = numbers()
    with np.load(file) as theirs:
        assert set(theirs) == set(ours)
        for name, array in ours.items():
            assert array.tobytes() == theirs[name].tobytes(), name


def test_a_learner_is_loaded_from_the_cache_by_a_second_process() -> None:
    code = (
        "from holdfast.tabular import QLearning; from holdfast.envs import make_env; "
        "from holdfast.tabular.option_loop import run_episodes; "
        "QLearning().fit(make_env('cliff'), 1); print(sum(run_episodes.stats.cache_hits.values()))"
    )
    printed(code, ROOT)
    assert printed(code, ROOT) == "1"


def test_the_fingerprint_is_part_of_the_name() -> None:
    twin = in_python(helpers.left_after_step)
    assert twin.__qualname__ == f"left_after_step_{fingerprint(clock.left_after_step)}"
    assert twin(3, False) == 2


def test_core_and_compiled_leaf_functions_are_the_same() -> None:
    rewards = np.array([1.0, -2.0, 3.0])
    assert helpers.k_step_return(rewards, 1, 2, 0.9) == k_step_return(rewards, 1, 2, 0.9)
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
        holds = 3 * np.arange(1, values.shape[1] + 1)
        drawn = helpers.draw_option(values, 0.5, holds, one)
        assert drawn == in_python(helpers.draw_option)(values, 0.5, holds, other)
    assert one.bit_generator.state == other.bit_generator.state
