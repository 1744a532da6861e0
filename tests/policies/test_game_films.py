"""Films of games: the screen as the game draws it, and below it how much of a hold is left."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from holdfast.core.choice import Decision
from holdfast.envs import make_scoring_env
from holdfast.policies.video import film

BLUE, PALE = (0, 114, 178), (196, 214, 228)


class Steady:
    """Holds the first action for three steps, again and again."""

    def decide(self, observation: Any) -> Decision:
        return Decision(0, 3, np.zeros((1, 3), np.float32))

    def interrupts(self, observation: Any, action: int, left: int) -> bool:
        return False


@pytest.mark.parametrize("name", ["minatar:Breakout", "atari:Freeway"])
def test_what_is_held_is_drawn_below_the_game(name: str) -> None:
    frames = film(Steady(), make_scoring_env(name, render_mode="rgb_array"), [0], longest=5)
    twin = make_scoring_env(name, render_mode="rgb_array")
    twin.reset(seed=0)
    for step, frame in enumerate(frames[:5]):
        screen = np.asarray(twin.render())
        scale = -(-240 // screen.shape[1])
        height, width = (side * scale for side in screen.shape[:2])
        np.testing.assert_array_equal(frame[:height:scale, :width:scale], screen)
        # Boxes of 14 pixels, from the sixth on, 20 below the screen; the first of them fades first.
        boxes = [tuple(frame[height + 24, 6 + 14 * number + 5].tolist()) for number in range(3)]
        done = step % 3
        assert boxes == [PALE] * done + [BLUE] * (3 - done)
        twin.step(0)
