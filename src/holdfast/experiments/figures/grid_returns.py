"""How soon the grids are learned: PerQ-learning beside others, without its bootstrap, and beside more updates.

The paper compares with Q-learning that makes K_max updates per step and calls the numbers equal; for K_max = 8,
about 20.8 would be equal. Therefore both are shown. With zero initial values, on deterministic grids whose rewards
are at the ends, repeating an update changes the size of values but not their signs, and nothing that a greedy
episode shows. Therefore small random initial values, where repetition matters, are shown too.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, Any

from holdfast.core.decomposition import equal_updates_per_step
from holdfast.experiments.guests import Guest
from holdfast.experiments.spec import Experiment
from holdfast.experiments.tables import Table, titled_parts
from holdfast.experiments.tabular_curves import (
    AS_PRINTED,
    COLUMNS,
    NOTES,
    SIZES,
    STUDY,
    GridAgent,
    Learning,
    equal_q,
    joining,
    msa,
    per_q,
    plain_q,
    plan_curves,
    repeated_q,
    run_curves,
    temporl,
)
from holdfast.experiments.tabular_results import (
    Line,
    agent_lines,
    aggregate_lines,
    draw_returns_by_row,
    has_rows,
    score_lines,
    shaded_lines,
)

if TYPE_CHECKING:
    from matplotlib.figure import Figure

__all__ = [
    "METHODS",
    "MORE_UPDATES",
    "PRINTED",
    "WITHOUT_BOOTSTRAP",
    "draw_returns",
    "draw_returns_of_more_updates",
    "draw_returns_without_bootstrap",
]

_BY_K = [per_q(4), per_q(8), per_q(16)]
_OTHERS = [temporl(8), plain_q()]
_K_VALUES = (4, 8, 16)
_INITIAL = {0.0: "initial values 0", 0.01: "initial values N(0, .01²)"}
"""The title of each standard deviation."""

Plan = Iterator[tuple[Mapping[str, Any], int]]


def plan_methods(scale: str, learning: Learning | None = None, joined: Sequence[GridAgent] = ()) -> Plan:
    """All agents on every grid, and those that join."""
    return plan_curves([*_BY_K, *_OTHERS, *joined], SIZES[scale], learning)


def join_methods(guests: Sequence[Guest]) -> Experiment:
    """The figure with agents that join it, in the lower row of panels."""
    joined = joining(guests, [*_BY_K, *_OTHERS])
    return replace(METHODS, plan=partial(plan_methods, joined=joined), draw=partial(draw_returns, joined=joined))


def plan_without_bootstrap(scale: str) -> Plan:
    """All agents on every grid; only K_max = 8 at the smallest scale."""
    return plan_curves(_agents(_without_bootstrap, scale), SIZES[scale])


def plan_more_updates(scale: str) -> Plan:
    """All agents on every grid, with each kind of initial values; only K_max = 8 at the smallest scale."""
    for initial_std in _INITIAL:
        yield from plan_curves(_agents(_more_updates, scale), SIZES[scale], Learning(initial_std=initial_std))


def _without_bootstrap(k_max: int) -> list[GridAgent]:
    return [plain_q(), temporl(k_max), per_q(k_max), msa(k_max), msa(k_max, is_padded=True)]


def _more_updates(k_max: int) -> list[GridAgent]:
    return [per_q(k_max), plain_q(), repeated_q(k_max), equal_q(k_max)]


def _agents(row: Callable[[int], list[GridAgent]], scale: str) -> list[GridAgent]:
    """All agents in the rows of a figure, each once."""
    return list(
        {agent.name: agent for k in (_K_VALUES if scale != "smoke" else (8,)) for agent in row(k)}.values()
    )


def _shown(rows: Table, row: Callable[[int], list[GridAgent]]) -> tuple[int, ...]:
    """The K_max that have rows."""
    return tuple(k for k in _K_VALUES if has_rows(rows, row(k), beside=plain_q())) or _K_VALUES


def draw_returns(rows: Table, joined: Sequence[GridAgent] = ()) -> Figure:
    """Greedy returns over episodes: PerQ-learning by K_max above, K_max = 8 with the others below.

    Paper: Figure fig:tabular_perf
    """
    return draw_returns_by_row(
        {"by K": (rows, shaded_lines(_BY_K)), "K = 8": (rows, agent_lines([_BY_K[1], *_OTHERS, *joined]))}
    )


def draw_returns_without_bootstrap(rows: Table) -> Figure:
    """Greedy returns over episodes, one row per K_max; MSA-Q-learning as in the paper, and padded.

    Paper: Figure fig:tabular_noboot
    """
    row = _without_bootstrap
    return draw_returns_by_row({f"K = {k}": (rows, agent_lines(row(k))) for k in _shown(rows, row)})


def draw_returns_of_more_updates(rows: Table) -> Figure:
    """Greedy returns over episodes, one row per K_max and kind of initial values.

    Paper: Figure fig:tabular_multi
    """
    from holdfast.draw import algorithm_color
    from holdfast.draw.style import PALETTE

    # Separate colours: where a line coincides with the first, its dashes are visible on top of it.
    looks = [
        (algorithm_color("perq"), 0),
        (algorithm_color("q"), 0),
        (PALETTE["vermilion"], 1),
        (PALETTE["sky"], 2),
    ]
    drawn = {}
    for title, own in titled_parts(rows, "initial_std", _INITIAL).items():
        for k in _shown(own, _more_updates):
            lines = [Line(agent.name, *look) for agent, look in zip(_more_updates(k), looks, strict=True)]
            drawn[f"K = {k}, {title}"] = (own, lines)
    return draw_returns_by_row(drawn)


def methods_summary(rows: Table) -> list[str]:
    """Scores of all agents, grid by grid and over all grids."""
    return [*score_lines(rows), "", *aggregate_lines(rows)]


def summary_without_bootstrap(rows: Table) -> list[str]:
    """The scores of all agents, and what padded means."""
    padded = "padded: a hold that ends the episode also updates the durations beyond its end"
    return [*methods_summary(rows), "", padded]


def summary_of_more_updates(rows: Table) -> list[str]:
    """Scores of all agents, and which number of updates is equal."""
    lines = []
    for title, own in titled_parts(rows, "initial_std", _INITIAL).items():
        lines += [title, *methods_summary(own), ""]
    equal = ", ".join(f"{equal_updates_per_step(k):.1f} (K={k})" for k in _K_VALUES)
    return [*lines, f"updates per step of PerQ, uniform κ: {equal}"]


METHODS = Experiment(
    label="fig:tabular_perf",
    title="returns on the grids: PerQ by K_max, and beside TempoRL and Q-learning",
    columns=COLUMNS,
    plan=plan_methods,
    run=run_curves,
    draw=draw_returns,
    summary=methods_summary,
    notes=NOTES,
    shared=STUDY,
    join=join_methods,
)

PRINTED = replace(
    METHODS,
    label="fig:tabular_perf_as_printed",
    title=f"{METHODS.title}, N(0,1) and α = .01 as printed",
    plan=partial(plan_methods, learning=AS_PRINTED),
    notes=NOTES[:1],
    join=None,
)
"""The first figure with the initial values and the learning rate that the paper prints."""

WITHOUT_BOOTSTRAP = replace(
    METHODS,
    label="fig:tabular_noboot",
    title="returns on the grids without the bootstrap, by K_max",
    plan=plan_without_bootstrap,
    draw=draw_returns_without_bootstrap,
    summary=summary_without_bootstrap,
    join=None,
)

MORE_UPDATES = replace(
    METHODS,
    label="fig:tabular_multi",
    title="returns on the grids, against Q-learning with more updates",
    plan=plan_more_updates,
    draw=draw_returns_of_more_updates,
    summary=summary_of_more_updates,
    join=None,
    notes=(
        *NOTES,
        "Not in the paper: as many updates as PerQ-learning really makes; and small random initial values, "
        "because with zero ones, repeating an update changes no greedy episode.",
    ),
)
