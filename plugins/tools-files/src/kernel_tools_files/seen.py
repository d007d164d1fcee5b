"""The read-file state: what the model has seen of a file, and whether that still holds (tools contract, 4.3).

A state is kept under the file's resolved path. ``start`` and ``end`` are set by Read alone: they say that these lines stand in
the conversation. Write and Edit leave them empty, and so must whoever takes the lines out of the conversation (a compactor);
the file may then still be edited, but another Read shows it again. ``digest`` is SHA-256 in hexadecimal digits.
"""

from __future__ import annotations

import os

from kernel import ReadState, ToolContext, ToolError
from kernel_tools_files.paths import Target


def digest(data: bytes) -> str:
    from hashlib import sha256  # loads OpenSSL

    return sha256(data).hexdigest()


def state_of(context: ToolContext, target: Target) -> ReadState | None:
    return context.read_files.get(target.real) or context.read_files.get(target.path)


def written(found: os.stat_result, data: bytes) -> ReadState:
    """The state behind a write: the model knows the content, the conversation does not show it."""
    return ReadState(mtime_ns=found.st_mtime_ns, size=found.st_size, digest=digest(data))


def is_fresh(state: ReadState, found: os.stat_result, data: bytes) -> bool:
    """Whether the file still has the content that was seen. A touched file is unchanged; a state without digest (a file too
    large for one) goes by time and size."""
    if len(state.digest) == 64:
        return state.digest == digest(data)
    return (state.mtime_ns, state.size) == (found.st_mtime_ns, found.st_size)


def check_read(state: ReadState | None, target: Target) -> None:
    """:raises ToolError: ``not_read``: the file was not read, or only its first page was."""
    if state is None:
        raise ToolError("not_read", f"{target.shown} exists and has not been read yet. Read it first, then call again.")
    if state.partial:
        raise ToolError("not_read", f"Only a PARTIAL view of {target.shown} was read. Read the part that you want to change with "
                        "offset and limit, then call again.")


def stale(target: Target) -> ToolError:
    return ToolError("stale_file", f"{target.shown} was changed since you read it, by a person, a formatter or a command. Read "
                     "it again, then call again.")
