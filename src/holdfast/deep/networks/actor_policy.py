"""A policy with an actor: what each persistence's head proposes, and how long to hold it by the first critic."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Sequence
from typing import Any, ClassVar, NamedTuple

import numpy as np
import torch as th
from gymnasium import spaces
from numpy.typing import NDArray
from stable_baselines3.common.preprocessing import get_action_dim
from stable_baselines3.common.torch_layers import BaseFeaturesExtractor, FlattenExtractor
from stable_baselines3.common.type_aliases import Schedule
from torch import nn

from holdfast.core.choice import Decision, best_option, few_decision_option
from holdfast.core.clock import OptionClock, is_interrupted
from holdfast.core.options import persistence_index, position_within
from holdfast.deep.actor_arguments import ACTOR_POLICY_ARGUMENTS
from holdfast.deep.arguments import Argument
from holdfast.deep.networks.actor_networks import GaussianActor, OptionActor, OptionCritic
from holdfast.deep.networks.holding_policy import ExploratoryDraws, HoldingPolicy, refuse_reset_tuple, selected

__all__ = ["ActorPolicy", "Proposals"]


class Proposals(NamedTuple):
    """What the heads propose in n states.

    Attributes:
        actions: (n, K, size) μ_k(s), between −1 and 1.
        values: (n, 1, K) Q_1(s, μ_k(s), k): a table with one row.
        gaussians: (n, K, 2, size) means and logarithms of the deviations of what is squashed to an action, where
            the actor draws; None where it does not.
    """

    actions: NDArray[np.float32]
    values: NDArray[np.float32]
    gaussians: NDArray[np.float32] | None = None

    def of(self, positions: NDArray[np.int64]) -> NDArray[np.float32]:
        """(n, size) what the heads in ``positions`` (n,) propose."""
        return self.actions[np.arange(len(positions)), positions]

    def under(self, mask: NDArray[np.bool_]) -> Proposals:
        """Those of some of the states."""
        gaussians = None if self.gaussians is None else self.gaussians[mask]
        return Proposals(self.actions[mask], self.values[mask], gaussians)


class ActorPolicy(HoldingPolicy):
    """Actor and critics over persistence options.

    Abstract: ``td3_policy.py`` and ``sac_policy.py`` add the parent in Stable-Baselines3, and the actor.

    Args:
        observation_space: Space of the observations.
        action_space: Box with finite bounds.
        lr_schedule: Learning rate.
        net_arch: Hidden units, or those of the actor ("pi") and the critics ("qf"); SB3's by default.
        activation_fn: Between the layers.
        features_extractor_class: SB3's.
        features_extractor_kwargs: Its arguments.
        normalize_images: Divide images by 255.
        optimizer_class: Adam by default, with torch's fused kernel if there are several persistences.
        optimizer_kwargs: Its arguments.
        n_critics: Number of critics.
        share_features_extractor: Whether the critics use the actor's features.
        **settings: The arguments of an agent that are its policy's, with the same defaults.
    """

    agent_arguments: ClassVar[tuple[Argument, ...]] = ACTOR_POLICY_ARGUMENTS

    net_arch: list[int] | dict[str, list[int]]
    critic_kwargs: dict[str, Any]
    actor: OptionActor | GaussianActor
    critic: OptionCritic
    critic_target: OptionCritic
    action_space: spaces.Box

    def __init__(
        self,
        observation_space: spaces.Space[Any],
        action_space: spaces.Box,
        lr_schedule: Schedule,
        net_arch: list[int] | dict[str, list[int]] | None = None,
        activation_fn: type[nn.Module] = nn.ReLU,
        features_extractor_class: type[BaseFeaturesExtractor] = FlattenExtractor,
        features_extractor_kwargs: dict[str, Any] | None = None,
        normalize_images: bool = True,
        optimizer_class: type[th.optim.Optimizer] = th.optim.Adam,
        optimizer_kwargs: dict[str, Any] | None = None,
        n_critics: int = 2,
        share_features_extractor: bool = False,
        **settings: Any,
    ) -> None:
        self._take_settings(settings)
        if optimizer_kwargs is None and optimizer_class is th.optim.Adam and len(self._durations) > 1:
            # One kernel for all parameters; with one persistence SB3's own rounding.
            optimizer_kwargs = {"fused": True}
        super().__init__(
            observation_space,
            action_space,
            # The parent's own, which a subclass adds.
            lr_schedule,
            net_arch=net_arch,
            activation_fn=activation_fn,
            features_extractor_class=features_extractor_class,
            features_extractor_kwargs=features_extractor_kwargs,
            normalize_images=normalize_images,
            optimizer_class=optimizer_class,
            optimizer_kwargs=optimizer_kwargs,
            n_critics=n_critics,
            share_features_extractor=share_features_extractor,
        )

    def make_critic(self, features_extractor: BaseFeaturesExtractor | None = None) -> OptionCritic:
        """One set of critics."""
        arguments = self._update_features_extractor(self.critic_kwargs, features_extractor)
        return OptionCritic(**arguments, n_heads=len(self._durations)).to(self.device)

    def _get_constructor_parameters(self) -> dict[str, Any]:
        return {**super()._get_constructor_parameters(), **self._settings()}

    @property
    def optimizers(self) -> dict[str, th.optim.Optimizer]:
        """The actor's and the critics'."""
        return {"actor_optimizer": self.actor.optimizer, "critic_optimizer": self.critic.optimizer}

    @staticmethod
    def layer_lists(net_arch: Any) -> Sequence[Any]:
        """The actor's and the critics'."""
        return tuple(net_arch.values()) if isinstance(net_arch, dict) else (net_arch,)

    # Deciding ----------------------------------------------------------------------------------------------

    def new_clock(self, n_envs: int) -> OptionClock:
        """One for vectors between −1 and 1."""
        dtype = np.float64 if self.action_space.dtype == np.float64 else np.float32
        return OptionClock(n_envs, get_action_dim(self.action_space), dtype)

    def as_taken(self, actions: NDArray[Any]) -> NDArray[Any]:
        """Between the bounds of the environment's actions."""
        return self.unscale_action(actions.reshape(-1, *self.action_space.shape))

    def as_held(self, actions: NDArray[Any]) -> NDArray[Any]:
        """(n, size) between −1 and 1, of actions between the environment's bounds."""
        return self.scale_action(actions).reshape(len(actions), -1)

    def proposals(self, observation: Any) -> Proposals:
        """What the heads propose for a batch of observations, as tensors, and what the first critic says of it."""
        with th.no_grad():
            actions, gaussians = self._heads(observation)
            found = Proposals(
                actions.cpu().numpy(),
                np.zeros((len(actions), 1, 1), dtype=np.float32),
                None if gaussians is None else gaussians.cpu().numpy(),
            )
            if len(self._durations) == 1:
                # Nothing is to be chosen; ``decide`` asks for the value.
                return found
            values = self.critic.first_of_proposals(observation, actions).diagonal(dim1=1, dim2=2)
        return found._replace(values=values.unsqueeze(1).cpu().numpy())

    @abstractmethod
    def _heads(self, observation: Any) -> tuple[th.Tensor, th.Tensor | None]:
        """What ``Proposals`` has as actions and as Gaussians, as tensors."""

    @abstractmethod
    def _drawn(self, proposals: Proposals, positions: NDArray[np.int64]) -> NDArray[np.float32]:
        """(n, size) actions of the heads in ``positions`` (n,), drawn where the actor draws."""

    def _positions(self, proposals: Proposals, tolerance: float | None) -> NDArray[np.int64]:
        """(n,) the head that is followed: the best by its value, or the longest within a tolerance of it."""
        values = proposals.values
        _, counted = best_option(values) if tolerance is None else few_decision_option(values, tolerance)
        return np.asarray(persistence_index(counted))

    def decide(self, observation: Any) -> Decision:
        """What to do and for how long; values, (1, K) of one observation, are those of the proposals."""
        refuse_reset_tuple(observation)
        self.set_training_mode(False)
        tensor, is_batch = self.obs_to_tensor(observation)
        proposals = self.proposals(tensor)
        if len(self._durations) == 1:
            with th.no_grad():
                proposed = th.as_tensor(proposals.actions, device=self.device)
                values = self.critic.first_of_proposals(tensor, proposed).cpu().numpy()
            proposals = proposals._replace(values=values)
        positions = self._positions(proposals, self.decision_tolerance)
        actions, durations = self.as_taken(proposals.of(positions)), self._durations[positions]
        if is_batch:
            return Decision(actions, durations, proposals.values)
        return Decision(actions[0], int(durations[0]), proposals.values[0])

    def interrupts(self, observation: Any, action: Any, left: int) -> bool:
        """Whether ``action``, which was to be held for ``left`` more steps, is dropped at one observation."""
        if self.interrupt_margin is None:
            return False
        self.set_training_mode(False)
        tensor, _ = self.obs_to_tensor(observation)
        held = self._held_values(tensor, self.as_held(np.asarray(action)[None]), np.array([left]))
        best = self.proposals(tensor).values.max(axis=(1, 2))
        return bool(is_interrupted(best, held, self.interrupt_margin)[0])

    def _held_values(
        self, observation: Any, actions: NDArray[Any], left: NDArray[np.int64]
    ) -> NDArray[np.float32]:
        """(n,) Q_1(s,a,m) of actions (n, size) with ``left`` (n,) steps to go.

        Of a sparse set, m is the longest persistence that is not longer than what is left.
        """
        with th.no_grad():
            # A copy: those of a clock are read-only, of which PyTorch warns.
            held = th.tensor(actions, dtype=th.float32, device=self.device).unsqueeze(1)
            values = self.critic.first_of_proposals(observation, held)[:, 0].cpu().numpy()
        return values[np.arange(len(left)), position_within(self._durations, left)]

    def interrupt(
        self, clock: OptionClock, observation: Any, averaged: bool = False
    ) -> tuple[NDArray[np.bool_], Proposals | None]:
        """Drop those that another option beats by more than the margin."""
        interrupted = np.zeros(clock.n_envs, dtype=np.bool_)
        watched = ~clock.idle & ~clock.exploratory
        if self.interrupt_margin is None or not watched.any():
            return interrupted, None
        proposals = self.proposals(observation)
        held = self._held_values(observation, clock.action, clock.left)
        best = proposals.values.max(axis=(1, 2))
        interrupted = watched & is_interrupted(best, held, self.interrupt_margin)
        clock.cut(interrupted)
        return interrupted, proposals

    def begin_options(
        self,
        clock: OptionClock,
        observation: Any,
        tolerance: float | None,
        values: Proposals | None = None,
        draws: ExploratoryDraws | None = None,
        averaged: bool = False,
    ) -> None:
        """Begin what the best head proposes, or the head of a random duration, with noise where it is drawn.

        Without a tolerance, which only deterministic acting has, an actor that draws its actions does so.
        """
        idle = clock.idle
        if not idle.any():
            return
        nowhere = np.zeros(clock.n_envs, dtype=np.bool_)
        draws_action, draws_hold = (nowhere, nowhere) if draws is None else (draws.draws_action, draws.draws_hold)
        actions, durations = clock.action.copy(), np.ones(clock.n_envs, dtype=np.int64)
        if draws is not None:
            actions[draws_action], durations[draws_hold] = draws.actions[draws_action], draws.durations[draws_hold]
        asking = idle & ~(draws_action & draws_hold)
        if asking.any():
            if values is not None:
                found = values.under(asking)
            else:
                found = self.proposals(observation if asking.all() else selected(observation, asking))
            drawn, holds = draws_hold[asking], durations[asking]
            positions = np.where(drawn, position_within(self._durations, holds), self._positions(found, tolerance))
            # A random hold lasts as long as was drawn, even if no head is for that many steps.
            durations[asking] = np.where(drawn, holds, self._durations[positions])
            followed = self._drawn(found, positions) if tolerance is None else found.of(positions)
            if draws is not None:
                # What is stored is scaled back from what the environment is given, as in SB3.
                followed = self.as_held(self.as_taken(followed))
            actions[asking] = np.where(draws_action[asking, None], actions[asking], followed)
        if draws is not None and draws.noise is not None:
            actions = np.clip(actions + draws.noise, -1, 1)
        clock.begin(idle, actions, durations, draws_action | draws_hold)

    def _predict(self, observation: Any, deterministic: bool = False) -> th.Tensor:
        found = self.proposals(observation)
        positions = self._positions(found, self.decision_tolerance if deterministic else None)
        followed = found.of(positions) if deterministic else self._drawn(found, positions)
        return th.as_tensor(followed, device=self.device)
