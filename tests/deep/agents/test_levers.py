"""Arguments against forgetting, one by one: by hand, and without effect where they are off."""

from __future__ import annotations

from typing import Any

import gymnasium as gym
import numpy as np
import pytest
import torch as th
from gymnasium import spaces
from stable_baselines3.common.vec_env import DummyVecEnv, VecNormalize

from holdfast.core.durations import option_epsilon
from holdfast.deep import EZGreedyDQN, PerDQN, TempoRLDQN
from holdfast.deep.agents.option_steps import uniform_durations
from holdfast.deep.replay.priorities import mean_errors
from tests.deep.diary import LEARNING, LEVERS, agent, by_table, diaries, watch_decisions, watch_learning
from tests.deep.earlier_settings import earlier
from tests.deep.probes import Pier


def weights(network: th.nn.Module) -> th.Tensor:
    return th.cat([part.detach().flatten() for part in network.parameters()])


def learned(steps: int = 120, kind: Any = PerDQN, **arguments: Any) -> Any:
    settings = {**LEARNING, "buffer_size": 80, "head_arch": [4], "seed": 0, "device": "cpu", **arguments}
    given = earlier(kind, settings)
    if "persistences" in arguments:
        del given["k_max"]
    return kind("MlpPolicy", "CartPole-v1", **given).learn(steps)


# A set of persistences -------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "arguments", [{}, {"bootstrap": False}, {"prioritized": False}, {"target_value": "double"}], ids=str
)
def test_a_full_set_is_k_max_bit_for_bit(arguments):
    one, other = learned(k_max=4, **arguments), learned(persistences=[1, 2, 3, 4], **arguments)
    assert other.k_max == 4
    for network in ("q_net", "q_net_target"):
        assert th.equal(weights(getattr(one, network)), weights(getattr(other, network)))
    np.testing.assert_array_equal(one.replay_buffer.left, other.replay_buffer.left)
    if one.replay_buffer.trees is not None:
        np.testing.assert_array_equal(one.replay_buffer.trees.sums, other.replay_buffer.trees.sums)


def test_a_set_of_one_is_k_max_1_bit_for_bit():
    for prioritized in (False, True):
        one, other = (learned(prioritized=prioritized, **given) for given in ({"k_max": 1}, {"persistences": [1]}))
        assert th.equal(weights(one.q_net), weights(other.q_net))


def test_options_last_as_long_as_the_set_says():
    arguments = {"exploration_initial_eps": 0.5, "exploration_final_eps": 0.5}
    model = PerDQN(
        "MlpPolicy",
        diaries(lengths=[400]),
        persistences=[1, 3, 7],
        learning_starts=0,
        gradient_steps=0,
        buffer_size=500,
        seed=0,
        device="cpu",
        **arguments,
    )
    # The value of a hold is highest at the second place.
    by_table(model.policy, [[0.0, 1.0, 0.5], [0.0, 0.0, 0.0], [0.0, 0.0, 0.0]])
    decisions = watch_decisions(model)
    model.learn(390)
    greedy = {decided.duration for decided in decisions if not decided.exploratory}
    drawn = [decided.duration for decided in decisions if decided.exploratory]
    assert greedy == {3}
    assert set(drawn) == {1, 3, 7}
    assert model.policy.decide(np.zeros(2, np.float32)).hold == 3
    model.policy.decision_tolerance = 0.6
    assert model.policy.decide(np.zeros(2, np.float32)).hold == 7


def test_random_durations_of_a_set_are_uniform():
    np.random.seed(0)  # noqa: NPY002 - SB3's generator
    drawn = uniform_durations(6000, 9, (1, 4, 9))
    assert set(drawn) == {1, 4, 9}
    np.testing.assert_allclose(np.bincount(drawn)[[1, 4, 9]] / 6000, 1 / 3, atol=0.02)


def test_holding_on_is_worth_what_the_longest_hold_that_fits_is_worth():
    model = PerDQN("MlpPolicy", diaries(), persistences=[1, 4], buffer_size=50, interrupt_margin=0.3, seed=0)
    seen = np.zeros(2, np.float32)
    by_table(model.policy, [[0.0, 0.9], [1.0, 0.0], [0.0, 0.0]])
    # Four steps left: 0.9 against 1. Three: what one step is worth, 0.
    assert not model.policy.interrupts(seen, 0, 4)
    assert model.policy.interrupts(seen, 0, 3)


# What there is of a set -------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("given", "message"),
    [
        (
            {"k_max": 4, "persistences": [1, 2]},
            "k_max must be 2, the last of persistences, or not be given, not 4",
        ),
        ({"persistences": [2, 4]}, r"persistences must begin with 1 and increase, as \[1, 2, 4, 8\] does"),
        ({"persistences": [1, 4, 2]}, "persistences must begin with 1 and increase"),
        ({"persistences": [1, 2, 2]}, "persistences must begin with 1 and increase"),
        ({"persistences": []}, "persistences must begin with 1 and increase"),
        ({"persistences": [1, 60], "buffer_size": 50}, "persistences must be at most buffer_size, which is 50"),
        ({"persistences": 4}, "persistences must be numbers such as"),
        ({"persistences": [1, 2.5]}, "each of persistences must be a whole number of at least 1"),
        ({"dueling": "both"}, "dueling must be False, True, 'heads' or 'options', not 'both'"),
        ({"importance": "all"}, "importance must be one of 'buffer', 'batch'"),
        ({"explore_by": "episodes"}, "explore_by must be one of 'options', 'steps'"),
        ({"average_rate": 1.5}, r"average_rate must be a number in \[0, 1\]"),
        ({"learning_rate_falls_to": -1.0}, r"learning_rate_falls_to must be a number in \[0, 1\]"),
        ({"learning_rate_falls_to": 2}, r"learning_rate_falls_to must be a number in \[0, 1\]"),
        ({"initial_values": "one"}, "initial_values must be one of 'zero', 'warm_up'"),
    ],
)
def test_bad_levers_are_refused_in_one_sentence(given, message):
    with pytest.raises((ValueError, TypeError), match=f"^{message}"):
        PerDQN("MlpPolicy", "CartPole-v1", **given)


def test_the_longest_persistence_must_fit_into_each_environments_part_of_the_replay():
    env = DummyVecEnv([lambda: gym.make("CartPole-v1")] * 4)
    message = "^persistences must be at most buffer_size divided by n_envs, which is 16, not 17$"
    with pytest.raises(ValueError, match=message):
        PerDQN("MlpPolicy", env, persistences=[1, 17], buffer_size=67)
    assert PerDQN("MlpPolicy", env, persistences=[1, 16], buffer_size=67).replay_buffer.buffer_size == 16


def test_a_weight_over_the_batch_without_priorities_is_allowed():
    assert learned(30, prioritized=False, importance="batch").replay_buffer.importance == "batch"


@pytest.mark.parametrize(
    ("kind", "given"),
    [
        (EZGreedyDQN, {"persistences": [1, 2]}),
        (TempoRLDQN, {"persistences": [1, 2]}),
        (TempoRLDQN, {"shared_draws": True}),
        (TempoRLDQN, {"explore_by": "steps"}),
    ],
)
def test_agents_that_stand_for_a_lever_say_so(kind, given):
    (name,) = given
    with pytest.raises(TypeError, match=f"^{name} must not be given to {kind.__name__}, which stands for {name}="):
        kind("MlpPolicy", "CartPole-v1", **given)


# Shared draws ----------------------------------------------------------------------------------------------


def test_mean_errors_by_hand():
    errors = np.array([[1.0, -2.0, 5.0], [-3.0, 7.0, 5.0], [8.0, 0.5, 5.0]], dtype=np.float32)
    there = np.array([[True, True, False], [True, False, False], [False, True, False]])
    np.testing.assert_array_equal(mean_errors(errors, there), [2.0, 1.25, 0.0])


def test_a_shared_steps_priority_is_the_mean_error_of_its_tuples():
    model = learned(40, persistences=[1, 2, 6], shared_draws=True, gradient_steps=0, priority_alpha=1.0)
    seen = watch_learning(model)
    model.train(1, 8)
    ((batch, residuals, _),) = seen
    assert batch.is_shared
    assert not batch.is_there.all()
    priorities = model.replay_buffer.trees.priorities(0)
    for b, row in enumerate(batch.rows[0]):
        errors = np.abs(residuals.td_errors[batch.is_there[:, b], b])
        if row not in batch.rows[0, b + 1 :]:
            assert priorities[row] == pytest.approx(errors.mean() + 1e-6, rel=1e-5)


def test_tuples_that_there_are_not_teach_nothing():
    model = learned(60, persistences=[1, 2, 6], shared_draws=True)
    batch = model.replay_buffer.sample(16)
    assert not batch.is_there.all()
    targets = model._targets(batch)
    one = model._regress(batch, targets)
    gradient = th.cat([part.grad.flatten() for part in model.q_net.parameters()])
    other = model._regress(batch, np.where(batch.is_there, targets, targets + 1000.0).astype(np.float32))
    assert one.loss == other.loss
    assert th.equal(gradient, th.cat([part.grad.flatten() for part in model.q_net.parameters()]))


def test_shared_draws_learn_the_tuples_that_own_draws_would():
    model = learned(60, persistences=[1, 2, 6], shared_draws=True)
    own = learned(60, persistences=[1, 2, 6], gradient_steps=0)
    own.replay_buffer.restore(
        {
            **model.replay_buffer.state(),
            "trees": own.replay_buffer.trees.state(
                min(model.replay_buffer.n_added + 1, model.replay_buffer.n_slots)
            ),
        }
    )
    batch = model.replay_buffer.sample(16)
    alike = own.replay_buffer._assemble(batch.rows, None, None)
    for name in ("actions", "rewards", "discounts", "dones", "rest", "next_rows", "is_there"):
        np.testing.assert_array_equal(getattr(batch, name), getattr(alike, name))
    np.testing.assert_array_equal(alike.observations.view(3, 16, -1)[1], batch.observations)


def test_an_agent_with_one_persistence_shares_nothing_and_changes_nothing():
    for prioritized in (False, True):
        one, other = (learned(k_max=1, shared_draws=shared, prioritized=prioritized) for shared in (False, True))
        th.testing.assert_close(weights(one.q_net), weights(other.q_net), rtol=1e-4, atol=1e-5)


# Clipped targets -------------------------------------------------------------------------------------------


class Paid(gym.Env[Any, Any]):
    """Rewards in turn."""

    observation_space = spaces.Box(-1.0, 1.0, (1,), np.float32)
    action_space = spaces.Discrete(2)

    def __init__(self, rewards: tuple[float, ...]) -> None:
        self.rewards, self.step_number = rewards, 0

    def reset(self, *, seed: int | None = None, options: Any = None) -> Any:
        super().reset(seed=seed)
        return np.zeros(1, np.float32), {}

    def step(self, action: Any) -> Any:
        self.step_number += 1
        return np.zeros(1, np.float32), self.rewards[self.step_number % len(self.rewards)], False, False, {}


class PaidInFours(Paid):
    """An episode has four steps."""

    def step(self, action: Any) -> Any:
        seen, reward, _, truncated, info = super().step(action)
        return seen, reward, self.step_number % 4 == 0, truncated, info


def paid(rewards: tuple[float, ...], **arguments: Any) -> PerDQN:
    settings = {"learning_starts": 100, "buffer_size": 50, "seed": 0, "device": "cpu", "k_max": 2}
    env = arguments.pop("env", None) or Paid(rewards)
    return PerDQN("MlpPolicy", env, **{**settings, **arguments}).learn(20)


@pytest.mark.parametrize(
    ("rewards", "gamma", "expected"),
    [
        ((-1.0, -0.5), 0.5, [-2.0, -1.5, 0.0, 0.0]),
        ((3.0, 1.0), 0.5, [0.0, 0.0, 2.0, 6.0]),
        ((-1.0, 2.0), 0.75, [-4.0, -1.5, 2.0, 8.0]),
        ((-1.0, -0.5), 1.0, [-9.0, -1.5, 0.0, 0.0]),
        ((1.0, 0.5), 1.0, [0.0, 0.0, 2.0, 9.0]),
    ],
)
def test_targets_are_clipped_to_what_the_rewards_allow(rewards, gamma, expected):
    targets = np.array([[-9.0, -1.5, 2.0, 9.0]], dtype=np.float32)
    model = paid(rewards, gamma=gamma, clip_targets=True)
    found = model._clipped(targets)
    assert found.dtype == np.float32
    assert found.tolist() == [expected]
    assert paid(rewards, gamma=gamma, clip_targets=False)._clipped(targets) is targets


def test_rewards_are_bounded_as_they_are_normalised():
    env = VecNormalize(DummyVecEnv([lambda: Paid((-1.0, 4.0))]), norm_obs=False, clip_reward=1.5)
    model = paid((), env=env, gamma=0.5, clip_targets=True)
    assert (model.replay_buffer.reward_low, model.replay_buffer.reward_high) == (-1.0, 4.0)
    env.ret_rms.var = np.array(4.0)
    # Half of −1 is −½, half of 4 is cut to 1½; twice that is the bound.
    found = model._clipped(np.array([[-9.0, 9.0]], dtype=np.float32))
    np.testing.assert_allclose(found, [[-1.0, 3.0]], rtol=1e-6)


def test_every_agent_clips_its_targets():
    for kind in (PerDQN, TempoRLDQN, EZGreedyDQN):
        model = learned(60, kind, clip_targets=True, gamma=0.5)
        with th.no_grad():
            for part in model.q_net_target.parameters():
                part.mul_(100.0)
        targets = model._targets(model.replay_buffer.sample(32))
        assert targets.min() >= 0.0
        assert targets.max() == 2.0


# Where values begin ----------------------------------------------------------------------------------------

BEGINNINGS = {
    "options": (PerDQN, {"dueling": "options"}),
    "heads": (PerDQN, {"dueling": "heads"}),
    "not dueling": (PerDQN, {}),
    "averaged": (PerDQN, {"average_rate": 0.01, "layer_norm": True}),
    "skips": (TempoRLDQN, {}),
    "held exploration": (EZGreedyDQN, {"dueling": "options"}),
}


@pytest.mark.parametrize("name", BEGINNINGS)
def test_values_begin_at_the_value_of_the_warm_up(name):
    kind, arguments = BEGINNINGS[name]
    # Every step pays 3, and every fourth one ends an episode: 3 / (1 − ½ · ¾) = 24/5.
    made = {**LEARNING, "gamma": 0.5, "learning_starts": 39, "learning_rate": 0.0, "seed": 0, "device": "cpu"}
    zero, warm_up = (
        kind("MlpPolicy", PaidInFours((3.0,)), **earlier(kind, {**made, **arguments, "initial_values": begins}))
        for begins in ("zero", "warm_up")
    )
    zero.learn(40)
    warm_up.learn(40)
    seen = th.zeros(1, 1)
    assert (zero._n_updates, warm_up._n_updates) == (1, 1)
    for network in ("q_net", "q_net_target", "averaged_net"):
        before, after = (getattr(model.policy, network)(seen) for model in (zero, warm_up))
        np.testing.assert_allclose((after - before).detach(), np.full(before.shape, 4.8), rtol=1e-5)


def test_values_begin_once_and_not_where_they_are_given(tmp_path):
    model = learned(initial_values="warm_up")
    assert model.values_have_begun
    model.save(tmp_path / "learned")
    assert PerDQN.load(tmp_path / "learned").values_have_begun
    fresh = learned(0, initial_values="warm_up")
    assert not fresh.values_have_begun
    fresh.save(tmp_path / "fresh")
    assert not PerDQN.load(tmp_path / "fresh").values_have_begun
    fresh.set_parameters(model.get_parameters())
    fresh.save(tmp_path / "given")
    assert PerDQN.load(tmp_path / "given").values_have_begun
    fresh.set_parameters(model.get_parameters())
    given = fresh.q_net.last_bias.detach().clone()
    fresh.learning_rate = 0.0
    fresh._setup_lr_schedule()
    fresh.learn(60)
    assert th.equal(fresh.q_net.last_bias, given)


def test_values_begin_at_normalised_rewards_and_a_time_limit_is_no_end():
    env = VecNormalize(
        DummyVecEnv([lambda: gym.wrappers.TimeLimit(Paid((-4.0,) * 9), 3)]), norm_obs=False, clip_reward=1.5
    )
    model = PerDQN(
        "MlpPolicy", env, learning_starts=30, learning_rate=0.0, gamma=0.5, dueling=False, seed=0, device="cpu"
    )
    model._begin_values = lambda: None
    model.learn(31)
    env.training, env.ret_rms.var = False, np.array(4.0)
    # Half of −4 is cut to −1½, for ever: −3.
    before = model.q_net.last_bias.detach().clone()
    del model._begin_values
    model.learn(1, reset_num_timesteps=False)
    np.testing.assert_allclose(model.q_net.last_bias.detach() - before, -3.0, rtol=1e-5)


# Exploration counted in steps ------------------------------------------------------------------------------


def test_option_epsilon_by_hand():
    # Random options of 4 steps, greedy ones of 1: of options, 1/5 of 1/2 are enough.
    assert option_epsilon(0.5, 4.0, 1.0) == pytest.approx(0.2)
    assert option_epsilon(0.5, 1.0, 4.0) == pytest.approx(0.8)
    assert option_epsilon(0.1, 4.5, 2.0) == pytest.approx(0.2 / (0.2 + 0.9 * 4.5))
    assert option_epsilon(0.3, 2.0, 2.0) == 0.3
    for hold in (1.0, 3.0):
        assert option_epsilon(0.0, 4.0, hold) == 0.0
        assert option_epsilon(1.0, 4.0, hold) == 1.0


@pytest.mark.parametrize(("epsilon", "random_hold", "greedy_hold"), [(0.1, 8, 1), (0.5, 4, 2), (0.3, 2, 6)])
def test_a_share_of_the_steps_is_random(epsilon, random_hold, greedy_hold):
    random = np.random.default_rng(0)
    is_random = random.random(200_000) < option_epsilon(epsilon, random_hold, greedy_hold)
    steps = np.where(is_random, random_hold, greedy_hold)
    assert steps[is_random].sum() / steps.sum() == pytest.approx(epsilon, abs=0.01)


@pytest.mark.parametrize("explore_by", ["options", "steps"])
def test_an_agent_explores_a_share_of_its_steps_or_options(explore_by):
    model = PerDQN(
        "MlpPolicy",
        diaries(lengths=[10_000]),
        k_max=8,
        learning_starts=0,
        gradient_steps=0,
        buffer_size=50,
        exploration_initial_eps=0.3,
        exploration_final_eps=0.3,
        explore_by=explore_by,
        seed=0,
        device="cpu",
    )
    by_table(model.policy, np.eye(3, 8))  # holds an action for one step
    decisions = watch_decisions(model)
    model.learn(6000)
    of_options = np.mean([decided.exploratory for decided in decisions])
    steps = sum(decided.duration for decided in decisions)
    of_steps = sum(decided.duration for decided in decisions if decided.exploratory) / steps
    assert model.greedy_hold == pytest.approx(1.0)
    found = {"options": of_options, "steps": of_steps}[explore_by]
    assert found == pytest.approx(0.3, abs=0.04)
    other = {"options": of_steps, "steps": of_options}[explore_by]
    assert abs(other - 0.3) > 0.1


def test_the_mean_of_greedy_holds_follows_them():
    model = agent(diaries(lengths=[10_000]))
    by_table(model.policy, [[0.0, 0.0, 1.0]] + [[0.0] * 3] * 2)  # three steps each
    model.learn(30)
    # Ten holds of 3, each moving the mean from 1 by a hundredth of the way.
    assert model.greedy_hold == pytest.approx(3.0 - 2.0 * 0.99**10)


def test_interrupted_holds_count_with_what_they_lasted():
    model = agent(diaries(lengths=[10_000]), interrupt_margin=0.5)
    # A hold of 3 is chosen at every third state and dropped after two steps, for a hold of one step.
    begins, goes_on, drops = np.zeros((3, 3, 3))  # the first state is 1
    begins[0, 2], drops[1, 0] = 1.0, 2.0
    tables = np.array([begins, goes_on, drops])
    by_table(model.policy, lambda rows: tables[(rows[:, 1].astype(int) - 1) % 3])
    decisions = watch_decisions(model)
    model.learn(40)
    assert {decided.duration for decided in decisions} == {1, 3}
    mean = 1.0
    for lasted in [2, 1] * 13:
        mean += 0.01 * (lasted - mean)
    assert model.greedy_hold == pytest.approx(mean)


def test_the_random_holds_of_ez_greedy_have_their_own_mean():
    model = learned(20, EZGreedyDQN, k_max=4, durations="zeta", mu=1.0, explore_by="steps")
    # p(k) is 1/k over the sum of 1, 1/2, 1/3 and 1/4, which is 25/12.
    assert model._mean_random_hold() == pytest.approx(4 / (25 / 12))
    assert learned(20, k_max=7)._mean_random_hold() == 4.0
    assert learned(20, persistences=[1, 2, 6])._mean_random_hold() == 3.0


# Averaged weights ------------------------------------------------------------------------------------------


def test_the_average_by_hand():
    model = agent(Pier(), average_rate=0.25)
    policy = model.policy
    (own, *_), (mean, *_) = policy.q_net.parameters(), policy.q_net_average.parameters()

    def moved(n_updates: int, value: float) -> float:
        with th.no_grad():
            own.fill_(value)
            mean.fill_(0.0)
        policy.move_average(n_updates)
        return float(mean.flatten()[0])

    assert moved(0, 8.0) == 8.0  # all of the way
    assert moved(10, 8.0) == 4.0  # 10 / 20
    assert moved(30, 8.0) == 2.0  # 10 / 40, which is the rate
    assert moved(1000, 8.0) == 2.0


def test_the_average_of_a_training_is_that_of_its_weights():
    model = agent(Pier(), average_rate=0.125, **{**LEARNING, "gradient_steps": 3, "train_freq": 2})
    seen, update = [], model._update

    def spy(*given: Any) -> float:
        loss = update(*given)
        seen.append((model._n_updates, weights(model.q_net)))
        return loss

    model._update = spy
    model.learn(60)
    assert [number for number, _ in seen] == list(range(model._n_updates))
    expected = th.zeros_like(seen[0][1])
    for number, found in seen:
        expected += max(0.125, 10.0 / (number + 10.0)) * (found - expected)
    th.testing.assert_close(weights(model.policy.q_net_average), expected, rtol=1e-4, atol=1e-6)
    assert not th.allclose(expected, weights(model.q_net), atol=1e-4)


def test_averaged_weights_are_not_trained():
    one, other = learned(average_rate=0.0), learned(average_rate=0.01)
    assert not hasattr(one.policy, "q_net_average")
    assert one.policy.averaged_net is one.q_net
    assert not any(part.requires_grad for part in other.policy.q_net_average.parameters())
    known = {id(part) for group in other.policy.optimizer.param_groups for part in group["params"]}
    assert not known & {id(part) for part in other.policy.q_net_average.parameters()}


def test_who_acts_with_which_weights():
    model = learned(average_rate=0.01)
    seen = np.random.default_rng(0).normal(size=(200, 4)).astype(np.float32)
    with th.no_grad():
        for part in model.q_net.parameters():
            part.add_(th.randn_like(part))
    tensor = th.as_tensor(seen)
    online, averaged = (net(tensor).detach().numpy() for net in (model.q_net, model.policy.q_net_average))
    by_online, by_average = (
        table.reshape(200, -1).argmax(axis=1) // table.shape[2] for table in (online, averaged)
    )
    assert (by_online != by_average).any()
    np.testing.assert_array_equal(model.policy.decide(seen).values, averaged)
    np.testing.assert_array_equal(model.predict(seen, deterministic=True)[0], by_average)
    np.testing.assert_array_equal(model.policy.predict(seen, deterministic=True)[0], by_average)
    np.testing.assert_array_equal(model.policy._predict(tensor).numpy(), by_average)
    model.exploration_rate = 0.0
    np.testing.assert_array_equal(model.predict(seen)[0], by_online)


@pytest.mark.parametrize("kind", [PerDQN, TempoRLDQN, EZGreedyDQN])
def test_batch_norms_and_other_buffers_are_copied(kind):
    model = learned(20, kind, average_rate=0.5)
    policy = model.policy
    for network in (policy.q_net, policy.q_net_average):
        network.trunk.append(th.nn.BatchNorm1d(16))
    policy.q_net.trunk[-1].running_mean.fill_(3.0)
    policy.move_average(1000)
    assert (policy.q_net_average.trunk[-1].running_mean == 3.0).all()


# A learning rate that falls --------------------------------------------------------------------------------


def test_the_learning_rate_at_start_middle_and_end():
    model = learned(10, learning_rate=1e-3, learning_rate_falls_to=0.1)
    assert model.lr_schedule(1.0) == pytest.approx(1e-3)
    assert model.lr_schedule(0.5) == pytest.approx(5.5e-4)
    assert model.lr_schedule(0.0) == pytest.approx(1e-4)
    stays = learned(10, learning_rate=1e-3, learning_rate_falls_to=1.0)
    assert [stays.lr_schedule(left) for left in (1.0, 0.5, 0.0)] == [1e-3] * 3
    scheduled = learned(10, learning_rate=lambda left: left / 8, learning_rate_falls_to=0.1)
    assert [scheduled.lr_schedule(left) for left in (1.0, 0.5)] == [1 / 8, 1 / 16]


def test_the_optimiser_has_the_rate_of_the_step():
    model = learned(100, learning_rate=1e-3, learning_rate_falls_to=0.0, schedule_steps=200)
    assert model.policy.optimizer.param_groups[0]["lr"] == pytest.approx(5e-4)
    model.learn(100, reset_num_timesteps=False)
    assert model.policy.optimizer.param_groups[0]["lr"] == pytest.approx(0.0, abs=1e-9)
    model.learn(50, reset_num_timesteps=False)
    assert model.policy.optimizer.param_groups[0]["lr"] == pytest.approx(0.0, abs=1e-9)


# All together ----------------------------------------------------------------------------------------------


def test_a_saved_agent_has_its_levers(tmp_path):
    model = learned(**LEVERS)
    model.save(tmp_path / "model")
    loaded = PerDQN.load(tmp_path / "model", env=model.get_env())
    for name, value in LEVERS.items():
        assert getattr(loaded, name) == value
    assert loaded.greedy_hold == model.greedy_hold
    ours, theirs = model.policy.state_dict(), loaded.policy.state_dict()
    assert ours.keys() == theirs.keys()
    assert any(name.startswith("q_net_average") for name in ours)
    assert all(th.equal(ours[name], theirs[name]) for name in ours)
    assert loaded.lr_schedule(0.0) == pytest.approx(0.1 * loaded.learning_rate)
    model.save_replay_buffer(tmp_path / "replay")
    loaded.load_replay_buffer(tmp_path / "replay")
    loaded.learn(20, reset_num_timesteps=False)
    model.restore(loaded.state())


def test_a_replay_of_another_set_is_refused(tmp_path):
    model = learned(30, persistences=[1, 2, 4])
    model.save_replay_buffer(tmp_path / "replay")
    with pytest.raises(ValueError, match=r"the replay must be of persistences=\(1, 4\)"):
        learned(30, persistences=[1, 4]).load_replay_buffer(tmp_path / "replay")
    with pytest.raises(ValueError, match="the replay must be of shared_draws=True"):
        learned(30, persistences=[1, 2, 4], shared_draws=True).load_replay_buffer(tmp_path / "replay")


@pytest.mark.parametrize("name", sorted(LEVERS.keys() - {"clip_targets"}))
def test_each_lever_changes_what_is_learned(name):
    base, other = learned(150), learned(150, **{name: LEVERS[name]})
    ours = weights(other.policy.averaged_net)
    theirs = weights(base.q_net)
    assert ours.shape != theirs.shape or not th.equal(ours, theirs)
