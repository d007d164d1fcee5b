"""One call of Bash: in the foreground until it ends or its time is up, or in the background."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, TypeVar

from kernel import CwdChanged, State, ToolContext, ToolError, ToolResult, env_number, env_switch
from kernel_tools_shell import place, report, seen, words
from kernel_tools_shell.manual import DEFAULT_TIMEOUT_MS, MAX_TIMEOUT_MS
from kernel_tools_shell.shell import Shell, Started
from kernel_tools_shell.tasks import end_commands

if TYPE_CHECKING:
    from kernel_tools_shell.sink import Sink

T = TypeVar("T")

PROGRESS_S = 1.0
HEARTBEAT_S = 30.0
_BIG = 1 << 20  # bytes; from here on output is worked on in a thread


async def run(input: dict[str, Any], context: ToolContext) -> ToolResult:
    """Start the command and see it through."""
    shell = Shell.of(context.session)
    await shell.prepare()
    start = place.before(context.session, context.cwd)
    try:
        started = shell.start(input["command"], start.cwd, input, context.environment)
    except OSError as error:
        raise ToolError("spawn_failed", f"The command could not be started in {start.cwd}: {error.strerror or error}. "
                                        f"The shell is {shell.path}.") from error
    call = Run(input, context, started, start)
    return call.in_background() if input.get("run_in_background") else await call.in_foreground()


def timeout_ms(given: float | None) -> int:
    """The effective timeout: the default where none is given, clamped to the larger of the two variables."""
    default = env_number("BASH_DEFAULT_TIMEOUT_MS", DEFAULT_TIMEOUT_MS)
    ceiling = max(default, env_number("BASH_MAX_TIMEOUT_MS", MAX_TIMEOUT_MS))
    return min(int(given), ceiling) if given and given >= 1 else default


class Run:
    """One call of Bash."""

    def __init__(self, input: dict[str, Any], context: ToolContext, started: Started, start: place.Place) -> None:
        self.text: str = input["command"]
        self.description = str(input.get("description") or "")
        self.timeout_ms = timeout_ms(input.get("timeout"))
        self.context = context
        self.started = started
        self.start = start
        self.sink: Sink = started.command.sink
        self.common: dict[str, Any] = {"interrupted": False, "isImage": False}
        if input.get("dangerouslyDisableSandbox"):
            self.common["dangerouslyDisableSandbox"] = True

    # -- the three ways a call goes ------------------------------------------------------------------------------------
    def in_background(self) -> ToolResult:
        task = self.started.to_background(self.description, self.context.call_id)
        note = (f"Command running in background with ID: {task.id}. Its output is being written to {task.path}. "
                "You will be told when it ends.")
        return self._result({"stdout": "", "stderr": self._notes(note), "backgroundTaskId": task.id},
                            self._modifier(self.start.cwd))

    async def in_foreground(self) -> ToolResult:
        kept = False
        try:
            if await self._watch():
                return await self._ended()
            if words.outlives_timeout(self.text) and not env_switch("CLAUDE_CODE_DISABLE_BACKGROUND_TASKS"):
                kept = True
                return self._moved()
            await end_commands([self.started.command])
            return await self._timed_out()
        finally:
            if not kept:
                if self.started.command.exit_code is None:  # cancelled
                    await end_commands([self.started.command])
                self.started.done()

    async def _watch(self) -> bool:
        """Whether the command ended within its time. Progress is told while it writes, a heartbeat in any case."""
        import anyio

        command, seen, last_beat = self.started.command, 0, 0.0
        while command.exit_code is None:
            elapsed = time.monotonic() - command.began
            left = self.timeout_ms / 1000 - elapsed
            if left <= 0:
                return False
            with anyio.move_on_after(min(left, PROGRESS_S)):
                await command.wait()
            elapsed = time.monotonic() - command.began
            if command.exit_code is not None:
                break
            if elapsed - last_beat >= HEARTBEAT_S:
                last_beat = elapsed
                self.context.progress(elapsed=elapsed, heartbeat=True)
            elif elapsed >= PROGRESS_S and self.sink.size != seen:
                seen = self.sink.size
                self.context.progress(elapsed=elapsed, output_bytes=seen)
        return True

    # -- results -------------------------------------------------------------------------------------------------------
    async def _ended(self) -> ToolResult:
        code = self.started.command.exit_code
        assert code is not None
        if self.started.command.cut == "output":
            return await self._failure("killed_output", f"The command was killed: it wrote {self.sink.size:,} bytes, more than a "
                                                        "command may. Write less, or filter the output.")
        stand = place.after(self.context.session, self.start.cwd, self.started.ended_in())
        await self._tell_cwd(stand.cwd)
        notes = self._notes(stand.note)
        modifier = self._modifier(stand.cwd)
        interpretation = words.meaning(self.text, code)
        if code and interpretation is None:
            return await self._failure("exit_status", f"Exit code {code}", notes, modifier)
        text = await self._read(report.whole)
        fields: dict[str, Any] = {"stdout": text, "stderr": notes}
        if interpretation is not None:
            fields["returnCodeInterpretation"] = interpretation
        if report.image(text) is not None:
            fields["isImage"] = True
        elif len(text) > min(report.INLINE_CHARS, report.read_back()):
            path = await self._big(lambda: self.context.session.spill(self.context.call_id, text))
            fields |= {"stdout": text[:report.read_back()], "persistedOutputPath": path, "persistedOutputSize": self.sink.size}
            if self.sink.size > report.SAVED_BYTES:
                fields["stderr"] = _lines(notes, f"The saved file holds the first {report.SAVED_BYTES:,} bytes only.")
        elif code == 0:
            seen.note(self.context, self.start.cwd, self.text)
        return self._result(fields, modifier)

    def _moved(self) -> ToolResult:
        task = self.started.to_background(self.description, self.context.call_id)
        note = (f"Command did not complete within its {_seconds(self.timeout_ms)} timeout and was moved to the background. "
                f"Task ID: {task.id}. Its output is being written to {task.path}. You will be told when it ends.")
        fields: dict[str, Any] = {"stdout": task.output(report.FAILURE_CHARS), "stderr": self._notes(note),
                                  "backgroundTaskId": task.id, "timedOutAfterMs": self.timeout_ms}
        if words.changes_directory(self.text):
            fields["backgroundCwdHint"] = (f"Session cwd remains {self.start.cwd}; directory changes made by the backgrounded "
                                           "command do not apply to subsequent commands.")
        return self._result(fields, self._modifier(self.start.cwd))

    async def _timed_out(self) -> ToolResult:
        return await self._failure("timeout", f"Command did not complete within its {_seconds(self.timeout_ms)} timeout and was "
                                              "killed. Give a longer timeout, or run it in the background.", self._notes(""))

    async def _failure(self, code: str, first: str, notes: str = "",
                       modifier: Callable[[State], State] | None = None) -> ToolResult:
        output = await self._read(report.shortened)
        retryable = code == "timeout"
        return ToolResult(content=_lines(first, output, notes), status="retryable_error" if retryable else "fatal_error",
                          error_code=code, retryable=retryable, truncated=self.sink.size > report.FAILURE_CHARS,
                          context_modifier=modifier)

    def _result(self, fields: dict[str, Any], modifier: Callable[[State], State] | None) -> ToolResult:
        structured = {**fields, **{k: v for k, v in self.common.items() if k not in fields}}
        path = structured.get("persistedOutputPath")
        return ToolResult(content=report.render(structured), structured=structured, context_modifier=modifier,
                          truncated=path is not None, spill_path=path)

    # -- helpers -------------------------------------------------------------------------------------------------------
    def _notes(self, note: str) -> str:
        return _lines(self.start.note, note, self.sink.failure)

    def _modifier(self, cwd: str) -> Callable[[State], State] | None:
        if cwd == self.context.cwd:
            return None
        from msgspec.structs import replace

        return lambda state: replace(state, cwd=cwd)

    async def _tell_cwd(self, cwd: str) -> None:
        if cwd == self.context.cwd:
            return
        from msgspec.structs import replace

        session = self.context.session
        event = session.make(CwdChanged, old_cwd=self.context.cwd, new_cwd=cwd)
        await session.fire(replace(event, cwd=cwd))

    async def _read(self, form: Callable[[Sink], str]) -> str:
        return await self._big(lambda: form(self.sink))

    async def _big(self, work: Callable[[], T]) -> T:
        """Work on the output; in a thread where there is much of it."""
        if self.sink.size <= _BIG:
            return work()
        import anyio.to_thread

        return await anyio.to_thread.run_sync(work)


def _lines(*parts: str) -> str:
    return "\n".join(part for part in parts if part)


def _seconds(ms: int) -> str:
    return f"{ms / 1000:g}s"
