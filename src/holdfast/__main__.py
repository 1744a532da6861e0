"""The command ``holdfast``, also as ``python -m holdfast``; Ctrl-C ends it in one line, also during imports."""

import sys

__all__ = ["main"]


def main() -> int:
    """Run ``holdfast`` with the arguments of the process; returns the exit code."""
    try:
        from holdfast.cli import main as run

        return run()
    except KeyboardInterrupt:
        sys.stderr.write("holdfast: interrupted\n")
        return 130


if __name__ == "__main__":
    sys.exit(main())
