"""Errors that a user can fix: one exception with a sentence and the arguments that the sentence names.

Any other exception is a failure of an environment or of the machine, or a fault of holdfast itself. The command
line tells these apart by the exception's class alone.
"""

from __future__ import annotations

from typing import Any

__all__ = ["InputError", "InputTypeError"]


class InputError(ValueError):
    """A value from the user cannot be used.

    Args:
        sentence: What the value must be, or what to do. It calls arguments by their Python names.
        arguments: The arguments that the sentence names; the command line shows them as its options.
    """

    def __init__(self, sentence: str, *arguments: str) -> None:
        super().__init__(sentence)
        self.arguments = arguments

    def __reduce__(self) -> tuple[Any, ...]:
        return type(self), (*self.args, *self.arguments)


class InputTypeError(InputError, TypeError):
    """A value from the user has a type that cannot be used."""
