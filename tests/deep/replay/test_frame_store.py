"""Each frame once: what is read is what was put, bit for bit, whatever the observations have in common."""

from __future__ import annotations

import pickle
from typing import Any

import gymnasium as gym
import numpy as np
import pytest
from gymnasium import spaces
from gymnasium.wrappers import FrameStackObservation
from hypothesis import given, settings
from hypothesis import strategies as st
from stable_baselines3.common.vec_env import DummyVecEnv, VecFrameStack, VecTransposeImage

from holdfast import PerDQN
from holdfast.core.errors import InputError
from holdfast.deep import OptionReplayBuffer, make_vec_env
from holdfast.deep.replay import frame_store, memory, ring_arrays
from holdfast.deep.replay.frame_store import FrameStore, may_share_frames
from holdfast.deep.replay.observation_store import ArrayStore
from holdfast.deep.replay.stores import make_store

SIDE = 24  # 576 bytes are enough for a frame of its own


class Film(gym.Env[Any, int]):
    """Noise, a new picture at every step; episodes end at random, terminated, truncated or both."""

    action_space = spaces.Discrete(3)

    def __init__(self, channels: int = 1, side: int = SIDE) -> None:
        self.observation_space = spaces.Box(0, 255, (side, side, channels), np.uint8)

    def picture(self) -> Any:
        return self.np_random.integers(0, 256, self.observation_space.shape, dtype=np.uint8)

    def reset(self, *, seed: int | None = None, options: dict[str, Any] | None = None) -> tuple[Any, dict]:
        super().reset(seed=seed)
        return self.picture(), {}

    def step(self, action: int) -> tuple[Any, float, bool, bool, dict]:
        terminated, truncated = (self.np_random.random(2) < 0.1).tolist()
        return self.picture(), float(action), terminated, truncated, {}


class Squeezed(gym.ObservationWrapper[Any, int, Any]):
    """Without the axis of the one channel."""

    def __init__(self, env: Any) -> None:
        super().__init__(env)
        self.observation_space = spaces.Box(0, 255, (SIDE, SIDE), np.uint8)

    def observation(self, observation: Any) -> Any:
        return observation[..., 0]


ENVIRONMENTS = {
    # Black frames at an episode's beginning.
    "SB3": lambda n_envs: VecTransposeImage(VecFrameStack(DummyVecEnv([Film] * n_envs), 4)),
    "SB3, colours": lambda n_envs: VecTransposeImage(
        VecFrameStack(DummyVecEnv([lambda: Film(channels=3)] * n_envs), 3)
    ),
    # The first frame several times at an episode's beginning.
    "Gymnasium": lambda n_envs: DummyVecEnv([lambda: FrameStackObservation(Squeezed(Film()), 4)] * n_envs),
    # No stack.
    "colours": lambda n_envs: VecTransposeImage(DummyVecEnv([lambda: Film(channels=3)] * n_envs)),
}


class Twins:
    """Two replays that are written side by side: images as frames, and as whole observations in one array."""

    def __init__(self, env: Any, capacity: int, k_max: int = 3) -> None:
        self.env, self.observation = env, env.reset()
        self.frames, self.stacks = (
            OptionReplayBuffer(
                capacity, env.observation_space, env.action_space, "cpu", n_envs=env.num_envs, k_max=k_max
            )
            for _ in range(2)
        )
        self.stacks.store = ArrayStore(
            self.stacks.n_slots * env.num_envs, env.observation_space.shape, env.observation_space.dtype
        )
        assert isinstance(self.frames.store, FrameStore)
        self.replays = [self.frames, self.stacks]
        self.log: list[tuple[Any, Any]] = []
        self.random = np.random.default_rng(3)

    def add(self, observation: Any, following: Any, done: Any, infos: Any, over: Any) -> None:
        n_envs = self.env.num_envs
        action, reward = self.random.integers(0, 3, (n_envs, 1)), np.ones(n_envs)
        self.log.append((np.array(observation), np.array(following)))
        for replay in self.replays:
            replay.add(observation, following, action, reward, done, infos, over)

    def step(self) -> None:
        n_envs = self.env.num_envs
        observation = self.observation.copy()
        self.observation, _, done, infos = self.env.step(np.zeros(n_envs, dtype=np.int64))
        following = self.observation.copy()
        for index in np.flatnonzero(done):
            following[index] = infos[index]["terminal_observation"]
        if self.random.random() < 0.2:  # holds that are interrupted
            mask = self.random.random(n_envs) < 0.5
            for replay in self.replays:
                replay.finish(mask)
        self.add(observation, following, done, infos, self.random.random(n_envs) < 0.4)

    def extend(self, count: int) -> None:
        """Steps that have nothing to do with each other."""
        shape, n_envs = self.env.observation_space.shape, self.env.num_envs
        for _ in range(count):
            pair = self.random.integers(0, 256, (2, n_envs, *shape), dtype=np.uint8)
            done = self.random.random(n_envs) < 0.3
            self.log.append((pair[0].copy(), pair[1].copy()))
            for replay in self.replays:
                replay.extend(
                    [pair[0]], [pair[1]], [np.zeros((n_envs, 1))], [np.zeros(n_envs)], [done], [[{}] * n_envs]
                )

    def check(self) -> None:
        ours, theirs = self.frames, self.stacks
        np.testing.assert_array_equal(ours.next_row, theirs.next_row)
        np.testing.assert_array_equal(ours.left, theirs.left)
        np.testing.assert_array_equal(ours.written, theirs.written)
        assert ours.store.free == theirs.store.free
        np.testing.assert_array_equal(ours.store.own, theirs.store.own)
        np.testing.assert_array_equal(ours.observations, theirs.observations)
        # Rows that nobody has borrowed may hold anything.
        lent = ours.next_row[ours.next_row >= ours.n_slots * ours.n_envs]
        np.testing.assert_array_equal(ours.store.get(lent), theirs.store.get(lent))
        for age, (observation, following) in enumerate(reversed(self.log[-ours.buffer_size :])):
            slot = (ours.n_added - 1 - age) % ours.n_slots
            np.testing.assert_array_equal(ours.store.get(ours._rows(slot)), observation)
            np.testing.assert_array_equal(ours.store.get(ours.next_row[slot]), following)
        if ours.drawable.any():
            batches = []
            for replay in (ours, theirs):
                np.random.seed(1)  # noqa: NPY002 - the buffer's generator
                batches.append(replay.sample(16))
            assert (batches[0].observations == batches[1].observations).all()
            assert batches[0].observations.shape == batches[1].observations.shape
            assert batches[0].observations.dtype == batches[1].observations.dtype
        assert_each_frame_is_kept_once(ours.store)


def assert_each_frame_is_kept_once(store: FrameStore) -> None:
    planes = np.concatenate([store.own, store.lent]).reshape(-1, *store.shape[1:])
    contents = {plane.tobytes() for plane in planes if plane.any()}
    assert store.pool.n_used == len(contents)
    numbers = np.concatenate([store.numbers.own.ravel(), store.numbers.lent.ravel()])
    counts = np.bincount(numbers, minlength=len(store.pool.frames))
    np.testing.assert_array_equal(store.pool.uses[1:], counts[1:])


# Frames ≡ stacks --------------------------------------------------------------------------------------------


@pytest.mark.parametrize("n_envs", [1, 4])
@pytest.mark.parametrize("kind", sorted(ENVIRONMENTS))
def test_what_is_read_is_what_was_put(kind, n_envs):
    twins = Twins(ENVIRONMENTS[kind](n_envs), capacity=40 * n_envs)
    for round_ in range(7):  # several times around the ring
        for _ in range(23):
            twins.step()
        twins.check()
        if round_ == 3:
            twins.extend(15)
            twins.check()
    used, rows = twins.frames.store.pool.n_used, twins.frames.n_slots * n_envs
    planes = twins.env.observation_space.shape[0]
    new = {"SB3": 1, "Gymnasium": 1, "SB3, colours": 3, "colours": 3}[kind]
    # One frame per step, and those of last observations; the oldest rows still use a stack's frames before them.
    ends = len(twins.frames.next_row[twins.frames.next_row >= rows])
    assert rows * new - planes <= used <= (rows + ends) * new + planes * n_envs
    twins.env.close()


@given(st.data())
@settings(max_examples=60)
def test_any_script_of_steps(data):
    """Observations that go on, begin anew in either way, jump, or come back; ends, cuts and lent rows."""
    n_envs, planes = data.draw(st.integers(1, 3), label="n_envs"), data.draw(st.integers(2, 4), label="planes")
    space = spaces.Box(0, 255, (planes, 23, 23), np.uint8)  # 529 bytes are no whole number of words
    env = type("Spaces", (), {"observation_space": space, "action_space": spaces.Discrete(3), "num_envs": n_envs})
    env.reset = staticmethod(lambda: None)
    twins = Twins(env, capacity=data.draw(st.integers(1, 5), label="capacity") * n_envs)

    def new_frame():
        return np.full((23, 23), data.draw(st.integers(0, 5)), dtype=np.uint8)

    def after(stack):
        match data.draw(st.sampled_from(["on", "on", "on", "black", "copies", "jump"])):
            case "on":
                return np.concatenate([stack[1:], new_frame()[None]])
            case "black":
                return np.concatenate([np.zeros_like(stack[1:]), new_frame()[None]])
            case "copies":
                return np.repeat(new_frame()[None], planes, axis=0)
            case _:
                return np.array([new_frame() for _ in range(planes)])

    observation = np.zeros((n_envs, planes, 23, 23), dtype=np.uint8)
    for _ in range(data.draw(st.integers(1, 14), label="steps")):
        following = np.array([after(stack) for stack in observation])
        done = np.array([data.draw(st.integers(0, 4)) == 0 for _ in range(n_envs)])
        over = np.array([data.draw(st.booleans()) for _ in range(n_envs)])
        twins.add(observation, following, done, [{}] * n_envs, over)
        observation = np.array(
            [
                after(stack) if end or data.draw(st.integers(0, 9)) == 0 else stack
                for stack, end in zip(following, done, strict=True)
            ]
        )
    twins.check()
    again = OptionReplayBuffer(
        twins.frames.buffer_size * n_envs, space, env.action_space, "cpu", n_envs=n_envs, k_max=3
    )
    again.restore(twins.frames.state())
    twins.frames = again
    twins.stacks.written = again.written  # stamps begin anew
    twins.check()


def test_comparing_looks_at_every_frame():
    store = make_store(3, spaces.Box(0, 255, (2, 24, 24), np.uint8), (2, 24, 24))
    picture = np.random.default_rng(0).integers(0, 256, (1, 2, 24, 24), dtype=np.uint8)
    store.put(np.array([1]), picture)
    assert store.same(np.array([1]), picture.astype(np.float64)).tolist() == [True]
    for place in ((0, 0, 0, 0), (0, 0, 23, 23), (0, 1, 23, 23)):
        other = picture.copy()
        other[place] ^= 1
        assert store.same(np.array([1]), other).tolist() == [False]
    assert store.same(np.array([0, 1]), np.concatenate([picture * 0, picture])).tolist() == [True, True]


@pytest.mark.parametrize("dtype", [np.uint8, np.bool_, np.int16, np.int64])
def test_types_of_whole_numbers(dtype):
    space = spaces.Box(0, 1, (2, 32, 32), dtype)
    assert may_share_frames(space)
    store = make_store(4, space, space.shape)
    pictures = np.random.default_rng(0).integers(0, 2, (4, *space.shape)).astype(dtype)
    store.put(np.arange(4), pictures)
    found = store.get(np.array([[3, 0], [1, 1]]))
    assert found.dtype == dtype
    np.testing.assert_array_equal(found, pictures[[[3, 0], [1, 1]]])


def test_what_is_read_is_a_copy():
    store = FrameStore(3, (2, 24, 24), np.uint8)
    for row in (0, store.lend()):
        store.put(np.array([row]), np.ones((1, 2, 24, 24)))
        store.get(np.array([row]))[:] = 9
        store.own[:] = 9
        assert (store.get(np.array([row])) == 1).all()


def test_pictures_that_are_neither_contiguous_nor_writable():
    store = FrameStore(3, (2, 24, 24), np.uint8)
    pictures = np.random.default_rng(0).integers(0, 256, (3, 24, 24, 2), dtype=np.uint8).transpose(0, 3, 1, 2)
    pictures.setflags(write=False)
    store.put(np.arange(3), pictures)
    np.testing.assert_array_equal(store.get(np.arange(3)), pictures)


@pytest.mark.parametrize(
    ("space", "is_shared"),
    [
        (spaces.Box(0, 255, (4, 84, 84), np.uint8), True),
        (spaces.Box(0, 255, (12, 84, 84), np.uint8), True),
        (spaces.Box(0, 255, (4, 96, 96, 3), np.uint8), False),  # planes are not the smallest axis
        (spaces.Box(0, 255, (3, 96, 96, 3), np.uint8), True),
        (spaces.Box(0, 255, (1, 84, 84), np.uint8), False),
        (spaces.Box(0, 255, (84, 84, 4), np.uint8), False),
        (spaces.Box(0, 255, (4, 10, 10), np.uint8), False),
        (spaces.Box(0, 255, (4, 84 * 84), np.uint8), False),
        (spaces.Box(0.0, 1.0, (4, 84, 84), np.float32), False),
        (spaces.MultiBinary((4, 84, 84)), False),
        (spaces.Discrete(4), False),
    ],
)
def test_which_spaces_are_kept_as_frames(space, is_shared):
    assert may_share_frames(space) == is_shared


def test_a_part_of_a_dictionary():
    space = spaces.Dict({"film": spaces.Box(0, 255, (2, 24, 24), np.uint8), "speed": spaces.Box(-1, 1, (1,))})
    store = make_store(3, space, {"film": (2, 24, 24), "speed": (1,)})
    assert [type(store.parts[key]) for key in ("film", "speed")] == [FrameStore, ArrayStore]
    rows = [store.lend() for _ in range(70)]
    for row in rows:
        film = np.full((1, 2, 24, 24), row, dtype=np.uint8)
        store.put(np.array([row]), {"film": film, "speed": np.full((1, 1), row)})
    found = store.get(np.array(rows))
    assert found["film"][:, 1, 5, 5].tolist() == found["speed"][:, 0].tolist() == rows
    for row in rows[::2]:
        store.give_back(row)
    again = make_store(3, space, {"film": (2, 24, 24), "speed": (1,)})
    again.restore(store.state(3), 3, np.array(rows[1::2]))
    np.testing.assert_array_equal(again.get(np.array(rows[1::2]))["film"], found["film"][1::2])
    assert store.lend() == again.lend()


# An agent ---------------------------------------------------------------------------------------------------


def trained(env, steps):
    arguments = {"k_max": 3, "buffer_size": 40, "learning_starts": 10, "batch_size": 4, "seed": 5}
    return PerDQN("CnnPolicy", env, policy_kwargs={"net_arch": [8]}, **arguments).learn(steps)


def film_env():
    return VecFrameStack(DummyVecEnv([lambda: Film(side=36)] * 2), 4)


def test_an_agent_learns_the_same_from_either(monkeypatch):
    ours = trained(film_env(), 130)
    assert isinstance(ours.replay_buffer.store, FrameStore)

    def plain(n_rows, space, shape):
        return ArrayStore(n_rows, shape, space.dtype)

    monkeypatch.setattr(ring_arrays, "make_store", plain)
    theirs = trained(film_env(), 130)
    assert isinstance(theirs.replay_buffer.store, ArrayStore)
    for name, value in theirs.policy.state_dict().items():
        assert (value == ours.policy.state_dict()[name]).all(), name


def test_an_agent_that_was_stopped_goes_on_exactly():
    def make():
        return VecFrameStack(make_vec_env(lambda: Film(side=36), 2, seed=5), 4)

    model = trained(make(), 90)
    state = model.state()
    assert set(state["replay"]["store"]) == {"frames", "own", "lent", "free"}
    ends = [model.learn(70, reset_num_timesteps=False).state()]
    again = trained(make(), 0)
    again.restore(state)
    ends.append(again.learn(70, reset_num_timesteps=False).state())
    assert_equal_states(ends[0]["replay"], ends[1]["replay"])
    assert_equal_states(ends[0]["networks"], ends[1]["networks"])
    assert ends[0]["counters"] == ends[1]["counters"]


def test_sb3s_file_of_a_replay(tmp_path):
    model = trained(film_env(), 30)
    expected = model.replay_buffer.store.own
    model.save_replay_buffer(tmp_path / "replay")
    model.load_replay_buffer(tmp_path / "replay")
    np.testing.assert_array_equal(model.replay_buffer.store.own, expected)
    model.learn(200, reset_num_timesteps=False)
    assert_each_frame_is_kept_once(model.replay_buffer.store)


# State ------------------------------------------------------------------------------------------------------


def filled(n_envs=2, steps=97, capacity=40):
    twins = Twins(ENVIRONMENTS["SB3"](n_envs), capacity=capacity)
    for _ in range(steps):
        twins.step()
    return twins


def new_replay(twins):
    env = twins.env
    size = twins.frames.buffer_size * env.num_envs
    return OptionReplayBuffer(size, env.observation_space, env.action_space, "cpu", n_envs=env.num_envs, k_max=3)


def assert_equal_states(one, other):
    assert one.keys() == other.keys()
    for name, value in one.items():
        if isinstance(value, dict):
            assert_equal_states(value, other[name])
        else:
            np.testing.assert_array_equal(value, other[name])


@pytest.mark.parametrize("steps", [0, 1, 7, 97])
def test_a_state_has_frames_and_a_restored_replay_goes_on_alike(steps):
    twins = filled(steps=steps)
    state = pickle.loads(pickle.dumps(twins.frames.state()))
    store = twins.frames.store
    rows = min(steps + 1, twins.frames.n_slots) * 2
    assert state["store"]["frames"].shape == (store.pool.n_used, SIDE, SIDE)
    assert state["store"]["own"].shape == (rows, 4)
    if steps == 97:
        # Less than half of what stacks would be: one frame of four, and the last ones of episodes.
        assert state["store"]["frames"].nbytes < 0.5 * rows * 4 * SIDE * SIDE

    again = new_replay(twins)
    again.add(*(np.ones((2, 4, SIDE, SIDE)),) * 2, np.zeros((2, 1)), np.zeros(2), np.ones(2), [{}] * 2)
    again.restore(state)
    assert_equal_states(again.state(), twins.frames.state())
    twins.replays.append(again)
    for _ in range(60):
        twins.step()
    twins.check()
    assert_equal_states(again.state(), twins.frames.state())
    assert_each_frame_is_kept_once(again.store)


def test_a_state_does_not_depend_on_the_way_there():
    """Frames were found, given up and numbered differently, but the observations are equal."""
    twins = filled()
    state = twins.frames.state()
    stopped = new_replay(twins)
    stopped.restore(state)
    for _ in range(3):
        observation = twins.observation.copy()
        following = np.concatenate([observation[:, 1:], observation[:, :1] ^ 1], axis=1)
        for replay in (twins.frames, stopped):
            replay.add(
                observation, following, np.zeros((2, 1)), np.zeros(2), np.array([True, False]), [{}] * 2, [0, 1]
            )
        twins.observation = following
    assert not np.array_equal(twins.frames.store.numbers.own, stopped.store.numbers.own)
    assert_equal_states(twins.frames.state(), stopped.state())


def test_a_state_of_whole_stacks_is_read_too():
    twins = filled()
    again = new_replay(twins)
    again.restore(twins.stacks.state())
    assert_equal_states(again.state(), twins.frames.state())


def changed(state, name, change):
    return {**state, "store": {**state["store"], name: change(state["store"][name])}}


@pytest.mark.parametrize(
    ("name", "change", "sentence"),
    [
        ("frames", lambda frames: frames[:-1], "must point at frames that it has"),
        ("frames", lambda frames: frames[[*range(len(frames)), 0]], "must have only frames that its replay uses"),
        ("frames", lambda frames: np.repeat(frames, 9, axis=0), "must have an array of length at most"),
        ("frames", lambda frames: frames[:, :-1], "must have an array of shape any×24×24 as 'frames'"),
        ("frames", lambda frames: frames.astype(np.int32), "must have an array of uint8 as 'frames'"),
        ("frames", lambda frames: None, "must have an array of uint8 as 'frames'"),
        ("own", lambda own: own - 1, "must point at frames that it has"),
        ("own", lambda own: own * 0, "must have only frames that its replay uses"),
        ("own", lambda own: own + 1000, "must point at frames that it has"),
        ("own", lambda own: own.astype(np.int64), "must have an array of int32 as 'own'"),
        ("own", lambda own: own[:-1], "must have an array of shape"),
        ("lent", lambda lent: lent + 1, "must have no frames in rows that are free"),
        ("lent", lambda lent: lent[:-1], "must have each row behind its ring either lent or free"),
        ("free", lambda free: free[1:], "must have each row behind its ring either lent or free"),
    ],
)  # fmt: skip
def test_damaged_states_are_refused_in_one_sentence(name, change, sentence):
    twins = filled()
    state, again = twins.frames.state(), new_replay(twins)
    with pytest.raises(InputError, match=f"^the saved state {sentence}"):
        again.restore(changed(state, name, change))


@pytest.mark.parametrize("name", ["frames", "own", "lent", "free"])
def test_states_that_lack_something_are_refused(name):
    twins = filled()
    state = twins.frames.state()
    del state["store"][name]
    with pytest.raises(InputError, match=f"^the saved state is incomplete: '{name}' is missing$"):
        new_replay(twins).restore(state)


# Memory -----------------------------------------------------------------------------------------------------


def test_stacks_take_the_memory_of_one_frame_each():
    twins = filled(n_envs=1, steps=900, capacity=400)
    store = twins.frames.store
    assert store.nbytes == pytest.approx(401 * SIDE * SIDE, rel=0.5)  # an episode ends every five steps
    assert twins.stacks.store.nbytes > 4 * 401 * SIDE * SIDE


def test_room_for_more_is_seldom_made():
    """Making room may copy everything: a last observation every ten steps fits from the start."""
    space = spaces.Box(0, 255, (4, SIDE, SIDE), np.uint8)
    buffer = OptionReplayBuffer(400, space, spaces.Discrete(2), "cpu", k_max=2)
    before, random = len(buffer.store.pool.frames), np.random.default_rng(0)

    def after(stack, black):
        new = random.integers(0, 256, (1, 1, SIDE, SIDE), dtype=np.uint8)
        return np.concatenate([stack[:, 1:] * (not black), new], axis=1)

    stack = np.zeros((1, 4, SIDE, SIDE), dtype=np.uint8)
    for step in range(1, 1000):
        following, done = after(stack, False), np.array([step % 10 == 0])
        buffer.add(stack, following, np.zeros((1, 1)), np.zeros(1), done, [{}])
        stack = after(stack, True) if done[0] else following
    assert len(buffer.store.pool.frames) == before
    # The 401 slots, the 40 last observations, and what the oldest stack still uses.
    assert 401 <= buffer.store.pool.n_used <= 401 + 40 + 3


def test_images_that_will_not_fit_are_refused_early(monkeypatch):
    store = FrameStore(10_000, (3, 24, 24), np.uint8)
    room = 12_000 * 576
    monkeypatch.setattr(memory, "available_bytes", lambda: room)
    monkeypatch.setattr(frame_store, "_FIRST_FORECAST", 64)
    random = np.random.default_rng(0)
    film = random.integers(0, 256, (1, 3, 24, 24), dtype=np.uint8)
    store._forecast_at = 64
    for row in range(200):  # a stack fits
        film = np.concatenate([film[:, 1:], random.integers(0, 256, (1, 1, 24, 24), dtype=np.uint8)], axis=1)
        store.put(np.array([row]), film)
    store = FrameStore(10_000, (3, 24, 24), np.uint8)

    def fill():
        for row in range(200):
            store.put(np.array([row]), random.integers(0, 256, (1, 3, 24, 24), dtype=np.uint8))

    with pytest.raises(
        InputError,
        match=r"^at this buffer_size, the rest of a replay of these images needs 0\.0 GB, but 0\.0 GB",
    ):
        fill()
    # Three frames per row: 22 rows have 64.
    assert np.count_nonzero(store.numbers.own.any(axis=1)) == 22
    monkeypatch.setattr(memory, "available_bytes", lambda: 30_000 * 576)
    fill()
