"""MinAtar's convolution: 16 channels of 3×3 cells, and nothing else."""

from __future__ import annotations

import numpy as np
import pytest
import torch as th
from gymnasium import spaces

from holdfast.deep.networks.small_convolutions import SmallConvolutions


def test_a_feature_is_a_sum_over_nine_cells() -> None:
    features = SmallConvolutions(spaces.Box(0, 1, (2, 10, 10), np.uint8))
    # 16 channels of 8×8 places.
    assert features.features_dim == 1024
    convolution = features.layers[0]
    with th.no_grad():
        convolution.weight.zero_()
        convolution.bias.fill_(-1.0)
        convolution.weight[3, 1] = 1.0
    board = th.zeros(1, 2, 10, 10)
    board[0, 1, 4:6, 7] = 1.0
    found = features(board).detach().view(16, 8, 8)
    # Two cells less one at the places that see both, cut off at 0 elsewhere.
    expected = th.zeros(16, 8, 8)
    expected[3, 3:5, 5:8] = 1.0
    assert th.equal(found, expected)


@pytest.mark.parametrize(
    "space",
    [
        spaces.Box(0, 1, (4,), np.uint8),
        spaces.Box(0, 1, (4, 2, 10), np.uint8),
        spaces.Discrete(3),
    ],
)
def test_other_observations_are_refused(space: spaces.Space) -> None:
    with pytest.raises(ValueError, match="SmallConvolutions needs observations of channels of at least 3x3 cells"):
        SmallConvolutions(space)  # type: ignore[arg-type]
