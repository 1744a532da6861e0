"""What agents with an actor share, whether TD3 or SAC is their parent: how they explore, and how critics learn.

``OptionActorCritic`` is abstract: an agent supplies the parent in Stable-Baselines3, V̄(s') and one update.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Mapping
from typing import Any, ClassVar

import numpy as np
import torch as th
from gymnasium import spaces
from numpy.typing import NDArray
from stable_baselines3.common.noise import ActionNoise, NormalActionNoise, VectorizedActionNoise
from stable_baselines3.common.preprocessing import get_action_dim
from stable_baselines3.common.utils import LinearSchedule
from torch.nn import functional as F  # noqa: N812 - torch's own name for it

from holdfast.core.actor_critic import held_entropy
from holdfast.core.errors import InputError
from holdfast.core.targets import undecided_value
from holdfast.core.user_code import shown
from holdfast.deep.actor_arguments import ACTOR_ARGUMENTS
from holdfast.deep.agents.option_agent import OptionAgent
from holdfast.deep.agents.option_steps import uniform_durations
from holdfast.deep.agents.regression import Residuals
from holdfast.deep.agents.targets import all_persistence_targets
from holdfast.deep.argument_checks import check_bounded
from holdfast.deep.arguments import Argument
from holdfast.deep.exact.noise_state import noise_state, restore_noise
from holdfast.deep.networks.actor_networks import OptionCritic
from holdfast.deep.networks.actor_policy import ActorPolicy
from holdfast.deep.replay.views import OptionBatch, Views

__all__ = ["OptionActorCritic"]


class OptionActorCritic(OptionAgent):
    """An actor-critic over persistence options: SB3's arguments, plus how long an action may be held.

    Attributes:
        critic_loss_scale: What the parent multiplies the critics' squared errors with.
    """

    base_arguments: ClassVar[tuple[Argument, ...]] = ACTOR_ARGUMENTS
    explores_in_predict: ClassVar[bool] = False
    tosses_for_actions: ClassVar[bool] = False
    loss_name: ClassVar[str] = "train/critic_loss"
    critic_loss_scale: ClassVar[float] = 1.0
    normalize_observations = None
    priority_beta0 = 1.0

    policy: ActorPolicy
    critic: OptionCritic
    critic_target: OptionCritic
    action_space: spaces.Box
    shared_draws: bool
    target_value: str
    exploration_initial_eps: float
    exploration_final_eps: float
    exploration_fraction: float
    _noise_to_go_on: dict[str, Any] | None = None

    check_actions = staticmethod(check_bounded)

    @property
    def views(self) -> Views:
        """One for every persistence."""
        return Views(self.k_max, persistences=self.persistences, shared_draws=self.shared_draws)

    def _setup_model(self) -> None:
        super()._setup_model()
        self.action_noise = _as_object(self.action_noise, get_action_dim(self.action_space), self.n_envs)
        self.exploration_schedule = LinearSchedule(
            self.exploration_initial_eps, self.exploration_final_eps, self.exploration_fraction
        )
        # A file that SB3 saved has brought its own.
        vars(self).setdefault("exploration_rate", self.exploration_initial_eps)

    def _on_step(self) -> None:
        self.exploration_rate = self.exploration_schedule(self._current_progress_remaining)
        self.logger.record("rollout/exploration_rate", self.exploration_rate)

    def kept_values(self) -> dict[str, Any]:
        """Nothing of the target networks; what the exploration noise remembers, and whether it goes on."""
        goes_on = self._is_learning or self._noise_to_go_on is not None
        return {"noise": noise_state(self.action_noise), "noise_goes_on": goes_on}

    def keep_values(self, state: Mapping[str, Any]) -> None:
        """Go on with what ``kept_values`` returned."""
        restore_noise(self.action_noise, state, "noise")
        # States from older versions do not say.
        self._noise_to_go_on = {"noise": noise_state(self.action_noise)} if state.get("noise_goes_on") else None

    def _setup_learn(self, *arguments: Any, **keywords: Any) -> Any:
        noise, self._noise_to_go_on = self._noise_to_go_on, None
        shown = self._last_obs
        result = super()._setup_learn(*arguments, **keywords)
        if noise is not None and self._last_obs is shown:
            # SB3 has reset it, which did not happen where the state was saved: within ``learn``.
            restore_noise(self.action_noise, noise, "noise")
        return result

    def _excluded_save_params(self) -> list[str]:
        return [*super()._excluded_save_params(), "_noise_to_go_on"]

    # Acting ------------------------------------------------------------------------------------------------

    def _random_durations(self, n: int) -> NDArray[np.int64]:
        return uniform_durations(n, self.views.k_max, self.views.persistences)

    # Learning ----------------------------------------------------------------------------------------------

    def _targets(self, batch: OptionBatch) -> NDArray[np.float32]:
        """(K, B) r^ℓ + γ^ℓ (1−done) · (V̄(s') where ℓ = k, else min_i Q̄_i(s',a,k−ℓ)), held steps being paid too."""
        assert self.replay_buffer is not None
        complete = batch.rest == 0
        state_values, held_values = np.zeros((2, *batch.rest.shape), dtype=np.float32)
        state_values[complete] = self._state_values(batch.next_rows[complete])
        goes_on = ~complete & (batch.dones == 0)
        if goes_on.any():
            held_values[goes_on] = self._held_values(
                batch.next_rows[goes_on],
                batch.actions[goes_on],
                self.replay_buffer.positions[batch.rest[goes_on]],
            )
        payment, rewards = self._held_payment(), batch.rewards
        if payment and self.k_max > 1:
            lengths = np.array(self.views.durations)[:, None] - batch.rest
            paid = held_entropy(self.k_max, self.gamma, payment)[lengths].astype(np.float32)
            rewards, held_values = rewards + paid, held_values + np.float32(payment)
        parts = (rewards, batch.discounts, batch.dones, complete, state_values, held_values)
        return all_persistence_targets(*map(th.as_tensor, parts)).numpy()

    @abstractmethod
    def _values_of_states(self, observations: Any) -> th.Tensor:
        """(n,) V̄ of observations, as tensors, before the decision is paid for; called without gradients."""

    def _sees_batches(self) -> bool:
        """Whether V̄ of a state depends on which others it is asked with."""
        return False

    def _held_payment(self) -> float:
        """What is paid for a step that decides nothing."""
        return 0.0

    def _state_values(self, rows: NDArray[np.int64]) -> NDArray[np.float32]:
        """V̄ of the observations in rows (n,) of the replay."""
        assert self.replay_buffer is not None
        # Each state once; with one view all rows as they are, as in SB3.
        as_they_are = self.views.k_max == 1 or self._sees_batches()
        distinct, index = (rows, None) if as_they_are else np.unique(rows, return_inverse=True)
        with th.no_grad():
            observations = self.replay_buffer.observations_at(distinct, self._vec_normalize_env)
            given = self._values_of_states(observations)
            _check_tensor("_values_of_states", given, (len(distinct),))
            values = undecided_value(given, self.decision_cost)
        found: NDArray[np.float32] = values.cpu().numpy()
        return found if index is None else found[index]

    def _held_values(
        self, rows: NDArray[np.int64], actions: NDArray[Any], positions: NDArray[np.int64]
    ) -> NDArray[np.float32]:
        """min_i Q̄_i(s',a,k−ℓ), of actions (n, size) that are held on; all arguments (n, ...)."""
        assert self.replay_buffer is not None
        # A row is the end of one step, so its action is the same in every view.
        distinct, firsts, index = np.unique(rows, return_index=True, return_inverse=True)
        observations = self.replay_buffer.observations_at(distinct, self._vec_normalize_env)
        held = th.as_tensor(actions[firsts], device=self.device).unsqueeze(1)
        with th.no_grad():
            values = self.critic_target.of_proposals(observations, held)[:, :, 0].min(dim=0).values
        found: NDArray[np.float32] = values.cpu().numpy()
        return found[index, positions]

    def _learn_values(self, batch: OptionBatch, targets: NDArray[np.float32]) -> float:
        """A step of the critics: the mean over K·B tuples of weight · (Q_i(s,a,k) − target)², summed over i."""
        n_views = len(targets)
        shown = batch.actions[0] if batch.is_shared else batch.actions.reshape(-1, batch.actions.shape[-1])
        goal = th.as_tensor(targets, device=self.device)
        weights = None if batch.weights is None else th.as_tensor(batch.weights, device=self.device)
        losses, squares, errors = [], [], []
        for values in self.critic(batch.observations, th.as_tensor(shown, device=self.device)):
            chosen = values.T if batch.is_shared else values.view(n_views, -1, n_views).diagonal(dim1=0, dim2=2).T
            squared = F.mse_loss(chosen, goal, reduction="none")
            losses.append((squared if weights is None else weights * squared).mean())
            squares.append(squared.detach())
            errors.append((chosen - goal).detach().abs())
        loss = self.critic_loss_scale * th.stack(losses).sum()
        self._check_loss(loss.item())
        self.critic.optimizer.zero_grad()
        loss.backward()
        self.critic.optimizer.step()
        row_losses = self.critic_loss_scale * th.stack(squares).sum(dim=0)
        # Sizes, because errors of opposite signs must not cancel.
        td_errors = th.stack(errors).mean(dim=0)
        found = Residuals(loss.item(), row_losses.cpu().numpy(), td_errors.cpu().numpy())
        return self._learned(batch, targets, found)

    def _learn_actor_by(self, loss: th.Tensor) -> None:
        """A step of the actor, whose gradient the critics' weights need not get."""
        _check_tensor("_actor_loss", loss, ())
        self.policy.actor.optimizer.zero_grad()
        learns = [parameter for parameter in self.policy.actor.parameters() if parameter.requires_grad]
        if learns:
            loss.backward(inputs=learns)
        self.policy.actor.optimizer.step()
        self.logger.record_mean("train/actor_loss", loss.item())

    def _raise_values(self, by: float) -> None:
        for network in (self.policy.critic, self.policy.critic_target):
            network.raise_values(by)


def _check_tensor(method: str, found: Any, shape: tuple[int, ...]) -> None:
    """Check what a method of the agent returned, since it may be a user's."""
    if not isinstance(found, th.Tensor) or found.shape != shape:
        given = f"one of shape {tuple(found.shape)}" if isinstance(found, th.Tensor) else shown(found)
        raise InputError(f"{method} must return a tensor of shape {shape}, not {given}")


def _as_object(noise: Any, size: int, n_envs: int) -> ActionNoise | None:
    """Noise as SB3 has it when it trains; one whose draws have another shape than an action is refused."""
    if noise is None:
        return None
    if not isinstance(noise, ActionNoise):
        noise = NormalActionNoise(np.zeros(size), np.full(size, float(noise)))
    single = noise.base_noise if isinstance(noise, VectorizedActionNoise) else noise
    # Of noise of a user's own nothing is known.
    shape = np.shape(getattr(single, "_mu", np.zeros(size)))
    if int(np.prod(shape)) != size:
        raise InputError(
            f"action_noise must have as many numbers as an action, which is {size}, not shape {shape}",
            "action_noise",
        )
    if isinstance(noise, VectorizedActionNoise) and noise.n_envs == n_envs:
        return noise
    return VectorizedActionNoise(single, n_envs) if n_envs > 1 else single
