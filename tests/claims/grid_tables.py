"""The tables of scores on the grids in docs/tabular.md and docs/claims.md, made of committed rows."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import numpy as np

from holdfast.experiments.tables import matrix, select
from holdfast.experiments.tabular_ablation import AGENTS
from holdfast.experiments.tabular_curves import GridAgent, equal_q, per_q, plain_q, repeated_q
from holdfast.experiments.tabular_study import plan as study_plan
from holdfast.stats.estimates import Estimate, mean_estimate
from tests.claims.findings import GRID_NAMES
from tests.claims.kept import LONG, RANDOM, ZERO, Kept, kept_in

_HEAD = "| agent | " + " | ".join(GRID_NAMES.values()) + " |\n" + "|---" * (len(GRID_NAMES) + 1) + "|\n"


def _cell(estimate: Estimate, is_signed: bool) -> str:
    half = "" if np.isnan(estimate.low) else f" ± {(estimate.high - estimate.low) / 2.0:.3f}"
    sign = "+" if is_signed else ""
    return f"{estimate.value:{sign}.3f}{half}".replace("-", "−").replace("0.", ".")


def _table(kept: Kept, agents: Sequence[str], choice: str, minus: str | None = None) -> str:
    """Scores of agents, or how far those of ``minus`` are above them; "" where there are none."""
    lines = []
    for agent in agents:
        cells = []
        for grid in GRID_NAMES:
            found = kept.grid_scores(agent, grid, choice)
            own = None if minus is None else kept.grid_scores(minus, grid, choice)
            if found is None or (minus is not None and own is None):
                cells.append("")
            else:
                cells.append(_cell(mean_estimate(found if own is None else own - found), own is not None))
        if any(cells):
            lines.append(f"| {agent} | " + " | ".join(cells) + " |")
    return _HEAD.replace("agent", "agent" if minus is None else "other") + "\n".join(lines) + "\n" if lines else ""


def _names(agents: Sequence[GridAgent]) -> list[str]:
    return [agent.name for agent in agents]


def grid_scores_text(results: Path) -> str:
    """All learners from zero values."""
    agents = list(dict.fromkeys(setting["agent"] for setting, _ in study_plan("paper")))
    return _table(kept_in(results), agents, ZERO)


def grid_gaps_text(results: Path) -> str:
    """How far PerQ(8) is above some of them."""
    return _table(kept_in(results), ["Q", "MSA8", "MSA8 padded", "TempoRL8 padded"], ZERO, minus="PerQ8")


def more_updates_text(results: Path) -> str:
    """PerQ-learning beside Q-learning with more updates, from random values."""
    agents = [plain_q(), *(agent for k in (4, 8, 16) for agent in (per_q(k), repeated_q(k), equal_q(k)))]
    return _table(kept_in(results), _names(agents), RANDOM)


def grid_parts_text(results: Path) -> str:
    """PerQ-learning and its parts, with each choice."""
    kept = kept_in(results)
    parts = [
        f"{choice[0].upper()}{choice[1:]}:\n\n{table}"
        for choice in (ZERO, RANDOM, LONG)
        if (table := _table(kept, _names(AGENTS), choice))
    ]
    return "\n".join(parts)


def times_text(results: Path) -> str:
    """Milliseconds of a run, the least of each grid in bold."""
    rows = kept_in(results).figure("tabular_times")
    if rows is None:
        return ""
    columns = [matrix(select(rows, grid=grid), "seconds", "k_max") for grid in GRID_NAMES]
    lines = ["| K | " + " | ".join(GRID_NAMES.values()) + " |", "|---" * (len(GRID_NAMES) + 1) + "|"]
    for place, k in enumerate(columns[0][0]):
        cells = []
        for _, seconds in columns:
            mean = mean_estimate(1e3 * seconds[:, place])
            digits = 0 if mean.value >= 100.0 else 1
            cell = f"{mean.value:.{digits}f} ± {(mean.high - mean.low) / 2.0:.{digits}f}"
            cells.append(f"**{cell}**" if seconds.mean(axis=0).argmin() == place else cell)
        lines.append(f"| {k:.0f} | " + " | ".join(cells) + " |")
    return "\n".join(lines) + "\n"
