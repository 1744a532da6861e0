"""What a user can mend: one exception with a sentence and the arguments that it names.

Everything else that is raised is a failure of an environment, of the machine, or a fault of holdfast itself; the
command line tells them apart by the class alone.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

__all__ = ["InputError", "InputTypeError", "is_raised_by_holdfast"]

_PACKAGE = Path(__file__).parents[1]


class InputError(ValueError):
    """Something that was given cannot be used.

    Args:
        sentence: What it must be, or what to do. It calls arguments by their Python names.
        arguments: The arguments that the sentence names, which the command line shows as its options.
    """

    def __init__(self, sentence: str, *arguments: str) -> None:
        super().__init__(sentence)
        self.arguments = arguments

    def __reduce__(self) -> tuple[Any, ...]:
        return type(self), (*self.args, *self.arguments)


class InputTypeError(InputError, TypeError):
    """Something that was given is of a kind that cannot be used."""


def is_raised_by_holdfast(error: BaseException) -> bool:
    """Whether holdfast's own code raised ``error``, and not a library or a user's code that it called.

    For calls that hand a user's values to other code: what that code says of them is about the values, and what
    holdfast's own code raises is a fault of holdfast, or an ``InputError`` already.
    """
    place = error.__traceback__
    while place is not None and place.tb_next is not None:
        place = place.tb_next
    return place is not None and Path(place.tb_frame.f_code.co_filename).is_relative_to(_PACKAGE)
