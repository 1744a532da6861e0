"""The picture of return against decisions: points, intervals, names and the front."""

from __future__ import annotations

import numpy as np

from holdfast.draw.trade_off import TradeOffMarks, draw_trade_off


def test_what_is_drawn() -> None:
    ends = np.array([[2.0, 4.0, 4.0], [4.0, np.nan, np.nan]])
    marks = TradeOffMarks("one kind", "#123456", "o", [0.0, 0.1, 1.0], [3, 4, 4], [1, 2, 2], ends, ends - 2.0)
    (axes,) = draw_trade_off([marks], ([3, 4], [1, 2]), "a_$title").axes
    front, points, *_ = axes.lines
    np.testing.assert_array_equal(front.get_xydata(), [[3, 1], [4, 2]])
    np.testing.assert_array_equal(points.get_xydata(), [[3, 1], [4, 2], [4, 2]])
    # Points that coincide share a text.
    assert [text.get_text() for text in axes.texts] == ["c=0", "c=0.1 to 1"]
    across, up = axes.collections
    # The interval of the first, and none of the others.
    np.testing.assert_array_equal(across.get_segments()[0], [[2, 1], [4, 1]])
    np.testing.assert_array_equal(up.get_segments()[0], [[3, 0], [3, 2]])
    np.testing.assert_array_equal(across.get_segments()[1][1], [4, 2])
    assert axes.get_title() == "a_ title"
    assert axes.get_xlabel() == "decisions per episode"
