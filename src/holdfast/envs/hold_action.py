"""Fixed persistence: every action is held for k steps, with any agent."""

from __future__ import annotations

from copy import deepcopy
from typing import Any, TypedDict

import gymnasium

from holdfast.core.checks import check_discount, check_integer
from holdfast.core.errors import InputTypeError
from holdfast.core.history import k_step_return

__all__ = ["Hold", "HoldAction", "steps_per_decision"]


class Hold(TypedDict):
    """What happened while an action was held: ``info["hold"]``, with ℓ ≤ k primitive steps.

    It contains no arrays: Gymnasium's vector environments combine the arrays of an info into one, and holds that
    the end of an episode cut short would not fit. They turn the two numbers into arrays (n_envs,), and each tuple
    into an entry of an object array.

    Attributes:
        observations: The ℓ observations reached; ``step`` returns the last.
        rewards: Their ℓ rewards, undiscounted.
        infos: Their ℓ infos.
        length: ℓ, the number of executed steps: below k only if the episode ended.
        discount: γ^ℓ, the discount of the last observation's value. It ignores terminal states.
    """

    observations: tuple[Any, ...]
    rewards: tuple[float, ...]
    infos: tuple[dict[str, Any], ...]
    length: int
    discount: float


class HoldAction(gymnasium.Wrapper[Any, Any, Any, Any], gymnasium.utils.RecordConstructorArgs):
    """Holds every action for ``k`` primitive steps, or fewer if the episode ends before.

    The environment becomes the k-persistent decision process: from s it leads to s' ~ P_k(·|s,a) with the reward
    Σ_{i<ℓ} γ^i r_i, which is r_k(s,a) on average. ``terminated``, ``truncated`` and the info are those of the last
    primitive step. The info has one more entry ``"hold"``, a :class:`Hold`, which replaces any entry of that name
    from the environment itself (which stays in ``info["hold"]["infos"]``).

    A learner's target is the reward plus γ^ℓ = ``info["hold"]["discount"]`` times the value of the observation, or
    the reward alone if the episode terminated. If a learner has only one discount factor for all steps, give it
    γ^k.

    Everything inside the wrapper sees primitive steps; everything around it sees decisions. What a ``TimeLimit``,
    Stable-Baselines3's ``Monitor`` or a ``RecordVideo`` counts therefore depends on its place.

    Observations are copies, so environments may reuse one array for all of them.

    Args:
        env: The environment, with any observations and actions.
        k: Number of steps to hold each action for.
        gamma: Discount factor of one primitive step, within the hold.
    """

    def __init__(self, env: gymnasium.Env[Any, Any], k: int, gamma: float = 1.0) -> None:
        if not isinstance(env, gymnasium.Env):
            raise InputTypeError(f"env must be a Gymnasium environment, not {env!r}")
        self._k = check_integer("k", k)
        self._gamma = check_discount(gamma)
        gymnasium.utils.RecordConstructorArgs.__init__(self, k=self._k, gamma=self._gamma)
        gymnasium.Wrapper.__init__(self, env)

    @property
    def k(self) -> int:
        """Number of steps that each action is held for."""
        return self._k

    @property
    def gamma(self) -> float:
        """Discount factor of one primitive step."""
        return self._gamma

    def reset(
        self, *, seed: int | None = None, options: dict[str, Any] | None = None
    ) -> tuple[Any, dict[str, Any]]:
        """Begin an episode; nothing is held yet, and the info is the environment's own."""
        observation, info = self.env.reset(seed=seed, options=options)
        return deepcopy(observation), info

    def step(self, action: Any) -> tuple[Any, float, bool, bool, dict[str, Any]]:
        """Hold ``action`` for k steps, or until the episode ends.

        Returns:
            The last observation, the discounted reward, the last step's terminated and truncated, and its info
            with ``"hold"``.
        """
        observations: list[Any] = []
        rewards: list[float] = []
        infos: list[dict[str, Any]] = []
        discount = 1.0
        terminated = truncated = False
        while len(rewards) < self._k and not (terminated or truncated):
            # Copies, because an environment may write into the action it receives or the observation it returned.
            observation, reward, terminated, truncated, info = self.env.step(deepcopy(action))
            observations.append(deepcopy(observation))
            rewards.append(float(reward))
            infos.append(dict(info))
            discount *= self._gamma
        hold: Hold = {
            "observations": tuple(observations),
            "rewards": tuple(rewards),
            "infos": tuple(infos),
            "length": len(rewards),
            "discount": discount,
        }
        total = float(k_step_return(rewards, 0, len(rewards), self._gamma))
        return observations[-1], total, terminated, truncated, {**infos[-1], "hold": hold}


def steps_per_decision(env: gymnasium.Env[Any, Any]) -> int:
    """Number of steps for which an environment's ``HoldAction`` wrappers hold every action; 1 without any."""
    held = 1
    while isinstance(env, gymnasium.Wrapper):
        held *= env.k if isinstance(env, HoldAction) else 1
        env = env.env
    return held
