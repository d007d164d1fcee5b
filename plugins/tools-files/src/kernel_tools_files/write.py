"""The tool ``Write`` (tools contract, section 6)."""

from __future__ import annotations

import os
from threading import Lock
from typing import Any, NamedTuple

import anyio

from kernel import ReadState, ToolContext, ToolError, ToolResult
from kernel_tools_files import manuals, schemas
from kernel_tools_files.encoding import UTF8, Encoding, decode, encode
from kernel_tools_files.matching import only_returns, with_returns
from kernel_tools_files.paths import FileTool, Target, open_file
from kernel_tools_files.seen import check_read, is_fresh, stale, state_of, written
from kernel_tools_files.writing import replace_file

ORIGINAL_CHARS = 1_000_000
"""Longer originals are left out of the structured result (``null``): it is kept in the transcript and sent to clients."""
MAX_BYTES = 1 << 30


class Done(NamedTuple):
    """A change of a file: its texts before and after, the new read-file state, and a note for the model."""

    before: str | None
    after: str
    state: ReadState
    note: str = ""


class Write(FileTool):
    name = "Write"
    description = "Creates a file or replaces a whole file. Missing folders are made."
    input_schema = schemas.WRITE
    output_schema = schemas.WRITE_OUTPUT
    rule_name = "Edit"
    rule_field = "file_path"

    def __init__(self, lock: Lock | None = None) -> None:
        self._lock = lock or Lock()

    def prompt(self) -> str:
        return manuals.WRITE

    async def call(self, input: dict[str, Any], context: ToolContext) -> ToolResult:
        target, content = self.target(input), input["content"]
        state = state_of(context, target)
        done, patch = await anyio.to_thread.run_sync(self._write, target, content, state)
        context.read_files[target.real] = done.state
        structured = {"type": "create" if done.before is None else "update", "filePath": target.shown, "content": content,
                      "structuredPatch": patch, "originalFile": original(done.before)}
        return ToolResult(content=f"{self.from_structured(structured)} {done.note}".rstrip(), structured=structured)

    def from_structured(self, structured: Any) -> str:
        lines = structured["content"].count("\n") + (not structured["content"].endswith("\n") and structured["content"] != "")
        verb = "Created" if structured["type"] == "create" else "Replaced"
        return f"{verb} {structured['filePath']} ({lines} line{'' if lines == 1 else 's'})."

    def _write(self, target: Target, content: str, state: ReadState | None) -> tuple[Done, list[dict[str, Any]]]:
        from kernel_tools_files.patch import structured_patch

        with self._lock:
            done = self._replace(target, content, state)
        return done, structured_patch(done.before, done.after) if done.before is not None else []

    def _replace(self, target: Target, content: str, state: ReadState | None) -> Done:
        try:
            data, found = load(target)
        except FileNotFoundError:
            raw = encode(content, UTF8, "content")
            return Done(None, content, written(replace_file(target, raw, None), raw))
        if data:  # an empty file holds nothing that could be lost
            check_read(state, target)
            assert state is not None
            if not is_fresh(state, found, data):
                raise stale(target)
        before, encoding = decode(data, target.shown)
        after = with_returns(content) if only_returns(before) else content
        raw, note = _encoded(after, encoding)
        return Done(before, after, written(replace_file(target, raw, found), raw), note)


def _encoded(text: str, encoding: Encoding) -> tuple[bytes, str]:
    """The whole file is new, so an encoding that cannot hold it gives way to UTF-8."""
    try:
        return encode(text, encoding, "content"), ""
    except ToolError as error:
        if error.code != "encoding":
            raise
        return encode(text, UTF8, "content"), f"Its encoding was {encoding.codec}, which cannot hold the text; it is UTF-8 now."


def load(target: Target) -> tuple[bytes, os.stat_result]:
    """The whole file.

    :raises FileNotFoundError: it does not exist.
    :raises ToolError: ``too_large`` above 1 GiB, and as ``open_file``.
    """
    file, found = open_file(target)
    with file:
        if found.st_size > MAX_BYTES:
            raise ToolError("too_large", f"{target.shown} has {found.st_size} bytes; files over {MAX_BYTES} bytes cannot be "
                            "edited. Change it with a program through Bash, for example sed.")
        return file.read(), found


def original(text: str | None) -> str | None:
    return text if text is not None and len(text) <= ORIGINAL_CHARS else None
