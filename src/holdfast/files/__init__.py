"""Files that a reader sees as the old ones or the new ones, never half of them, and that execute nothing."""

from holdfast.files.arrays import read_arrays, write_arrays
from holdfast.files.documents import parse_json, plain_file, read_json, replace_json
from holdfast.files.flushing import flush
from holdfast.files.folders import find_folder, replace_folder, tidy_folder
from holdfast.files.locking import LOCK, FolderInUseError, folder_in_use, locked_folder
from holdfast.files.replacing import replace_file
from holdfast.files.rows import Rows, parse_numbers, read_last_rows, read_numbers, read_rows, rows_bytes
from holdfast.files.states import read_document, read_state, write_state

__all__ = [
    "LOCK",
    "FolderInUseError",
    "Rows",
    "find_folder",
    "flush",
    "folder_in_use",
    "locked_folder",
    "parse_json",
    "parse_numbers",
    "plain_file",
    "read_arrays",
    "read_document",
    "read_json",
    "read_last_rows",
    "read_numbers",
    "read_rows",
    "read_state",
    "replace_file",
    "replace_folder",
    "replace_json",
    "rows_bytes",
    "tidy_folder",
    "write_arrays",
    "write_state",
]
