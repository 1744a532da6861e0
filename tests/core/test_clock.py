import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from holdfast.core.clock import OptionClock, is_interrupted, left_after_step

FIELDS = ("action", "planned", "elapsed", "left", "exploratory")


def fields_of(clock):
    return {name: getattr(clock, name).tolist() for name in FIELDS}


class SlowClock:
    """The same machine, one environment after the other, counting upwards instead of downwards."""

    def __init__(self, n_envs):
        self.envs = [
            {"action": 0, "planned": 0, "elapsed": 0, "exploratory": False, "running": False}
            for _ in range(n_envs)
        ]

    def begin(self, mask, actions, durations, exploratory):
        for env, chosen, action, k, drawn in zip(self.envs, mask, actions, durations, exploratory, strict=True):
            if chosen:
                env.update(action=action, planned=k, elapsed=0, exploratory=drawn, running=True)

    def tick(self, ended):
        for env, over in zip(self.envs, ended, strict=True):
            env["elapsed"] += 1
            if over or env["elapsed"] == env["planned"]:
                env["running"] = False
        return self.idle()

    def cut(self, mask):
        for env, chosen in zip(self.envs, mask, strict=True):
            if chosen:
                env["running"] = False

    def idle(self):
        return [not env["running"] for env in self.envs]

    def fields(self):
        left = [env["planned"] - env["elapsed"] if env["running"] else 0 for env in self.envs]
        rows = {name: [env[name] for env in self.envs] for name in FIELDS if name != "left"}
        return rows | {"left": left}


@st.composite
def scripts(draw):
    """A number of environments, and commands for them. Half of all ticks are preceded by a full ``begin``."""
    n_envs = draw(st.integers(1, 4))

    def each(values):
        return st.lists(values, min_size=n_envs, max_size=n_envs)

    flags = each(st.booleans())
    begin = st.tuples(flags, each(st.integers(0, 5)), each(st.integers(1, 5)), flags)
    # An episode's end is rare enough that most options run for a while.
    ended = each(st.integers(0, 5).map(lambda roll: roll == 0))
    commands = st.one_of(
        st.tuples(st.just("begin"), begin),
        st.tuples(st.just("begin idle"), begin),
        st.tuples(st.just("tick"), ended),
        st.tuples(st.just("begin idle and tick"), st.tuples(begin, ended)),
        st.tuples(st.just("begin idle and tick"), st.tuples(begin, ended)),
        st.tuples(st.just("cut"), flags),
        st.tuples(st.just("restore"), st.none()),
    )
    return n_envs, draw(st.lists(commands, max_size=25))


def play(n_envs, commands):
    """Run a script on both clocks, comparing them after every command."""
    clock, slow = OptionClock(n_envs), SlowClock(n_envs)
    for name, details in commands:
        before = fields_of(clock)
        if name == "begin":
            if any(chosen and not idle for chosen, idle in zip(details[0], slow.idle(), strict=True)):
                with pytest.raises(ValueError, match=r"^mask must select idle environments only"):
                    clock.begin(*details)
                assert fields_of(clock) == before
            else:
                clock.begin(*details)
                slow.begin(*details)
        if name.startswith("begin idle"):
            _, actions, durations, exploratory = details[0] if name.endswith("tick") else details
            slow.begin(slow.idle(), actions, durations, exploratory)
            clock.begin(clock.idle, actions, durations, exploratory)
        if name.endswith("tick"):
            ended = details[1] if name.startswith("begin") else details
            if any(slow.idle()):
                with pytest.raises(ValueError, match=r"^every environment must hold an option before tick$"):
                    clock.tick(ended)
                assert fields_of(clock) == before
            else:
                assert clock.tick(ended).tolist() == slow.tick(ended)
        if name == "cut":
            clock.cut(details)
            slow.cut(details)
        if name == "restore":
            fresh = OptionClock(n_envs)
            fresh.restore(clock.state())
            clock = fresh
        assert fields_of(clock) == slow.fields()
        assert clock.idle.tolist() == slow.idle()


@given(scripts())
def test_the_clock_equals_its_slow_twin(script):
    play(*script)


def test_a_clock_begins_idle_everywhere():
    clock = OptionClock(3)
    assert clock.n_envs == 3
    assert clock.idle.tolist() == [True, True, True]
    assert fields_of(clock) == SlowClock(3).fields()


def test_two_environments_by_hand():
    clock = OptionClock(2)
    clock.begin([True, True], [4, 7], [3, 1], [False, True])
    assert fields_of(clock) == {
        "action": [4, 7],
        "planned": [3, 1],
        "elapsed": [0, 0],
        "left": [3, 1],
        "exploratory": [False, True],
    }
    # The one-step option is over; the other has two to go.
    assert clock.tick([False, False]).tolist() == [False, True]
    assert clock.left.tolist() == [2, 0]
    assert clock.elapsed.tolist() == [1, 1]
    clock.begin([False, True], [9, 8], [9, 5], True)
    assert clock.action.tolist() == [4, 8]
    assert clock.planned.tolist() == [3, 5]
    assert clock.elapsed.tolist() == [1, 0]
    assert clock.exploratory.tolist() == [False, True]
    # The second episode ends at once: κ = 1 of the 5 that were planned.
    assert clock.tick([False, True]).tolist() == [False, True]
    assert clock.left.tolist() == [1, 0]
    assert clock.elapsed.tolist() == [2, 1]
    assert clock.planned.tolist() == [3, 5]
    assert clock.action.tolist() == [4, 8]


def test_an_episode_that_ends_with_the_last_step_ends_the_option_once():
    clock = OptionClock(1)
    clock.begin([True], [0], [2])
    assert clock.tick([False]).tolist() == [False]
    assert clock.tick([True]).tolist() == [True]
    assert clock.elapsed.tolist() == [2]
    assert clock.left.tolist() == [0]


def test_cut_keeps_what_was_executed():
    clock = OptionClock(2)
    clock.begin([True, True], [1, 2], [5, 5])
    clock.tick([False, False])
    clock.cut([True, False])
    assert clock.idle.tolist() == [True, False]
    assert clock.elapsed.tolist() == [1, 1]
    assert clock.left.tolist() == [0, 4]
    assert clock.action.tolist() == [1, 2]
    clock.cut([True, False])
    assert clock.idle.tolist() == [True, False]


def test_begin_reads_under_the_mask_only_and_spreads_single_values():
    clock = OptionClock(3)
    clock.begin([True, False, True], [1, -9, 2], [2, 0, 3], [False, True, False])
    assert clock.planned.tolist() == [2, 0, 3]
    assert clock.action.tolist() == [1, 0, 2]
    assert clock.exploratory.tolist() == [False, False, False]
    clock.begin([False, True, False], 5, 4, True)
    assert clock.action.tolist() == [1, 5, 2]
    assert clock.left.tolist() == [2, 4, 3]
    assert clock.exploratory.tolist() == [False, True, False]


def test_begin_is_greedy_unless_told_otherwise():
    clock = OptionClock(1)
    clock.begin([True], [0], [1], True)
    clock.tick([False])
    clock.begin([True], [0], [1])
    assert clock.exploratory.tolist() == [False]


def test_begin_keeps_its_own_copy_of_what_it_is_given():
    clock = OptionClock(2)
    actions, durations, drawn = np.array([1, 2]), np.array([3, 4]), np.array([True, False])
    clock.begin([True, True], actions, durations, drawn)
    before = fields_of(clock)
    actions[:] = durations[:] = 9
    drawn[:] = False
    assert fields_of(clock) == before


# --- leaf functions ---


def test_left_after_step_by_hand():
    assert left_after_step(3, False) == 2
    assert left_after_step(1, False) == 0
    assert left_after_step(3, True) == 0
    assert left_after_step(1, True) == 0


@given(st.lists(st.tuples(st.integers(1, 9), st.booleans()), min_size=1, max_size=5))
def test_left_after_step_agrees_with_tick(rows):
    durations, ended = [row[0] for row in rows], [row[1] for row in rows]
    clock = OptionClock(len(rows))
    clock.begin([True] * len(rows), 0, durations)
    over = clock.tick(ended)
    expected = [left_after_step(left, end) for left, end in rows]
    assert clock.left.tolist() == expected
    assert over.tolist() == [left == 0 for left in expected]


@given(st.integers(1, 9), st.integers(1, 12))
def test_kappa_is_the_shorter_of_the_plan_and_the_episode(planned, episode):
    clock, left, steps = OptionClock(1), planned, 0
    clock.begin([True], [0], [planned])
    while left > 0:
        steps += 1
        left = left_after_step(left, steps == episode)
        assert clock.tick([steps == episode]).tolist() == [left == 0]
        assert clock.left.tolist() == [left]
    assert steps == min(planned, episode)
    assert clock.elapsed.tolist() == [steps]


def test_is_interrupted_by_hand():
    # The best is 2 better than holding on: more than a margin of 1.5, not more than 2 itself.
    assert is_interrupted(5.0, 3.0, 1.5)
    assert not is_interrupted(5.0, 3.0, 2.0)
    assert not is_interrupted(5.0, 3.0, 2.5)
    assert not is_interrupted(5.0, 5.0, 0.0)
    assert is_interrupted(5.0, 4.75, 0.0)
    assert not is_interrupted(5.0, 3.0, np.inf)


@given(
    st.lists(st.tuples(st.integers(-20, 20), st.integers(-20, 20)), min_size=1, max_size=5),
    st.integers(0, 10),
)
def test_is_interrupted_on_arrays_drives_cut_as_it_does_one_by_one(pairs, margin):
    best, held = np.array(pairs, dtype=float).T
    one_by_one = [best_value - held_value > margin for best_value, held_value in pairs]
    dropped = is_interrupted(best, held, margin)
    assert dropped.tolist() == one_by_one
    assert [bool(is_interrupted(*pair, margin)) for pair in pairs] == one_by_one
    clock = OptionClock(len(pairs))
    clock.begin([True] * len(pairs), 0, 4)
    clock.cut(dropped)
    assert clock.idle.tolist() == one_by_one


# --- what others may see and do ---


@pytest.mark.parametrize("name", FIELDS)
def test_fields_are_read_only_live_views(name):
    clock = OptionClock(2)
    view = getattr(clock, name)
    assert not view.flags.writeable
    with pytest.raises(ValueError, match="read-only"):
        view[0] = 1
    with pytest.raises(AttributeError, match=name):
        setattr(clock, name, np.zeros(2))
    clock.begin([True, True], [3, 3], [2, 2], True)
    clock.tick([False, False])
    np.testing.assert_array_equal(view, getattr(clock, name))
    assert view.tolist() != [0, 0]


def test_the_idle_mask_and_the_result_of_tick_are_the_callers_own():
    clock = OptionClock(2)
    clock.idle[:] = False
    assert clock.idle.tolist() == [True, True]
    clock.begin([True, True], 0, 2)
    over = clock.tick([False, True])
    over[:] = True
    assert clock.idle.tolist() == [False, True]
    assert clock.left.tolist() == [1, 0]


# --- state and restore ---


def test_a_restored_clock_goes_on_in_the_middle_of_its_options():
    clock = OptionClock(2)
    clock.begin([True, True], [1, 2], [4, 2], [True, False])
    clock.tick([False, False])
    state = clock.state()
    assert set(state) == set(FIELDS)
    twin = OptionClock(2)
    twin.restore(state)
    assert fields_of(twin) == fields_of(clock)
    for ended in ([False, False], [True, False]):
        for each in (clock, twin):
            each.begin(each.idle, 5, 3, True)
        assert clock.tick(ended).tolist() == twin.tick(ended).tolist()
        assert fields_of(twin) == fields_of(clock)


def test_the_state_is_a_copy_both_ways():
    clock = OptionClock(1)
    clock.begin([True], [1], [4])
    state = clock.state()
    clock.tick([False])
    assert state["left"].tolist() == [4]
    state["left"][:] = 2
    assert clock.left.tolist() == [3]
    twin = OptionClock(1)
    twin.restore(state)
    twin.tick([False])
    assert state["left"].tolist() == [2]


def test_a_state_survives_as_plain_lists():
    clock = OptionClock(2)
    clock.begin([True, True], [1, 2], [4, 2], [True, False])
    twin = OptionClock(2)
    twin.restore({name: array.tolist() for name, array in clock.state().items()})
    assert fields_of(twin) == fields_of(clock)
    assert {name: array.dtype for name, array in twin.state().items()} == {
        name: array.dtype for name, array in clock.state().items()
    }


def test_restore_refuses_another_number_of_environments_and_changes_nothing():
    clock = OptionClock(2)
    clock.begin([True, True], [1, 2], [4, 2])
    before = fields_of(clock)
    with pytest.raises(ValueError, match=r"^clock state 'action' must have shape \(2,\), not \(3,\)$"):
        clock.restore(OptionClock(3).state())
    with pytest.raises(ValueError, match=r"^clock state 'exploratory' must have shape \(2,\), not \(\)$"):
        clock.restore(OptionClock(2).state() | {"exploratory": False})
    assert fields_of(clock) == before


# --- errors ---


def test_a_clock_needs_environments():
    with pytest.raises(ValueError, match=r"^n_envs must be a whole number of at least 1, not 0$"):
        OptionClock(0)
    for bad in (1.0, "1", True):
        with pytest.raises(TypeError, match=f"^n_envs must be a whole number of at least 1, not {bad!r}$"):
            OptionClock(bad)


def test_an_option_cannot_begin_where_one_is_held():
    clock = OptionClock(2)
    clock.begin([True, False], 1, 3)
    before = fields_of(clock)
    with pytest.raises(
        ValueError, match=r"^mask must select idle environments only: an option is still held there$"
    ):
        clock.begin([True, True], 2, 2)
    assert fields_of(clock) == before


@pytest.mark.parametrize("k", [0, -1])
def test_an_option_lasts_at_least_one_step(k):
    clock = OptionClock(2)
    with pytest.raises(ValueError, match=r"^durations must be at least 1 where an option begins$"):
        clock.begin([True, True], [1, 1], [2, k])
    assert fields_of(clock) == SlowClock(2).fields()


def test_tick_needs_an_option_everywhere():
    clock = OptionClock(2)
    clock.begin([True, False], 1, 3)
    before = fields_of(clock)
    with pytest.raises(ValueError, match=r"^every environment must hold an option before tick$"):
        clock.tick([False, False])
    assert fields_of(clock) == before


@pytest.mark.parametrize("mask", [True, [True], [True] * 3, [[True, True]]])
def test_masks_have_one_entry_for_each_environment(mask):
    clock = OptionClock(2)
    shape = str(np.shape(mask)).replace("(", r"\(").replace(")", r"\)")
    sentence = rf"^a mask must have shape \(2,\), not {shape}$"
    with pytest.raises(ValueError, match=sentence):
        clock.begin(mask, 0, 1)
    with pytest.raises(ValueError, match=sentence):
        clock.cut(mask)
    clock.begin([True, True], 0, 1)
    with pytest.raises(ValueError, match=sentence):
        clock.tick(mask)


@pytest.mark.parametrize(
    ("changes", "sentence"),
    [
        ({"left": [-1, 2]}, "elapsed and left of at least 0"),
        ({"left": [0, 9]}, "their sum at most planned"),
        ({"left": [1.0, 2.7]}, "'left' must be whole numbers"),
        ({"exploratory": [0, 1]}, "'exploratory' must be bools"),
    ],
)
def test_restore_refuses_impossible_states(changes: dict[str, list[float]], sentence: str) -> None:
    clock = OptionClock(2)
    clock.begin([True, True], [1, 2], [4, 2])
    state = clock.state()
    with pytest.raises(ValueError, match=sentence):
        clock.restore({**state, **changes})
    assert fields_of(clock) == {name: array.tolist() for name, array in state.items()}


def test_begin_names_the_argument_of_a_wrong_shape() -> None:
    with pytest.raises(ValueError, match=r"^actions must have shape \(3,\), not \(2,\)$"):
        OptionClock(3).begin([True] * 3, [1, 2], [1, 1, 1])
