"""``holdfast solve``: the exact optimal values of a tabular environment, for every persistence."""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from holdfast.cli.prices import price_lines, price_numbers, priced_policies
from holdfast.cli.streams import results
from holdfast.cli.typed_values import counted
from holdfast.cli.verbs import add_holds, add_output, add_pairs, add_verb

if TYPE_CHECKING:
    import numpy as np
    from matplotlib.figure import Figure
    from numpy.typing import NDArray

    from holdfast.cli.prices import PricedPolicy
    from holdfast.draw import CellLayout
    from holdfast.mdp import OptionPath, TabularMDP

__all__ = ["add_parser"]

_K_MAX = 8
_MOST_PANELS = 32

_DESCRIPTION = """\
Solve a tabular environment exactly: Q*(s,a,k), the value of holding action a
for k steps and acting optimally from then on. Prints what holding costs in the
start state. Writes a picture of V*_k for each k and all values as a .npz file.
"""
_EXAMPLES = """\
examples:
  holdfast solve cliff --k-max 8
  holdfast solve cliff --decision-cost 0.5 --persistences 1,2,4,8
  holdfast solve cliff --prices
  holdfast solve my_map.txt --k-max 4 --gamma 0.95 -o results/my_map
  holdfast solve FrozenLake-v1 --k-max 4 --json
  holdfast solve zigzag --env-kwargs slip=0.1 -o results/slippery

values.npz holds q (S,A,K), k_values (S,K), start_values (K,), terminal (S,),
persistences (K,), decision_cost, gamma, environment and version; read it with
numpy.load.
"""


def add_parser(verbs: Any) -> None:
    """Add the verb to the command line."""
    parser = add_verb(
        verbs,
        "solve",
        "compute exact values of a tabular environment, for every k",
        _DESCRIPTION,
        _EXAMPLES,
    )
    parser.add_argument(
        "environment",
        metavar="MAP_OR_ENV",
        help="a short name (cliff, bridge, zigzag, open, sync-grid, frozen-lake), a Gymnasium id with a "
        "transition table (FrozenLake-v1), or a map file (S start, G goal, # hole, . free)",
    )
    add_holds(parser, "largest persistence K (default: 8)")
    parser.add_argument(
        "--decision-cost", type=float, default=0.0, metavar="C", help="cost of each decision (default: 0)"
    )
    parser.add_argument(
        "--prices",
        action="store_true",
        help="print which policy is best at which cost of a decision, instead of what holding costs",
    )
    parser.add_argument(
        "--gamma", type=float, default=0.99, metavar="G", help="discount factor in [0, 1] (default: 0.99)"
    )
    add_pairs(
        parser,
        "--env-kwargs",
        "arguments of the environment, such as slip=0.2 step_reward=-0.01 border=deadly for a grid, "
        "or seed=3 for another frozen lake",
        default=[],
    )
    add_output(parser, "output folder for values.png and values.npz (default: results/solve-NAME)")
    parser.add_argument(
        "--json", action="store_true", help="print the numbers as JSON, and write files only with -o"
    )
    parser.set_defaults(execute=run)


class _Solution(NamedTuple):
    """The solution, as it is printed and written.

    ``start_values`` are V*_k averaged over the start states; ``first_actions`` are the best ones there for each k,
    equals joined by a slash, if there is one start state. ``shortest_path`` and ``fewest_decisions`` are those of
    optimal paths at no cost, ``best_path`` is the one at a cost. ``prices`` are the rows of ``--prices``.
    """

    name: str
    mdp: TabularMDP
    durations: Sequence[int]
    decision_cost: float
    q: NDArray[np.float64]
    start_values: NDArray[np.float64]
    first_actions: list[str] | None
    shortest_path: int | None
    fewest_decisions: int | None
    best_path: OptionPath | None
    prices: list[PricedPolicy] | None = None


def run(arguments: argparse.Namespace) -> int:
    """Solve, print and write."""
    from holdfast.cli.environments import named_environment, output_folder, prints_apart
    from holdfast.cli.typed_values import environment_file_name
    from holdfast.cli.waiting import Waiting
    from holdfast.core.checks import check_decision_cost, check_real
    from holdfast.core.options import chosen_persistences
    from holdfast.mdp import TabularMDP

    k_max = _K_MAX if arguments.k_max is None and arguments.persistences is None else arguments.k_max
    durations = chosen_persistences(k_max, arguments.persistences)
    check_decision_cost(arguments.decision_cost)
    check_real("gamma", arguments.gamma, 0.0, 1.0)
    with prints_apart(arguments):
        env = named_environment(arguments)
        mdp = TabularMDP.from_gymnasium(env, arguments.gamma)
    name = environment_file_name(arguments.environment)
    out = output_folder(arguments)
    with Waiting(sys.stderr, f"solving {mdp.n_states:,} states") as waiting:
        solution = _solve(name, env, mdp, durations, arguments.decision_cost)
        if arguments.prices:
            solution = solution._replace(prices=priced_policies(mdp, durations))
        waiting.say("drawing and writing the values")
        written = [] if out is None else _write(solution, env, out)
    if arguments.json:
        results().write(json.dumps(_as_json(solution, written), indent=2) + "\n")
    else:
        results().write(_as_text(solution, written))
    return 0


def _solve(
    name: str, env: Any, mdp: TabularMDP, durations: Sequence[int], decision_cost: float = 0.0
) -> _Solution:
    import numpy as np

    from holdfast.mdp import OptionModel, fewest_decisions, follow_options, q_star_options
    from holdfast.mdp.kernels import DeterministicKernel
    from holdfast.mdp.solve_options import best_policy

    q = q_star_options(mdp, decision_cost=decision_cost, persistences=durations)
    initial = mdp.initial
    if initial is None:
        live = ~mdp.terminal
        initial = live / live.sum()
    start_values = np.einsum("s,sk->k", initial, q.max(axis=1))
    first_actions = steps = decisions = path = None
    if np.count_nonzero(initial) == 1:
        start = int(np.argmax(initial))
        names = getattr(env.unwrapped, "action_names", [str(action) for action in range(mdp.n_actions)])
        best = q[start].max(axis=0)
        equal = q[start] >= best - 1e-9 * np.abs(best)
        first_actions = ["/".join(str(names[a]) for a in np.flatnonzero(row)) for row in equal.T]
        # With gamma = 0, all paths that do not fall at the first step are equally good.
        if isinstance(mdp.kernel, DeterministicKernel) and mdp.gamma > 0.0:
            if decision_cost == 0.0:
                steps = fewest_decisions(mdp, q[:, :, :1], start)
                decisions = fewest_decisions(mdp, q, start, persistences=durations)
            else:
                path = follow_options(OptionModel(mdp, durations), best_policy(q), start)
    return _Solution(name, mdp, durations, decision_cost, q, start_values, first_actions, steps, decisions, path)


def _as_text(solution: _Solution, written: list[Path]) -> str:
    mdp, values, cost = solution.mdp, solution.start_values, solution.decision_cost
    held = f"k_max {len(values)}"
    if list(solution.durations) != list(range(1, len(values) + 1)):
        held = f"k in {','.join(map(str, solution.durations))}"
    priced = f", decision cost {cost:g}" if cost else ""
    best = values[0] if cost == 0.0 else values.max()
    lines = [
        f"{solution.name}: {mdp.n_states} states, {mdp.n_actions} actions, gamma {mdp.gamma:g}, {held}{priced}",
        "",
        f"  V*(start)           {best - cost:.6g}",
    ]
    if solution.shortest_path is not None:
        lines += [
            f"  shortest best path  {counted(solution.shortest_path, 'step')}",
            f"  fewest decisions    {solution.fewest_decisions} on a best path, holding up to "
            f"{counted(solution.durations[-1], 'step')}",
        ]
    if solution.best_path is not None:
        path = solution.best_path
        lines += [
            f"  best path           {counted(path.steps, 'step')}, {counted(path.decisions, 'decision')}, "
            f"return {path.total:g} without the cost"
        ]
    lines += ["", *(_hold_lines(solution, best) if solution.prices is None else price_lines(solution.prices))]
    if written:
        lines += ["", *(f"wrote {path}" for path in written)]
    return "\n".join(lines) + "\n"


def _hold_lines(solution: _Solution, best: float) -> list[str]:
    """The value of holding the first action for each k."""
    paid = ", already paid for," if solution.decision_cost else ""
    lines = [
        f"  Hold the first action{paid} for k steps, then act optimally:",
        "",
        f"  {'k':>3}  {'V*_k(start)':>12}  {'loss':>10}" + ("  first action" if solution.first_actions else ""),
    ]
    for index, (k, value) in enumerate(zip(solution.durations, solution.start_values, strict=True)):
        loss = best - value
        shown = "0" if abs(loss) <= 1e-9 * abs(best) else f"{loss:.4g}"
        action = f"  {solution.first_actions[index]}" if solution.first_actions else ""
        lines.append(f"  {k:>3}  {value:>12.6g}  {shown:>10}{action}")
    return lines


def _as_json(solution: _Solution, written: list[Path]) -> dict[str, Any]:
    return {
        "environment": solution.name,
        "n_states": solution.mdp.n_states,
        "n_actions": solution.mdp.n_actions,
        "gamma": solution.mdp.gamma,
        "k_max": solution.durations[-1],
        "persistences": list(solution.durations),
        "decision_cost": solution.decision_cost,
        "start_values": solution.start_values.tolist(),
        "first_actions": solution.first_actions,
        "shortest_best_path": solution.shortest_path,
        "fewest_decisions": solution.fewest_decisions,
        "best_path": None if solution.best_path is None else solution.best_path._asdict(),
        "prices": None if solution.prices is None else [price_numbers(policy) for policy in solution.prices],
        "files": [str(path) for path in written],
    }


def _write(solution: _Solution, env: Any, out: Path) -> list[Path]:
    import numpy as np

    from holdfast import __version__
    from holdfast.draw import save_figure
    from holdfast.files import make_folders, replace_file

    figure = _figure(solution, env)
    make_folders(out)
    picture, data = out / "values.png", out / "values.npz"
    with replace_file(data) as file:
        np.savez_compressed(
            file,
            q=solution.q,
            k_values=solution.q.max(axis=1),
            environment=solution.name,
            version=__version__,
            gamma=solution.mdp.gamma,
            persistences=np.array(solution.durations),
            decision_cost=solution.decision_cost,
            terminal=solution.mdp.terminal,
            start_values=solution.start_values,
        )
    save_figure(figure, picture)
    return [picture, data]


def _figure(solution: _Solution, env: Any) -> Figure:
    """V*_k for each k, or for evenly spaced k if there are more than fit."""
    import numpy as np

    from holdfast.draw import draw_state_values, draw_value_maps

    k_values = solution.q.max(axis=1)
    layout = _layout(env, solution.mdp.terminal)
    title = f"{solution.name.replace('$', ' ')}: $V^*_k$, the first action held for $k$ steps"
    if layout is None:
        return draw_state_values(k_values, title=title, label="$V^*_k(s)$")
    n_durations = k_values.shape[1]
    shown = np.unique(np.linspace(0, n_durations - 1, min(n_durations, _MOST_PANELS)).round().astype(int))
    maps = k_values[: int(np.prod(layout.shape)), shown].T.reshape(-1, *layout.shape)
    figure = draw_value_maps(maps, layout, title=title, label="$V^*_k(s)$")
    for axes, index in zip(figure.axes, shown, strict=False):
        axes.set_title(f"$k={solution.durations[index]}$")
    return figure


def _layout(env: Any, terminal: NDArray[np.bool_]) -> CellLayout | None:
    """The environment's grid, if it has one."""
    import numpy as np

    from holdfast.draw import CellLayout
    from holdfast.envs import GridWorld

    world = env.unwrapped
    if isinstance(world, GridWorld):
        grid = world.map
        return CellLayout(shape=grid.shape, start=grid.start, goals=grid.goals, holes=grid.holes)
    letters = np.asarray(getattr(world, "desc", []))
    if letters.ndim == 2 and letters.size == env.observation_space.n and (letters == b"S").sum() == 1:
        return CellLayout(
            shape=letters.shape,
            start=int(np.flatnonzero(letters == b"S")[0]),
            goals=letters == b"G",
            holes=letters == b"H",
        )
    shape = getattr(world, "shape", None)
    if isinstance(shape, tuple) and len(shape) == 2 and np.prod(shape) == env.observation_space.n:
        mdp_ends = np.zeros(shape, dtype=np.bool_)
        mdp_ends.ravel()[np.flatnonzero(terminal[: mdp_ends.size])] = True
        return CellLayout(shape=shape, start=None, goals=mdp_ends, holes=np.zeros(shape, dtype=np.bool_))
    return None
