"""A tool call as a row: its name, what it is about, how it ended; and what of its result is worth a look."""

from __future__ import annotations

import os
from typing import Any

from msgspec import Struct

from kernel_terminal import diff
from kernel_terminal.lines import Line, cut, cut_line, hung
from kernel_terminal.safe import exact, one_line, plain

BODY_LINES = 4
FAILED_LINES = 10
WHOLE_LINES = 400
"""What is shown of one result where a person asks for all of it."""
LINE_CHARS = 300

INTERRUPTED = "The call was interrupted by the user."
"""What the kernel answers such a call with."""

_ARGUMENTS = {
    "Bash": ("command",), "Read": ("file_path",), "Write": ("file_path",), "Edit": ("file_path",),
    "NotebookEdit": ("notebook_path",), "Glob": ("pattern", "path"), "Grep": ("pattern", "path"), "WebFetch": ("url",),
    "WebSearch": ("query",), "Agent": ("description",), "Skill": ("skill",), "TaskCreate": ("subject",),
    "TaskUpdate": ("taskId", "status"), "TaskOutput": ("task_id",), "TaskStop": ("task_id",), "ToolSearch": ("query",)}
_PATHS = frozenset(("file_path", "notebook_path", "path"))
_COUNTED = frozenset(("Read", "Glob", "Grep", "WebFetch", "Skill", "ToolSearch", "TaskGet", "TaskList"))
"""Tools whose results are for the model: only their size is told."""
_QUIET = frozenset(("TaskCreate", "TaskUpdate", "EnterPlanMode", "ExitPlanMode"))


class Row(Struct):
    """A call that runs. ``steps`` and ``last`` are of the agent that it started."""

    id: str
    name: str
    input: dict[str, Any]
    began: float
    cwd: str = ""
    refused: str = ""
    steps: int = 0
    last: str = ""
    told: str = ""
    """What the tool said of its progress."""
    seen: bool = False
    """The change was shown when the person was asked."""

    @property
    def label(self) -> str:
        return label(self.name)

    @property
    def about(self) -> str:
        return about(self.name, self.input, self.cwd)


def label(name: str) -> str:
    """The tool's name; of a server's tool, both names."""
    parts = name.split("__", 2)
    return one_line(f"{parts[1]}: {parts[2]}" if len(parts) == 3 and parts[0] == "mcp" else name, 80)


class Ended(Struct):
    """What a call came to."""

    row: Row
    seconds: float
    failed: bool
    text: str
    patch: list[diff.Hunk] | None = None
    goes_on: bool = False
    """The call is over, what it began goes on in the background."""


def about(name: str, input: dict[str, Any], cwd: str = "") -> str:
    """What a call is about, on one line."""
    keys = _ARGUMENTS.get(name) or tuple(k for k, v in input.items() if isinstance(v, str) and v)[:1]
    parts = []
    for key in keys:
        value = input.get(key)
        if isinstance(value, str | int) and value != "":
            parts.append(shortened(value, cwd) if key in _PATHS and isinstance(value, str) else str(value))
    return " ".join(exact(" in ".join(parts) if name in ("Glob", "Grep") else " ".join(parts)).split())


def shortened(path: str, cwd: str) -> str:
    """A path, relative where it lies in the folder."""
    return os.path.relpath(path, cwd) if cwd and path.startswith(cwd.rstrip("/") + "/") else path


def ended(row: Row, block: dict[str, Any], structured: Any, now: float) -> Ended:
    """:param block: the ``tool_result``; ``structured``: the tool's own result object, if there is one."""
    patch = structured.get("structuredPatch") if isinstance(structured, dict) else None
    if isinstance(patch, list) and all(isinstance(h, dict) and isinstance(h.get("lines"), list) for h in patch):
        if not patch and structured.get("type") == "create" and isinstance(structured.get("content"), str):
            patch = diff.hunks("", structured["content"])
    else:
        patch = None
    facts = structured if isinstance(structured, dict) else {}
    return Ended(row, max(now - row.began, 0.0), block.get("is_error") is True, content_text(block.get("content")), patch,
                 goes_on=bool(facts.get("backgroundTaskId")) or facts.get("status") == "async_launched")


def content_text(content: Any) -> str:
    if isinstance(content, str):
        return content
    parts = []
    for block in content if isinstance(content, list) else ():
        if isinstance(block, dict):
            parts.append(str(block.get("text", "")) if block.get("type") == "text" else f"[{block.get('type')}]")
    return "\n".join(parts)


def seconds(took: float) -> str:
    """``0.4 s``, ``12 s``, ``3 min 5 s``."""
    if took < 10:
        return f"{took:.1f} s"
    return f"{took:.0f} s" if took < 60 else f"{took // 60:.0f} min {took % 60:.0f} s"


def outcome(end: Ended) -> list[str]:
    """How it ended, in words."""
    row, lines = end.row, _lines(end.text)
    if row.refused:
        return ["refused"]
    if end.failed:
        return ["interrupted" if end.text == INTERRUPTED else "failed"]
    if end.goes_on:
        return ["goes on in the background"]
    if end.patch is not None:
        return [diff.told(end.patch)]
    if row.name == "Agent" and row.steps:
        return [f"{row.steps} step{'' if row.steps == 1 else 's'}"]
    if row.name in _COUNTED:
        return [f"{len(lines)} line{'' if len(lines) == 1 else 's'}"]
    return []


def finished(end: Ended, columns: int) -> list[Line]:
    """The row, and below it what is worth a look."""
    row = end.row
    facts = outcome(end) + ([seconds(end.seconds)] if end.seconds >= 0.1 else [])
    tail = f" · {' · '.join(facts)}" if facts else ""
    mark, style = ("⊘", "warn") if row.refused else ("✗", "bad") if end.failed else ("●", "ok")
    room = columns - len(mark) - len(row.label) - len(tail) - 3
    head: Line = [(style, f"{mark} "), ("tool", row.label), ("", f" {cut(row.about, max(room, 8))}"), ("dim", tail)]
    below = body(end)
    if end.failed or row.refused:
        return [head, *(part for line in below for part in hung(line, columns - 1))]
    return [head, *(cut_line(line, columns - 1) if end.patch is None else line for line in below)]


def body(end: Ended, *, whole: bool = False) -> list[Line]:
    row = end.row
    if row.refused:
        return [[("dim", f"  {one_line(row.refused)}")]]
    if end.text == INTERRUPTED or (row.seen and not end.failed and end.patch is not None and not whole):
        return []
    if end.patch is not None and not end.failed:
        return diff.shown(end.patch, WHOLE_LINES if whole else diff.MOST_LINES)
    if not whole and not end.failed and (end.goes_on or row.name in _COUNTED or row.name in _QUIET):
        return []
    lines = _lines(end.text)
    most = WHOLE_LINES if whole else FAILED_LINES if end.failed else BODY_LINES
    shown = lines if len(lines) <= most + 1 else lines[:most]
    out: list[Line] = [[("dim", f"  {cut(text, LINE_CHARS)}")] for text in shown]
    if len(lines) > len(shown):
        out.append([("dim", f"  … {len(lines) - len(shown)} more lines{'' if whole else ' (/output shows them)'}")])
    return out


def _lines(text: str) -> list[str]:
    return plain(text.replace("<tool_use_error>", "").replace("</tool_use_error>", "")).strip("\n").splitlines() if text else []
