"""PerTD3: its targets against NumPy, how it acts and explores, and how it goes on after a stop."""

from __future__ import annotations

from typing import Any

import gymnasium
import numpy as np
import pytest
import torch as th
from gymnasium import spaces
from stable_baselines3.common.noise import ActionNoise, NormalActionNoise, OrnsteinUhlenbeckActionNoise

from holdfast.core import actor_critic
from holdfast.core.targets import all_persistence_target
from holdfast.deep import PerTD3, make_vec_env
from holdfast.deep.agents import actor_targets

SMALL: dict[str, Any] = {
    "policy_kwargs": {"net_arch": [8]},
    "batch_size": 8,
    "buffer_size": 400,
    "learning_starts": 20,
    "seed": 0,
    "device": "cpu",
}


class Slider(gymnasium.Env):
    """A point that is pushed by two numbers between bounds that differ; pays the negative squared distance."""

    def __init__(self, length: int = 25, low: Any = (-2.0, 0.0), high: Any = (2.0, 1.0)) -> None:
        self.observation_space = spaces.Box(-np.inf, np.inf, (2,), np.float32)
        self.action_space = spaces.Box(np.array(low, np.float32), np.array(high, np.float32))
        self._length = length

    def reset(self, *, seed=None, options=None):
        super().reset(seed=seed)
        self._place, self._steps, self.taken = self.np_random.normal(size=2).astype(np.float32), 0, []
        return self._place.copy(), {}

    def step(self, action):
        assert self.action_space.contains(action), action
        self.taken.append(np.array(action))
        self._steps += 1
        self._place = self._place + 0.1 * action
        return self._place.copy(), -float(self._place @ self._place), False, self._steps >= self._length, {}


def made(env: Any = None, **arguments: Any) -> PerTD3:
    return PerTD3("MlpPolicy", env or Slider(), **{**SMALL, **arguments})


# Formulas -------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("kind", ["options", "primitive"])
def test_tensors_and_arrays_agree(kind):
    random = np.random.default_rng(1)
    values, actions, noise = (
        random.normal(size=(2, 5, 3, 3)),
        random.normal(size=(5, 3, 2)),
        random.normal(size=(5, 1, 2)),
    )
    tensor = th.as_tensor(values)
    assert np.allclose(actor_targets.proposed_values(tensor), actor_critic.proposed_values(values))
    assert np.allclose(
        actor_targets.actor_state_values(tensor, kind), actor_critic.actor_state_value(values, kind)
    )
    smoothed = actor_targets.smoothed_actions(th.as_tensor(actions), th.as_tensor(noise), 0.5)
    assert np.allclose(smoothed, actor_critic.smoothed_actions(actions, noise, 0.5))
    assert float(actor_targets.actor_loss(tensor[0])) == pytest.approx(-actor_critic.actor_objective(values[0]))


@pytest.mark.parametrize("target_value", ["options", "primitive"])
@pytest.mark.parametrize("shared_draws", [True, False])
@pytest.mark.parametrize("persistences", [None, (1, 2, 4)])
def test_targets_are_those_of_the_formula(target_value, shared_draws, persistences):
    """Tuple by tuple, with networks asked one row at a time."""
    model = made(
        persistences=persistences,
        k_max=4 if persistences is None else persistences[-1],
        target_value=target_value,
        shared_draws=shared_draws,
        target_policy_noise=0.0,
        learning_starts=100,
    )
    model.learn(90)
    batch = model.replay_buffer.sample(16)
    durations = model.policy.durations.tolist()
    found = model._targets(batch)

    def critics(row: int, action: Any) -> Any:
        observation = model.replay_buffer.observations_at(np.array([row]))
        action = th.as_tensor(action, dtype=th.float32).reshape(1, -1)
        return np.array([values[0].detach().numpy() for values in model.critic_target(observation, action)])

    for view, k in enumerate(durations):
        for number in range(16):
            row, rest = int(batch.next_rows[view, number]), int(batch.rest[view, number])
            heads = model.actor_target(model.replay_buffer.observations_at(np.array([row])))[0].detach()
            worth = [critics(row, heads[head])[:, head].min() for head in range(len(durations))]
            state_value = max(worth) if target_value == "options" else worth[0]
            held = 0.0
            if rest in durations:
                held = critics(row, batch.actions[view, number])[:, durations.index(rest)].min()
            expected = all_persistence_target(
                batch.rewards[view, number], batch.discounts[view, number], rest == 0, state_value, held, False
            )
            if batch.is_there[view, number]:
                assert found[view, number] == pytest.approx(expected, rel=1e-4, abs=1e-5), (k, rest)
    assert (batch.rest > 0).any()


def test_nothing_is_had_beyond_an_end():
    model = made(learning_starts=100, timeout_is_terminal=True)
    model.learn(90)
    batch = model.replay_buffer.sample(64)
    ends = batch.dones == 1
    assert ends.any()
    assert np.allclose(model._targets(batch)[ends], batch.rewards[ends])


# Acting ---------------------------------------------------------------------------------------------------------


class Counted(ActionNoise):
    """0.01 at the first call, 0.02 at the second, ..."""

    def __init__(self) -> None:
        self.calls = 0

    def __call__(self) -> Any:
        self.calls += 1
        return np.full(2, 0.01 * self.calls, np.float32)


def test_noise_is_drawn_where_an_option_begins_and_held_with_it():
    noise = Counted()
    model = made(Slider(length=10_000), action_noise=noise, learning_starts=30, exploration_initial_eps=0.5)
    taken: list[Any] = []
    began: list[bool] = []

    def note(local: Any, _: Any) -> bool:
        taken.append(np.array(local["actions"][0]))
        began.append(bool(model.clock.elapsed[0] == 0))
        return True

    model.learn(80, callback=note)
    assert noise.calls == sum(began) < 60
    for step in range(1, 80):
        if not began[step]:
            assert np.array_equal(taken[step], taken[step - 1])
    decisions = [taken[step] for step in np.flatnonzero(began)]
    assert len({tuple(action) for action in decisions}) > 5
    # The ring has them between −1 and 1.
    assert np.allclose(model.policy.as_held(np.array(taken)), model.replay_buffer.actions[:80, 0], atol=1e-6)


def test_the_duration_is_the_first_critics_choice_and_the_action_its_heads():
    model = made(k_max=3)
    observation = np.array([[0.3, -0.2], [1.0, 2.0]], np.float32)
    tensor = th.as_tensor(observation)
    heads = model.actor(tensor).detach()
    with th.no_grad():
        inputs = [[th.cat([tensor[n], heads[n, k]])[None] for k in range(3)] for n in range(2)]
        worth = np.array(
            [[model.critic.q_networks[0](inputs[n][k])[0, k].item() for k in range(3)] for n in range(2)]
        )
    decision = model.policy.decide(observation)
    best = worth.argmax(axis=1)
    assert decision.values[:, 0] == pytest.approx(worth, rel=1e-5)
    assert decision.hold.tolist() == (best + 1).tolist()
    low, high = model.action_space.low, model.action_space.high
    expected = low + 0.5 * (heads.numpy()[[0, 1], best] + 1.0) * (high - low)
    assert decision.action == pytest.approx(expected, rel=1e-5)
    one = model.policy.decide(observation[0])
    assert one.hold == decision.hold[0]
    assert one.action == pytest.approx(decision.action[0])


def test_predict_holds_by_its_state_and_does_not_explore():
    model = made(k_max=4, action_noise=0.5)
    with th.no_grad():
        # The longest hold is worth most.
        model.critic.q_networks[0][-1].bias[:] = th.tensor([0.0, 0.0, 0.0, 50.0])
    observation = np.array([0.5, 0.5], np.float32)
    first, state = model.predict(observation)
    assert model.policy.steps_left(state).tolist() == [3]
    for left in (2, 1, 0):
        held, state = model.predict(observation + 1.0, state)
        assert np.array_equal(held, first)
        assert model.policy.steps_left(state).tolist() == [left]
    anew, _ = model.predict(observation + 1.0, state)
    assert not np.array_equal(anew, first)
    assert np.array_equal(first, model.policy.decide(observation).action)


def test_a_tolerance_buys_longer_holds_and_a_margin_ends_them():
    model = made(k_max=3)
    with th.no_grad():
        for layer in model.critic.q_networks[0]:
            if hasattr(layer, "weight"):
                layer.weight.zero_()
        model.critic.q_networks[0][-1].bias[:] = th.tensor([1.0, 0.9, 0.5])
    observation = np.zeros(2, np.float32)
    assert model.policy.decide(observation).hold == 1
    model.policy.decision_tolerance = 0.2
    assert model.policy.decide(observation).hold == 2
    action = model.policy.decide(observation).action
    model.policy.interrupt_margin = 0.3
    # Best is 1.0; holding on for 1, 2, 3 steps is worth 1.0, 0.9, 0.5.
    assert [model.policy.interrupts(observation, action, left) for left in (1, 2, 3)] == [False, False, True]


def test_random_durations_follow_their_own_epsilon():
    model = made(Slider(length=10_000), learning_starts=0, exploration_initial_eps=1.0, exploration_final_eps=1.0)
    model.learn(120)
    assert set(model.hold_statistics.holds) == {1, 2, 4, 8}
    assert model.clock.exploratory.all()
    greedy = made(learning_starts=0, exploration_initial_eps=0.0, exploration_final_eps=0.0)
    greedy.learn(20)
    assert not greedy.clock.exploratory.any()


def test_values_begin_at_the_warm_ups_worth():
    model = made(gamma=0.9, learning_starts=40)
    model.learn(30)
    rewards, _ = model.replay_buffer.rewards_and_ends()
    before = model.critic.q_networks[1][-1].bias.detach().clone()
    model._begin_values()
    # No step ends an episode: v = mean reward / (1 − 0.9).
    risen = (model.critic.q_networks[1][-1].bias - before).detach().numpy()
    assert risen == pytest.approx(np.full(4, 10.0 * rewards.mean()), rel=1e-4)


# Saving ---------------------------------------------------------------------------------------------------------


def settings(noise: Any) -> dict[str, Any]:
    return {**SMALL, "action_noise": noise, "schedule_steps": 120}


@pytest.mark.parametrize("n_envs", [1, 2])
def test_it_goes_on_exactly(n_envs):
    def agent() -> PerTD3:
        noise = OrnsteinUhlenbeckActionNoise(np.zeros(2), np.full(2, 0.3))
        return PerTD3("MlpPolicy", make_vec_env(Slider, n_envs, seed=1), **settings(noise))

    whole = agent().learn(60)
    state = whole.state()
    whole.learn(60, reset_num_timesteps=False)
    other = agent()
    other.restore(state)
    other.learn(60, reset_num_timesteps=False)
    for mine, theirs in zip(whole.policy.parameters(), other.policy.parameters(), strict=True):
        assert th.equal(mine, theirs)
    assert np.array_equal(whole.replay_buffer.actions, other.replay_buffer.actions)
    assert whole.exploration_rate == other.exploration_rate


def test_sb3s_save_and_load(tmp_path):
    model = made(k_max=3).learn(50)
    model.save(tmp_path / "model.zip")
    loaded = PerTD3.load(tmp_path / "model.zip", env=Slider())
    observation = np.zeros((3, 2), np.float32)
    assert np.array_equal(loaded.policy.decide(observation).action, model.policy.decide(observation).action)
    loaded.learn(30)


# Bad input ------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("env", "sentence"),
    [
        ("CartPole-v1", r"^env must have continuous actions \(a Box\), not Discrete\(2\)$"),
        (Slider(low=(-np.inf, 0.0)), "^env must have actions with finite bounds, not Box"),
        (Slider(low=(2.0, 0.0)), "^env must have actions with room between their bounds, not Box"),
    ],
)
def test_other_actions_are_refused(env, sentence):
    with pytest.raises(ValueError, match=sentence):
        made(env)


@pytest.mark.parametrize(
    ("noise", "sentence"),
    [
        (
            NormalActionNoise(np.zeros(3), np.ones(3)),
            r"^action_noise must have as many numbers as an action, which is 2",
        ),
        (-0.1, "^action_noise must be"),
        ("loud", "^action_noise must be a standard deviation, an ActionNoise of Stable-Baselines3 or None"),
    ],
)
def test_other_noise_is_refused(noise, sentence):
    with pytest.raises(ValueError, match=sentence):
        made(action_noise=noise)


def test_noise_with_an_unknown_memory_cannot_be_saved():
    model = made(action_noise=Counted())
    with pytest.raises(ValueError, match=r"^action_noise must be Gaussian or Ornstein-Uhlenbeck noise"):
        model.state()
