"""A training that was stopped and brought back in another process is the training that was never stopped."""

from __future__ import annotations

import copy
import json
import os
import random
import re
import subprocess
import sys
import warnings
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

import gymnasium
import numpy as np
import pytest
import torch as th
from gymnasium import spaces
from hypothesis import given
from hypothesis import strategies as st
from stable_baselines3.common.callbacks import BaseCallback
from stable_baselines3.common.logger import Logger
from stable_baselines3.common.torch_layers import BaseFeaturesExtractor
from stable_baselines3.common.vec_env import SubprocVecEnv, VecFrameStack, VecMonitor, VecNormalize

from holdfast.core.errors import InputError
from holdfast.deep import EZGreedyDQN, OptionDQN, PerDQN, TempoRLDQN, make_vec_env
from holdfast.deep.exact.agent_state import FORMAT
from holdfast.deep.replay.priorities import PriorityTrees
from holdfast.deep.replay.views import Views
from tests.deep.diary import LEVERS, Captured

# Forking is quick, and what is forked here calls nothing that has threads.
pytestmark = pytest.mark.filterwarnings("ignore:.*use of fork.*:DeprecationWarning")

ROOT = Path(__file__).parents[2]


class Drift(gymnasium.Env[Any, int]):
    """A point that is pushed and drifts at random: episodes end off the edge, or by time.

    Args:
        kind: What is seen: ``"vector"``, ``"dict"``, ``"boxes"`` (a Dict of such) or ``"picture"``.
    """

    def __init__(self, kind: str = "vector") -> None:
        vector = spaces.Box(-2.0, 2.0, (3,), np.float32)
        self.kind = kind
        self.observation_space = {
            "vector": vector,
            "dict": spaces.Dict({"where": vector, "late": spaces.Discrete(2)}),
            "boxes": spaces.Dict({"where": vector, "late": spaces.Box(0.0, 1.0, (1,), np.float32)}),
            "picture": spaces.Box(0, 255, (6, 6, 1), np.uint8),
        }[kind]
        self.action_space = spaces.Discrete(3)

    def observe(self) -> Any:
        if self.kind == "picture":
            picture = np.zeros((6, 6, 1), np.uint8)
            picture[int(3 + 2 * self.place), self.time % 6] = 200
            return picture
        vector = np.array([self.place, self.speed, self.time / 30], np.float32)
        if self.kind == "vector":
            return vector
        late = self.time > 12
        return {"where": vector, "late": int(late) if self.kind == "dict" else np.full(1, late, np.float32)}

    def reset(self, *, seed: int | None = None, options: dict[str, Any] | None = None) -> tuple[Any, dict]:
        super().reset(seed=seed)
        self.place, self.speed, self.time = self.np_random.uniform(-0.4, 0.4), 0.0, 0
        return self.observe(), {}

    def step(self, action: int) -> tuple[Any, float, bool, bool, dict]:
        self.time += 1
        self.speed = 0.7 * self.speed + 0.1 * (int(action) - 1) + self.np_random.normal(0.0, 0.15)
        self.place = float(np.clip(self.place + self.speed, -1.2, 1.2))
        over = abs(self.place) > 1.1
        info = {"is_success": np.bool_(self.time > 8)} if over or self.time >= 20 else {}
        return self.observe(), 0.1 - abs(self.place) / 3, over, not over and self.time >= 20, info


class FewerActions(Drift):
    def __init__(self) -> None:
        super().__init__()
        self.action_space = spaces.Discrete(2)


class Tiny(BaseFeaturesExtractor):
    """A picture's features, with running statistics and random numbers of their own."""

    def __init__(self, space: spaces.Box) -> None:
        super().__init__(space, 8)
        layers = (th.nn.Conv2d(1, 2, 3, stride=3), th.nn.BatchNorm2d(2), th.nn.Dropout(0.1), th.nn.Flatten())
        self.layers = th.nn.Sequential(*layers)

    def forward(self, observations: th.Tensor) -> th.Tensor:
        return self.layers(observations)


# The trainings --------------------------------------------------------------------------------------------------


class Case(NamedTuple):
    """A training, and where it is stopped.

    Attributes:
        n_envs: Environments.
        kind: What they show.
        wrappers: Vector wrappers, the innermost first.
        processes: Each environment in a process of its own.
        given: What the agent is given instead: ``"env"`` for a single environment, or an id.
        policy: Of the agent.
        stop: ``"running"``: at a rollout in the middle of an option and an episode; ``"episode"``: one step before
            an episode is over; ``"start"``: at the first rollout; ``"fresh"``: before ``learn``; ``"after"``:
            after it; ``"again"``: after it, and it goes on with a reset; ``"ended"``: where a callback ended it;
            ``"changed"``: after it, with other weights in the target network.
        arguments: Of the agent.
        agent: Its class.
    """

    n_envs: int = 1
    kind: str = "vector"
    wrappers: tuple[Callable[..., Any], ...] = ()
    processes: bool = False
    given: str | None = None
    policy: str = "MlpPolicy"
    stop: str = "running"
    arguments: dict[str, Any] = {}  # noqa: RUF012 - never written
    agent: type[OptionDQN] = PerDQN


def monitored(env: Any) -> VecMonitor:
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", message="The environment is already wrapped with a `Monitor`")
        return VecMonitor(env)


def stacked(env: Any) -> VecFrameStack:
    return VecFrameStack(env, 3)


CASES = {
    "one": Case(),
    "two": Case(2),
    "normalized": Case(2, wrappers=(VecNormalize,)),
    "stacked": Case(2, wrappers=(stacked,)),
    "monitored": Case(2, wrappers=(monitored,)),
    "all wrappers": Case(2, "boxes", (monitored, stacked, VecNormalize), policy="MultiInputPolicy"),
    "processes": Case(2, processes=True),
    "interrupted": Case(2, arguments={"interrupt_margin": 0.01}),
    "uniform": Case(2, arguments={"prioritized": False}),
    "one step": Case(2, arguments={"prioritized": False, "k_max": 1, "head_arch": []}, stop="after"),
    "double": Case(arguments={"target_value": "double", "dueling": True}),
    "dictionaries": Case(2, "dict", policy="MultiInputPolicy"),
    "pictures": Case(
        kind="picture",
        policy="CnnPolicy",
        arguments={"policy_kwargs": {"net_arch": [8], "features_extractor_class": Tiny}},
    ),
    "every fourth": Case(2, arguments={"train_freq": 4, "gradient_steps": 2, "tau": 0.5}),
    "whole episodes": Case(arguments={"train_freq": (1, "episode"), "bootstrap": False}, stop="after"),
    "wrapped around": Case(2, arguments={"buffer_size": 60}),
    "roomy": Case(arguments={"buffer_size": 1500}),
    "momentum": Case(
        arguments={
            "policy_kwargs": {
                "net_arch": [8],
                "optimizer_class": th.optim.SGD,
                "optimizer_kwargs": {"momentum": 0.9},
            },
            "learning_rate": lambda remaining: 0.01 * remaining,
        }
    ),
    "levers": Case(
        2,
        arguments={**LEVERS, "learning_rate_falls_to": 0.5, "target_value": "double"},
    ),
    "levers with own draws": Case(
        2,
        wrappers=(VecNormalize,),
        arguments={
            "persistences": (1, 3, 4),
            "shared_draws": False,
            "layer_norm": True,
            "clip_targets": True,
            "explore_by": "steps",
            "average_rate": 0.01,
            "interrupt_margin": 0.01,
        },
    ),
    "averaged skips": Case(2, arguments={"layer_norm": True, "average_rate": 0.01}, agent=TempoRLDQN),
    "directly": Case(given="env"),
    "by id": Case(given="CartPole-v1"),
    "episode": Case(wrappers=(monitored,), stop="episode"),
    "start": Case(2, stop="start"),
    "fresh": Case(2, wrappers=(stacked, VecNormalize), stop="fresh"),
    "after": Case(2, stop="after"),
    "again": Case(2, stop="again"),
    "ended": Case(stop="ended"),
    "changed": Case(stop="changed"),
    "skips": Case(2, arguments={"interrupt_margin": 0.01}, agent=TempoRLDQN),
    "skips of one": Case(arguments={"pad_terminal": False, "prioritized": False}, agent=TempoRLDQN),
    "the paper's update": Case(2, arguments=PerDQN.plain()),
    "some persistences": Case(2, arguments={"k_max": 4, "persistences": [1, 2, 4]}),
    "priced": Case(2, arguments={"decision_cost": 0.2, "persistences": [1, 2, 4]}),
    "priced with own draws": Case(
        2,
        arguments={
            "decision_cost": 0.2,
            "shared_draws": False,
            "clip_targets": True,
            "target_value": "double",
            "interrupt_margin": 0.2,
        },
    ),
    "held exploration": Case(2, arguments={"durations": "zeta"}, agent=EZGreedyDQN),
}
STEPS, STOPPED = 130, 70
LATER = {"fresh": STEPS, **dict.fromkeys(("after", "again", "ended", "changed"), STEPS - STOPPED)}
"""Steps of the next ``learn`` where the stop is not inside of one."""


MEANT: dict[str, Callable[[Any], bool]] = {
    "two": lambda state: len(state["target_cache"]["rows"]) > 0,
    "interrupted": lambda state: state["hold_statistics"]["cuts"].any(),
    "one step": lambda state: state["replay"]["trees"] is None,
    "the paper's update": lambda state: len(state["target_cache"]["rows"]) > 0,
    "dictionaries": lambda state: set(state["replay"]["store"]) == {"where", "late"},
    "pictures": lambda state: state["replay"]["store"]["own"].dtype == np.uint8,
    "wrapped around": lambda state: state["replay"]["n_added"] > len(state["replay"]["ring"]["left"]),
    "momentum": lambda state: set(state["optimizer"]["slots"][0]) == {"momentum_buffer"},
    "episode": lambda state: "train/loss" in state["log"],
    "fresh": lambda state: [episode["seed"] for episode in state["environment"]["episodes"]] == [None, None],
    "all wrappers": lambda state: len(state["environment"]["layers"]) == 3,
    "levers": lambda state: (
        state["numbers"]["greedy_hold"] > 1.0
        and any(name.startswith("q_net_average.") for name in state["networks"])
        and state["replay"]["reward_range"].any()
        and len(state["replay"]["trees"]["leaves"]) == 1
    ),
    "levers with own draws": lambda state: len(state["replay"]["trees"]["leaves"]) == 3,
}
"""What a case is there for, as seen in its state."""


def build(case: Case, seed: int | None) -> Any:
    env: Any = {"env": Drift()}.get(case.given or "", case.given)
    if env is None:
        processes = {"vec_env_cls": SubprocVecEnv, "vec_env_kwargs": {"start_method": "fork"}}
        env = make_vec_env(
            Drift, case.n_envs, env_kwargs={"kind": case.kind}, **processes if case.processes else {}
        )
        for wrapper in case.wrappers:
            env = wrapper(env)
    defaults = {
        "k_max": 4,
        "seed": seed,
        "learning_rate": 0.01,
        "learning_starts": 24,
        "target_update_interval": 26,
        "buffer_size": 400,
        "batch_size": 8,
        "exploration_fraction": 0.8,
        "exploration_final_eps": 0.3,
        "policy_kwargs": {"net_arch": [8]},
        "head_arch": [4],
        "device": "cpu",
    }
    if "persistences" in case.arguments:
        del defaults["k_max"]
    return case.agent(case.policy, env, **{**defaults, **case.arguments})


class Stopping(BaseCallback):
    """Asks for the state once, at a rollout that suits the case, and remembers how many rows were logged then."""

    def __init__(self, stop: str, rows: list[Any]) -> None:
        super().__init__()
        self.stop, self.rows = stop, rows
        self.state: Any = None
        self.stopped_at = -1

    def _on_rollout_start(self) -> None:
        done = self.state is not None and (self.stop != "episode" or self.at_an_end)
        if self.num_timesteps >= STOPPED or self.stop == "start":
            running = in_the_middle(self.model)
            if not done and (running or self.stop == "start"):
                # Normal numbers are drawn in pairs: the second of each waits.
                random.gauss(0, 1)
                np.random.randn()  # noqa: NPY002 - SB3's generator
                self.state, self.stopped_at, self.n_rows = self.model.state(), self.num_timesteps, len(self.rows)
                self.at_an_end = False

    def _on_step(self) -> bool:
        if self.num_timesteps == self.stopped_at + 1:
            self.at_an_end = bool(self.locals["dones"].any())
        return True


class Ending(BaseCallback):
    """Ends the training early."""

    def _on_step(self) -> bool:
        return self.num_timesteps < STOPPED


def in_the_middle(model: Any) -> bool:
    episodes = model.env.env_method("episode_state")
    steps = np.array([len(episode["actions"]) for episode in episodes])
    return bool(((model.clock.left > 0) & (steps > 0)).any())


def logged(model: PerDQN) -> list[dict[str, Any]]:
    captured = Captured()
    model.set_logger(Logger(None, [captured]))
    return captured.rows


def train(name: str, folder: Path) -> dict[str, Any]:
    """Train without a stop, write the state at the stop, and return what is inside at the end."""
    case = CASES[name]
    model = build(case, seed=5)
    rows = logged(model)
    if case.stop in LATER:
        if case.stop != "fresh":
            ending = Ending() if case.stop == "ended" else None
            model.learn(STOPPED if ending is None else STEPS, callback=ending, log_interval=1)
        if case.stop == "changed":
            assert len(model.target_cache.known(model)) > 0
            model.q_net_target.load_state_dict(model.q_net.state_dict())
        state, n_rows = model.state(), len(rows)
        save(folder, {"state": state, "rest": LATER[case.stop]})
        model.learn(LATER[case.stop], log_interval=1, reset_num_timesteps=case.stop in ("fresh", "again"))
    else:
        stopping = Stopping(case.stop, rows)
        model.learn(STEPS, callback=stopping, log_interval=1)
        assert stopping.state is not None
        state, n_rows = stopping.state, stopping.n_rows
        save(folder, {"state": state, "rest": STEPS - stopping.stopped_at})
        assert case.stop != "episode" or stopping.at_an_end
    assert name not in MEANT or MEANT[name](state), name
    found = inside(model, rows[n_rows:])
    model.env.close()
    return found


def go_on(folder: Path) -> None:
    """In another process: bring every training back and finish it."""
    th.set_num_threads(1)
    for index, (name, case) in enumerate(CASES.items()):
        saved = load(folder / str(index))
        model = build(case, seed=None)
        rows = logged(model)
        try:
            model.restore(saved["state"])
        except ValueError as error:
            save(folder / f"{index}.end", {"refused": str(error)})
            continue
        assert case.stop not in ("running", "episode") or in_the_middle(model), name
        model.learn(saved["rest"], log_interval=1, reset_num_timesteps=case.stop in ("fresh", "again"))
        save(folder / f"{index}.end", inside(model, rows))
        model.env.close()


RING = ("actions", "rewards", "dones", "timeouts", "left", "next_row")
WINDOWS = ("episode_decisions", "holds", "cuts")
COUNTERS = ("num_timesteps", "_episode_num", "_n_calls", "_n_updates", "_total_timesteps")


def inside(model: Any, rows: list[dict[str, Any]]) -> dict[str, Any]:
    """Everything a training is made of, read from the parts themselves; the environment goes on a little."""
    buffer, optimizer = model.replay_buffer, model.policy.optimizer
    stores = getattr(buffer.store, "parts", {"all": buffer.store})
    found = {
        "weights": {name: value.numpy().copy() for name, value in model.policy.state_dict().items()},
        "optimizer": [
            {name: np.asarray(value) for name, value in optimizer.state[parameter].items()}
            for group in optimizer.param_groups
            for parameter in group["params"]
        ],
        "learning rate": optimizer.param_groups[0]["lr"],
        "ring": {name: getattr(buffer, name) for name in RING},
        "store": {key: [part.own, part.lent, list(part.free)] for key, part in stores.items()},
        "ring position": [buffer.n_added, buffer.pos, buffer.full, buffer.pending],
        "trees": None if buffer.trees is None else [buffer.trees.sums, buffer.trees.least, buffer.trees.largest],
        "kept": [*model.target_cache.state(model).values()],
        "clock": [getattr(model.clock, name) for name in ("action", "planned", "elapsed", "left", "exploratory")],
        "holds": [model.hold_statistics.decisions, model.hold_statistics._open],
        "windows": [list(map(int, getattr(model.hold_statistics, name))) for name in WINDOWS],
        "losses": [getattr(model.update_statistics, name) for name in ("_losses", "_targets", "_count")],
        "episodes": [[str(info["r"]), str(info["l"])] for info in model.ep_info_buffer],
        "successes": [bool(success) for success in model.ep_success_buffer],
        "numbers": [getattr(model, name) for name in COUNTERS],
        "schedules": [model.exploration_rate, model._current_progress_remaining, model.greedy_hold],
        "rewards seen": [buffer.reward_low, buffer.reward_high],
        "observations": [by_key(model._last_obs), by_key(model._last_original_obs), model._last_episode_starts],
        "rows": [{key: plain(value) for key, value in row.items() if not key.startswith("time/")} for row in rows],
        "draws": [random.random(), random.gauss(0, 1), np.random.randn(3), th.rand(3).numpy()],  # noqa: NPY002
        "sampled": [int(model.action_space.sample()) for _ in range(8)],
        "steps": [],
    }  # fmt: skip
    for step in range(30):
        observation, reward, done, _ = model.env.step(np.full(model.n_envs, step % model.action_space.n))
        found["steps"].append([by_key(observation), reward, done])
    normalizer = model.get_vec_normalize_env()
    if normalizer is not None:
        moments = [normalizer.ret_rms, *getattr(normalizer.obs_rms, "values", lambda: [normalizer.obs_rms])()]
        found["moments"] = [[np.asarray(part.mean), np.asarray(part.var), float(part.count)] for part in moments]
        found["returns"] = normalizer.returns
    return found


def by_key(observation: Any) -> Any:
    return dict(observation) if isinstance(observation, dict) else observation


def plain(value: Any) -> Any:
    return value.item() if isinstance(value, np.generic) else value


# From process to process: arrays and JSON alone -----------------------------------------------------------------


def leaves(tree: Any, path: tuple[Any, ...] = ()) -> Iterator[tuple[tuple[Any, ...], Any]]:
    """Every value that is no dictionary or list, with the keys that lead to it."""
    if isinstance(tree, dict | list):
        for key, value in tree.items() if isinstance(tree, dict) else enumerate(tree):
            yield from leaves(value, (*path, key))
    else:
        yield path, tree


def save(folder: Path, tree: dict[str, Any]) -> None:
    arrays: dict[str, np.ndarray] = {}

    def document(part: Any) -> Any:
        if type(part) is dict:
            assert all(type(key) is str for key in part), part.keys()
            return {key: document(value) for key, value in part.items()}
        if type(part) is list:
            return [document(value) for value in part]
        if type(part) is np.ndarray:
            assert part.dtype.kind in "biuf", part.dtype
            arrays[str(len(arrays))] = part
            return {"array": len(arrays) - 1}
        assert part is None or type(part) in (bool, int, float, str), type(part)
        return part

    folder.mkdir()
    (folder / "tree.json").write_text(json.dumps(document(tree), allow_nan=False), encoding="utf-8")
    np.savez(folder / "arrays.npz", **arrays)  # type: ignore[arg-type]


def load(folder: Path) -> dict[str, Any]:
    with np.load(folder / "arrays.npz", allow_pickle=False) as file:
        arrays = {int(key): file[key] for key in file.files}

    def tree(part: Any) -> Any:
        if isinstance(part, dict):
            return arrays[part["array"]] if set(part) == {"array"} else {k: tree(v) for k, v in part.items()}
        return [tree(value) for value in part] if isinstance(part, list) else part

    return tree(json.loads((folder / "tree.json").read_text(encoding="utf-8")))


def differences(first: Any, second: Any) -> list[str]:
    """Where two trees are not the same, bit for bit."""
    ones, others = dict(leaves(first)), dict(leaves(second))
    different = [path for path in ones.keys() | others.keys() if not same(ones.get(path), others.get(path))]
    return sorted(".".join(map(str, path)) for path in different)


def same(one: Any, other: Any) -> bool:
    if isinstance(one, np.ndarray) and isinstance(other, np.ndarray):
        return (one.dtype, one.shape, one.tobytes()) == (other.dtype, other.shape, other.tobytes())
    return type(one) is type(other) and one == other


# Bit for bit ----------------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def finished(tmp_path_factory: pytest.TempPathFactory) -> dict[str, tuple[Any, Any]]:
    """For every case, what was inside at the end: without a stop, and with one."""
    folder = tmp_path_factory.mktemp("exact")
    before = th.get_num_threads()
    th.set_num_threads(1)
    try:
        never_stopped = {name: train(name, folder / str(index)) for index, name in enumerate(CASES)}
    finally:
        th.set_num_threads(before)
    code = "import sys, pathlib, tests.deep.exact.test_agent_state as this; this.go_on(pathlib.Path(sys.argv[1]))"
    paths = os.pathsep.join([str(ROOT), *filter(None, [os.environ.get("PYTHONPATH")])])
    subprocess.run(
        [sys.executable, "-c", code, str(folder)], check=True, env={**os.environ, "PYTHONPATH": paths}, timeout=300
    )
    brought_back = [load(folder / f"{index}.end") for index in range(len(CASES))]
    return {name: (whole, back) for (name, whole), back in zip(never_stopped.items(), brought_back, strict=True)}


@pytest.mark.parametrize("name", CASES)
def test_in_another_process_the_training_goes_on_as_if_it_had_never_stopped(finished, name):
    never_stopped, brought_back = finished[name]
    assert differences(never_stopped, brought_back) == []


def test_restoring_undoes_whatever_the_agent_did_before():
    case = CASES["two"]
    model, other = build(case, seed=1), build(case, seed=2)
    state = model.learn(70).state()
    other.learn(151)
    other.restore(state)
    np.testing.assert_equal(other.state(), state)
    positions = [(buffer.pos, buffer.full, buffer.size()) for buffer in (other.replay_buffer, model.replay_buffer)]
    assert positions[0] == positions[1]
    other.learn(30, reset_num_timesteps=False)
    went_on = inside(other, [])
    model.restore(state)
    model.learn(30, reset_num_timesteps=False)
    assert differences(inside(model, []), went_on) == []


def test_what_is_recorded_goes_on_in_any_logger(tmp_path):
    """Of the training that was saved, and nothing that was recorded before it was restored."""
    model = small(learning_starts=1000)
    logged(model)
    model.learn(8)
    model.logger.record("own", 3, exclude="stdout")
    for value in (np.float32(0.1), np.float32(0.7)):
        model.logger.record_mean("mean", value)
    model.logger.record("picture", object())
    state = model.state()
    save(tmp_path / "state", state)
    for set_before in (True, False):
        other = small(learning_starts=1000)
        rows = logged(other) if set_before else []
        other.learn(3)
        other.logger.record("stray", 1)
        other.restore(load(tmp_path / "state"))
        np.testing.assert_equal(other.state()["log"], state["log"])
        rows = rows if set_before else logged(other)
        other.logger.record("later", 2)
        other.learn(1, reset_num_timesteps=False)
        other.logger.record_mean("mean", np.float32(1.0))
        model.logger.record_mean("mean", np.float32(1.0))
        found = other.logger.name_to_value
        assert (found["own"], found["later"], found["mean"]) == (3, 2, model.logger.name_to_value["mean"])
        assert type(found["mean"]) is type(model.logger.name_to_value["mean"])
        assert other.logger.name_to_excluded["own"] == ("stdout",)
        assert "stray" not in found
        model.logger.name_to_value["mean"], model.logger.name_to_count["mean"] = (
            state["log"]["mean"]["value"][()],
            2,
        )


def test_a_state_is_a_copy():
    model = build(CASES["all wrappers"], seed=1)
    model.learn(60)
    state = model.state()
    before = copy.deepcopy(state)
    model.learn(40, reset_num_timesteps=False)
    np.testing.assert_equal(state, before)
    model.restore(state)
    model.learn(40, reset_num_timesteps=False)
    np.testing.assert_equal(state, before)


# The parts ------------------------------------------------------------------------------------------------------


@given(
    data=st.data(), n_trees=st.integers(1, 3), capacity=st.integers(1, 21), alpha=st.sampled_from([0.0, 0.6, 1.0])
)
def test_trees_grow_again_from_their_leaves(data, n_trees, capacity, alpha):
    trees, restored = PriorityTrees(n_trees, capacity, alpha), PriorityTrees(n_trees, capacity, alpha)
    n_rows = data.draw(st.integers(1, capacity))
    for _ in range(data.draw(st.integers(0, 12))):
        rows = np.array(data.draw(st.lists(st.integers(0, n_rows - 1), min_size=1, max_size=4)))
        action = data.draw(st.sampled_from(["enter", "remove", "update"]))
        if action == "enter":
            some = np.arange(n_trees) < data.draw(st.integers(1, n_trees))
            trees.enter(rows, np.tile(some, (len(rows), 1)))
        elif action == "remove":
            trees.remove(rows)
        else:
            errors = st.lists(st.floats(1e-6, 1e9), min_size=n_trees * len(rows), max_size=n_trees * len(rows))
            trees.update(np.tile(rows, (n_trees, 1)), np.array(data.draw(errors)).reshape(n_trees, -1))
    restored.enter(np.arange(capacity), np.ones((capacity, n_trees), dtype=np.bool_))
    restored.restore(trees.state(n_rows), n_rows)
    for name in ("sums", "least", "largest"):
        assert same(getattr(restored, name), getattr(trees, name)), name


def test_kept_values_are_those_of_the_state_alone():
    model, other = small().learn(40), small().learn(40)
    expected = model.target_cache.state(model)
    assert len(expected["rows"]) > 0
    other.target_cache.values_of(other, np.arange(10))
    other.restore(model.state())
    found = other.target_cache.state(other)
    assert [same(found[name], expected[name]) for name in ("rows", "values")] == [True, True]


# Other agents ---------------------------------------------------------------------------------------------------


class Another(OptionDQN):
    """An agent that never learns."""

    @property
    def views(self):
        return Views(self.k_max)

    def _random_durations(self, n):
        return np.ones(n, dtype=np.int64)

    def _update(self, batch_size, beta):
        raise NotImplementedError


def small(**arguments: Any) -> PerDQN:
    return build(Case(arguments=arguments), seed=0)


@pytest.fixture(scope="module")
def small_state() -> dict[str, Any]:
    return small().learn(40).state()


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("k_max", 3),
        ("buffer_size", 399),
        ("gamma", 0.5),
        ("bootstrap", False),
        ("prioritized", False),
        ("priority_alpha", 0.5),
        ("timeout_is_terminal", True),
        ("target_value", "options"),
        ("tau", 0.25),
        ("batch_size", 3),
        ("learning_rate", 0.125),
        ("interrupt_margin", 0.5),
        ("normalize_observations", "space"),
    ],
)
def test_a_state_of_an_agent_with_other_arguments_is_refused(small_state, name, value):
    own, other = small_state["made_of"][name], {name: value}
    with pytest.raises(ValueError, match=f"^the saved state must be of an agent with {name}={value}, not {own}$"):
        small(**other).restore(small_state)


@pytest.mark.parametrize(
    ("other", "sentence"),
    [
        (lambda: build(Case(2), 0), "the saved state must be of an agent with n_envs=2, not 1"),
        (lambda: Another("MlpPolicy", Drift()), "of an agent with agent=Another, not PerDQN"),
        (lambda: PerDQN("MlpPolicy", "MountainCar-v0"), r"of an agent with observation_space=Box\("),
        (lambda: PerDQN("MlpPolicy", FewerActions()), r"action_space=Discrete\(2\), not Discrete\(3\)"),
        (lambda: small(policy_kwargs={"net_arch": [8, 8]}), "'q_net.* is missing"),
        (lambda: small(policy_kwargs={"net_arch": [7]}), "must have an array of shape"),
        (
            lambda: small(policy_kwargs={"net_arch": [8], "optimizer_class": th.optim.RMSprop}),
            "of an agent with optimizer=RMSprop, not Adam",
        ),
        (
            lambda: small(policy_kwargs={"net_arch": [8], "optimizer_kwargs": {"amsgrad": True}}),
            "of an optimiser with the same settings",
        ),
        (lambda: build(Case(wrappers=(stacked,)), 0), "of an agent with observation_space=Box"),
        (lambda: build(Case(wrappers=(monitored,)), 0), "env must not be wrapped in VecMonitor"),
    ],
)  # fmt: skip
def test_a_state_of_another_agent_is_refused(small_state, other, sentence):
    with pytest.raises(ValueError, match=sentence) as error:
        other().restore(small_state)
    assert SENTENCE.fullmatch(str(error.value))


class Asking(BaseCallback):
    """Asks for the state where the agent is in the middle of something."""

    def __init__(self, moment: str) -> None:
        super().__init__()
        setattr(self, moment, self.ask)

    def ask(self) -> bool:
        with pytest.raises(ValueError, match=r"^state\(\) must be called between two rollouts"):
            self.model.state()
        self.asked = True
        return True

    def _on_step(self) -> bool:
        return True


@pytest.mark.parametrize("moment", ["_on_step", "_on_rollout_end"])
def test_in_the_middle_of_a_rollout_there_is_no_state(moment):
    asking = Asking(moment)
    model = small().learn(40, callback=asking)
    assert asking.asked
    model.state()


def test_a_state_of_larger_networks_is_refused():
    state = small(policy_kwargs={"net_arch": [8, 8]}).state()
    with pytest.raises(ValueError, match="the saved state must be of networks with the same layers"):
        small().restore(state)


def test_a_state_of_other_moments_is_refused():
    saved, own = (
        build(Case(wrappers=(partial(VecNormalize, norm_obs=norm_obs),)), 0) for norm_obs in (True, False)
    )
    with pytest.raises(ValueError, match="env must have a VecNormalize that normalises what the saved one does"):
        own.restore(saved.state())


def test_a_newer_state_is_refused(small_state):
    with pytest.raises(ValueError, match=f"^the saved state must have format {FORMAT}, not {FORMAT + 1}$"):
        small().restore({**small_state, "format": FORMAT + 1})


def test_an_agent_without_an_environment_has_no_state(tmp_path, small_state):
    small().save(tmp_path / "agent")
    loaded = PerDQN.load(tmp_path / "agent", device="cpu")
    with pytest.raises(ValueError, match=r"^state\(\) needs an agent with an environment$"):
        loaded.state()
    with pytest.raises(ValueError, match=r"^restore\(\) needs an agent with an environment$"):
        loaded.restore(small_state)


# Damaged states -------------------------------------------------------------------------------------------------

SENTENCE = re.compile(r"(the saved state|env|clock state) [^\n]*[^.\n]")
GONE = object()


@pytest.fixture(scope="module", params=["two", "all wrappers"])
def saved(request: pytest.FixtureRequest) -> tuple[PerDQN, dict[str, Any]]:
    case = CASES[request.param]
    model = build(case._replace(arguments={**case.arguments, "stats_window_size": 2}), seed=3)
    model.learn(70)
    return model, model.state()


def replaced(tree: Any, path: tuple[Any, ...], change: Callable[[Any], Any]) -> Any:
    """A copy of a tree with another value in one place, or without it."""
    if not path:
        return change(tree)
    found = tree.copy()
    value = replaced(tree[path[0]], path[1:], change)
    if value is GONE:
        del found[path[0]]
    else:
        found[path[0]] = value
    return found


def branches(tree: Any, path: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
    """Where there is anything: the keys that lead to it."""
    if path:
        yield path
    if isinstance(tree, dict | list):
        for key, value in tree.items() if isinstance(tree, dict) else enumerate(tree):
            yield from branches(value, (*path, key))


def verdict(model: PerDQN, state: Any) -> str:
    """``"refused"`` in one sentence, ``"accepted"``, or what else happened."""
    try:
        model.restore(state)
    except InputError as error:
        return "refused" if SENTENCE.fullmatch(str(error)) else f"ValueError: {error}"
    except Exception as error:
        return f"{type(error).__name__}: {error}"
    return "accepted"


def not_refused(
    saved: tuple[PerDQN, dict[str, Any]], paths: Iterator[tuple[Any, ...]], change: Callable[[Any], Any]
) -> set[str]:
    """Which damages did not lead to one sentence; of those that are no harm, the place alone."""
    model, state = saved
    found = set()
    for path in paths:
        what = verdict(model, replaced(state, path, change))
        if what != "refused":
            place = ".".join("#" if isinstance(key, int) else key for key in path)
            place = re.sub(r"^log\.[^.]*", "log.*", place)
            found.add(place if what == "accepted" else f"{place}: {what}")
    assert verdict(model, state) == "accepted"
    return found


EARLIER = "environment.episodes.#.earlier"
LISTED = {
    *("episodes.#", "episodes.#.t", "successes.#", "log.*", "log.*.excluded.#"),
    *(EARLIER, f"{EARLIER}.kept.#"),
}
"""Windows of the last episodes, what is to be logged and the sample of earlier episodes may have any length; only
the mean return and length are needed."""


def test_nothing_may_be_missing(saved):
    assert not_refused(saved, branches(saved[1]), lambda _: GONE) == LISTED


ARRAYS = {
    "longer": lambda array: np.concatenate([np.atleast_1d(array), np.zeros((1, *array.shape[1:]), array.dtype)]),
    "deeper": lambda array: array[None],
    "half as exact": lambda array: array.astype(np.float16),
    "whole": lambda array: array.astype(np.int16),
    "objects": lambda array: array.astype(object),
    "text": lambda array: array.astype(str),
    "gone": lambda array: None,
}  # fmt: skip
SEEN = {
    f"observations.{name}{key}" for name in ("_last_obs", "_last_original_obs") for key in ("", ".late", ".where")
}
SHOWN = {f"environment.layers.#.{name}" for name in ("old_reward", "old_obs.late", "old_obs.where")}
WHOLE = {f"clock.{name}" for name in ("action", "planned", "elapsed", "left")}
HARMLESS_ARRAYS = {
    "longer": {f"hold_statistics.{name}" for name in WINDOWS},
    # Environments may show and take numbers of another type than their spaces say.
    "half as exact": {
        *SEEN,
        *SHOWN,
        "environment.episodes.#.actions",
        f"{EARLIER}.kept.#.actions",
        "episodes.#.r",
    },
    "whole": {*SEEN, *SHOWN, *WHOLE, "environment.episodes.#.actions", f"{EARLIER}.kept.#.actions"},
    # An agent that has seen nothing begins anew.
    "gone": {*SEEN, "episode_starts"},
}


@pytest.mark.filterwarnings("ignore:overflow encountered in cast", "ignore:invalid value encountered in cast")
@pytest.mark.parametrize("damage", ARRAYS)
def test_every_array_must_be_of_its_type_and_shape(saved, damage):
    paths = (path for path, value in leaves(saved[1]) if isinstance(value, np.ndarray))
    assert not_refused(saved, paths, ARRAYS[damage]) <= HARMLESS_ARRAYS.get(damage, set())


VALUES: dict[str, Any] = {
    "none": None,
    "text": "x",
    "below 0": -1,
    "huge": 10**400,
    "list": [],
    "array": np.zeros(3),
}
LOGGED = {"log.*.value", "episodes.#.r", "episodes.#.l", "episodes.#.t", "successes.#"}
TUNED = {f"optimizer.groups.#.{name}" for name in ("lr", "betas.#", "eps", "weight_decay")}
HARMLESS_VALUES = {
    # Some are None as they are.
    "none": {"environment.episodes.#.options", f"{EARLIER}.kept.#.options", "environment.seeds.#",
             "optimizer.groups.#.foreach", "generators.python.gauss", "episodes.#.t"},
    "text": {"log.*.value", "log.*.excluded.#", "episodes.#.t"},
    "below 0": {*LOGGED, *TUNED, "numbers._current_progress_remaining", "numbers.exploration_rate",
                "environment.episodes.#.episode", "environment.episodes.#.action_space.has_uint32",
                "generators.python.gauss", "generators.numpy.gauss", "generators.actions.has_uint32"},
    # Seeds may have any number of digits.
    "huge": {"environment.episodes.#.run_seed", "environment.seeds.#", "episodes.#.t"},
}  # fmt: skip


@pytest.mark.parametrize("damage", VALUES)
def test_every_value_must_be_of_its_kind(saved, damage):
    paths = (path for path, value in leaves(saved[1]) if not isinstance(value, np.ndarray))
    found = not_refused(saved, paths, lambda _: VALUES[damage])
    assert found <= HARMLESS_VALUES.get(damage, {"episodes.#.t"})


@pytest.mark.parametrize(
    ("place", "change"),
    [
        ("counters.num_timesteps", lambda _: 2**63),
        ("replay.n_added", lambda _: 10**30),
        ("replay.n_added", lambda added: added + 1),
        ("replay.pending", lambda pending: pending + 1000),
        ("replay.pending", lambda pending: pending - 1000),
        ("replay.ring.actions", lambda actions: actions + 3),
        ("replay.ring.actions", lambda actions: actions - 3),
        ("replay.ring.left", lambda left: left + 2000),
        ("replay.ring.left", lambda left: left - 2000),
        ("replay.ring.rewards", lambda rewards: rewards * np.nan),
        ("replay.ring.next_row", lambda rows: rows + 2),
        ("replay.ring.next_row", lambda rows: rows + 10**6),
        ("replay.ring.next_row", lambda rows: rows - 10**6),
        ("replay.ring.next_row", lambda rows: np.where(rows == rows[0, 0], -2, rows)),
        ("replay.ring.next_row", lambda rows: np.where(rows > 401, rows.max(), rows)),
        ("replay.store.free", lambda free: free + 1),
        ("replay.store.free", lambda free: free * 0),
        ("replay.store.free", lambda free: free[1:]),
        ("replay.store.free", lambda free: free - 100),
        ("replay.trees.leaves", lambda leaves: -leaves),
        ("replay.trees.leaves", lambda leaves: leaves + np.inf),
        ("replay.trees.leaves", lambda leaves: leaves[:, :-1]),
        ("replay.trees.largest", lambda largest: largest * 0),
        ("replay.trees.largest", lambda largest: largest * np.nan),
        ("replay.reward_range", lambda rewards: rewards[::-1] + 1.0),
        ("replay.reward_range", lambda rewards: rewards * np.nan),
        ("numbers.greedy_hold", lambda _: 0.5),
        ("numbers.greedy_hold", lambda _: 99.0),
        ("clock.action", lambda actions: actions + 3),
        ("clock.action", lambda actions: actions - 3),
        ("clock.left", lambda left: left - 9),
        ("clock.elapsed", lambda elapsed: elapsed + 9),
        ("generators.numpy.pos", lambda _: 625),
        ("generators.numpy.has_gauss", lambda _: 2),
        ("generators.python.version", lambda _: 99),
        ("generators.python.words", lambda words: words - 2**40),
        ("generators.torch", lambda words: words * 0 + 255),
        ("generators.actions.state.state", lambda _: 2**128),
        ("generators.actions.state.inc", lambda _: 1.5),
        ("generators.actions.bit_generator", lambda _: "MT19937"),
        ("environment.seeds.0", lambda _: True),
        ("environment.seeds.0", lambda _: -1),
        ("environment.episodes.0.seed", lambda seed: seed + 1),
        ("environment.episodes.0.index", lambda index: index + 1),
        ("environment.episodes.0.digest", lambda digest: digest ^ 1),
        ("environment.episodes.0.actions", lambda actions: np.zeros((3, 3), np.int64)),
        ("environment.episodes.0.actions", lambda actions: np.full(300, 1)),
        ("environment.episodes.0.options", lambda _: 3),
        ("environment.episodes", lambda episodes: episodes[:1]),
        ("environment.episodes", lambda episodes: episodes[::-1]),
        ("environment.layers", lambda layers: [*layers, {"kind": "VecMonitor"}]),
        ("environment.options", lambda options: options[:1]),
        ("episodes", lambda _: None),
        ("successes", lambda _: None),
        ("optimizer.slots.0", lambda slot: {**slot, "more": np.zeros(1)}),
        ("optimizer.slots", lambda slots: slots[1:]),
        ("optimizer.slots", lambda slots: [*slots, slots[0]]),
        ("optimizer.groups", lambda groups: groups * 2),
        ("optimizer.groups.0.betas", lambda betas: betas[:1]),
        ("optimizer.groups.0.lr", lambda _: float("nan")),
    ],
)  # fmt: skip
def test_numbers_that_cannot_be_are_refused(saved, place, change):
    model, state = saved
    path = tuple(int(key) if key.isdecimal() else key for key in place.split("."))
    if path[:2] == ("replay", "store") and "free" not in state["replay"]["store"]:
        # Each key of a dictionary has a store of its own.
        path = (*path[:2], "where", *path[2:])
    assert verdict(model, replaced(state, path, change)) == "refused"
    assert verdict(model, state) == "accepted"


@pytest.mark.parametrize("by", [10**9, -(10**9)])
def test_kept_values_of_rows_that_the_replay_does_not_have_are_refused(small_state, by):
    assert len(small_state["target_cache"]["rows"]) > 0
    damaged = replaced(small_state, ("target_cache", "rows"), lambda rows: rows + by)
    assert verdict(small(), damaged) == "refused"


def test_a_ring_that_is_full_has_no_more_steps_than_can_be_counted():
    model = small(buffer_size=20)
    state = model.learn(45).state()
    assert state["replay"]["ring"]["left"].shape == (21, 1)
    assert verdict(model, replaced(state, ("replay", "n_added"), lambda _: 10**30)) == "refused"
    assert verdict(model, state) == "accepted"


def test_after_all_these_attempts_the_agent_goes_on(saved):
    model, state = saved
    model.restore(state)
    np.testing.assert_equal(model.state(), state)
    model.learn(20, reset_num_timesteps=False)


@pytest.mark.parametrize("state", ["training.npz", None, {}, {"policy": {}}], ids=repr)
def test_what_is_no_state_at_all_is_called_that(state):
    with pytest.raises(ValueError, match=r"^state must be what state\(\) returned$"):
        small().restore(state)


@pytest.mark.parametrize(
    ("part", "damage", "sentence"),
    [
        ("clock", lambda clock: {**clock, "planned": clock["planned"] + 100}, "hold actions for 4 steps at most"),
        (
            "clock",
            lambda clock: {**clock, "left": np.array([2**64 - 1], np.uint64)},
            "durations of at most 2\\*\\*31",
        ),
        ("clock", lambda clock: {**clock, "elapsed": clock["left"] + 2**62}, "durations of at most 2\\*\\*31"),
        (
            "networks",
            lambda nets: {n: np.full_like(a, np.nan) for n, a in nets.items()},
            "finite numbers as 'q_net",
        ),
    ],
)
def test_numbers_that_would_break_it_later_are_refused_now(small_state, part, damage, sentence):
    with pytest.raises(ValueError, match=sentence):
        small().restore({**small_state, part: damage(small_state[part])})


@pytest.mark.parametrize("number", [-1, 16, 99])
def test_observations_that_the_space_does_not_have_are_refused(number):
    model = PerDQN("MlpPolicy", "FrozenLake-v1", k_max=2, learning_starts=5, seed=0, device="cpu").learn(20)
    state = model.state()
    state["replay"]["store"]["own"][3] = number
    with pytest.raises(ValueError, match=r"^the saved state must have observations that its space has$"):
        PerDQN("MlpPolicy", "FrozenLake-v1", k_max=2, learning_starts=5, device="cpu").restore(state)
