"""TempoRL's network: values of the actions, and of holding each of them for every number of steps."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, final

import numpy as np
import torch as th
from numpy.typing import NDArray
from torch import nn

from holdfast.core.choice import best_skip, longest_skip
from holdfast.deep.networks.greedy_rules import Choice, GreedyRule, ValueTable
from holdfast.deep.networks.stacked_heads import StackedHeads
from holdfast.deep.networks.trunk import TrunkNetwork
from holdfast.envs.choices import Choices

__all__ = ["EMBEDDING_UNITS", "SkipQNetwork", "SkipRule"]

EMBEDDING_UNITS = 10
"""Numbers that stand for an action in the skip head."""


@final
class SkipQNetwork(TrunkNetwork):
    """Q(s,a) and J(s,j|a): a trunk that both share, an action head, and a skip head that is told the action.

    The action head is one of PerDQN's heads. The skip head has layers of the same widths; it sees the trunk's
    features beside an embedding of the action, and has one output per skip length.

    Args:
        *trunk: As ``TrunkNetwork``'s.
        k_max: K, the longest skip.
        head_arch: Hidden units of both heads' layers.
        **keywords: As ``TrunkNetwork``'s.
    """

    def __init__(self, *trunk: Any, k_max: int = 1, head_arch: Sequence[int] = (), **keywords: Any) -> None:
        super().__init__(*trunk, **keywords)
        self.k_max = k_max
        n_actions, activation_fn = Choices(self.action_space).n, self.activation_fn
        self.action_head = StackedHeads(1, self.width, head_arch, n_actions, activation_fn)
        self.embedding = nn.Embedding(n_actions, EMBEDDING_UNITS)
        self.skip_head = StackedHeads(1, self.width + EMBEDDING_UNITS, head_arch, k_max, activation_fn)
        self._heads_are_made(is_known_class=True)

    def _get_constructor_parameters(self) -> dict[str, Any]:
        return {
            **super()._get_constructor_parameters(),
            "k_max": self.k_max,
            "head_arch": self.action_head.head_arch,
        }

    def head_layers(self) -> tuple[nn.Module, ...]:
        """Those of the action head, the embedding, those of the skip head."""
        action, skip = (head.layers._modules.values() for head in (self.action_head, self.skip_head))
        return (*action, self.embedding, *skip)

    @property
    def last_bias(self) -> th.Tensor:
        """That of the action values, which all targets are made of."""
        *_, last = self.action_head.layers._modules.values()
        return last.bias  # type: ignore[return-value]

    def raise_values(self, by: float) -> None:
        """Of every action and every skip."""
        self.action_head.raise_values(by)
        self.skip_head.raise_values(by)

    def forward(self, obs: Any, skips: bool = True, taught: th.Tensor | None = None) -> Any:
        """Q(s,a), then J(s,1|a)..J(s,K|a), of every action: (B, A, 1 + K).

        Args:
            obs: Tensors.
            skips: Without them only Q(s,a): (B, A, 1).
            taught: (K, B) the actions of tuples that are laid out view by view in ``obs``. Then two tables are
                returned: Q(s,·) of the tuples of one step, (B, A), and J(s,·|a) of all, (K·B, K).
        """
        by_hand = self.is_plain
        features = self.trunk_features(obs, by_hand)
        action_head, skip_head = (head.by_hand if by_hand else head for head in (self.action_head, self.skip_head))
        if taught is not None:
            told = th.cat((features, self.embedding(taught.flatten())), dim=1)
            return action_head(features[: taught.shape[1]])[0], skip_head(told)[0]
        action_values = action_head(features)[0].unsqueeze(2)
        if not skips:
            return action_values
        n_actions = Choices(self.action_space).n
        actions = th.arange(n_actions, device=features.device).repeat(len(features))
        told = th.cat((features.repeat_interleave(n_actions, dim=0), self.embedding(actions)), dim=1)
        return th.cat((action_values, skip_head(told)[0].view(-1, n_actions, self.k_max)), dim=2)

    def quick_values(self, obs: Any) -> th.Tensor:
        """``forward`` without gradients, in 32 bits."""
        with th.no_grad():
            return self(obs).float()

    def bootstrap_values(self, obs: Any) -> th.Tensor:
        """Those of the actions, without gradients: (B, A, 1)."""
        with th.no_grad():
            return self(obs, skips=False).float()

    def _predict(self, observation: Any, deterministic: bool = True) -> th.Tensor:
        """The best action, for SB3's sake."""
        return self(observation, skips=False).squeeze(2).argmax(dim=1)


@final
class SkipRule(GreedyRule):
    """First the action, a = argmax Q(s,·), then how long to hold it, j = argmax J(s,·|a), the longest of equals.

    An action that is held is to be dropped where max Q(s,·) is larger than what holding on is worth, J(s,m|a).
    """

    def options(self, table: ValueTable) -> ValueTable:
        """J(s,·|·)."""
        return table[:, :, 1:]

    def best(self, table: ValueTable) -> Any:
        """That of the best action."""
        return table[:, :, 0].max(axis=1)

    def choose(self, table: ValueTable, tolerance: float | None) -> Choice:
        """The best action, and the longest of its skips within the tolerance."""
        return best_skip(table[:, :, 0], self.options(table), tolerance or 0.0)

    def hold(self, table: ValueTable, actions: NDArray[np.int64], tolerance: float | None) -> NDArray[np.int64]:
        """The longest of each action's skips within the tolerance."""
        return longest_skip(self.options(table), actions, tolerance or 0.0)
