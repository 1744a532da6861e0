import numpy as np
import pytest

from holdfast.draw.value_scale import short_number, value_colormap, value_norm


@pytest.mark.parametrize(
    ("value", "decimals", "text"),
    [
        (0.5, 2, ".50"),
        (-0.5, 1, "−.5"),
        (-0.001, 2, "0"),
        (0.999, 2, "1.00"),
        (-12.34, 1, "−12.3"),
        (10.05, 1, "10.1"),
        (0.4, 0, "0"),
        (-100.0, 0, "−100"),
    ],
)
def test_numbers_are_written_short(value: float, decimals: int, text: str) -> None:
    assert short_number(value, decimals) == text


def test_limits_are_those_of_the_finite_values() -> None:
    norm = value_norm(np.array([np.nan, 3.0, -np.inf, -1.0]))
    assert (norm.vmin, norm.vmax) == (-1.0, 3.0)
    norm = value_norm(np.full(3, 1e9))
    assert norm.vmin is not None
    assert norm.vmin < 1e9 < float(norm.vmax or 0)


def test_higher_is_darker_and_missing_is_neither() -> None:
    colormap = value_colormap()
    light = [sum(colormap(share)[:3]) for share in np.linspace(0, 1, 11)]
    assert light == sorted(light, reverse=True)
    red, green, blue, _ = colormap(np.ma.masked)
    assert abs(red - green) < 0.01
    assert abs(green - blue) < 0.02
