"""Users' own agents: classes named as ``module:Class``, or added by installed packages.

A package adds agents through entry points of the group ``holdfast.algorithms``. Nothing is imported before a
class is needed. A caller that has the name from a file first checks that it was typed or installed.
"""

from __future__ import annotations

import difflib
import importlib
import inspect
import re
import sys
from itertools import takewhile
from typing import Any

from holdfast.core.errors import InputError
from holdfast.core.user_code import user_code

__all__ = ["GROUP", "agent_class", "agent_files", "installed_algorithms", "is_own_algorithm", "is_plain_name"]

GROUP = "holdfast.algorithms"
"""Group of the entry points that add algorithms."""

_CODE = re.compile(r"[^\W\d]\w*(\.[^\W\d]\w*)*:[^\W\d]\w*")
_PLAIN = re.compile(r"[A-Za-z0-9][\w.-]*")


def is_own_algorithm(name: Any) -> bool:
    """Whether the name is code, ``module:Class``."""
    return isinstance(name, str) and _CODE.fullmatch(name) is not None


def is_plain_name(name: str) -> bool:
    """Whether a package can add an algorithm by this name."""
    return _PLAIN.fullmatch(name) is not None


def installed_algorithms() -> dict[str, str]:
    """``module:Class`` of the algorithms that installed packages add, by name; none of them is imported."""
    from importlib.metadata import entry_points

    found = ((entry.name, entry.value.replace(" ", "")) for entry in entry_points(group=GROUP))
    return {name: location for name, location in found if is_plain_name(name) and is_own_algorithm(location)}


def agent_class(name: str, location: str) -> type[Any]:
    """The agent class that ``module:Class`` names.

    Args:
        name: The algorithm's name, for messages.
        location: ``module:Class``.

    Raises:
        ValueError: The module cannot be imported, or the class is not an agent's; the message is one sentence.
    """
    place, _, wanted = location.partition(":")
    with user_code(f"algo {name!r} cannot be used: importing {place}"):
        module = importlib.import_module(place)
        found = getattr(module, wanted, None)
    if not inspect.isclass(found):
        classes = [known for known, value in vars(module).items() if inspect.isclass(value)]
        nearest = difflib.get_close_matches(wanted, classes, n=2)
        hint = f"; did you mean {' or '.join(nearest)}?" if nearest else ""
        raise InputError(f"algo {name!r} cannot be used: {place} has no class {wanted!r}{hint}", "algo")
    if not _is_agent(found):
        raise InputError(
            f"algo {name!r} must be a subclass of holdfast.tabular.TabularLearner, holdfast.deep.OptionDQN or "
            "holdfast.deep.OptionActorCritic (see: holdfast docs own_agents)",
            "algo",
        )
    lacking = sorted(getattr(found, "__abstractmethods__", ()))
    if lacking:
        raise InputError(f"algo {name!r} cannot be used: {wanted} must define {', '.join(lacking)}", "algo")
    _refuse_changed_finals(name, found)
    return found


def agent_files(agent: type[Any]) -> set[str]:
    """The files of a user's own agent: of its class, and of those between it and holdfast's."""
    own = takewhile(lambda base: base.__module__.partition(".")[0] != "holdfast", agent.__mro__)
    modules = {base.__module__ for base in own}
    found = (getattr(sys.modules.get(module), "__file__", None) for module in modules)
    return {file for file in found if file is not None}


def _is_agent(found: type[Any]) -> bool:
    from holdfast.tabular.learner import TabularLearner

    if issubclass(found, TabularLearner):
        return True
    from holdfast.deep import OptionActorCritic, OptionDQN

    return issubclass(found, OptionDQN | OptionActorCritic)


def _refuse_changed_finals(name: str, found: type[Any]) -> None:
    """Reject subclasses of final classes and overrides of final methods, which short cuts would bypass."""
    for base in found.__mro__[1:]:
        if vars(base).get("__final__"):
            parent = base.__mro__[1]
            raise InputError(
                f"algo {name!r} must not be a subclass of {base.__name__}, which is final: derive it from "
                f"{parent.__module__.rpartition('.agents')[0] or parent.__module__}.{parent.__name__}",
                "algo",
            )
    for place, kind in enumerate(found.__mro__):
        for method in vars(kind):
            for base in found.__mro__[place + 1 :]:
                if getattr(vars(base).get(method), "__final__", False):
                    raise InputError(
                        f"algo {name!r} must not define {method}, which is final in {base.__name__}: short cuts "
                        "go around it (see: holdfast docs own_agents)",
                        "algo",
                    )
