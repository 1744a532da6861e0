"""What ``holdfast explore`` prints, within 80 columns."""

from __future__ import annotations

import textwrap
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from holdfast.advice.exploring import EnvironmentAdvice
    from holdfast.advice.fixed_skips.skip_verdict import SkipVerdict
    from holdfast.advice.fixed_skips.skips import ExactSkip, SkipEstimate
    from holdfast.advice.visitation.results import VisitationStudy
    from holdfast.mdp.exploration import ExplorationCurve
    from holdfast.stats.estimates import Estimate

__all__ = ["as_text", "estimates_text"]

_COLUMNS = 79


def as_text(found: EnvironmentAdvice, written: Sequence[Path], following: str | None = None) -> str:
    """The table, the advice, fixed skips if known, the files written, and the next command."""
    from holdfast.advice.fixed_skips.skip_verdict import skip_verdict

    parts = []
    if found.chain is not None:
        parts.append(_chain_table(found.env_name, found.chain, str(found.holes)))
    if found.visits is not None:
        parts.append(_visits_table(found.env_name, found.visits))
    parts += [_wrapped(note) for note in found.notes]
    parts.append(_wrapped(found.advice.sentence))
    if found.skips is not None:
        parts.append(_skips_table(found.skips, found.gamma))
        parts.append(_wrapped(skip_verdict(found.skips).sentence))
    if written:
        parts.append("\n".join(f"wrote {path}" for path in written))
    if following is not None:
        parts.append(f"next: {following}")
    return "\n\n".join(parts) + "\n"


def estimates_text(
    name: str,
    estimates: Sequence[SkipEstimate],
    verdict: SkipVerdict,
    gamma: float,
    horizon: int,
    written: Sequence[Path],
) -> str:
    """Estimates of fixed skips from a replay, and which of them may be shipped."""
    from holdfast.advice.fixed_skips.skips import FEWEST_TUPLES

    rows = [
        (
            str(found.k),
            f"{found.tuples:,}",
            _number(found.value),
            _loss(found.value, found.loss),
            _number(found.undiscounted),
            _number(found.residual),
            _number(found.index),
        )
        for found in estimates
    ]
    parts = [
        _wrapped(f"{name}: every action held for the same k steps, estimated from its replay"),
        _table(("k", "samples", "value", "loss", "return", "residual", "B_k"), rows),
        _wrapped(
            f"Values are discounted by {gamma:g} per step; returns are undiscounted, over {horizon:,} steps, the "
            "longest episode of the replay."
        ),
    ]
    parts += [_wrapped(f"k = {found.k}: {found.note}.") for found in estimates if found.note is not None]
    if any(found.tuples < FEWEST_TUPLES for found in estimates):
        parts.append(
            _wrapped(
                "To get more samples of long holds, train with a larger --k-max or with random options "
                "(see: holdfast docs fixed_skip)."
            )
        )
    parts += [_wrapped(sentence) for sentence in (_what_a_skip_costs(estimates), _ranking(estimates)) if sentence]
    parts.append(_wrapped(verdict.sentence))
    if written:
        parts.append("\n".join(f"wrote {path}" for path in written))
    return "\n\n".join(parts) + "\n"


def _what_a_skip_costs(estimates: Sequence[SkipEstimate]) -> str | None:
    """How to read values and losses; None if there is nothing to compare."""
    values = {found.k: found.value for found in estimates if found.loss is not None and found.value is not None}
    if len(values) < 2:
        return None
    smallest = min(values)
    multiples = "" if smallest == 1 else ", for multiples of it"
    sentence = (
        "Value and loss estimate what a fixed skip of k steps costs: the best policy's value at the start, and "
        f"how much less that is than with k = {smallest}{multiples}."
    )
    above, k, multiple = max(
        (values[other] - values[k], k, other) for k in values for other in values if other % k == 0
    )
    if above <= 1e-9 * max(map(abs, values.values())):
        return sentence
    return (
        f"{sentence} No multiple of a skip can be better than the skip itself, yet k = {multiple} came out "
        f"{above:.3g} above k = {k}: differences of that size are noise here."
    )


def _ranking(estimates: Sequence[SkipEstimate]) -> str | None:
    """What B_k says; None if fewer than two can be compared."""
    # A number that a note withdraws cannot be the largest.
    known = [
        (found.index, found.value, found.k)
        for found in estimates
        if found.index is not None and found.value is not None and found.note is None
    ]
    if len(known) < 2:
        return None
    hidden = max(value - index for index, value, _ in known)
    spread = max(value for _, value, _ in known) - min(value for _, value, _ in known)
    meaning = "B_k ranks the policies that could be fitted from this replay (PFQI), not the skips"
    if hidden > spread:
        return (
            f"{meaning}. It decides nothing here: the residual may hide up to {hidden:.3g} (value − B_k), and the "
            f"values are only {spread:.3g} apart."
        )
    index, _, k = max(known)
    return f"{meaning}. The largest is that of k = {k}: {index:.4g}."


def _chain_table(name: str, curve: ExplorationCurve, holes: str) -> str:
    from holdfast.advice.advisor import clearly_lowest

    how, lowest = "" if curve.is_exact else ", estimated", clearly_lowest(curve)
    normalised, errors = curve.normalised_kemeny, curve.normalised_error
    rows = []
    for index, k in enumerate(curve.k_max):
        plus_minus = "" if curve.is_exact else f" ± {2.0 * errors[index]:.3f}"
        rows.append(
            (
                str(k),
                f"{curve.kemeny[index]:.5g}",
                f"{normalised[index]:.3f}{plus_minus}",
                f"{curve.row_entropy[index]:.3f}",
                "← lowest" if index == lowest else "",
            )
        )
    heading = f"{name}: {curve.H} steps of random options as one step of a chain{how}; holes: {holes}"
    return _wrapped(heading) + "\n\n" + _table(("k_max", "Kemeny", "of k_max=1", "entropy", ""), rows)


def _visits_table(name: str, study: VisitationStudy) -> str:
    from holdfast.stats.intervals import in_percent

    several = len({result.mode for result in study.results}) > 1
    succeeds = study.results[0].success is not None
    header = ["k_max", "episodes", *(["success"] if succeeds else []), "mean return", "upper tenth", "covered"]
    rows = []
    for result in study.results:
        k = f"{result.k_max}" if not several else f"{'=' if result.mode == 'fixed' else '≤'} {result.k_max}"
        rows.append(
            (
                k,
                f"{result.episodes:,}",
                *([in_percent(result.success)] if result.success is not None else []),
                _interval(result.mean_return),
                f"{result.upper_return.value:.4g}",
                f"{100.0 * result.coverage:.0f} %",
            )
        )
    heading = f"{name}: random options, {study.budget.amount:,} {study.budget.unit} for each k_max"
    table = _table(tuple(header), rows)
    if max(map(len, table.splitlines())) > _COLUMNS:
        # The least useful column; explore.json still has it.
        place = header.index("upper tenth")
        table = _table(*_without(place, tuple(header), rows))
    return "\n\n".join([_wrapped(heading), table, _ends_table(study, several)])


def _ends_table(study: VisitationStudy, several: bool) -> str:
    """How episodes ended, how long they were, and the reward per step."""
    from holdfast.advice.visitation.outcomes import ENDS

    met = [name for name in ENDS if any(result.ends[name].value > 0.0 for result in study.results)]
    if met == ["limit"]:
        return "All episodes ran until a time limit."
    titles = {"limit": "time limit", "better": "better", "alike": "alike", "worse": "worse"}
    rows = [
        (
            f"{result.k_max}" if not several else f"{'=' if result.mode == 'fixed' else '≤'} {result.k_max}",
            f"{result.mean_length.value:.4g}",
            *(_share(result.ends[name].value) for name in met),
            _interval(result.reward_per_step),
        )
        for result in study.results
    ]
    low, high = study.going_on.low, study.going_on.high
    usual = f"always {low:g}" if study.going_on.is_constant else f"mostly {low:.3g} to {high:.3g}"
    heading = _wrapped(f"How episodes ended: last reward compared with other steps ({usual})")
    header = ("k_max", "length", *(titles[name] for name in met), "reward per step")
    return heading + "\n\n" + _table(header, rows)


def _share(value: float) -> str:
    """A share in percent; a positive share is never shown as 0."""
    percent = 100.0 * value
    return f"{percent:.2g} %" if 0.0 < percent < 1.0 else f"{percent:.0f} %"


def _without(
    place: int, header: tuple[str, ...], rows: Sequence[tuple[str, ...]]
) -> tuple[tuple[str, ...], list[tuple[str, ...]]]:
    """A table without one of its columns."""
    return header[:place] + header[place + 1 :], [row[:place] + row[place + 1 :] for row in rows]


def _skips_table(skips: Sequence[ExactSkip], gamma: float) -> str:
    rows = [(str(skip.k), _number(skip.value), _loss(skip.value, skip.loss)) for skip in skips]
    notes = [_wrapped(f"k = {skip.k}: {skip.note}.") for skip in skips if skip.note is not None]
    heading = _wrapped(
        f"If every action had to be held for the same k steps (a fixed frame skip; exact, discount {gamma:g}), "
        "the best policy would be worth:"
    )
    return "\n\n".join([heading, _table(("k", "V*_(k)(start)", "loss"), rows), *notes])


def _loss(value: float | None, loss: float | None) -> str:
    if loss is None or value is None:
        return "–"
    return "0" if abs(loss) <= 1e-9 * max(1.0, abs(value)) else f"{loss:.4g}"


def _table(header: tuple[str, ...], rows: Sequence[tuple[str, ...]]) -> str:
    """Right-aligned columns; a last one without a header is left-aligned."""
    lines = [header, *rows]
    widths = [max(len(line[column]) for line in lines) for column in range(len(header))]
    return "\n".join(
        (
            "  "
            + "  ".join(
                cell.rjust(width) if title else cell
                for cell, width, title in zip(line, widths, header, strict=True)
            )
        ).rstrip()
        for line in lines
    )


def _wrapped(text: str) -> str:
    return "\n".join(textwrap.wrap(text, _COLUMNS, break_long_words=False, break_on_hyphens=False))


def _number(value: float | None) -> str:
    return "–" if value is None else f"{value:.4g}"


def _interval(found: Estimate) -> str:
    half = (found.high - found.low) / 2.0
    return f"{found.value:.4g}" if half != half else f"{found.value:.4g} ± {half:.2g}"
