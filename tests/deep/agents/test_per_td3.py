"""PerTD3: its targets against NumPy, how it acts and explores, and how it goes on after a stop."""

from __future__ import annotations

import copy
from typing import Any

import numpy as np
import pytest
import torch as th
from gymnasium import spaces
from stable_baselines3.common.callbacks import BaseCallback
from stable_baselines3.common.noise import ActionNoise, NormalActionNoise, OrnsteinUhlenbeckActionNoise

from holdfast.core import actor_critic
from holdfast.core.targets import all_persistence_target
from holdfast.deep import PerTD3, make_vec_env
from holdfast.deep.agents import actor_targets
from holdfast.deep.exact.noise_state import noise_state
from tests.deep.slider import SMALL, Slider, actions_of, each_target, refuse_another_end, reloaded, target_values


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


@each_target
def test_targets_are_those_of_the_formula(target):
    """Tuple by tuple, with networks asked one row at a time."""
    model = made(
        **target,
        target_policy_noise=0.0,
        learning_starts=100,
    )
    model.learn(90)
    batch = model.replay_buffer.sample(16)
    durations = model.policy.durations.tolist()
    found = model._targets(batch)

    for view, k in enumerate(durations):
        for number in range(16):
            row, rest = int(batch.next_rows[view, number]), int(batch.rest[view, number])
            heads = model.actor_target(model.replay_buffer.observations_at(np.array([row])))[0].detach()
            worth = [target_values(model, row, heads[head])[:, head].min() for head in range(len(durations))]
            state_value = max(worth) if target["target_value"] == "options" else worth[0]
            held = 0.0
            if rest in durations:
                held = target_values(model, row, batch.actions[view, number])[:, durations.index(rest)].min()
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


@pytest.mark.parametrize("n_critics", [1, 2, 3])
@pytest.mark.parametrize("is_paid", [False, True])
def test_the_best_proposal_is_found_without_asking_all_critics_about_all(n_critics, is_paid):
    model = made(persistences=(1, 2, 4), policy_kwargs={"net_arch": [16], "n_critics": n_critics})
    generator = th.Generator().manual_seed(1)
    observations, proposals = (
        th.randn(400, 2, generator=generator),
        th.rand(400, 3, 2, generator=generator) * 2 - 1,
    )
    added = 0.1 * th.randn(400, 3, generator=generator) if is_paid else None
    rows: list[int] = []
    for network in model.critic.q_networks[1:]:
        network.register_forward_pre_hook(lambda _, inputs: rows.append(len(inputs[0])))
    found = model.critic.best_of_proposals(observations, proposals, added)
    # Some heads are left out, but not all.
    assert all(400 < seen < 1200 for seen in (sum(rows[index :: n_critics - 1]) for index in range(n_critics - 1)))
    values = model.critic.of_proposals(observations, proposals).detach()
    expected = actor_critic.clipped_minimum(actor_critic.proposed_values(values.numpy()))
    expected = (expected + (0.0 if added is None else added.numpy())).max(axis=-1)
    assert found.numpy() == pytest.approx(expected, rel=1e-5, abs=1e-6)
    assert not found.requires_grad


def test_the_actors_step_leaves_the_critics_alone_and_a_frozen_actor_as_it_is():
    model = made()
    model.learn(40)
    model.critic.optimizer.zero_grad()
    actor = [parameter.detach().clone() for parameter in model.actor.parameters()]
    batch = model._sample(8, 1.0)

    def step() -> list[bool]:
        proposals = model.actor(batch.observations)
        model._learn_actor_by(
            actor_targets.actor_loss(model.critic.first_of_proposals(batch.observations, proposals))
        )
        return [not th.equal(old, new) for old, new in zip(actor, model.actor.parameters(), strict=True)]

    for parameter in model.actor.parameters():
        parameter.requires_grad_(False)
    assert not any(step())
    for parameter in model.actor.parameters():
        parameter.requires_grad_(True)
    assert all(step())
    assert all(parameter.grad is None for parameter in model.critic.parameters())


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
    taken, began = actions_of(model, 80)
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


def decide_by_duration(model: PerTD3, values: list[float]) -> None:
    """Let the first critic's values depend on the duration alone."""
    with th.no_grad():
        for layer in model.critic.q_networks[0]:
            if hasattr(layer, "weight"):
                layer.weight.zero_()
        model.critic.q_networks[0][-1].bias[:] = th.tensor(values)


def test_a_tolerance_buys_longer_holds_and_a_margin_ends_them():
    model = made(k_max=3)
    decide_by_duration(model, [1.0, 0.9, 0.5])
    observation = np.zeros(2, np.float32)
    assert model.policy.decide(observation).hold == 1
    model.policy.decision_tolerance = 0.2
    assert model.policy.decide(observation).hold == 2
    action = model.policy.decide(observation).action
    model.policy.interrupt_margin = 0.3
    # Best is 1.0; holding on for 1, 2, 3 steps is worth 1.0, 0.9, 0.5.
    assert [model.policy.interrupts(observation, action, left) for left in (1, 2, 3)] == [False, False, True]


def test_interrupting_reads_what_the_clock_holds_without_a_warning():
    model = made(k_max=3, interrupt_margin=0.3)
    decide_by_duration(model, [1.0, 0.9, 0.5])
    clock = model.policy.new_clock(4)
    clock.begin(np.ones(4, np.bool_), np.zeros((4, 2)), [1, 2, 3, 3], [False, False, False, True])
    observation, _ = model.policy.obs_to_tensor(np.zeros((4, 2), np.float32))
    th.set_warn_always(True)
    try:
        interrupted, _ = model.policy.interrupt(clock, observation)
    finally:
        th.set_warn_always(False)
    # Best is 1.0; holding on for 1, 2, 3 steps is worth 1.0, 0.9, 0.5. Random durations are never cut.
    assert interrupted.tolist() == [False, False, True, False]
    assert clock.left.tolist() == [1, 2, 0, 3]


def test_errors_of_opposite_signs_do_not_cancel():
    model = made(k_max=2, prioritized=True, learning_starts=100)
    model.learn(60)
    for network, value in zip(model.critic.q_networks, (3.0, -1.0), strict=True):
        with th.no_grad():
            network[-1].weight.zero_()
            network[-1].bias[:] = value
    batch = model._sample(8, 1.0)
    model.update_statistics.means()
    model._learn_values(batch, np.ones(batch.rest.shape, np.float32))
    # Both critics are 2 off: 2² + 2² = 8.
    assert model.update_statistics.means()["train/loss_k1"] == pytest.approx(8.0)
    priorities = model.replay_buffer.trees.priorities(0)[batch.rows[0]]
    assert priorities == pytest.approx(2.0**0.6, rel=1e-5)


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

    whole, other = refuse_another_end(agent)
    assert whole.exploration_rate == other.exploration_rate


class Saves(BaseCallback):
    """Keeps the agent's state before its first rollout from step 60 on."""

    state: Any = None

    def _on_rollout_start(self) -> None:
        if self.state is None and self.num_timesteps >= 60:
            self.state = copy.deepcopy(self.model.state())

    def _on_step(self) -> bool:
        return True


@pytest.mark.parametrize("n_envs", [1, 2])
def test_noise_goes_on_from_within_a_training(n_envs):
    """SB3 resets it where ``learn`` begins, which a training that is not stopped does not come by again."""

    def agent() -> PerTD3:
        noise = OrnsteinUhlenbeckActionNoise(np.zeros(2), np.full(2, 0.3))
        return PerTD3("MlpPolicy", make_vec_env(Slider, n_envs, seed=1), **settings(noise))

    saves = Saves()
    whole = agent().learn(120, callback=saves)
    halfway, other = agent(), agent()
    halfway.restore(saves.state)
    # A state of a state is the same state.
    other.restore(halfway.state())
    other.learn(60, reset_num_timesteps=False)
    assert np.array_equal(whole.replay_buffer.actions, other.replay_buffer.actions)
    assert not other.state()["target_cache"]["noise_goes_on"]
    # A new training begins with new noise.
    assert all(memory.any() for memory in noise_state(halfway.action_noise).values())
    halfway.learn(0)
    assert halfway._noise_to_go_on is None
    assert not any(memory.any() for memory in noise_state(halfway.action_noise).values())


def test_sb3s_save_and_load(tmp_path):
    model = made(k_max=3).learn(50)
    reloaded(model, tmp_path / "model.zip").learn(30)


class WholeSlider(Slider):
    """Pushed by whole numbers."""

    def __init__(self) -> None:
        super().__init__()
        self.action_space = spaces.Box(0, 10, (2,), np.int64)


# Bad input ------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("env", "sentence"),
    [
        ("CartPole-v1", r"^env must have continuous actions \(a Box\), not Discrete\(2\)$"),
        (Slider(low=(-np.inf, 0.0)), "^env must have actions with finite bounds, not Box"),
        (
            Slider(low=(2.0, 0.0)),
            "^env must have actions whose lower bounds are below their upper bounds, not Box",
        ),
        (WholeSlider(), r"^env must have actions of floating-point numbers, not Box\(0, 10, \(2,\), int64\)$"),
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
