"""Persistent DQN: how fast it trains compared with SB3's DQN, and where the time goes."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from typing import Any

import torch as th
from stable_baselines3 import DQN

from benchmarks.harness import Settings, Table, compare, compare_trainings, growth, time_parts, training
from holdfast import PerDQN
from holdfast.deep.arguments import DEFAULT_TRUNK
from holdfast.deep.networks import option_policy
from holdfast.deep.networks.option_network import OptionQNetwork

__all__ = ["tables"]

SHARED: dict[str, Any] = {
    "gamma": 1.0,
    "learning_rate": 1e-4,
    "buffer_size": 50_000,
    "learning_starts": 1000,
    "train_freq": 1,
    "target_update_interval": 1000,
    "seed": 0,
}
"""Settings of both sides: the paper's for MountainCar, without its exploration schedule."""

SPARSE = [1, 2, 4, 8, 16, 32, 64]
"""Persistences up to 64, with fewer values than PerDQN(8) has."""

TRUNK = [128, 128]
HEAD = [64]


def tables(settings: Settings) -> Iterator[Table]:
    """One table per question."""
    th.set_num_threads(1)
    yield _steps(settings)
    yield _steps_of_the_defaults(settings)
    yield _growth_with_k_max(settings)
    yield _parts(settings)


def _agents() -> dict[str, Any]:
    plain = {"policy_kwargs": {"net_arch": [*TRUNK, *HEAD]}, **SHARED}
    return {
        "SB3 DQN, batch 32": DQN("MlpPolicy", "MountainCar-v0", batch_size=32, **plain),
        "SB3 DQN, batch 256": DQN("MlpPolicy", "MountainCar-v0", batch_size=256, **plain),
        "PerDQN(1), 1×32": _persistent(1),
        "PerDQN(8), 8×32": _persistent(8),
        "PerDQN(16), 16×32": _persistent(16),
    }


def _persistent(k_max: int) -> PerDQN:
    return PerDQN(
        "MlpPolicy",
        "MountainCar-v0",
        k_max=k_max,
        batch_size=32,
        head_arch=HEAD,
        policy_kwargs={"net_arch": TRUNK},
        **PerDQN.plain(),
        **SHARED,
    )


def _steps(settings: Settings) -> Table:
    """Environment steps per second, with one update each."""
    steps = 20 if settings.quick else 1000
    agents = _agents()
    for agent in agents.values():
        agent.learn(1100 if settings.quick else 3000, log_interval=10**9)
    rows = compare_trainings(settings, agents, steps)
    timings = {row.case: row.timing for row in rows}

    def speed(case: str, baseline: str) -> str:
        return f"{1.0 / timings[case].ratio_to(timings[baseline]):.2f}"

    small, large, *persistent = agents
    one, eight, sixteen = persistent
    return Table(
        f"MountainCar-v0, {steps} steps with one update each, trunk {TRUNK}, head {HEAD}",
        rows,
        (
            f"Speed of PerDQN(8): {speed(eight, small)} times SB3's at batch 32 (required 0.85, goal 1.0), "
            f"{speed(eight, large)} times at batch 256 (required 1.3, goal 1.6).",
            f"Speed of PerDQN(16): {speed(sixteen, eight)} times PerDQN(8)'s (required 0.5). "
            f"Speed of PerDQN(1): {speed(one, small)} times SB3's at batch 32 (required 1.2).",
            "Ratio is of times: below 1 is faster than SB3's DQN at batch 32, which replays uniformly.",
        ),
    )


def _steps_of_the_defaults(settings: Settings) -> Table:
    """Environment steps per second with the defaults, compared with DQN with the same trunk."""
    steps = 20 if settings.quick else 1000
    of_dqn = {**SHARED, "policy_kwargs": {"net_arch": list(DEFAULT_TRUNK)}}
    agents: dict[str, Any] = {
        "SB3 DQN, batch 32": DQN("MlpPolicy", "MountainCar-v0", batch_size=32, **of_dqn),
        "SB3 DQN, batch 256": DQN("MlpPolicy", "MountainCar-v0", batch_size=256, **of_dqn),
        "PerDQN(8), 32 steps": PerDQN("MlpPolicy", "MountainCar-v0", k_max=8, batch_size=32, **SHARED),
        "PerDQN, 64 steps": PerDQN("MlpPolicy", "MountainCar-v0", **SHARED),
        "PerDQN{1..64}, 32 steps": PerDQN(
            "MlpPolicy", "MountainCar-v0", persistences=SPARSE, batch_size=32, **SHARED
        ),
    }
    for agent in agents.values():
        agent.learn(1100 if settings.quick else 3000, log_interval=10**9)
    rows = compare_trainings(settings, agents, steps)
    small, large, eight, _, sparse = (row.timing for row in rows)
    return Table(
        f"MountainCar-v0, {steps} steps with one update each, defaults, trunk {list(DEFAULT_TRUNK)}",
        rows,
        (
            f"Speed of PerDQN(8) with the defaults: {1.0 / eight.ratio_to(small):.2f} times SB3's at batch 32 "
            f"(goal 1.5), {1.0 / eight.ratio_to(large):.2f} times at batch 256 (goal 2).",
            f"Speed of PerDQN with persistences {SPARSE}: {1.0 / sparse.ratio_to(eight):.2f} times PerDQN(8)'s "
            "(required 0.9).",
        ),
    )


def _growth_with_k_max(settings: Settings) -> Table:
    """Time of one update, by K."""
    sizes = (1, 2, 4) if settings.quick else (1, 2, 4, 8, 16, 32)
    agents = {f"K = {k}": _persistent(k) for k in sizes}
    for agent in agents.values():
        agent.learn(1100 if settings.quick else 2000, log_interval=10**9)

    def updates(agent: PerDQN) -> Callable[[], object]:
        return lambda: agent.train(2 if settings.quick else 50, 32)

    rows = compare(settings, {name: updates(agent) for name, agent in agents.items()})
    costs = [row.timing.median for row in rows]
    return Table(
        f"{2 if settings.quick else 50} updates of 32 rows per persistence, by K",
        rows,
        (f"Time grows as K^{growth(sizes, costs):.2f}.",),
    )


def _parts(settings: Settings) -> Table:
    """Where the time of PerDQN(8) goes, and how much of the machine's arithmetic an update uses."""
    steps = 30 if settings.quick else 1000
    agent = _persistent(8)
    agent.learn(1100 if settings.quick else 3000, log_interval=10**9)
    rows, parts = time_parts(settings, _watched(agent), training(agent, steps), steps)
    update = sum(timing.median for timing in parts.values())
    operations = _operations(agent.q_net, 8 * 32)
    rate, peak = operations / update, _sgemm_rate()
    return Table(
        f"Where the time of PerDQN(8) goes, {steps} steps",
        rows,
        (
            f"An update does {operations / 1e6:.0f} million operations at {rate / 1e9:.1f} GFLOP/s, "
            f"{rate / peak:.0%} of the {peak / 1e9:.0f} GFLOP/s that a product of 1024×1024 matrices reaches. "
            "Target values, most of which are kept, are not counted.",
            "The stopwatches themselves cost time; the first table has a step without them.",
        ),
    )


def _watched(agent: PerDQN) -> dict[str, tuple[object, str]]:
    """The parts of an update."""
    return {
        "sample": (agent.replay_buffer, "sample"),
        "targets": (agent, "_targets"),
        "forward": (agent.q_net.hand_pass, "values"),
        "backward": (agent.q_net.hand_pass, "backward"),
        "clip and optimiser": (option_policy, "optimizer_step"),
        "priorities": (agent.replay_buffer, "update_priorities"),
    }


def _operations(network: OptionQNetwork, rows: int) -> float:
    """Multiplications and additions of the forward and backward pass, where each row goes to its own head."""
    trunk = sum(linear.weight.numel() for linear, _ in network.trunk_layers)
    first = network.trunk_layers[0][0].weight.numel()
    heads = sum(parameter[0].numel() for parameter in network.heads.parameters() if parameter.dim() == 3)
    # Forward, gradient of the weights, gradient of the inputs; observations need no gradient.
    return 2.0 * rows * (3 * (trunk + heads) - first)


def _sgemm_rate() -> float:
    """Operations per second of a large matrix product."""
    matrix = th.rand(1024, 1024)
    best = float("inf")
    for _ in range(10):
        began = time.perf_counter()
        th.mm(matrix, matrix)
        best = min(best, time.perf_counter() - began)
    return 2.0 * 1024**3 / best
