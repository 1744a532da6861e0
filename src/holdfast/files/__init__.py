"""Writing files so that a reader sees the old one or the new one, never half of one."""

from holdfast.files.replacing import replace_file

__all__ = ["replace_file"]
