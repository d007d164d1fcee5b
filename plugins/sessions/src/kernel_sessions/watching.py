"""Keeps a file before a tool changes it."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING, Any

from kernel import Middleware, Session, Tool, ToolContext, ToolResult, ToolRunner, git_root

if TYPE_CHECKING:
    from kernel_sessions.shadow import Shadow
    from kernel_sessions.transcript import FileTranscript

EDITS = {"Edit": "file_path", "Write": "file_path", "NotebookEdit": "notebook_path"}
STATE = "sessions.shadow"
GIVEN_UP = "sessions.uncovered"
UNCOVERED = "What commands change here is not kept for rewinding: "


class FileWatch(Middleware):
    """Around ``Edit``, ``Write``, ``NotebookEdit`` and ``Bash`` of the main thread, where checkpoints are kept."""

    name = "sessions"

    async def around_tool(self, tool: Tool, input: dict[str, Any], context: ToolContext, next: ToolRunner) -> ToolResult:
        transcript: Any = context.session.transcript
        if context.session.parent is not None or getattr(transcript, "checkpoints", None) is None:
            return await next(tool, input, context)
        if tool.name in EDITS:
            path = input.get(EDITS[tool.name])
            if isinstance(path, str) and path:
                transcript.before_change(os.path.normpath(os.path.join(context.cwd, os.path.expanduser(path))))
        elif tool.permission == "command" and not tool.is_read_only(input):
            return await _around_command(tool, input, context, next, transcript)
        return await next(tool, input, context)


async def _around_command(tool: Tool, input: dict[str, Any], context: ToolContext, next: ToolRunner,
                          transcript: FileTranscript) -> ToolResult:
    """A command may change anything; git says what it was."""
    import anyio

    from kernel_sessions.shadow import NotCovered

    given_up: set[str] = context.session.plugin_state.setdefault(GIVEN_UP, set())
    root = str(git_root(Path(context.cwd)))
    if root in given_up:
        return await next(tool, input, context)
    try:
        shadow = await anyio.to_thread.run_sync(_shadow, context.session, context.cwd)
        before = await anyio.to_thread.run_sync(shadow.tree)
    except (NotCovered, OSError) as error:
        given_up.add(root)
        context.session.notice(f"{UNCOVERED}{error}", level="info")
        return await next(tool, input, context)
    try:
        return await next(tool, input, context)
    finally:
        with anyio.CancelScope(shield=True):  # an interrupted command has changed what it has changed
            try:
                olds = await anyio.to_thread.run_sync(lambda: shadow.changed(before, shadow.tree()))
                transcript.adopt(olds)
            except (NotCovered, OSError) as error:
                given_up.add(root)
                context.session.notice(f"{UNCOVERED}{error}", level="info")


def _shadow(session: Session, cwd: str) -> Shadow:
    """One view for each worktree of the session."""
    from kernel_sessions.shadow import Shadow

    known: dict[str, Shadow] = session.plugin_state.setdefault(STATE, {})
    folder = session.transcript.checkpoints.folder  # type: ignore[attr-defined]  # asked before
    if not known:
        _remove_of_dead(folder)
    root = f"{folder} {git_root(Path(cwd))}"
    if root not in known:
        known[root] = Shadow(folder / f"shadow-{len(known)}-{os.getpid()}", cwd)
    return known[root]


def forget(session: Session) -> None:
    """The session is over: nobody needs the views any more, what they told of is copied."""
    if STATE in session.plugin_state:
        import shutil

        for shadow in session.plugin_state.pop(STATE).values():
            shutil.rmtree(shadow.folder, ignore_errors=True)


def _remove_of_dead(folder: Path) -> None:
    """Views that processes left which were killed."""
    import shutil

    for place in folder.glob("shadow-*-*"):
        pid = place.name.rpartition("-")[2]
        if not pid.isdecimal() or not os.path.exists(f"/proc/{pid}"):
            shutil.rmtree(place, ignore_errors=True)
