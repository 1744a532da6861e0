"""The command line: a few verbs, each of which parses, calls and prints."""

from holdfast.cli.main import main

__all__ = ["main"]
