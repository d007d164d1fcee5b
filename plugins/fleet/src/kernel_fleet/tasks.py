"""The task file: JSON lines, a task each. Read strictly; what does not fit is named by line and field."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Annotated, Any, Literal

import msgspec
from msgspec import Meta, Struct, field

from kernel import UsageError

MOST_ERRORS = 20

Positive = Annotated[float, Meta(gt=0)]


class RunOptions(Struct, kw_only=True, forbid_unknown_fields=True, omit_defaults=True):
    """Flags of ``kernel -p`` for one task; each wins over the same flag behind ``--`` on the fleet's command line.

    A file cannot ask for ``bypassPermissions``; who runs the fleet can.
    """

    model: str | None = None
    max_turns: Annotated[int, Meta(ge=1)] | None = None
    max_budget_usd: Positive | None = None
    permission_mode: Literal["default", "acceptEdits", "plan", "dontAsk"] | None = None
    allowed_tools: list[str] = field(default_factory=list)
    disallowed_tools: list[str] = field(default_factory=list)
    tools: list[str] | None = None
    system_prompt: str | None = None
    append_system_prompt: str | None = None
    effort: Literal["low", "medium", "high", "xhigh", "max"] | None = None
    agent: str | None = None
    json_schema: dict[str, Any] | None = None
    settings: dict[str, Any] | None = None


class Task(Struct, kw_only=True, forbid_unknown_fields=True, omit_defaults=True):
    """One line. ``cwd`` is relative to the file's folder; ``workspace``: a git worktree of ``ref`` where the folder is in a
    repository, else a copy, unless it is named. ``check``: a program and its arguments, run in the workspace behind a run that
    ended well; an exit code other than 0 rejects the result.
    """

    prompt: Annotated[str, Meta(min_length=1)]
    id: Annotated[str, Meta(pattern=r"^[A-Za-z0-9][A-Za-z0-9._-]{0,79}$(?!\n)")] = ""
    cwd: str = "."
    workspace: Literal["worktree", "copy", "none"] | None = None
    ref: Annotated[str, Meta(min_length=1)] = "HEAD"
    options: RunOptions = field(default_factory=RunOptions)
    env: dict[Annotated[str, Meta(pattern=r"^[A-Za-z_][A-Za-z0-9_]*$(?!\n)")], str] = field(default_factory=dict)
    timeout_s: Positive | None = None
    check: Annotated[list[str], Meta(min_length=1)] | None = None


def schema() -> dict[str, Any]:
    """JSON Schema (2020-12) of one line."""
    made: dict[str, Any] = msgspec.json.schema(Task)
    return made


def read(path: Path) -> list[Task]:
    """The tasks of a file, ``cwd`` made absolute. A task without an id is called by its line.

    :raises UsageError: the file cannot be read, or lines of it do not fit; up to ``MOST_ERRORS`` are named.
    """
    try:
        lines = path.read_bytes().removeprefix(b"\xef\xbb\xbf").split(b"\n")
    except OSError as error:
        raise UsageError(f"cannot be read: {error.strerror}", context=str(path)) from None
    decoder = msgspec.json.Decoder(Task)
    tasks: list[Task] = []
    errors: list[str] = []
    seen: dict[str, int] = {}
    for number, line in enumerate(lines, 1):
        if not line.strip():
            continue
        try:
            task = decoder.decode(line)
        except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
            errors.append(f"{path}:{number}: {_told(error)}")
            continue
        task.id = task.id or f"line-{number}"
        problem = _problem(task, path.parent)
        if first := seen.get(task.id.lower()):
            problem = f"$.id: {task.id!r} is the id of line {first}, too"
        seen.setdefault(task.id.lower(), number)
        if problem:
            errors.append(f"{path}:{number}: {problem}")
            continue
        task.cwd = str((path.parent / task.cwd).resolve())
        tasks.append(task)
    if errors:
        more = f"\n... and {len(errors) - MOST_ERRORS} more" if len(errors) > MOST_ERRORS else ""
        raise UsageError("the task file does not fit:\n" + "\n".join(errors[:MOST_ERRORS]) + more,
                         hint="kernel fleet schema prints what a line may hold")
    if not tasks:
        raise UsageError("holds no task", context=str(path), hint='one line: {"id": "a", "prompt": "..."}')
    return tasks


def _problem(task: Task, base: Path) -> str | None:
    try:
        if not (base / task.cwd).is_dir():
            return f"$.cwd: {task.cwd!r} is no folder"
    except (OSError, ValueError) as error:
        return f"$.cwd: {error}"
    if holds_nul(task):
        return "a text holds a NUL character"
    return None if task.prompt.strip() else "$.prompt: is blank"


def holds_nul(task: Task) -> bool:
    return any("\0" in text for text in [task.prompt, task.cwd, task.ref, *task.env.values(), *(task.check or ())])


def _told(error: Exception) -> str:
    """msgspec says where behind the message; the field comes first here."""
    text = str(error)
    found = re.match(r"(?s)(.*) - at `(.*)`$", text)
    return f"{found[2]}: {found[1]}" if found else text


FLAGS = {"model": "--model", "max_turns": "--max-turns", "permission_mode": "--permission-mode",
         "allowed_tools": "--allowedTools", "disallowed_tools": "--disallowedTools", "tools": "--tools",
         "system_prompt": "--system-prompt",
         "append_system_prompt": "--append-system-prompt", "effort": "--effort", "agent": "--agent",
         "json_schema": "--json-schema", "settings": "--settings"}
OWN = ("-p", "--print", "--output-format", "--input-format", "--verbose", "--session-id", "-r", "--resume", "-c", "--continue",
       "--fork-session", "--max-budget-usd", "--init-only", "--rewind-files", "--replay-user-messages")
"""Flags that the fleet gives itself; behind ``--`` they are refused."""


def flags(options: RunOptions) -> list[str]:
    """The options as ``kernel -p`` takes them, without the budget, which the fleet shares out."""
    made: list[str] = []
    for name, flag in FLAGS.items():
        value = getattr(options, name)
        if value is None:
            continue
        if isinstance(value, dict):
            value = msgspec.json.encode(value).decode()
        elif name == "tools":
            value = ",".join(value)  # an empty list: no tool at all
        made += [f"{flag}={item}" for item in (value if isinstance(value, list) else [value])]
    return made


def check_own(args: list[str]) -> None:
    """:raises UsageError: an argument for each run that is the fleet's own."""
    for arg in args:
        if arg.split("=", 1)[0] in OWN:
            raise UsageError(f"{arg.split('=', 1)[0]} is given by the fleet itself", context="kernel fleet run, behind --",
                             hint="--budget-usd and max_budget_usd of a task limit money" if "budget" in arg else "leave it out")


PATHS = ("--settings", "--plugin-dir", "--add-dir", "--mcp-config", "--harness", "--system-prompt-file",
         "--append-system-prompt-file")


def absolute(args: list[str], base: Path) -> list[str]:
    """Arguments for each run, with paths as they were meant where the fleet was started: runs stand in workspaces."""
    made: list[str] = []
    flag = ""
    for arg in args:
        given, equals, value = arg.partition("=") if arg.startswith("--") else (flag, "", arg)
        if arg.startswith("-"):
            flag = given if not equals else ""
        if value and given in PATHS and (base / value).exists():
            value = str(base / value)
        elif given == "--model" and value.startswith("script:") and (base / value[7:]).exists():
            value = f"script:{base / value[7:]}"
        made.append(f"{given}={value}" if equals else value if not arg.startswith("-") else arg)
    return made
