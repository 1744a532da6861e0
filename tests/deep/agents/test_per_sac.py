"""PerSAC: its targets against NumPy, how it draws and acts, α, and how it goes on after a stop."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import torch as th
from stable_baselines3.common.vec_env import DummyVecEnv, VecNormalize

from holdfast.core import actor_critic
from holdfast.core.actor_critic import soft_persistence_target
from holdfast.deep import PerSAC, make_vec_env
from holdfast.deep.agents import actor_targets
from tests.deep.slider import SMALL, Slider, actions_of, each_target, refuse_another_end, reloaded, target_values


def made(env: Any = None, **arguments: Any) -> PerSAC:
    return PerSAC("MlpPolicy", env or Slider(), **{**SMALL, **arguments})


# Formulas -------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("kind", ["options", "primitive"])
def test_tensors_and_arrays_agree(kind):
    random = np.random.default_rng(1)
    values, log_prob = random.normal(size=(2, 5, 3, 3)), random.normal(size=(5, 3))
    tensors = th.as_tensor(values), th.as_tensor(log_prob), th.tensor(0.3)
    found = actor_targets.soft_state_values(*tensors, kind)
    assert np.allclose(found, actor_critic.soft_state_value(values, log_prob, 0.3, kind))
    loss = actor_targets.soft_actor_loss(*tensors)
    assert float(loss) == pytest.approx(-actor_critic.soft_actor_objective(values, log_prob, 0.3))


@each_target
def test_targets_are_those_of_the_formula(target):
    """Tuple by tuple, with networks asked one row at a time, of an actor that draws nearly the same each time."""
    model = made(
        **target,
        learning_starts=100,
        ent_coef=0.4,
        target_entropy=1.5,
        decision_cost=0.3 if target["target_value"] == "options" else 0.0,
    )
    model.learn(90)
    with th.no_grad():
        model.actor.log_std.weight.zero_()
        model.actor.log_std.bias.fill_(-12.0)
    draw, drawn = model.actor.drawn, []

    def noted(observations: Any) -> Any:
        drawn.append(draw(observations))
        return drawn[-1]

    model.actor.drawn = noted
    batch = model.replay_buffer.sample(16)
    found = model._targets(batch)
    durations = model.policy.durations.tolist()
    # Entropy as it was drawn, row by row of the distinct last states.
    (_, log_prob) = drawn[0]
    distinct = np.unique(batch.next_rows[batch.rest == 0]).tolist()

    for view, k in enumerate(durations):
        for number in range(16):
            row, rest = int(batch.next_rows[view, number]), int(batch.rest[view, number])
            heads = model.actor(model.replay_buffer.observations_at(np.array([row])), deterministic=True)[
                0
            ].detach()
            state_value = held = 0.0
            if rest == 0:
                entropy = log_prob[distinct.index(row)].numpy()
                worth = [
                    target_values(model, row, heads[head])[:, head].min() - 0.4 * entropy[head]
                    for head in range(len(durations))
                ]
                state_value = max(worth) - 0.3 if target["target_value"] == "options" else worth[0]
            elif rest in durations:
                held = target_values(model, row, batch.actions[view, number])[:, durations.index(rest)].min()
            expected = soft_persistence_target(
                batch.rewards[view, number], 0.99, k - rest, rest == 0, state_value, held, False, 0.4 * 1.5
            )
            if batch.is_there[view, number]:
                assert found[view, number] == pytest.approx(expected, rel=1e-3, abs=1e-3), (k, rest)
    assert (batch.rest > 0).any()


def test_nothing_is_had_beyond_an_end():
    model = made(learning_starts=100, timeout_is_terminal=True, ent_coef=0.5, target_entropy=-2.0)
    model.learn(90)
    batch = model.replay_buffer.sample(64)
    ends = batch.dones == 1
    lengths = (model.policy.durations[:, None] - batch.rest)[ends]
    # αH̄ = −1 for each step behind the first, and nothing for the state in which the episode ends.
    paid = -np.array([sum(0.99**i for i in range(1, length)) for length in lengths])
    assert ends.any()
    assert np.allclose(model._targets(batch)[ends], batch.rewards[ends] + paid, atol=1e-5)


def test_the_density_of_what_is_drawn():
    """log π of SB3's distribution, head by head, with one draw of noise for all heads."""
    model = made(k_max=3)
    observation = th.as_tensor(np.random.default_rng(0).normal(size=(6, 2)).astype(np.float32))
    actions, log_prob = model.actor.drawn(observation)
    means, log_deviations = model.actor.gaussians(observation)
    gaussians = th.atanh(actions)
    noise = (gaussians - means) / log_deviations.exp()
    assert th.allclose(noise, noise[:, :1].expand_as(noise), atol=1e-3)
    density = th.distributions.Normal(means, log_deviations.exp()).log_prob(gaussians)
    expected = (density - th.log(1.0 - actions**2)).sum(dim=2)
    assert th.allclose(log_prob, expected, atol=1e-3)


# Acting ---------------------------------------------------------------------------------------------------------


def test_actions_are_drawn_where_an_option_begins_and_held_with_it():
    model = made(Slider(length=10_000), learning_starts=0, exploration_initial_eps=0.5)
    taken, began = actions_of(model, 80)
    for step in range(1, 80):
        assert np.array_equal(taken[step], taken[step - 1]) != began[step]
    assert sum(began) < 60


def test_predict_draws_unless_it_is_deterministic():
    model = made(k_max=2)
    observation = np.zeros((4, 2), np.float32)
    drawn = [model.predict(observation)[0] for _ in range(2)]
    assert not np.array_equal(*drawn)
    # Four environments in the same state draw each for themselves.
    assert len({tuple(action) for action in drawn[0]}) == 4
    fixed = [model.predict(observation, deterministic=True)[0] for _ in range(2)]
    assert np.array_equal(*fixed)
    assert np.array_equal(fixed[0], model.policy.decide(observation).action)


def test_the_duration_is_chosen_at_the_middle_of_what_is_drawn_from():
    model = made(k_max=3)
    observation = np.array([[0.3, -0.2], [1.0, 2.0]], np.float32)
    tensor = th.as_tensor(observation)
    with th.no_grad():
        middle = th.tanh(model.actor.mu(model.actor.latent_pi(tensor))).view(2, 3, 2)
        worth = [
            [model.critic.q_networks[0](th.cat([tensor[n], middle[n, k]])[None])[0, k].item() for k in range(3)]
            for n in range(2)
        ]
    decision = model.policy.decide(observation)
    assert decision.values[:, 0] == pytest.approx(np.array(worth), rel=1e-5)
    assert decision.hold.tolist() == (np.argmax(worth, axis=1) + 1).tolist()
    for _ in range(5):
        _, state = model.predict(observation)
        assert (model.policy.steps_left(state) + 1).tolist() == decision.hold.tolist()


# α --------------------------------------------------------------------------------------------------------------


def test_alpha_goes_where_entropy_is_missing():
    # A new actor draws with a deviation of about 1, and has more entropy than −20 and less than 20.
    falling, rising = made(target_entropy=-20.0).learn(60), made(target_entropy=20.0).learn(60)
    assert falling.alpha < 1.0 < rising.alpha
    assert made(ent_coef=0.3).learn(60).alpha == pytest.approx(0.3)
    assert float(made(ent_coef="auto_0.2").alpha) == pytest.approx(0.2)
    assert made().target_entropy == -2.0


def test_what_is_logged():
    model = made().learn(60)
    assert {"train/ent_coef", "train/ent_coef_loss", "train/entropy", "train/actor_loss"} <= set(
        model.logger.name_to_value
    )


# Saving ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("n_envs", [1, 2])
@pytest.mark.parametrize("ent_coef", ["auto", 0.2])
def test_it_goes_on_exactly(n_envs, ent_coef):
    def agent() -> PerSAC:
        settings = {**SMALL, "ent_coef": ent_coef, "action_noise": 0.1, "schedule_steps": 120}
        return PerSAC("MlpPolicy", make_vec_env(Slider, n_envs, seed=1), **settings)

    whole, other = refuse_another_end(agent)
    assert whole.alpha == other.alpha


def test_a_state_without_alpha_is_refused():
    model = made().learn(40)
    state = model.state()
    del state["target_cache"]["log_alpha"]
    with pytest.raises(ValueError, match="log_alpha"):
        made().restore(state)


def test_sb3s_save_and_load(tmp_path):
    model = made(k_max=3).learn(50)
    loaded = reloaded(model, tmp_path / "model.zip")
    assert loaded.alpha == model.alpha
    loaded.learn(30)
    observation = np.zeros((3, 2), np.float32)
    model.policy.save(tmp_path / "policy.zip")
    alone = type(model.policy).load(tmp_path / "policy.zip")
    assert np.array_equal(alone.decide(observation).action, model.policy.decide(observation).action)


def test_normalised_environments():
    model = made(VecNormalize(DummyVecEnv([Slider, Slider]))).learn(80)
    assert model._n_updates > 0


# Bad input ------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        ({"use_sde": True}, "^use_sde must be False, not True: state-dependent exploration changes"),
        ({"use_sde_at_warmup": True}, "^use_sde_at_warmup must be False"),
        ({"sde_sample_freq": 4}, "^sde_sample_freq must be -1, not 4"),
        ({"ent_coef": "much"}, "^ent_coef must be 'auto', 'auto_' and a number above 0, or a number, not 'much'$"),
        ({"ent_coef": "auto_-1"}, "^ent_coef must be 'auto', 'auto_' and"),
        ({"ent_coef": "auto_1_0"}, "^ent_coef must be 'auto', 'auto_' and"),
        ({"ent_coef": "auto_"}, "^ent_coef must be 'auto', 'auto_' and"),
        ({"ent_coef": -0.1}, "^ent_coef must be"),
        ({"target_entropy": "high"}, "^target_entropy must be 'auto' or a number, not 'high'$"),
        ({"target_entropy": float("nan")}, "^target_entropy must be"),
        ({"clip_targets": True}, "^clip_targets must not be given to PerSAC"),
        (
            {"policy_kwargs": {"use_sde": True}},
            "^policy_kwargs must not have .use_sde.: give use_sde to the agent",
        ),
        ({"target_update_interval": 0}, "^target_update_interval must be"),
    ],
)
def test_other_arguments_are_refused(arguments, sentence):
    with pytest.raises(ValueError, match=sentence):
        made(**arguments)


def test_discrete_actions_are_refused():
    with pytest.raises(ValueError, match=r"^env must have continuous actions \(a Box\), not Discrete\(2\)$"):
        made("CartPole-v1")
