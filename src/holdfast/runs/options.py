"""From options to the configuration of a run.

Options are what a user gives, on the command line or in a file. A ``RunConfig`` is the result, with every default
filled in. Its document uses the options' names, so a run's file can be given as options again.
"""

from __future__ import annotations

import re
import tomllib
from collections.abc import Mapping
from dataclasses import fields
from pathlib import Path
from typing import Any

from holdfast.core.checks import check_decision_cost, check_integer, check_persistences, check_real
from holdfast.core.errors import InputError, InputTypeError
from holdfast.core.saved_fields import json_copy
from holdfast.files import Entry, as_entry, parse_json
from holdfast.policies.algorithms import (
    ALGORITHMS,
    DEFAULT_ALGORITHM,
    Algorithm,
    check_algorithm_name,
    find_algorithm,
    nearest_names,
)
from holdfast.policies.arguments import check_train_freq
from holdfast.runs.config import FORMAT, RunConfig
from holdfast.runs.environment_checks import check_environment

__all__ = [
    "OPTIONS",
    "file_name",
    "make_config",
    "named_options",
    "read_options",
    "run_name",
    "stored_config",
]

OPTIONS = (
    "environment",
    "env_kwargs",
    "label",
    "algo",
    "k_max",
    "persistences",
    "decision_cost",
    "set",
    "seed",
    "n_envs",
    "steps",
    "episodes",
    "eval_every",
    "eval_episodes",
    "checkpoint_every",
    "keep_checkpoints",
    "threads",
    "device",
)
"""Keys that a file of options may have."""

_ABOUT = ("format", "versions")

DEFAULT_STEPS = 100_000
DEFAULT_EPISODES = 600
DEFAULT_EVALUATIONS = 20
DEFAULT_CHECKPOINT_SECONDS = 60.0
DEFAULT_CHECKPOINTS = 2

_UNSAID = {"keep_checkpoints": DEFAULT_CHECKPOINTS}
"""Options missing from the files of older runs, with what those runs did."""
_MOST = 2**62
_MOST_OF = {"seed": 2**31, "n_envs": 10_001, "threads": 1025, "eval_episodes": 1_000_001, "keep_checkpoints": 1001}
_LARGEST_OPTIONS = 2**20


def read_options(file: Path | Entry) -> dict[str, Any]:
    """The options in a .toml or .json file, such as the config.json of a run.

    Raises:
        ValueError: It is missing, damaged, of a newer format, or names an unknown option.
    """
    path = as_entry(file).path
    kind = path.suffix.lower()
    if kind not in (".toml", ".json"):
        raise InputError(f"a file of options must end in .toml or .json, not {str(path)!r}")
    text = as_entry(file).read(_LARGEST_OPTIONS, "a file of options")
    if kind == ".json":
        document = parse_json(text, path)
    else:
        try:
            document = json_copy(tomllib.loads(text.decode("utf-8")))
        except (ValueError, RecursionError) as error:
            raise InputError(f"{path} is damaged: {' '.join(str(error).split())[:200]}") from None
    if not isinstance(document, dict):
        raise InputError(f"{path} must contain options by name")
    options = named_options(document)
    if len(options) != len(document):
        raise InputError(f"{path} must name each option once")
    found = options.get("format", FORMAT)
    if found != FORMAT:
        raise InputError(f"{path} has format {found!r}, and this version of holdfast reads {FORMAT}")
    for name in options:
        if name not in (*OPTIONS, *_ABOUT):
            hint = nearest_names(name, OPTIONS) or f"choose from {', '.join(OPTIONS)}"
            raise InputError(f"{path} names {name!r}, which is not an option; {hint}")
    return {name: value for name, value in options.items() if name in OPTIONS}


def named_options(options: Mapping[str, Any]) -> dict[str, Any]:
    """A copy of ``options`` by the names of ``OPTIONS``, which may be written with dashes, or as ``env``.

    Raises:
        TypeError: They are not given by name.
    """
    if not isinstance(options, Mapping) or not all(isinstance(name, str) for name in options):
        raise InputTypeError(
            f"options must be a mapping such as {{'environment': 'cliff', 'algo': 'perq'}}, not {options!r}",
            "options",
        )
    plain = {name.replace("-", "_"): value for name, value in options.items()}
    return {"environment" if name == "env" else name: value for name, value in plain.items()}


def make_config(options: Mapping[str, Any], stored: RunConfig | None = None) -> RunConfig:
    """The configuration that ``options`` describe, with defaults filled in.

    Args:
        options: By name; see ``OPTIONS``.
        stored: The configuration already in the folder, if any; what derives from its length stays if that grows.

    Raises:
        ValueError: An option is missing or invalid; the message is one sentence.
        TypeError: Likewise.
    """
    from holdfast.runs.game_settings import game_settings

    options = named_options(options)
    for name in options:
        if name not in OPTIONS:
            hint = nearest_names(name, OPTIONS) or f"they may be {', '.join(OPTIONS)}"
            raise InputError(f"options must not have {name!r}; {hint}")
    if not options.get("environment"):
        raise InputError(
            "environment must be given: a Gymnasium id, a grid's name, a game such as atari:Freeway or "
            "minatar:Freeway, a map file or module:callable",
            "environment",
        )
    algorithm = find_algorithm(options.get("algo", DEFAULT_ALGORITHM))
    steps, episodes = (_limit(options, name) for name in ("steps", "episodes"))
    if stored is not None:
        # The command that started a run continues it, however far it has been extended since.
        steps, episodes = _larger(steps, stored.steps), _larger(episodes, stored.episodes)
    elif steps is None and episodes is None:
        steps, episodes = (DEFAULT_STEPS, None) if algorithm.is_deep else (None, DEFAULT_EPISODES)
    if algorithm.is_deep and steps is None:
        raise InputError(
            f"steps must be given for {algorithm.name}: its exploration rate falls over steps", "steps"
        )
    given = dict(_mapping(options, "set"))
    if options.get("k_max") is not None:
        if not algorithm.holds:
            raise InputError(
                f"k_max must not be given for {algorithm.name}, which holds every action for one step", "k_max"
            )
        if given.get("k_max", options["k_max"]) != options["k_max"]:
            raise InputError(
                f"k_max must be given once, not as {options['k_max']} and in set as {given['k_max']}",
                "k_max",
                "set",
            )
        given["k_max"] = options["k_max"]
    if options.get("persistences") is not None:
        given["persistences"] = _persistences(algorithm, options, given)
    if options.get("decision_cost") is not None:
        given["decision_cost"] = _decision_cost(algorithm, options, given)
    given = {**game_settings(options["environment"], algorithm, given), **given}
    arguments = algorithm.complete(given)
    env_kwargs = _json_mapping(options, "env_kwargs")
    environment, env_kwargs, label = _environment(options["environment"], env_kwargs, options.get("label"))
    n_envs = _whole(options, "n_envs", 1)
    if n_envs > 1 and not algorithm.is_deep:
        raise InputError(f"n_envs must be 1 for {algorithm.name}, which learns in one environment", "n_envs")
    if algorithm.is_deep:
        check_train_freq(arguments["train_freq"], n_envs)
    check_environment(algorithm, environment, env_kwargs, arguments, "policy" in given)
    if algorithm.is_deep and arguments["schedule_steps"] is None:
        kept = None if stored is None else stored.arguments.get("schedule_steps")
        arguments["schedule_steps"] = steps if kept is None else kept
    length = (steps if algorithm.is_deep else episodes) or DEFAULT_EPISODES
    # Not so often that a short run does little but evaluate.
    least = 1000 if algorithm.is_deep else 10
    eval_every = min(length, max(least, length // DEFAULT_EVALUATIONS)) if stored is None else stored.eval_every
    interval = options.get("checkpoint_every", DEFAULT_CHECKPOINT_SECONDS)
    device = options.get("device", "auto")
    if not isinstance(device, str):
        raise InputError(f"device must be auto, cpu, cuda or another device of PyTorch, not {device!r}", "device")
    return RunConfig(
        environment=environment,
        env_kwargs=env_kwargs,
        label=label,
        algo=algorithm.name,
        arguments=arguments,
        seed=_whole(options, "seed", 0, at_least=0),
        n_envs=n_envs,
        steps=steps,
        episodes=episodes,
        eval_every=_whole(options, "eval_every", eval_every, at_least=0),
        eval_episodes=_whole(options, "eval_episodes", 10),
        checkpoint_every=check_real("checkpoint_every", interval, 0.0),
        keep_checkpoints=_whole(options, "keep_checkpoints", DEFAULT_CHECKPOINTS),
        threads=_whole(options, "threads", 1),
        device=device,
    )


def _persistences(algorithm: Algorithm, options: Mapping[str, Any], given: Mapping[str, Any]) -> Any:
    """The set of persistences given outside ``set``."""
    value = options["persistences"]
    if "persistences" not in algorithm.arguments():
        raise InputError(
            f"persistences must not be given for {algorithm.name}, which has no choice of them", "persistences"
        )
    if options.get("k_max") is not None:
        raise InputError("k_max and persistences say the same thing: give one of them", "k_max", "persistences")
    _check_given_once("persistences", value, str(value), given)
    return value


def _decision_cost(algorithm: Algorithm, options: Mapping[str, Any], given: Mapping[str, Any]) -> float:
    """The cost of a decision given outside ``set``."""
    cost = check_decision_cost(options["decision_cost"])
    if "decision_cost" not in algorithm.arguments():
        raise InputError(
            f"decision_cost must not be given for {algorithm.name}: its values do not choose how long to hold",
            "decision_cost",
        )
    _check_given_once("decision_cost", cost, f"{cost:g}", given)
    return cost


def _check_given_once(name: str, value: Any, shown: str, given: Mapping[str, Any]) -> None:
    """Reject an argument that ``set`` gives as well, with another value."""
    if given.get(name, value) != value:
        raise InputError(f"{name} must be given once, not as {shown} and in set as {given[name]}", name, "set")


def run_name(options: Mapping[str, Any]) -> str:
    """A folder name for the run that ``options`` describe; the options are not checked."""
    from holdfast.envs.lookup import is_map_path

    algorithm = find_algorithm(options.get("algo", DEFAULT_ALGORITHM))
    environment = str(options.get("environment"))
    label = options.get("label") or (Path(environment).stem if is_map_path(environment) else environment)
    given = _mapping(options, "set")
    known = algorithm.arguments()
    own, default_set = known.get("k_max"), known.get("persistences")
    default = None if own is None or (default_set is not None and default_set.default) else own.default
    longest = options.get("k_max") or given.get("k_max") or default
    held = "" if own is None or longest is None else f"-k{longest}"
    sparse = options.get("persistences") or given.get("persistences")
    if own is not None and isinstance(sparse, list | tuple):
        held = f"-k{file_name('-'.join(map(str, sparse)))}"
    cost = options.get("decision_cost") or given.get("decision_cost")
    if own is not None and isinstance(cost, int | float) and cost:
        held += f"-c{cost:g}"
    return f"{file_name(str(label))}-{file_name(algorithm.name)}{held}-s{options.get('seed', 0)}"


def stored_config(options: Mapping[str, Any], path: Path) -> RunConfig:
    """The run described by a file that ``RunConfig.document`` wrote; nothing it names is made or imported.

    Raises:
        ValueError: The file is damaged.
    """
    options = {**_UNSAID, **options}
    try:
        missing = [field.name for field in fields(RunConfig) if _file_key(field.name) not in options]
        if missing:
            raise InputError(f"{_file_key(missing[0])!r} is missing")
        values = {field.name: options[_file_key(field.name)] for field in fields(RunConfig)}
        for name in ("environment", "label", "device", "algo"):
            if not isinstance(values[name], str) or not values[name].isprintable():
                raise InputError(f"{name} must be a text, not {values[name]!r}")
        for name in ("env_kwargs", "arguments"):
            if not isinstance(values[name], dict):
                raise InputError(f"{_file_key(name)} must be a mapping, not {values[name]!r}")
        check_algorithm_name(values["algo"])
        k_max = check_integer("k_max", values["arguments"].get("k_max", 1))
        persistences = check_persistences("persistences", values["arguments"].get("persistences"))
        if persistences is not None and persistences[-1] != k_max:
            raise InputError(f"k_max must be the longest of persistences, {persistences[-1]}, not {k_max}")
        for name, at_least in (
            ("seed", 0),
            ("n_envs", 1),
            ("eval_every", 0),
            ("eval_episodes", 1),
            ("keep_checkpoints", 1),
            ("threads", 1),
        ):
            values[name] = _whole(values, name, 1, at_least)
        for name in ("steps", "episodes"):
            values[name] = _limit(values, name)
        known = ALGORITHMS.get(values["algo"])
        is_deep = known is not None and known.is_deep
        if values["steps"] is None and (values["episodes"] is None or is_deep):
            raise InputError("steps must be given, or episodes for a table")
        values["checkpoint_every"] = check_real("checkpoint_every", values["checkpoint_every"], 0.0)
    except InputError as error:
        raise InputError(f"{path} is damaged: {str(error)[:300]}") from None
    return RunConfig(**values)


def _file_key(field: str) -> str:
    return "set" if field == "arguments" else field


def _whole(options: Mapping[str, Any], name: str, default: int, at_least: int = 1) -> int:
    number = check_integer(name, options.get(name, default), at_least)
    most = _MOST_OF.get(name, _MOST)
    if number >= most:
        raise InputError(f"{name} must be less than {most}, not {number}", name)
    return number


def _limit(options: Mapping[str, Any], name: str) -> int | None:
    return None if options.get(name) is None else _whole(options, name, 1)


def _larger(given: int | None, stored: int | None) -> int | None:
    return max((limit for limit in (given, stored) if limit is not None), default=None)


def _mapping(options: Mapping[str, Any], name: str) -> Mapping[str, Any]:
    value = options.get(name) or {}
    if not isinstance(value, Mapping):
        raise InputError(f"{name} must be names and values, not {value!r}", name)
    return value


def _json_mapping(options: Mapping[str, Any], name: str) -> dict[str, Any]:
    value = dict(_mapping(options, name))
    try:
        return dict(json_copy(value))
    except InputError:
        raise InputError(f"{name} must be made of JSON values, not {value!r}", name) from None


def _environment(name: Any, kwargs: dict[str, Any], label: Any) -> tuple[str, dict[str, Any], str]:
    """Name, arguments and label of an environment; a map file becomes its map."""
    from holdfast.envs import GridMap
    from holdfast.envs.lookup import is_map_path
    from holdfast.envs.registration import GRID_ID

    if not isinstance(name, str):
        raise InputError(f"environment must be a text, not {name!r}", "environment")
    if label is not None and (not isinstance(label, str) or not label.isprintable()):
        raise InputError(f"label must be a text, not {label!r}", "label")
    if is_map_path(name):
        return GRID_ID, {**kwargs, "map": str(GridMap.read(Path(name)))}, label or Path(name).stem
    return name, kwargs, label or name


def file_name(text: str) -> str:
    """The text as a file name: cliff, my_map, FrozenLake-v1, holdfast-Cliff-v0."""
    return re.sub(r"[^\w.-]+", "-", text).strip("-.")[:80] or "run"
