"""One tool call before the gates: found, shaped, prepared (loop contract, section 6, steps 1 to 5).

A call that fails here raises no hook at all; its result tells the model what was expected.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import TYPE_CHECKING, Any

from msgspec import Struct, field

from kernel.errors import ToolError
from kernel.messages import Block
from kernel.schema import fault
from kernel.tools import Tool, ToolContext, ToolResult, error_result, invalid_arguments

if TYPE_CHECKING:
    from kernel.session import Session


class Call(Struct, kw_only=True):
    """One call on its way through the gates."""

    id: str
    name: str
    input: dict[str, Any]
    tool: Tool | None = None
    context: ToolContext | None = None
    result: ToolResult | None = None
    failed_early: bool = False
    ran: bool = False
    finished: bool = False
    reminders: list[Block] = field(default_factory=list)


class Batch(Struct, kw_only=True):
    """What a batch came to. ``stopped``: a hook or an answer ends the turn, for the ``stop_reason``.

    ``deferred``: a hook put the only call off; it has no result and stays open.
    """

    calls: list[Call]
    stopped: bool = False
    stop_reason: str = ""
    interrupted: bool = False
    deferred: Call | None = None
    reminders: list[Block] = field(default_factory=list)

    def content(self) -> list[Block]:
        """The one user message that answers the batch: results in call order, then what was added."""
        results = [c.result.block() for c in self.calls if c.result]
        added = [b for c in self.calls for b in (*(c.result.new_messages if c.result else ()), *c.reminders)]
        return results + added + self.reminders


def look_up(session: Session, call: Call, bad_input: str | None) -> None:
    """Find the tool and check the input. A call that fails here raises no hook at all."""
    if bad_input is not None:
        call.result = invalid_arguments(bad_input)
    elif call.name not in session.toolbox.by_name:
        call.result = _unknown(session, call.name)
    else:
        call.tool = tool = session.toolbox.by_name[call.name]
        call.name = tool.name
        call.context = ToolContext(session, call.id, tool.name, partial(_progress, session, call))
        guarded(call, partial(shape, call, tool))
    call.failed_early = call.result is not None


def shape(call: Call, tool: Tool) -> None:
    """Known misspelt keys, then the schema."""
    call.input, problem = fault(tool, tool.repair_input(call.input))
    if problem:
        call.result = invalid_arguments(problem)


def prepare(session: Session, call: Call) -> None:
    """The tool's own preparation and checks, when the calls before this one have done their work."""
    assert call.tool is not None and call.context is not None
    call.context.state = session.state
    ran = session.ran_before.get(call.id)  # its effects are there already: the checks would see them
    call.input = call.tool.prepare_input(call.input, call.context) if ran is None else ran
    if ran is None:
        call.tool.validate_input(call.input, call.context)


def guarded(call: Call, step: Callable[[], None]) -> None:
    """A step before the gates; what it raises becomes the result of the call."""
    try:
        step()
    except ToolError as error:
        call.result = error_result(error.code, f"<tool_use_error>{error.code}: {error}</tool_use_error>")
    except Exception as error:
        call.result = error_result("fatal", f"{call.name} failed while it checked its input: {type(error).__name__}: {error}",
                                   status="fatal_error")
    call.failed_early = call.result is not None


def _unknown(session: Session, name: str) -> ToolResult:
    from difflib import get_close_matches

    near = get_close_matches(name, list(session.toolbox.by_name), n=3, cutoff=0.5)
    all_names = ", ".join(t.name for t in session.toolbox.offered)
    hint = f" Did you mean {', '.join(near)}?" if near else f" The tools are: {all_names}."
    return error_result("unknown_tool", f"<tool_use_error>unknown_tool: No such tool: {name[:200]!r}.{hint}</tool_use_error>")


def replace_input(session: Session, call: Call, value: dict[str, Any]) -> None:
    """An input that a hook or a person rewrote goes through the checks again."""
    assert call.tool is not None
    call.input = value
    guarded(call, partial(shape, call, call.tool))
    if call.result is None:
        guarded(call, partial(prepare, session, call))


def copied(value: Any) -> Any:
    """A copy of JSON data: what a hook is handed is not what is executed."""
    if isinstance(value, dict):
        return {k: copied(v) for k, v in value.items()}
    return [copied(v) for v in value] if isinstance(value, list) else value


def _progress(session: Session, call: Call, data: dict[str, Any]) -> None:
    from kernel.output import ToolProgress

    session.emit(ToolProgress(uuid=session.clock.new_id(), session_id=session.id, tool_use_id=call.id, tool_name=call.name,
                              parent_tool_use_id=None, elapsed_time_seconds=float(data.pop("elapsed", 0.0)),
                              heartbeat=bool(data.pop("heartbeat", False)), data=data or None))
