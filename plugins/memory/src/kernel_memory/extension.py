"""Memory in the life of a session."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from kernel import Decision, Extension, Middleware, reminder
from kernel_memory import auto, state, switches, texts

if TYPE_CHECKING:
    from kernel import Block, Session, Tool, ToolContext, ToolResult, ToolRunner

READING = "Read"
PATHS = {"Read": "file_path", "Write": "file_path", "Edit": "file_path", "NotebookEdit": "notebook_path"}
"""Tools that meet a file, and the field that names it. Commands of Bash do not count (contract, 2.5)."""


class MemoryExtension(Extension):
    name = "memory"

    async def open(self, session: Session) -> None:
        """Read the files and ask git side by side, while other extensions open."""
        import anyio

        memory = session.plugin_state[state.KEY] = state.Memory(session)
        if session.parent is not None:
            memory.load()
            return
        async with anyio.create_task_group() as group:
            if switches.git(session) and session.options.system_prompt is None:
                group.start_soon(self._ask_git, session, memory)
            await anyio.to_thread.run_sync(memory.load)

    async def _ask_git(self, session: Session, memory: state.Memory) -> None:
        import anyio

        from kernel_memory import git_state

        memory.git = await anyio.to_thread.run_sync(git_state.of_session, session, abandon_on_cancel=True)

    async def before_request(self, session: Session) -> None:
        await state.of(session).tell()

    async def after_compaction(self, session: Session) -> list[Block]:
        memory = state.of(session)
        text, told = memory.again()
        await memory.announce(told)
        memory.tell_problems()
        return [reminder(text)] if text else []


class MemoryMiddleware(Middleware):
    """Sees which files the model meets, and keeps its memories in shape."""

    name = "memory"

    async def around_tool(self, tool: Tool, input: dict[str, Any], context: ToolContext, next: ToolRunner) -> ToolResult:
        result = await next(tool, input, context)
        field = PATHS.get(tool.name)
        path = input.get(field) if field else None
        if not isinstance(path, str) or result.failed:
            return result
        memory = state.of(context.session)
        memory.meet(path, read=tool.name == READING)
        if tool.name != READING and memory.auto is not None and memory.auto.holds(path):
            return _kept(memory.auto, path, context, result)
        return result


def _kept(memory: auto.AutoMemory, path: str, context: ToolContext, result: ToolResult) -> ToolResult:
    """Behind a write in the folder: the time is stamped, and an index that grows too long is said."""
    import os

    import msgspec

    if path.endswith(".md"):
        auto.stamp(context.session, path)
    if os.path.realpath(path) != os.path.realpath(memory.index):
        return result
    try:
        fill = auto.fill(texts.read(path))
    except texts.Unusable:
        return result
    if fill.over:
        text = (f"{auto.INDEX} was written, but it is longer than what is loaded of it ({fill}). Make it shorter now: one short "
                "line for each memory, details in the memory's own file.")
        return msgspec.structs.replace(result, content=text, status="retryable_error", error_code="index_too_long",
                                       retryable=True)
    if fill.near:
        context.session.add_context(f"{auto.INDEX} is nearly full ({fill}). Shorten or merge lines before you add more; do not "
                                    "talk about this message unless you are asked.")
    return result


def permission(session: Session, tool_name: str, tool_input: dict[str, Any]) -> Decision | None:
    """Memories need no question: a file in the folder, met by one of the file tools (contract, section 4)."""
    field = PATHS.get(tool_name)
    path = tool_input.get(field) if field else None
    memory = state.of(session.root).auto
    if not isinstance(path, str) or memory is None or not memory.holds(path):
        return None
    if session.parent is not None and not state.of(session).fork:
        return None  # an agent has a memory of its own
    return Decision(behavior="allow")
