"""What ends a verb though it is no error: only its own return may say that all went well."""

from __future__ import annotations

import argparse

__all__ = ["run_verb"]


def run_verb(arguments: argparse.Namespace) -> int:
    """Run the verb that was typed; its exit code.

    Raises:
        EnvironmentFailedError: Code of the user tried to end the program, such as by ``sys.exit(0)``.
    """
    from holdfast.core.user_code import described, is_interrupt, place_of

    try:
        return int(arguments.execute(arguments))
    except (Exception, KeyboardInterrupt):
        raise
    except BaseException as error:
        is_fine = isinstance(error, SystemExit) and error.code in (0, None)
        if is_interrupt(error) and not is_fine:
            raise
        from holdfast.envs import EnvironmentFailedError

        raise EnvironmentFailedError(
            f"its code raised {described(error)}{place_of(error, but=__file__)}"
        ) from error
