import numpy as np
import pytest

from holdfast.draw import draw_state_values


def test_states_run_to_the_right_and_persistences_downwards() -> None:
    values = np.arange(12.0).reshape(4, 3)
    figure = draw_state_values(values, "A chain", label="worth", state_label="link")
    axes, bar = figure.axes
    assert (axes.get_title(), axes.get_xlabel(), axes.get_ylabel()) == ("A chain", "link", "persistence $k$")
    assert np.array_equal(axes.images[0].get_array(), values.T)
    assert tuple(axes.images[0].get_extent()) == (-0.5, 3.5, 3.5, 0.5)
    assert axes.get_yticks().tolist() == [1, 2, 3]
    assert (bar.get_ylabel(), bar.get_ylim()) == ("worth", (0.0, 11.0))
    written = {text.get_position(): text.get_text() for text in axes.texts}
    assert written[(0, 1)] == "0"  # state 0 under k = 1
    assert written[(3, 2)] == "10.0"  # state 3 under k = 2
    assert len(written) == 12


def test_many_states_have_no_numbers_and_few_ticks() -> None:
    figure = draw_state_values(np.random.default_rng(0).normal(size=(500, 64)))
    axes = figure.axes[0]
    assert len(axes.texts) == 0
    ticks = axes.get_yticks().tolist()
    assert (ticks[0], ticks[-1], len(ticks)) == (1, 64, 9)
    assert max(figure.get_size_inches()) < 14


def test_missing_values_are_left_out() -> None:
    figure = draw_state_values([[np.nan, 1.0], [2.0, np.inf]])
    axes, bar = figure.axes
    assert bar.get_ylim() == (1.0, 2.0)
    assert sorted(text.get_text() for text in axes.texts) == ["1.00", "2.00"]


@pytest.mark.parametrize("shape", [(3,), (0, 2), (2, 0), (1, 2, 3)])
def test_shapes_are_checked(shape: tuple[int, ...]) -> None:
    with pytest.raises(ValueError, match=r"^values must have shape \(S, K\), not "):
        draw_state_values(np.zeros(shape))
