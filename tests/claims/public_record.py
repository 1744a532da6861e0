"""What others have published on the tasks of the learning suite, and ours beside it."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from holdfast.experiments.figures.suite import SUITE
from holdfast.experiments.figures.suite.measures import agents_of, measure, tasks_of
from holdfast.stats.estimates import mean_estimate
from tests.claims.findings import told
from tests.claims.kept import kept_in


@dataclass(frozen=True)
class Published:
    """A number of somebody else's.

    Attributes:
        environment: Gymnasium id of our twin of it.
        who: Algorithm and source.
        steps: Of the training.
        result: As published.
        differs: From our protocol.
    """

    environment: str
    who: str
    steps: str
    result: str
    differs: str


_ZOO = "[rl-zoo3](https://github.com/DLR-RM/rl-baselines3-zoo)"
_CLEAN = "[CleanRL](https://github.com/vwxyzjn/cleanrl)"
_SLM = "[SLM-Lab](https://github.com/kengz/SLM-Lab)"
_ONE_RUN = "tuned for the task, one run"
_THREE = "three seeds"

PUBLISHED = (
    Published("CartPole-v1", f"DQN, {_ZOO}", "50,000", "500", _ONE_RUN),
    Published("CartPole-v1", f"QR-DQN, {_ZOO}", "not stated", "500", _ONE_RUN),
    Published("CartPole-v1", f"DQN, {_CLEAN}", "not stated", "489 ± 16", _THREE),
    Published("CartPole-v1", f"PQN, {_CLEAN}", "not stated", "495 ± 7", _THREE),
    Published("CartPole-v1", f"double DQN, prioritised, {_SLM}", "not stated", "452", "plain DQN there: 240"),
    Published("Acrobot-v1", f"DQN, {_ZOO}", "100,000", "−76.6 ± 11.8", _ONE_RUN),
    Published("Acrobot-v1", f"QR-DQN, {_ZOO}", "not stated", "−69", _ONE_RUN),
    Published("Acrobot-v1", f"PQN, {_CLEAN}", "not stated", "−96 ± 6", _THREE),
    Published("Acrobot-v1", f"double DQN, prioritised, {_SLM}", "not stated", "−84", "plain DQN there: −94"),
    Published("MountainCar-v0", f"DQN, {_ZOO}", "120,000", "−100.8 ± 9.9", _ONE_RUN),
    Published("MountainCar-v0", f"QR-DQN, {_ZOO}", "not stated", "−106", _ONE_RUN),
    Published("MountainCar-v0", f"DQN, {_CLEAN}", "not stated", "−195 ± 8", _THREE),
    Published("MountainCar-v0", f"C51, {_CLEAN}", "not stated", "−166 ± 28", _THREE),
    Published("MountainCar-v0", f"PQN, {_CLEAN}", "not stated", "−200", _THREE),
    Published("MountainCar-v0", "DQN, when-to-act-rl", "300,000", "−160", "ten seeds, interquartile mean"),
    Published("MountainCar-v0", "TempoRL, when-to-act-rl", "300,000", "−141", "ten seeds, interquartile mean"),
    Published("MountainCar-v0", "Lazy, when-to-act-rl", "300,000", "−128", "ten seeds, interquartile mean"),
    Published("MountainCar-v0", "hand-written rule, when-to-act-rl", "–", "−119", "pushes where the car moves"),
    Published("LunarLander-v3", f"DQN, {_ZOO}", "100,000", "154 ± 79", f"LunarLander-v2; {_ONE_RUN}"),
    Published("LunarLander-v3", f"QR-DQN, {_ZOO}", "not stated", "70", f"LunarLander-v2; {_ONE_RUN}"),
    Published("LunarLander-v3", f"double DQN, prioritised, {_SLM}", "not stated", "266", "plain DQN there: 195"),
    Published("LunarLander-v3", "DQN, when-to-act-rl", "200,000", "189", "ten seeds, interquartile mean"),
    Published("LunarLander-v3", "TempoRL, when-to-act-rl", "200,000", "159", "ten seeds, interquartile mean"),
    Published("LunarLander-v3", "Lazy, when-to-act-rl", "200,000", "210", "ten seeds, interquartile mean"),
)


def record_text(results: Path) -> str:
    """A table: ours of each task, then theirs."""
    rows = kept_in(results).table(SUITE)
    lines = ["| task | agent | steps | return | what differs |", "|---|---|---|---|---|"]
    for environment in dict.fromkeys(one.environment for one in PUBLISHED):
        for task in tasks_of(rows) if rows is not None else ():
            if task.environment != environment:
                continue
            assert rows is not None
            for agent in agents_of(rows):
                found = measure(rows, agent, task)
                if found is not None:
                    mean = told(mean_estimate(found.ends), 1).replace("+", "")
                    seeds = f"{len(found.seeds)} {'seed' if len(found.seeds) == 1 else 'seeds'}"
                    name = f"**{agent}**, holdfast's suite"
                    lines.append(f"| {environment} | {name} | {task.steps:,} | {mean} | {seeds}, last fifth |")
        lines += [
            f"| {environment} | {one.who} | {one.steps} | {one.result} | {one.differs} |"
            for one in PUBLISHED
            if one.environment == environment
        ]
    return "\n".join(lines) + "\n"
