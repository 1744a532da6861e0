"""Documents and the rows they cite: ``python -m tests.evidence`` writes the tables and pictures anew.

A part of a document that is made of rows stands between two comments that name it:

    <!-- begin suite: make evidence writes this from results/suite -->
    <!-- end suite -->

Everything between them is a function of the committed rows. A picture is beside it, and a comment in the block has
the SHA-256 of the arrays that it shows, rounded, and that of its file: so a picture that is out of date is found
without drawing it pixel by pixel, which other versions of a library do in another way.
"""

from __future__ import annotations

import csv
import hashlib
import re
from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
from matplotlib.figure import Figure

from holdfast.draw import save_figure
from holdfast.experiments.advice_study import VERDICTS, verdict
from holdfast.experiments.figures import find_experiment
from holdfast.experiments.figures.suite import ABLATION, SUITE
from holdfast.experiments.figures.suite.ablations import ablation_text
from holdfast.experiments.figures.suite.page import suite_page
from holdfast.experiments.spec import Experiment
from holdfast.experiments.store import read_manifest_and_rows
from holdfast.experiments.tables import select
from holdfast.experiments.tabular_ablation import PARTS
from holdfast.experiments.trade_off import TRADE_OFF
from holdfast.experiments.tuning.study import read_trials
from tests.architecture import ROOT
from tests.claims.grid_tables import (
    grid_gaps_text,
    grid_parts_text,
    grid_scores_text,
    more_updates_text,
    times_text,
)
from tests.claims.kept import FOLDERS, kept_in
from tests.claims.page import claims_text
from tests.claims.public_record import record_text

RESULTS = ROOT / "results"
DOCS = ROOT / "docs"


@dataclass(frozen=True)
class Evidence:
    """A part of a document that is made of rows.

    Attributes:
        name: In its comments.
        document: Its file in docs/.
        source: The folder of its rows in results/.
        text: What is written, from that folder; "" where it has no rows yet.
        picture: The file in docs/ that is drawn; None for no picture.
        figure: What is drawn, from that folder; None where it has no rows yet.
        title: Of the picture, for who cannot see it.
        others: Further folders of rows in results/, where ``source`` is that of all.
    """

    name: str
    document: str
    source: str
    text: Callable[[Path], str]
    picture: str | None = None
    figure: Callable[[Path], Figure | None] = lambda folder: None
    title: str = ""
    others: tuple[str, ...] = ()

    @property
    def comments(self) -> tuple[str, str]:
        """Before and after it."""
        told = f"make evidence writes this from results/{self.source}".rstrip("/")
        return f"<!-- begin {self.name}: {told} -->", f"<!-- end {self.name} -->"

    def block(self, results: Path = RESULTS, docs: Path = DOCS) -> str:
        """What the document must have, comments and all; the picture's file must be there."""
        begin, end = self.comments
        body = (
            self.text(results / self.source)
            or f"No rows are kept in `results/{self.source or self.others[0]}/` yet.\n"
        )
        figure = self.figure(results / self.source)
        if self.picture is not None and figure is not None:
            file = hashlib.sha256((docs / self.picture).read_bytes()).hexdigest()
            body = (
                f"![{self.title}]({self.picture})\n\n"
                f"<!-- {self.picture} shows {drawn_digest(figure)}, its file is {file} -->\n\n{body}"
            )
        return f"{begin}\n\n{body.rstrip()}\n\n{end}"

    def draw(self, results: Path = RESULTS, docs: Path = DOCS) -> None:
        """Write the picture."""
        figure = self.figure(results / self.source)
        if self.picture is not None and figure is not None:
            save_figure(figure, docs / self.picture)

    def replaced(self, page: str, block: str) -> str:
        """A page with another block.

        Raises:
            ValueError: The page does not have the block once.
        """
        begin, end = map(re.escape, self.comments)
        changed, count = re.subn(f"{begin}.*?{end}", lambda _: block, page, flags=re.DOTALL)
        if count != 1:
            raise ValueError(f"docs/{self.document} must have the comments of {self.name} once, not {count} times")
        return changed


def drawn_digest(figure: Figure, digits: int = 6) -> str:
    """SHA-256 of what a figure shows: titles, labels, and every line and band to so many digits."""
    found = hashlib.sha256()
    for axes in figure.axes:
        found.update(repr((axes.get_title(), axes.get_xlabel(), axes.get_ylabel())).encode())
        arrays = [(str(line.get_label()), np.asarray(line.get_xydata())) for line in axes.lines]
        arrays += [("", path.vertices) for band in axes.collections for path in band.get_paths()]
        for label, array in arrays:
            found.update(repr((label, array.shape)).encode())
            numbers = (f"{number:.{digits}g}" for number in array.astype(float).ravel().tolist())
            found.update(",".join("0" if text == "-0" else text for text in numbers).encode())
    return found.hexdigest()


# The learning suite ---------------------------------------------------------------------------------------------


def suite_text(folder: Path) -> str:
    return suite_page(read_manifest_and_rows(folder, SUITE)[1]) if folder.is_dir() else ""


def suite_figure(folder: Path) -> Figure | None:
    return SUITE.draw(read_manifest_and_rows(folder, SUITE)[1]) if folder.is_dir() else None


def ablation_rows_text(folder: Path) -> str:
    return ablation_text(read_manifest_and_rows(folder, ABLATION)[1]) if folder.is_dir() else ""


def ablation_figure(folder: Path) -> Figure | None:
    return ABLATION.draw(read_manifest_and_rows(folder, ABLATION)[1]) if folder.is_dir() else None


# The study of advice, whose rows are older than manifests -------------------------------------------------------


def rows_of(path: Path) -> list[dict[str, str]]:
    """The rows of a file, as texts."""
    with path.open(newline="") as file:
        return list(csv.DictReader(file))


def advised_in(path: Path) -> dict[int, int]:
    """The k_max that was advised, by world."""
    return {int(row["world"]): int(row["advised"]) for row in rows_of(path)}


def verdicts(folder: Path, advised: Mapping[int, int]) -> dict[int, tuple[str, str]]:
    """Half and verdict by world, for advice that was given."""
    worlds: dict[int, list[dict[str, str]]] = {}
    for row in rows_of(folder / "rows.csv"):
        worlds.setdefault(int(row["world"]), []).append(row)
    found = {}
    for number, rows in worlds.items():
        columns: dict[str, Any] = {
            name: np.array([float(row[name]) for row in rows]) for name in ("gain", "gain_low", "gain_high")
        }
        k_max = np.array([int(row["k_max"]) for row in rows])
        told = {**columns, "k_max": k_max, "advised": np.full(len(rows), advised[number])}
        found[number] = (rows[0]["half"], verdict(told))
    return found


def advice_text(folder: Path) -> str:
    lines = ["| | " + " | ".join(VERDICTS) + " |", "|---" * (len(VERDICTS) + 1) + "|"]
    for half, name in (("building", "built with"), ("kept apart", "kept apart")):
        for rule, file in (("the rule before", "before.csv"), ("this rule", "rows.csv")):
            found = verdicts(folder, advised_in(folder / file))
            counts = Counter(one for where, one in found.values() if where == half)
            cells = " | ".join(str(counts[one]) for one in VERDICTS)
            lines.append(f"| {name}, {counts.total()}: {rule} | {cells} |")
    return "\n".join(lines) + "\n"


# The grids ------------------------------------------------------------------------------------------------------


def grid_figure(experiment: Experiment, scale: str = "paper") -> Callable[[Path], Figure | None]:
    """The picture of an experiment at a scale, from whichever folders have its rows."""

    def figure(results: Path) -> Figure | None:
        rows = kept_in(results).table(experiment, scale)
        return None if rows is None else experiment.draw(rows)

    return figure


def grid_picture(
    name: str, document: str, experiment: Experiment, title: str, others: tuple[str, ...] = ()
) -> Evidence:
    """A picture, without a text."""
    told = f"`holdfast reproduce {experiment.reference or experiment.name} --scale paper`"
    return Evidence(
        name,
        document,
        "",
        lambda results: f"Drawn from kept rows ({told}).\n",
        f"images/{name}.png",
        grid_figure(experiment),
        title,
        others,
    )


def told_by(experiment: Experiment, scale: str) -> Callable[[Path], str]:
    """What an experiment prints of its kept rows; "" where there are none."""

    def text(results: Path) -> str:
        rows = kept_in(results).table(experiment, scale)
        return "" if rows is None else "\n".join(["```text", *experiment.summary(rows), "```", ""])

    return text


def tuning_text(folder: Path) -> str:
    """The best trials of the study on MountainCar, and the defaults."""
    trials = read_trials(folder)
    ended = [trial for trial in trials if trial.score is not None]
    best = sorted(ended, key=lambda trial: (-(trial.score or 0.0), trial.number))[:3]
    names = list(trials[0].parameters)
    lines = [f"| trial | return | {' | '.join(f'`{name}`' for name in names)} |", "|---" * (len(names) + 2) + "|"]
    for trial in [*best, trials[0]]:
        values = [f"{one:.3g}" if isinstance(one, float) else str(one) for one in trial.parameters.values()]
        told = f"{trial.number}, the defaults" if trial.number == 0 else str(trial.number)
        lines.append(f"| {told} | {trial.score:.1f} | {' | '.join(values)} |")
    hopeless = sum(max(trial.mean_curve) <= -200.0 for trial in trials)
    return "\n".join(lines) + f"\n\nOf the {len(trials)} trials, {hopeless} reached the flag in no evaluation.\n"


def trade_off_text(folder: Path) -> str:
    """What the trade-off prints, and return and decisions of every seed, without and with a tolerance."""
    if not folder.is_dir():
        return ""
    rows = read_manifest_and_rows(folder, TRADE_OFF)[1]
    seeds = [int(seed) for seed in np.unique(rows["seed"])]
    lines = ["```text", *TRADE_OFF.summary(rows), "```", ""]
    for is_tolerant, how in ((0.0, "without a tolerance"), (1.0, "with its tolerance")):
        lines += [f"Return and decisions per episode of each seed, {how}:", ""]
        lines += [f"| cost | {' | '.join(f'seed {seed}' for seed in seeds)} |", "|---" * (len(seeds) + 1) + "|"]
        for cost in np.unique(rows["decision_cost"]):
            cells = []
            for seed in seeds:
                own = select(rows, decision_cost=cost, is_tolerant=is_tolerant, seed=seed)
                means = [own[name].mean() for name in ("return", "decisions") if len(own[name])]
                cells.append(", ".join(f"{mean:.1f}" for mean in means))
            lines.append(f"| {cost:g} | {' | '.join(cells)} |")
        lines.append("")
    return "\n".join(lines)


def trade_off_figure(folder: Path) -> Figure | None:
    return TRADE_OFF.draw(read_manifest_and_rows(folder, TRADE_OFF)[1]) if folder.is_dir() else None


def trade_off(name: str, environment: str) -> Evidence:
    """The trade-off of an environment, from the folder of its name."""
    return Evidence(
        name,
        "tradeoff.md",
        name,
        trade_off_text,
        f"images/{name}.png",
        trade_off_figure,
        f"Return against decisions per episode on {environment}, by decision cost",
    )


def told_picture(name: str, document: str, title: str, scale: str = "paper") -> Evidence:
    """The picture of an experiment with what it prints, from the folder of its name."""
    experiment = find_experiment(name)
    text, figure = told_by(experiment, scale), grid_figure(experiment, scale)
    return Evidence(name, document, "", text, f"images/{name}.png", figure, title, (name,))


EVIDENCE = (
    Evidence("advice", "explore.md", "advice_study", advice_text),
    Evidence("tuning", "tune.md", "tune_mountain_car", tuning_text),
    Evidence("claims", "claims.md", "", claims_text, others=FOLDERS),
    Evidence("public record", "claims.md", "", record_text),
    Evidence("grid parts", "claims.md", "", grid_parts_text),
    grid_picture(
        "tabular_ablation",
        "claims.md",
        replace(PARTS, reference="holdfast.experiments.tabular_ablation:PARTS"),
        "Greedy returns over episodes on four grids, PerQ-learning and its parts, under three choices",
    ),
    grid_picture(
        "tabular_perf",
        "claims.md",
        find_experiment("tabular_perf"),
        "Greedy returns on four grids: PerQ-learning by K above, beside TempoRL and Q-learning below",
    ),
    grid_picture(
        "tabular_noboot",
        "claims.md",
        find_experiment("tabular_noboot"),
        "Greedy returns over episodes on four grids with and without the bootstrap, a row for each K",
    ),
    grid_picture(
        "refinement",
        "finer_time.md",
        find_experiment("refinement"),
        "Greedy return and decisions by n on Cliff, Bridge and ZigZag",
        ("refinement",),
    ),
    told_picture(
        "refinement_car",
        "finer_time.md",
        "Greedy returns on MountainCar over physical time by n: DQN, DQN with a skip of n, and PerDQN",
        "laptop",
    ),
    told_picture(
        "her",
        "goals.md",
        "Greedy return and decisions per episode over the training: PerDQN with HER, DQN with HER, PerDQN alone",
    ),
    told_picture(
        "minatar",
        "atari.md",
        "Scores and decisions per game over the training on four MinAtar games: PerDQN(4) and DQN",
        "laptop",
    ),
    told_picture(
        "atari",
        "atari.md",
        "Score and decisions per game over a short training on Atari's Freeway: PerDQN(4) and DQN",
        "laptop",
    ),
    trade_off("tradeoff_mountain_car", "MountainCar-v0"),
    trade_off("tradeoff_cart_pole", "CartPole-v1"),
    Evidence("grid scores", "tabular.md", "", grid_scores_text),
    Evidence("grid gaps", "tabular.md", "", grid_gaps_text),
    Evidence("more updates", "tabular.md", "", more_updates_text),
    Evidence("times", "tabular.md", "", times_text),
    Evidence(
        "suite",
        "results.md",
        "suite",
        suite_text,
        "images/suite.png",
        suite_figure,
        "Greedy returns over the training on each task, mean and 95 % interval over seeds",
    ),
    Evidence(
        "ablation",
        "results.md",
        "ablation",
        ablation_rows_text,
        "images/ablation.png",
        ablation_figure,
        "Last fifth and area on CartPole and MountainCar with one default switched off at a time",
    ),
)
"""All that documents take from committed rows."""


def write_all() -> None:
    """Draw all pictures and write all blocks."""
    for one in EVIDENCE:
        one.draw()
        page = DOCS / one.document
        page.write_text(one.replaced(page.read_text("utf-8"), one.block()), encoding="utf-8")


if __name__ == "__main__":
    write_all()
