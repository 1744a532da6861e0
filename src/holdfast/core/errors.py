"""What a user can mend: one exception with a sentence and the arguments that it names.

Everything else that is raised is a failure of an environment, of the machine, or a fault of holdfast itself; the
command line tells them apart by the class alone.
"""

from __future__ import annotations

from typing import Any

__all__ = ["InputError", "InputTypeError"]


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
