"""Networks small enough to be worked out, and batches to teach them."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
import torch as th
from gymnasium import spaces
from stable_baselines3.common.torch_layers import FlattenExtractor

from holdfast.deep.networks.option_network import OptionQNetwork

BOX = spaces.Box(-1.0, 1.0, (5,), np.float32)


def network(
    space: spaces.Space[Any] = BOX,
    n_actions: int = 3,
    kind: type[OptionQNetwork] = OptionQNetwork,
    **arguments: Any,
) -> OptionQNetwork:
    """A network on flattened observations."""
    extractor = FlattenExtractor(space)
    return kind(
        space, spaces.Discrete(n_actions), extractor, extractor.features_dim, **{"net_arch": [8], **arguments}
    )


class Lesson(NamedTuple):
    """What ``regress`` is given besides the network."""

    observations: th.Tensor
    actions: np.ndarray
    targets: np.ndarray
    weights: np.ndarray | None


def lesson(
    net: OptionQNetwork, batch: int = 12, weighted: bool = True, seed: int = 0, is_shared: bool = False
) -> Lesson:
    """Random rows for a network, its own or shared ones: some errors are smaller than 1 and some are larger."""
    random = np.random.default_rng(seed)
    shape = (net.heads.n_heads, batch)
    n_rows = batch if is_shared else net.heads.n_heads * batch
    observations = random.normal(size=(n_rows, *net.observation_space.shape))
    return Lesson(
        th.as_tensor(observations.astype(net.observation_space.dtype)),
        random.integers(net.action_space.n, size=shape),
        random.normal(scale=2.0, size=shape).astype(np.float32),
        random.uniform(0.1, 1.0, size=shape).astype(np.float32) if weighted else None,
    )


def gradients(net: OptionQNetwork) -> dict[str, th.Tensor]:
    """Copies of the gradients by the parameters' names."""
    found = {}
    for name, parameter in net.named_parameters():
        assert parameter.grad is not None, name
        found[name] = parameter.grad.clone()
    return found
