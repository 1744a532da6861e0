"""Training a network: SB3's ``learn``, watched by a callback that writes, evaluates and stops."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import closing, contextmanager
from typing import Any

import torch
from stable_baselines3.common.callbacks import BaseCallback
from stable_baselines3.common.logger import KVWriter, Logger, filter_excluded_keys
from stable_baselines3.common.utils import get_device
from stable_baselines3.common.vec_env import VecEnv

from holdfast.core.errors import InputError
from holdfast.core.user_code import described, is_raised_by_holdfast, where_passed
from holdfast.deep import make_vec_env
from holdfast.deep.agents.option_agent import OptionAgent
from holdfast.envs import EnvironmentFailedError, NamedFailures, make_env
from holdfast.envs.training_info import TrainingInfo
from holdfast.policies.actors import NetworkActor
from holdfast.policies.arguments import as_python
from holdfast.policies.own_algorithms import agent_files
from holdfast.policies.policy_files import network_state
from holdfast.runs.config import RunConfig
from holdfast.runs.events import Events
from holdfast.runs.session import EvaluationFailedError, Session
from holdfast.runs.stopping import TrainingStopped

__all__ = ["build_agent", "build_vec_env", "train_deep"]


def build_vec_env(config: RunConfig) -> VecEnv:
    """The environments of a run."""

    def make() -> Any:
        return TrainingInfo(NamedFailures(make_env(config.environment, **config.env_kwargs)))

    return make_vec_env(make, config.n_envs, config.seed)


@contextmanager
def _threads(number: int) -> Iterator[None]:
    """Set the number of PyTorch threads, which is part of the run: sums depend on how they are split."""
    before = torch.get_num_threads()
    torch.set_num_threads(number)
    try:
        yield
    finally:
        torch.set_num_threads(before)


def build_agent(config: RunConfig, env: VecEnv) -> OptionAgent:
    """The agent of a run before its first step."""
    _check_device(config.device)
    arguments = {**as_python(config.arguments), **config.algorithm.stands_for}
    policy = arguments.pop("policy")
    try:
        agent: OptionAgent = config.algorithm.load()(
            policy, env, seed=config.seed, device=config.device, **arguments
        )
    except Exception as error:
        if isinstance(error, InputError | MemoryError):
            raise
        place = where_passed(error, agent_files(config.algorithm.load()))
        if place:
            raise InputError(f"algo {config.algo!r} cannot be made: {described(error)}{place}", "algo") from error
        if is_raised_by_holdfast(error):
            raise
        # PyTorch and SB3 reject the arguments; the first line of their message becomes the sentence.
        said = " ".join(str(error).split("\n")[0].split()) or type(error).__name__
        raise InputError(
            f"the agent cannot be made from the arguments in set for this environment: {said[:300]}", "set"
        ) from error
    return agent


def _check_device(name: str) -> None:
    try:
        # SB3 would fall back to the CPU if there is no such device.
        device = get_device(name) if name == "auto" else torch.device(name)
        if device.type not in ("cpu", "cuda", "mps", "xpu"):
            raise RuntimeError
        torch.zeros(1, device=device)
    except (RuntimeError, AssertionError):
        raise InputError(
            f"device must be auto, cpu or another device that PyTorch has here, not {name!r}", "device"
        ) from None


def train_deep(session: Session, saved: Mapping[str, Any] | None) -> None:
    """Train until the run is finished.

    Args:
        session: The session that writes everything.
        saved: The agent's state at the last checkpoint; None at the beginning.

    Raises:
        TrainingStopped: The training was asked to stop; a checkpoint was written.
        EnvironmentFailedError: The environment failed.
        ValueError: The saved state does not belong to this run.
    """
    config = session.config
    with _threads(config.threads), closing(build_vec_env(config)) as env:
        _train(session, build_agent(config, env), saved)


def _train(session: Session, agent: OptionAgent, saved: Mapping[str, Any] | None) -> None:
    config = session.config
    if config.checkpoint_every > 0.0:
        try:
            agent.state()  # if it cannot be saved, fail now rather than after an hour
        except InputError as error:
            raise InputError(
                f"{error}; or give checkpoint_every=0: the run then cannot be continued after a stop, and keeps "
                "no replay to estimate fixed skips from",
                *error.arguments,
                "checkpoint_every",
            ) from error
    network_state(config.algo, agent.policy)
    if saved is not None:
        _restore(agent, session, saved)
    session.start()
    agent.set_logger(Logger(None, [_EventWriter(session.events)]))
    assert config.steps is not None
    try:
        if not session.is_over:
            agent.learn(
                config.steps - agent.num_timesteps,
                _Watcher(session),
                reset_num_timesteps=saved is None,
            )
    except EvaluationFailedError:
        raise
    except EnvironmentFailedError as error:
        when = f"in episode {session.episodes + 1}, at step {agent.num_timesteps + config.n_envs}"
        raise EnvironmentFailedError(error.what, when) from error
    except _LastEpisode:
        pass
    session.steps, session.epsilon = agent.num_timesteps, agent.exploration_rate
    _evaluate_if_due(session, agent)
    if session.best is None:
        session.keep_policy(network_state(config.algo, agent.policy))
    _save(session, agent, finished=True)


def _evaluate_if_due(session: Session, agent: OptionAgent) -> None:
    if not session.evaluation_is_due(session.steps):
        return
    try:
        algo, policy = session.config.algo, agent.policy
        session.evaluate(NetworkActor(policy), session.steps, lambda: network_state(algo, policy))
    except TrainingStopped:
        _save(session, agent)
        raise


def _save(session: Session, agent: OptionAgent, finished: bool = False) -> None:
    session.save(agent.state, finished)


def _restore(agent: OptionAgent, session: Session, saved: Mapping[str, Any]) -> None:
    agent.restore(saved)
    if agent.num_timesteps != session.steps:
        raise InputError("the checkpoint must have the same number of steps everywhere")


class _LastEpisode(Exception):  # noqa: N818 - nothing went wrong
    """Raised when the run has all its episodes."""


class _Watcher(BaseCallback):
    """Records episodes as they end; evaluates, saves and stops between rollouts, where the state can be saved."""

    model: OptionAgent

    def __init__(self, session: Session) -> None:
        super().__init__()
        self._session = session
        self._lengths = [0] * session.config.n_envs

    def _on_step(self) -> bool:
        agent = self.model
        for index, (done, info) in enumerate(zip(self.locals["dones"], self.locals["infos"], strict=True)):
            self._lengths[index] = 0 if done else self._lengths[index] + 1
            if done:
                # The step that ends the episode is counted after this.
                begins = int(agent.clock.elapsed[index] == 0)
                self._session.episode_ended(
                    self.num_timesteps,
                    index,
                    float(info["episode"]["r"]),
                    int(info["episode"]["l"]),
                    int(agent.hold_statistics.decisions[index]) + begins,
                    float(agent.exploration_rate),
                )
        return True

    def _on_rollout_start(self) -> None:
        session, agent = self._session, self.model
        session.steps, session.epsilon = agent.num_timesteps, float(agent.exploration_rate)
        if session.is_over:
            raise _LastEpisode
        if session.stop:
            _save(session, agent)
            raise TrainingStopped
        session.tell_of_endless_episode(max(self._lengths))
        _evaluate_if_due(session, agent)
        if session.checkpoint_is_due():
            _save(session, agent)
        session.report(session.steps, session.epsilon)


class _EventWriter(KVWriter):
    """Passes SB3's log values on to TensorBoard."""

    def __init__(self, events: Events) -> None:
        self._events = events

    def write(self, key_values: dict[str, Any], key_excluded: dict[str, tuple[str, ...]], step: int = 0) -> None:
        shown = filter_excluded_keys(key_values, key_excluded, "tensorboard")
        self._events.scalars(step, {name: float(value) for name, value in shown.items() if _is_number(value)})

    def close(self) -> None:
        """Do nothing: the events' owner closes them."""


def _is_number(value: Any) -> bool:
    try:
        float(value)
    except (TypeError, ValueError):
        return False
    return not isinstance(value, str)
