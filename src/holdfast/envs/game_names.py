"""Names such as ``atari:Freeway`` and ``minatar:Freeway``: the family of games, and the game."""

from __future__ import annotations

import difflib
import re
from collections.abc import Iterable, Mapping
from types import MappingProxyType
from typing import Any

from holdfast.core.distribution import install_command
from holdfast.core.errors import InputError, InputTypeError

__all__ = [
    "FAMILIES",
    "MINATAR_GAMES",
    "atari_games",
    "find_game",
    "games_meant",
    "missing_package",
    "quiet_ale",
    "split_name",
]

FAMILIES: Mapping[str, str] = MappingProxyType({"atari": "holdfast/Atari-v0", "minatar": "holdfast/MinAtar-v0"})
"""The prefix before the colon, and the Gymnasium id of such games."""

MINATAR_GAMES = ("asterix", "breakout", "freeway", "seaquest", "space_invaders")
"""The games, by the names of their modules in the package ``minatar``."""

_KINDS = {"atari": "an Atari game", "minatar": "a MinAtar game"}

_MULTIPLAYER = {"combat", "joust", "maze_craze", "warlords"}
"""Games of ale-py that have no mode for one player."""


def split_name(name: str) -> tuple[str, str] | None:
    """Family and game of a name such as ``"atari:Freeway"``; None for other names."""
    family, colon, game = name.partition(":")
    family = family.strip().lower()
    return (family, game.strip()) if colon and family in FAMILIES else None


def missing_package(family: str, package: str) -> InputError:
    """The error for a missing package of a family of games."""
    return InputError(
        f"{family} games need the package {package}, which is not installed: {install_command(family)}"
    )


def atari_games() -> tuple[str, ...]:
    """The games that ale-py knows, by the names of their files, such as ``"freeway"`` and ``"space_invaders"``.

    Raises:
        ValueError: ale-py is not installed.
    """
    try:
        from ale_py import roms
    except ImportError:
        raise missing_package("atari", "ale-py") from None
    return tuple(game for game in roms.get_all_rom_ids() if game not in _MULTIPLAYER)


def quiet_ale() -> Any:
    """The package ale-py, which from now on does not print the emulator's name and version.

    Raises:
        ValueError: ale-py is not installed.
    """
    try:
        import ale_py
    except ImportError:
        raise missing_package("atari", "ale-py") from None
    ale_py.ALEInterface.setLoggerMode(ale_py.LoggerMode.Error)
    return ale_py


def find_game(family: str, wanted: str, games: Iterable[str]) -> str:
    """The game that a person means: capitals, blanks, hyphens and underscores do not matter.

    Args:
        family: Family of the game, a key of ``FAMILIES``.
        wanted: Name as typed: ``"Space Invaders"``, ``"SpaceInvaders"``, ``"space_invaders"``.
        games: The existing names.

    Raises:
        TypeError: The name is not a string.
        ValueError: There is no such game; the message names the nearest ones.
    """
    if not isinstance(wanted, str):
        raise InputTypeError(f"game must be the name of a game, such as Freeway, not {wanted!r}")
    known = {_key(game): game for game in games}
    if _key(wanted) in known:
        return known[_key(wanted)]
    if re.search(r"-v\d+$", wanted):
        raise InputError(
            f"game must be the name of a game alone, such as Freeway, not {wanted!r}: an environment with that id "
            "may skip frames itself, and frames must be skipped only once"
        )
    nearest = difflib.get_close_matches(_key(wanted), known, n=3, cutoff=0.6)
    shown = [repr(_shown(known[match])) for match in nearest]
    if shown:
        hint = f"did you mean {' or '.join(shown)}?"
    elif len(known) <= 8:
        hint = f"there are {', '.join(map(_shown, known.values()))}"
    else:
        hint = f"there are {len(known)}, such as Alien, Breakout and Freeway"
    raise InputError(f"game must be {_KINDS[family]}, not {wanted!r}; {hint}")


def games_meant(name: str) -> list[str]:
    """The names that games have here, for one of Gymnasium's ids (``"ALE/Freeway-v5"``) or a game's bare name."""
    namespace, _, game = name.rpartition("/")
    families = {"": tuple(FAMILIES), "ale": ("atari",), "minatar": ("minatar",)}.get(namespace.strip().lower(), ())
    game = re.sub(r"(-ram)?(NoFrameskip|Deterministic)?(-v\d+)?$", "", game.strip())
    found = []
    for family in families:
        games = {_key(known): _shown(known) for known in _installed_games(family)}
        # Without ale-py, only the namespace tells that a game is meant.
        if not games and namespace:
            games = {_key(game): game}
        if _key(game) in games:
            found.append(f"{family}:{games[_key(game)]}")
    return found


def _installed_games(family: str) -> tuple[str, ...]:
    try:
        return atari_games() if family == "atari" else MINATAR_GAMES
    except InputError:
        return ()


def _key(name: str) -> str:
    return re.sub(r"[\W_]", "", name).lower()


def _shown(game: str) -> str:
    return game.title().replace("_", "")
