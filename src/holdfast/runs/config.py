"""What a run is: everything that is needed to do it again, bit for bit.

Options are what a user gives, on the command line or in a file; a ``RunConfig`` is what they come to, with every
default filled in. Its document has the options' names, so that the file of a run can be given as options again.
"""

from __future__ import annotations

import importlib.metadata
import platform
import re
import tomllib
from collections.abc import Mapping
from dataclasses import dataclass, fields, replace
from pathlib import Path
from typing import Any

from holdfast import __version__
from holdfast.core.checks import check_decision_cost, check_integer, check_persistences, check_real
from holdfast.core.errors import InputError
from holdfast.core.saved_fields import json_copy
from holdfast.files import Entry, as_entry, parse_json
from holdfast.policies.algorithms import ALGORITHMS, DEFAULT_ALGORITHM, Algorithm, find_algorithm, nearest_names
from holdfast.policies.arguments import check_train_freq

__all__ = [
    "FORMAT",
    "OPTIONS",
    "RunConfig",
    "make_config",
    "read_options",
    "run_name",
    "stored_config",
    "unknown_part",
]

FORMAT = 1

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
    "threads",
    "device",
)
"""What may stand in a file of options."""

_ABOUT = ("format", "versions")

DEFAULT_STEPS = 100_000
DEFAULT_EPISODES = 600
DEFAULT_EVALUATIONS = 20
DEFAULT_CHECKPOINT_SECONDS = 60.0

SMALLEST_IMAGE = 36
"""Pixels that an image must have along both sides for the three layers of the default CNN."""

_MOST = 2**62
_MOST_OF = {"seed": 2**31, "n_envs": 10_001, "threads": 1025, "eval_episodes": 1_000_001}
_LARGEST_OPTIONS = 2**20


@dataclass(frozen=True)
class RunConfig:
    """A run, with every default filled in.

    Attributes:
        environment: Name of the environment, as ``make_env`` takes it.
        env_kwargs: Its arguments.
        label: What it is called in names and headings.
        algo: Name of the algorithm.
        arguments: All its arguments, as JSON values.
        seed: Root of all random numbers.
        n_envs: Environments side by side.
        steps: Steps to train; None for as many as the episodes take.
        episodes: Episodes to train; None for as many as fit in the steps.
        eval_every: Steps (for a table: episodes) between evaluations; 0 for none.
        eval_episodes: Greedy episodes of each.
        checkpoint_every: Seconds between checkpoints; 0 for none.
        threads: Threads of PyTorch.
        device: Device of PyTorch.
    """

    environment: str
    env_kwargs: dict[str, Any]
    label: str
    algo: str
    arguments: dict[str, Any]
    seed: int
    n_envs: int
    steps: int | None
    episodes: int | None
    eval_every: int
    eval_episodes: int
    checkpoint_every: float
    threads: int
    device: str

    @property
    def algorithm(self) -> Algorithm:
        """The algorithm."""
        return ALGORITHMS[self.algo]

    @property
    def k_max(self) -> int:
        """The largest persistence."""
        return int(self.arguments.get("k_max", self.algorithm.stands_for.get("k_max", 1)))

    @property
    def persistences(self) -> list[int] | None:
        """Those that an option may have; None for all up to the largest."""
        return self.arguments.get("persistences")

    @property
    def held(self) -> str:
        """For how long actions may be held, and what a decision costs, in a heading; nothing without a choice."""
        if "k_max" not in self.arguments:
            return ""
        cost = self.arguments.get("decision_cost") or 0.0
        priced = f", c={cost:g}" if cost else ""
        if self.persistences is None:
            return f"K={self.k_max}{priced}"
        return f"k in {{{','.join(map(str, self.persistences))}}}{priced}"

    def is_reached(self, steps: int, episodes: int) -> bool:
        """Whether a run that has got so far is over."""
        return (self.steps is not None and steps >= self.steps) or (
            self.episodes is not None and episodes >= self.episodes
        )

    def options(self) -> dict[str, Any]:
        """The options that come to this, and to nothing else."""
        found = {field.name: getattr(self, field.name) for field in fields(self)}
        found["set"] = found.pop("arguments")
        return found

    def document(self) -> dict[str, Any]:
        """The same as a document to be written, with the versions of what it was made with."""
        return {"format": FORMAT, "versions": versions(), **self.options()}

    def difference(self, other: RunConfig) -> str | None:
        """Where ``other`` is another run than this one, in words; how long and how safe it is does not count."""
        lasting = {name: getattr(self, name) for name in ("steps", "episodes", "checkpoint_every")}
        other = replace(other, **lasting)
        for field in fields(self):
            one, two = getattr(self, field.name), getattr(other, field.name)
            if field.name in ("arguments", "env_kwargs"):
                for name in (*one, *two):
                    if name not in one or name not in two:
                        return f"{name}={one[name]!r}, not without" if name in one else f"no {name}"
                    if one[name] != two[name]:
                        return f"{name}={one[name]!r}, not {two[name]!r}"
            elif one != two:
                return f"{field.name}={one!r}, not {two!r}"
        return None


def read_options(file: Path | Entry) -> dict[str, Any]:
    """The options in a .toml or .json file, such as the config.json of a run.

    Raises:
        ValueError: It is missing, damaged, of a newer format, or names something that is no option.
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
        raise InputError(f"{path} must hold options by name")
    options = {_option_name(name): value for name, value in document.items()}
    if len(options) != len(document):
        raise InputError(f"{path} must name each option once")
    found = options.get("format", FORMAT)
    if found != FORMAT:
        raise InputError(f"{path} has format {found!r}, and this version of holdfast reads {FORMAT}")
    for name in options:
        if name not in (*OPTIONS, *_ABOUT):
            hint = nearest_names(name, OPTIONS) or f"it may name {', '.join(OPTIONS)}"
            raise InputError(f"{path} names {name!r}, which is no option; {hint}")
    return {name: value for name, value in options.items() if name in OPTIONS}


def _option_name(name: str) -> str:
    plain = name.replace("-", "_")
    return {"env": "environment"}.get(plain, plain)


def make_config(options: Mapping[str, Any], stored: RunConfig | None = None) -> RunConfig:
    """The run that ``options`` come to.

    Args:
        options: By name; see ``OPTIONS``.
        stored: The run that may be there already: what is derived from its length is kept when that grows.

    Raises:
        ValueError: An option is missing or will not do, in one sentence.
        TypeError: Likewise.
    """
    from holdfast.runs.game_settings import game_settings

    options = {_option_name(name): value for name, value in options.items()}
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
        # The command that a run began with goes on with it, however far it was extended since.
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
    _check_environment(algorithm, environment, env_kwargs, arguments, "policy" in given)
    if algorithm.is_deep and arguments["schedule_steps"] is None:
        kept = None if stored is None else stored.arguments.get("schedule_steps")
        arguments["schedule_steps"] = steps if kept is None else kept
    length = (steps if algorithm.is_deep else episodes) or DEFAULT_EPISODES
    # Not so often that a short run does little else.
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
        threads=_whole(options, "threads", 1),
        device=device,
    )


def _persistences(algorithm: Algorithm, options: Mapping[str, Any], given: Mapping[str, Any]) -> Any:
    """The set of persistences that is given beside ``set``."""
    value = options["persistences"]
    if "persistences" not in algorithm.arguments():
        raise InputError(
            f"persistences must not be given for {algorithm.name}, which has no choice of them", "persistences"
        )
    if options.get("k_max") is not None:
        raise InputError("k_max and persistences say the same thing: give one of them", "k_max", "persistences")
    if given.get("persistences", value) != value:
        raise InputError(
            f"persistences must be given once, not as {value} and in set as {given['persistences']}",
            "persistences",
            "set",
        )
    return value


def _decision_cost(algorithm: Algorithm, options: Mapping[str, Any], given: Mapping[str, Any]) -> float:
    """The cost of a decision that is given beside ``set``."""
    cost = check_decision_cost(options["decision_cost"])
    if "decision_cost" not in algorithm.arguments():
        raise InputError(
            f"decision_cost must not be given for {algorithm.name}: its values do not choose how long to hold",
            "decision_cost",
        )
    if given.get("decision_cost", cost) != cost:
        raise InputError(
            f"decision_cost must be given once, not as {cost:g} and in set as {given['decision_cost']}",
            "decision_cost",
            "set",
        )
    return cost


def run_name(options: Mapping[str, Any]) -> str:
    """A name for the folder of the run that ``options`` describe; whether they will do is not looked at."""
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
    return f"{file_name(str(label))}-{algorithm.name}{held}-s{options.get('seed', 0)}"


def stored_config(options: Mapping[str, Any], path: Path) -> RunConfig:
    """The run that a file written by ``RunConfig.document`` describes; nothing that it names is made or imported.

    Raises:
        ValueError: The file is damaged.
    """
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
        find_algorithm(values["algo"])
        k_max = check_integer("k_max", values["arguments"].get("k_max", 1))
        persistences = check_persistences("persistences", values["arguments"].get("persistences"))
        if persistences is not None and persistences[-1] != k_max:
            raise InputError(f"k_max must be the longest of persistences, {persistences[-1]}, not {k_max}")
        for name, at_least in (
            ("seed", 0),
            ("n_envs", 1),
            ("eval_every", 0),
            ("eval_episodes", 1),
            ("threads", 1),
        ):
            values[name] = _whole(values, name, 1, at_least)
        for name in ("steps", "episodes"):
            values[name] = _limit(values, name)
        if values["steps"] is None and (values["episodes"] is None or ALGORITHMS[values["algo"]].is_deep):
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


def _check_environment(
    algorithm: Algorithm, name: str, kwargs: dict[str, Any], arguments: dict[str, Any], policy_is_given: bool
) -> None:
    """See whether the algorithm can be trained there, and choose the policy that suits what it sees."""
    from gymnasium import spaces

    from holdfast.envs import NamedFailures, make_env
    from holdfast.envs.observations import has_numbers

    env = NamedFailures(make_env(name, **kwargs))
    try:
        seen, actions = env.observation_space, env.action_space
    finally:
        env.close()
    _check_actions(algorithm, name, actions)
    if not algorithm.is_deep:
        if not isinstance(seen, spaces.Discrete):
            raise InputError(
                f"environment must have discrete observations for {algorithm.name}, and those of {name} are "
                f"{type(seen).__name__}: a deep algorithm such as perdqn takes them",
                "environment",
            )
        return
    if not has_numbers(seen):
        raise InputError(
            f"environment must have observations with at least one number in every part, and those of {name} "
            f"are {seen}",
            "environment",
        )
    unknown = unknown_part(seen)
    if unknown is not None:
        raise InputError(
            f"environment must have observations of arrays, numbers or a dictionary of them for {algorithm.name}, "
            f"and those of {name} have {unknown}: a callable of your own (module:callable) can wrap the "
            "environment so that it is left out",
            "environment",
        )
    for part in seen.spaces.values() if isinstance(seen, spaces.Dict) else (seen,):
        if isinstance(part, spaces.Discrete) and part.start != 0:
            raise InputError(
                f"environment must have discrete observations that count from 0 for {algorithm.name}, "
                f"and those of {name} count from {part.start}",
                "environment",
            )
    from stable_baselines3.common.preprocessing import is_image_space

    is_image = isinstance(seen, spaces.Box) and is_image_space(seen)
    fitting = ["MultiInputPolicy"] if isinstance(seen, spaces.Dict) else ["MlpPolicy"]
    # Smaller images leave nothing for the last of the CNN's layers.
    height, width = sorted(seen.shape or ())[-2:] if is_image else (0, 0)
    is_large = height >= SMALLEST_IMAGE
    if is_large:
        fitting.insert(0, "CnnPolicy")
    if not policy_is_given:
        arguments["policy"] = fitting[0]
    elif is_image and not is_large and arguments["policy"] == "CnnPolicy" and _uses_default_cnn(arguments):
        raise InputError(
            f"policy must be MlpPolicy for {name}: CnnPolicy needs images of at least {SMALLEST_IMAGE} × "
            f"{SMALLEST_IMAGE} pixels, and these have {height} × {width}",
            "policy",
        )
    elif arguments["policy"] not in (*fitting, *(["CnnPolicy"] if is_image or _sees_boards(arguments) else [])):
        raise InputError(
            f"policy must be {' or '.join(fitting)} for {name}, not {arguments['policy']!r}", "policy"
        )


def _check_actions(algorithm: Algorithm, name: str, actions: Any) -> None:
    """Say which algorithms take an environment's actions, where this one does not."""
    from gymnasium import spaces

    wanted, kind = (spaces.Box, "continuous") if algorithm.is_continuous else (spaces.Discrete, "discrete")
    if not isinstance(actions, wanted):
        hint = ": pertd3 takes them" if isinstance(actions, spaces.Box) else ""
        raise InputError(
            f"environment must have {kind} actions for {algorithm.name}, and those of {name} are {actions}{hint}",
            "environment",
        )


def unknown_part(observations: Any) -> str | None:
    """The kind of a part of an observation space that no agent with a network takes; None where there is none."""
    from gymnasium import spaces

    known = (spaces.Box, spaces.Discrete, spaces.MultiDiscrete, spaces.MultiBinary)
    parts = observations.spaces.values() if isinstance(observations, spaces.Dict) else (observations,)
    return next((type(part).__name__ for part in parts if not isinstance(part, known)), None)


def _uses_default_cnn(arguments: Mapping[str, Any]) -> bool:
    return "features_extractor_class" not in (arguments.get("policy_kwargs") or {})


def _sees_boards(arguments: Mapping[str, Any]) -> bool:
    return (arguments.get("policy_kwargs") or {}).get("features_extractor_class") == "SmallConvolutions"


def file_name(text: str) -> str:
    """A text as the name of a file: cliff, my_map, FrozenLake-v1, holdfast-Cliff-v0."""
    return re.sub(r"[^\w.-]+", "-", text).strip("-.")[:80] or "run"


def versions() -> dict[str, str]:
    """The versions of everything that numbers depend on, without importing any of it."""
    found = {"holdfast": __version__, "python": platform.python_version()}
    for package in ("numpy", "gymnasium", "numba", "torch", "stable-baselines3"):
        try:
            found[package] = importlib.metadata.version(package)
        except importlib.metadata.PackageNotFoundError:
            found[package] = "not installed"
    return found
