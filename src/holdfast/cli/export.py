"""``holdfast export``: a policy as an ONNX file, checked against the policy itself."""

from __future__ import annotations

import argparse
import json
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

from holdfast.cli.policies import acting_options, add_policy_arguments, policy_folder
from holdfast.cli.streams import results
from holdfast.cli.verbs import add_verb

if TYPE_CHECKING:
    from holdfast.policies.export import Export
    from holdfast.policies.onnx_graph import Tensor

__all__ = ["add_parser"]

_DESCRIPTION = """\
Write the best policy of a run as an ONNX file: observations in; action, hold
and the values of all options out. The file includes the decision rule. It is
written only if ONNX Runtime decides with it exactly as the policy does.
"""
_EXAMPLES = """\
examples:
  holdfast export runs/MountainCar-v0-perdqn-k16-s0 car.onnx
  holdfast export RUN car.onnx --decision-tolerance 0.5 --check 100000

Needs pip install 'holdfast-rl[onnx]'. To run the file, onnxruntime is enough.
"""


def add_parser(verbs: Any) -> None:
    """Add the verb to the command line."""
    parser = add_verb(
        verbs,
        "export",
        "write a run's best policy as an ONNX file",
        _DESCRIPTION,
        _EXAMPLES,
    )
    add_policy_arguments(parser, "stored in the file, for programs that interrupt a hold")
    parser.add_argument("file", metavar="FILE", type=Path, help="file to write, ending in .onnx")
    parser.add_argument(
        "--check",
        type=int,
        default=10_000,
        metavar="N",
        help="number of observations to compare before the file is written (default: 10000)",
    )
    parser.add_argument("--json", action="store_true", help="print the numbers as JSON")
    parser.set_defaults(execute=run)


def run(arguments: argparse.Namespace) -> int:
    """Export and print."""
    from holdfast.policies.export import export_onnx

    try:
        found = export_onnx(
            policy_folder(arguments),
            arguments.file,
            *acting_options(arguments),
            check=arguments.check,
            told=_told,
        )
    finally:
        _told(0, 0)
    results().write(json.dumps(_as_json(found), indent=2) + "\n" if arguments.json else _as_text(found))
    return 0


def _told(done: int, of: int) -> None:
    if sys.stderr.isatty():
        sys.stderr.write(f"\r\x1b[2K{done:,} of {of:,} decisions compared" if done < of else "\r\x1b[2K")
        sys.stderr.flush()


def _as_text(found: Export) -> str:
    from holdfast.cli.typed_values import printable

    about, check = found.metadata, found.check
    origin = [about[name] for name in ("environment", "algorithm") if name in about]
    origin += [f"policy of step {int(about['training_step']):,}"] if "training_step" in about else []
    ties = f", {check.near_ties:,} differ by rounding between equal values" if check.near_ties else ""
    lines = [
        f"wrote {found.path}, {_size(found.size)}: {', '.join(origin)}",
        "",
        *(_line("input", part) for part in found.inputs),
        *(_line("output", part) for part in found.outputs),
        "",
        f"  decision tolerance {about.get('decision_tolerance', 'none')} (in the graph)",
        f"  interrupt margin {about.get('interrupt_margin', 'none')} (in the metadata)",
        "",
        f"  {check.equal:,} of {check.observations:,} decisions equal{ties}, "
        f"largest difference in value {check.largest_difference:.2g}",
        "",
    ]
    return "".join(f"{printable(line)}\n" for line in [*lines, *_usage(found)])


def _line(kind: str, part: Tensor) -> str:
    shape = ", ".join(["n", *map(str, part.shape)]) + ("" if part.shape else ",")
    return f"  {kind:<7} {part.name:<12} {part.dtype:<8} ({shape})"


def _size(n_bytes: int) -> str:
    return f"{n_bytes / 1e6:.3g} MB" if n_bytes >= 1e6 else f"{n_bytes / 1e3:.3g} kB"


def _usage(found: Export) -> list[str]:
    """How to run it, in Python."""
    first = int(found.metadata.get("first_state", 0))
    made = f"np.full({{}}, {first}, {{!r}})" if first else "np.zeros({}, {!r})"
    seen = [f"{part.name!r}: {made.format((1, *part.shape), part.dtype)}" for part in found.inputs]
    begin, between = "  observation = {", ",\n" + 17 * " "
    return [
        "  import numpy as np, onnxruntime",
        f"  session = onnxruntime.InferenceSession({str(found.path)!r})",
        *f"{begin}{between.join(seen)}}}".splitlines(),
        "  action, hold, values = session.run(None, observation)",
    ]


def _as_json(found: Export) -> dict[str, Any]:
    check = found.check
    return {
        "file": str(found.path),
        "bytes": found.size,
        "inputs": [_as_json_part(part) for part in found.inputs],
        "outputs": [_as_json_part(part) for part in found.outputs],
        "metadata": found.metadata,
        "check": {
            "observations": check.observations,
            "equal": check.equal,
            "near_ties": check.near_ties,
            "largest_difference": check.largest_difference,
        },
    }


def _as_json_part(part: Tensor) -> dict[str, Any]:
    return {"name": part.name, "type": part.dtype, "shape": ["n", *part.shape]}
