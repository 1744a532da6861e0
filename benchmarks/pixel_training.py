"""Training on Atari's screens and MinAtar's boards: how fast, compared with SB3's DQN, and where the time goes."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import Any

from stable_baselines3 import DQN

from benchmarks.harness import Settings, Table, compare, compare_trainings, time_parts
from holdfast import PerDQN
from holdfast.deep.networks import option_policy
from holdfast.deep.networks.option_network import ConvFeatures
from holdfast.deep.networks.small_convolutions import SmallConvolutions
from holdfast.deep.speed.shortcuts import plain_path
from holdfast.envs import make_atari, make_minatar

__all__ = ["board_tables", "training_tables"]

GAME = "Freeway"
UNITS = 128
SHARED: dict[str, Any] = {
    "gamma": 0.99,
    "learning_rate": 5e-4,
    "buffer_size": 3000,
    "learning_starts": 200,
    "train_freq": 1,
    "target_update_interval": 500,
    "seed": 0,
}
"""Settings of both sides: the paper's for Atari, with a smaller replay."""


def training_tables(settings: Settings) -> Iterator[Table]:
    """Steps per second, then where the time goes for each way of drawing."""
    agents = _agents()
    for agent in agents.values():
        agent.learn(210 if settings.quick else 600, log_interval=10**9)
    yield _steps(settings, agents)
    for name, agent in agents.items():
        if isinstance(agent, PerDQN):
            yield _parts(settings, name, agent)


def _agents() -> dict[str, Any]:
    plain = {"policy_kwargs": {"features_extractor_class": ConvFeatures, "net_arch": [UNITS]}, **SHARED}
    return {
        "SB3 DQN, batch 32": DQN("CnnPolicy", make_atari(GAME), batch_size=32, **plain),
        "SB3 DQN, batch 128": DQN("CnnPolicy", make_atari(GAME), batch_size=128, **plain),
        "PerDQN(4), 32 steps shared": _persistent(shared_draws=True),
        "PerDQN(4), 4×32 of their own": _persistent(shared_draws=False),
    }


def board_tables(settings: Settings) -> Iterator[Table]:
    """Steps per second on MinAtar's boards, with the network of ``holdfast train``: compiled, and by autograd."""
    steps = 5 if settings.quick else 300
    network = {"net_arch": [UNITS], "features_extractor_class": SmallConvolutions}
    given: dict[str, Any] = {"policy_kwargs": network, "learning_starts": 200, "buffer_size": 50_000, "seed": 0}
    of_dqn = {**given, "train_freq": 1, "target_update_interval": 1000}
    for game in ("Freeway", "Asterix"):
        agents: dict[str, Any] = {
            "SB3 DQN, batch 64": DQN("MlpPolicy", make_minatar(game), batch_size=64, **of_dqn),
            "PerDQN(1)": PerDQN("CnnPolicy", make_minatar(game), k_max=1, **given),
            "PerDQN(4)": PerDQN("CnnPolicy", make_minatar(game), k_max=4, **given),
            "PerDQN(4), plain path": _ThroughAutograd(PerDQN("CnnPolicy", make_minatar(game), k_max=4, **given)),
        }
        for agent in agents.values():
            agent.learn(210 if settings.quick else 1000, log_interval=10**9)
        rows = compare_trainings(settings, agents, steps)
        _, _, compiled, plain = (row.timing for row in rows)
        yield Table(
            f"MinAtar {game}, {steps} steps with one update each, {UNITS} units behind the small convolution",
            rows,
            (
                f"Speed of PerDQN(4): {1.0 / compiled.ratio_to(plain):.2f} times that of its plain path, which "
                "goes through autograd and keeps no target values.",
                "Ratio is of times: below 1 is faster than SB3's DQN, which replays uniformly.",
            ),
        )


class _ThroughAutograd:
    """An agent that takes no short cut."""

    def __init__(self, agent: PerDQN) -> None:
        self._agent = agent

    def learn(self, *arguments: Any, **keywords: Any) -> None:
        with plain_path():
            self._agent.learn(*arguments, **keywords)


def _persistent(shared_draws: bool) -> PerDQN:
    arguments = {**PerDQN.paper_atari(), **SHARED, "shared_draws": shared_draws}
    return PerDQN(env=make_atari(GAME), **arguments)


def _training(agent: Any, steps: int) -> Callable[[], object]:
    return lambda: agent.learn(steps, reset_num_timesteps=False, log_interval=10**9)


def _steps(settings: Settings, agents: dict[str, Any]) -> Table:
    steps = 2 if settings.quick else 50
    rows = compare(settings, {name: _training(agent, steps) for name, agent in agents.items()})
    small, large, shared, own = (row.timing for row in rows)
    rows = tuple(replace(row, facts={"steps/s": f"{steps / row.timing.median:.1f}"}) for row in rows)
    return Table(
        f"Atari {GAME}, 84×84×4, {steps} steps with one update each; {UNITS} units behind three convolutions",
        rows,
        (
            f"Speed of PerDQN(4) with shared draws: {1.0 / shared.ratio_to(small):.2f} times SB3's at batch 32 "
            f"(goal 0.85); with own draws: {1.0 / own.ratio_to(large):.2f} times at batch 128 (goal 1.0).",
            "Both sides play the same preprocessed game. SB3's DQN replays uniformly.",
        ),
    )


def _parts(settings: Settings, name: str, agent: PerDQN) -> Table:
    steps = 2 if settings.quick else 50
    buffer = agent.replay_buffer
    watched: dict[str, tuple[object, str]] = {
        "the game": (agent.env, "step"),
        "sample": (buffer, "sample"),
        "targets": (agent, "_targets"),
        "loss and its gradient": (agent, "_regress"),
        "clip and optimiser": (option_policy, "optimizer_step"),
        "priorities": (buffer, "update_priorities"),
    }
    rows, _ = time_parts(settings, watched, _training(agent, steps), steps)
    return Table(f"Where the time goes: {name}", rows)
