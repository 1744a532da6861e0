"""From a name that a person types to an environment."""

from __future__ import annotations

import difflib
import importlib
import os
import re
import warnings
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import gymnasium

from holdfast.core.errors import InputError, InputTypeError
from holdfast.core.user_code import described, is_interrupt, is_raised_by_holdfast, shown, user_code
from holdfast.envs.game_names import FAMILIES, games_meant, split_name
from holdfast.envs.grid_map import GridMap
from holdfast.envs.installed import package_that_registers
from holdfast.envs.registration import GRID_ID, SHORT_NAMES

__all__ = ["check_spaces", "is_map_path", "is_own_environment", "make_env", "make_scoring_env"]

_MAP_SUFFIXES = (".txt", ".map")

_LOGGED = r"\x1b\[\d+mWARN: "
"""How warnings from Gymnasium's logger begin: in colour."""


def make_env(name: str | os.PathLike[str], **kwargs: Any) -> gymnasium.Env[Any, Any]:
    """Make the environment called ``name``.

    Args:
        name: A Gymnasium id, a short name such as ``"cliff"``, a game such as ``"atari:Freeway"`` or
            ``"minatar:Freeway"``, the path of a map file, or ``"module:name"``: a callable in that module that
            returns an environment, or an id that importing the module registers.
        kwargs: Arguments of the environment.

    Warnings from Gymnasium, for example about an outdated version, become a ``UserWarning`` of one plain sentence.

    Raises:
        ValueError: There is no such environment, or it cannot be made; the message is one sentence.
        TypeError: An argument has the wrong type or an unknown name.
    """
    with warnings.catch_warnings(record=True) as caught:
        warnings.filterwarnings("always", message=_LOGGED)
        env = _find(name, kwargs)
        check_spaces(env, f"environment {name!r}")
    for warning in caught:
        text = str(warning.message)
        if re.match(_LOGGED, text):
            sentence = re.sub(r"^WARN: (.)", lambda begin: begin[1].lower(), _one_sentence(text))
            warnings.warn(sentence, UserWarning, stacklevel=2)
        else:
            warnings.showwarning(
                warning.message, warning.category, warning.filename, warning.lineno, warning.file, warning.line
            )
    return env


def make_scoring_env(name: str | os.PathLike[str], **kwargs: Any) -> gymnasium.Env[Any, Any]:
    """Make the environment called ``name`` for measuring results: whole games, and unchanged rewards.

    It is the environment of ``make_env`` without what only helps training: an Atari game's lost lives do not end
    an episode, and its rewards are not clipped, whatever ``kwargs`` contains.
    """
    game = split_name(name) if isinstance(name, str) else None
    if game is not None and game[0] == "atari":
        kwargs = {**kwargs, "episodic_life": False, "clip_rewards": False}
    return make_env(name, **kwargs)


def _find(name: Any, kwargs: dict[str, Any]) -> gymnasium.Env[Any, Any]:
    if isinstance(name, os.PathLike):
        return _make_grid(Path(name), kwargs)
    if not isinstance(name, str):
        raise InputTypeError(
            f"name must be a Gymnasium id, a short name or a map file's path, not {name!r}", "name"
        )
    game = split_name(name)
    if game is not None:
        return _make(FAMILIES[game[0]], name, {**kwargs, "game": game[1]})
    short = _short(name)
    if short in SHORT_NAMES:
        return _make(SHORT_NAMES[short], name, kwargs)
    if name in gymnasium.registry:
        return _make(name, name, kwargs)
    if re.search(r"\.py(:|$)", name):
        module = Path(name.split(".py")[0]).name
        raise InputError(f"environment {name!r} is code: give it as module:callable, such as {module}:make")
    if is_map_path(name):
        return _make_grid(Path(name), kwargs)
    if is_own_environment(name):
        return _make_from_module(name, kwargs)
    return _make(name, name, kwargs)


def _short(name: str) -> str:
    return name.strip().lower().replace("_", "-")


def is_own_environment(name: str) -> bool:
    """Whether making the environment ``name`` imports a module that is part of the name."""
    return ":" in name and name not in gymnasium.registry and not is_map_path(name) and not split_name(name)


def _make_from_module(name: str, kwargs: dict[str, Any]) -> gymnasium.Env[Any, Any]:
    if not re.fullmatch(r"[^\W\d]\w*(\.[^\W\d]\w*)*:[^:]+", name):
        raise InputError(
            f"name must have the form 'module:callable' or 'module:id' if it has a colon, not {name!r}"
        )
    place, _, wanted = name.partition(":")
    with user_code(f"environment {name!r} cannot be made: importing {place}"):
        module = importlib.import_module(place)
        maker = getattr(module, wanted, None)
    if maker is None and wanted in gymnasium.registry:
        return _make(wanted, name, kwargs)
    if not callable(maker):
        hint = _nearest(wanted, [found for found in vars(module) if callable(vars(module)[found])])
        raise InputError(f"environment {name!r} cannot be made: {place} has no callable {wanted!r}{hint}")
    with user_code(f"environment {name!r} cannot be made: {wanted}", InputTypeError):
        try:
            env = maker(**kwargs)
        except TypeError as error:
            if re.search(r"keyword argument|required", described(error)):
                raise _argument_error(name, error) from error
            raise
    if not isinstance(env, gymnasium.Env):
        raise InputError(f"environment {name!r} must be a Gymnasium environment, not {type(env).__name__}")
    return env


def check_spaces(env: gymnasium.Env[Any, Any], what: str) -> None:
    """Check that an environment has an observation space and an action space.

    Args:
        env: The environment.
        what: What the message calls it.

    Raises:
        ValueError: One of the spaces is missing.
    """
    for name in ("observation_space", "action_space"):
        with user_code(f"{what} must have an {name}, but asking for it"):
            space = getattr(env, name)
        if not isinstance(space, gymnasium.Space):
            raise InputError(f"{what} must have a Gymnasium space as its {name}, not {shown(space)}")


def is_map_path(name: str) -> bool:
    """Whether ``name`` is the path of a map file; known environments of that name take precedence."""
    if _short(name) in SHORT_NAMES or name in gymnasium.registry or name.endswith(".py") or split_name(name):
        return False
    if name.lower().endswith(_MAP_SUFFIXES):
        return True
    return bool(name) and "\0" not in name and os.path.exists(name)  # noqa: PTH110 (a name too long for a path is no error here)


def _make_grid(path: Path, kwargs: dict[str, Any]) -> gymnasium.Env[Any, Any]:
    # As text, so that the environment's spec contains the map itself and can be saved.
    return _make(GRID_ID, str(path), {"map": str(GridMap.read(path)), **kwargs})


def _make(env_id: str, name: str, kwargs: dict[str, Any]) -> gymnasium.Env[Any, Any]:
    try:
        return gymnasium.make(env_id, **kwargs)
    except (gymnasium.error.DependencyNotInstalled, gymnasium.error.DeprecatedEnv) as error:
        raise InputError(f"environment {name!r} cannot be made: {_one_sentence(error)}") from error
    except gymnasium.error.Error as error:
        if env_id in gymnasium.registry:
            raise InputError(f"environment {name!r} cannot be made: {_one_sentence(error)}") from error
        raise InputError(_unknown(name, error)) from None
    except ImportError as error:
        raise InputError(
            f"environment {name!r} cannot be made because a package is missing: {_one_sentence(error)}"
        ) from error
    except TypeError as error:
        # Gymnasium repeats all arguments after the constructor's own sentence.
        cause = error.__cause__ or error
        if isinstance(cause, InputError):
            raise cause from None
        said = _argument_error(name, cause)
        if not said.arguments and is_raised_by_holdfast(cause):
            raise cause from None
        raise said from error
    except BaseException as error:
        if isinstance(error, InputError | MemoryError) or is_interrupt(error) or is_raised_by_holdfast(error):
            raise
        raise InputError(
            f"environment {name!r} cannot be made: its constructor raised {described(error)}"
        ) from error


def _argument_error(name: str, error: BaseException) -> InputTypeError:
    unexpected = re.search(r"unexpected keyword argument '(\w+)'", str(error))
    if unexpected:
        return InputTypeError(f"environment {name!r} has no argument {unexpected[1]!r}", unexpected[1])
    missing = re.search(r"missing \d+ required \S+ arguments?: (.*)", str(error))
    if missing:
        lacking = re.findall(r"'(\w+)'", missing[1])
        listed = " and ".join([", ".join(map(repr, lacking[:-1])), repr(lacking[-1])][len(lacking) == 1 :])
        return InputTypeError(
            f"environment {name!r} needs the argument{'s' if len(lacking) > 1 else ''} {listed}", *lacking
        )
    return InputTypeError(f"environment {name!r} cannot be made: {_one_sentence(error)}")


def _unknown(name: str, error: Exception) -> str:
    message = (
        f"environment {name!r} is unknown: it must be a Gymnasium id, a map file's path, module:callable, "
        "a game such as atari:Freeway or minatar:Freeway, or one of cliff, bridge, zigzag, open, goal-grid, "
        "sync-grid and frozen-lake"
    )
    if games := games_meant(name):
        return f"{message}; did you mean {' or '.join(map(repr, games))}?"
    package = package_that_registers(name)
    if package is not None:
        return f"environment {name!r} is unknown until {package} is imported: give it as {package}:{name}"
    candidates = {known.lower(): known for known in (*gymnasium.registry, *SHORT_NAMES)}
    nearest = difflib.get_close_matches(name.lower(), candidates, n=3, cutoff=0.6)
    if nearest:
        return f"{message}; did you mean {' or '.join(repr(candidates[match]) for match in nearest)}?"
    if isinstance(error, gymnasium.error.NamespaceNotFound):
        return f"{message}; is the package that registers {name.split('/')[0]!r} installed and imported?"
    return message


def _nearest(wanted: str, known: Iterable[str]) -> str:
    nearest = difflib.get_close_matches(wanted, known, n=2)
    return f"; did you mean {' or '.join(map(repr, nearest))}?" if nearest else ""


def _one_sentence(message: BaseException | str) -> str:
    words = " ".join(re.sub(r"\x1b\[[0-9;]*m", "", str(message)).split())
    return re.sub(r"[.!] +([A-Z])(?=[a-z]* )", lambda end: f"; {end[1].lower()}", words).rstrip(". ")
