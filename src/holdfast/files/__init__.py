"""Safe files: readers see the old file or the new one, never a half-written one; reading executes nothing."""

from holdfast.files.arrays import read_arrays, write_arrays
from holdfast.files.documents import parse_json, read_json, replace_json
from holdfast.files.entries import Entry, as_entry, make_folders, remove_tree, walk_folders
from holdfast.files.flushing import flush
from holdfast.files.folders import find_folder, find_folders, read_newest, replace_folder, tidy_folder
from holdfast.files.locking import (
    LOCK,
    FolderInUseError,
    FolderLock,
    LockableFolder,
    folder_in_use,
    locked_folder,
    remove_lock,
)
from holdfast.files.named_errors import sync
from holdfast.files.replacing import replace_file, tidy_files
from holdfast.files.rows import (
    Rows,
    parse_numbers,
    read_last_rows,
    read_numbers,
    read_row_bytes,
    read_rows,
    rows_bytes,
)
from holdfast.files.shared_page import shared_page
from holdfast.files.states import NewerFormatError, read_document, read_state, write_state

__all__ = [
    "LOCK",
    "Entry",
    "FolderInUseError",
    "FolderLock",
    "LockableFolder",
    "NewerFormatError",
    "Rows",
    "as_entry",
    "find_folder",
    "find_folders",
    "flush",
    "folder_in_use",
    "locked_folder",
    "make_folders",
    "parse_json",
    "parse_numbers",
    "read_arrays",
    "read_document",
    "read_json",
    "read_last_rows",
    "read_newest",
    "read_numbers",
    "read_row_bytes",
    "read_rows",
    "read_state",
    "remove_lock",
    "remove_tree",
    "replace_file",
    "replace_folder",
    "replace_json",
    "rows_bytes",
    "shared_page",
    "sync",
    "tidy_files",
    "tidy_folder",
    "walk_folders",
    "write_arrays",
    "write_state",
]
