"""The six tools, made once for a process; they share the lock under which files are replaced."""

from __future__ import annotations

from threading import Lock

from kernel import Tool
from kernel_tools_files.edit import Edit
from kernel_tools_files.glob_tool import Glob
from kernel_tools_files.grep_tool import Grep
from kernel_tools_files.notebook_edit import NotebookEdit
from kernel_tools_files.read import Read
from kernel_tools_files.write import Write


def file_tools() -> list[Tool]:
    """New instances. Sessions of one process share them, so that two agents never replace a file at the same moment."""
    read, lock = Read(), Lock()
    return [read, Write(lock), Edit(read, lock), NotebookEdit(lock), Glob(read), Grep(read)]
