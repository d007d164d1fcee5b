"""Tool calls: from the first gate to the result that is shown (sections 3 to 5)."""

from __future__ import annotations

import hashlib
import os
import re
from pathlib import PurePosixPath
from typing import TYPE_CHECKING, Any

import msgspec
from msgspec import Struct, field

from kernel import Block, PermissionCall, Tool, ToolContext, ToolError, ToolResult, Verdict, text_of
from kernel_telemetry import redaction
from kernel_telemetry.recorder import size
from kernel_telemetry.redaction import EDITS, mcp_of
from kernel_telemetry.spans import Span, now

if TYPE_CHECKING:
    from kernel_telemetry.watch import Watch

MENTION = "mention-"
"""Calls of a prompt's ``@file``: no call of the model."""
LONGEST_VALUE = 512
LONGEST_INPUT = 4_096
_KEY = os.urandom(16)
"""Digests compare calls within this process and tell nobody what was in them."""
_EARLY = re.compile(r"<tool_use_error>([a-z_]+): ")
_COMMIT = re.compile(r"(?:^|[;&|(]\s*)git(?:\s+-[cC]\s*\S+|\s+--?\S+)*\s+commit(?:\s|$)")
_ONLY_LOOKS = re.compile(r"\s(?:--dry-run|--help|-h)(?:\s|$)")
_PULL = re.compile(r"(?:^|[;&|(]\s*)(?:gh\s+pr\s+create|glab\s+mr\s+create)(?:\s|$)")
_MADE = re.compile(r"^create_(?:pull|merge)_request$")
_COMMITTED = re.compile(r"^\[[^\]\n]*\b([0-9a-f]{7,40})\]", re.MULTILINE)
LANGUAGES = dict(pair.split("=") for pair in (
    "c=C cc=C++ cpp=C++ cs=C# css=CSS go=Go h=C hpp=C++ html=HTML ipynb=Jupyter java=Java js=JavaScript json=JSON jsx=JavaScript "
    "kt=Kotlin lua=Lua md=Markdown php=PHP pl=Perl py=Python rb=Ruby rs=Rust scss=SCSS sh=Shell sql=SQL swift=Swift toml=TOML "
    "ts=TypeScript tsx=TypeScript txt=Text xml=XML yaml=YAML yml=YAML").split())


class Call(Struct, kw_only=True):
    """One call of the model on its way."""

    id: str
    name: str
    input: dict[str, Any]
    span: Span
    blocked: Span | None = None
    execution: Span | None = None
    answer: dict[str, Any] | None = None
    asked: bool = False
    decision: str = ""
    source: str = ""
    result: ToolResult | None = None
    code: str = ""
    error: str = ""
    ran: bool = False
    ms: float = 0.0
    lines: tuple[int, int] = (0, 0)
    more: dict[str, Any] = field(default_factory=dict)


class Calls:
    """The calls of one context."""

    def __init__(self, watch: Watch) -> None:
        self.watch = watch
        self._open: dict[str, Call] = {}
        self._announced: dict[str, Block] = {}

    def announced(self, block: Block) -> None:
        """The model's message with the call was shown."""
        self._announced[str(block.get("id"))] = block

    def get(self, call_id: str, name: str, input: dict[str, Any]) -> Call:
        """The call, which begins with the first gate that it meets."""
        call = self._open.get(call_id)
        if call is None:
            recorder, session = self.watch.recorder, self.watch.session
            span = recorder.begin("tool", self.watch.parent(), {
                "tool_name": recorder.tool_name(name), "tool_use_id": call_id, "gen_ai.tool.call.id": call_id,
                **self.watch.agent_ids(), **recorder.attribution(session)})
            call = self._open[call_id] = Call(id=call_id, name=name, input=input, span=span)
            recorder.calls[call_id] = name, span.place
            self._announced.pop(call_id, None)
        return call

    # -- permission --------------------------------------------------------------------------------------------------------
    def refused_by_hook(self, call_id: str, name: str, input: dict[str, Any]) -> None:
        call = self.get(call_id, name, input)
        self._decided(call, "reject", "hook")

    def ask(self, asked: PermissionCall, call_id: str) -> Call:
        """The rules are about to be asked."""
        call = self.get(call_id, asked.tool.name, asked.input)
        call.input = asked.input
        call.blocked = self.watch.recorder.begin("tool.blocked_on_user", call.span.place, {})
        return call

    def answered(self, call: Call, verdict: Verdict | None) -> None:
        """What the rules, hooks and people came to."""
        allowed = verdict is not None and verdict.behavior == "allow"
        source = "config"
        if call.answer is not None:
            source = _answer_source(call.answer)
        elif verdict is not None and verdict.reason_type == "hook":
            source = "hook"
        self._decided(call, "accept" if allowed else "reject", source)

    def _decided(self, call: Call, decision: str, source: str) -> None:
        if call.decision:
            return
        recorder = self.watch.recorder
        call.decision, call.source = decision, source
        told = {"decision": decision, "source": source}
        if call.blocked is not None:
            recorder.end(call.blocked, {**told, "duration_ms": round(call.blocked.ms)})
        recorder.event("tool_decision", {
            "tool_name": recorder.tool_name(call.name), "tool_use_id": call.id, **told, "tool_source": _source(call.name),
            "tool_parameters": self._parameters(call)}, call.span.place)
        if call.name in EDITS:
            path = str(call.input.get("file_path") or call.input.get("notebook_path") or "")
            recorder.count("code_edit_tool.decision", 1, {
                "tool_name": call.name, **told, "language": LANGUAGES.get(PurePosixPath(path).suffix[1:].lower(), "unknown")})

    # -- the tool at work --------------------------------------------------------------------------------------------------
    def begin(self, tool: Tool, input: dict[str, Any], context: ToolContext) -> Call:
        call = self.get(context.call_id, tool.name, input)
        call.input, call.ran = input, True
        recorder = self.watch.recorder
        call.execution = recorder.begin("tool.execution", call.span.place, {
            "tool_use_id": call.id, "gen_ai.tool.call.id": call.id})
        if recorder.traced:
            context.environment["TRACEPARENT"] = call.execution.place.traceparent
            if call.execution.place.state:
                context.environment["TRACESTATE"] = call.execution.place.state
        return call

    def end(self, call: Call, result: ToolResult | None, error: BaseException | None) -> None:
        """The tool came back, or did not."""
        recorder = self.watch.recorder
        span = call.execution
        if span is None:
            return
        call.result, call.error, call.code = result, "", ""
        if isinstance(result, ToolResult) and result.failed:
            call.code, call.error = result.error_code or result.status, _text(result.content)
        elif isinstance(error, ToolError):
            call.code, call.error = error.code, str(error)
        elif error is not None and not isinstance(error, Exception):
            call.code, call.error = "cancelled", "cancelled"
        elif error is not None:
            call.code, call.error = "fatal", f"{type(error).__name__}: {error}"
            recorder.event("internal_error", {"error_name": type(error).__name__, "error_code": getattr(error, "errno", None)})
        shown = (call.error if recorder.switches.details else call.code) or None
        recorder.end(span, {"duration_ms": round(span.ms), "success": not call.code, "error": shown}, error=shown or "")
        call.ms += span.ms
        if self.watch.session.parent is None:
            recorder.busy.append((span.start, span.end))
        if isinstance(result, ToolResult) and not call.code:
            self._count(call, result)

    def _count(self, call: Call, result: ToolResult) -> None:
        """What a call changed: lines, commits, pull requests."""
        recorder = self.watch.recorder
        structured = result.structured if isinstance(result.structured, dict) else {}
        if call.name in EDITS:
            for kind, number in zip(("added", "removed"), changed_lines(structured), strict=True):
                recorder.count("lines_of_code.count", number, {"type": kind, "model": self.watch.session.model_info.id})
        command = str(call.input.get("command") or "") if call.name == "Bash" else ""
        succeeded = not structured.get("interrupted") and structured.get("exitCode", 0) in (0, None)
        if succeeded and _COMMIT.search(command) and not _ONLY_LOOKS.search(command):
            recorder.count("commit.count", 1, {})
            if found := _COMMITTED.search(str(structured.get("stdout") or "")):
                call.more["git_commit_id"] = found[1]
        mcp = mcp_of(call.name)
        if (succeeded and _PULL.search(command)) or (mcp is not None and _MADE.match(mcp[1])):
            recorder.count("pull_request.count", 1, {})

    # -- the result ----------------------------------------------------------------------------------------------------------
    def shown(self, block: Block) -> None:
        """The result was shown to the model; the call is over."""
        call_id = str(block.get("tool_use_id"))
        call = self._open.pop(call_id, None)
        if call is None:
            announced = self._announced.pop(call_id, None)
            if announced is None:
                return
            given = announced.get("input")
            call = self.get(call_id, str(announced.get("name") or ""), given if isinstance(given, dict) else {})
            del self._open[call_id]
        self._over(call, block)

    def _over(self, call: Call, block: Block) -> None:
        recorder = self.watch.recorder
        content = block.get("content")
        text = _text(content) if isinstance(content, str | list) else ""
        failed = bool(block.get("is_error"))
        if failed and not call.code:
            early = _EARLY.match(text)
            call.error = text
            call.code = early[1] if early else "error" if call.ran else "not_run" if call.decision else "cancelled"
        elif not failed:
            call.code = ""
        weight = size(content)
        details: dict[str, Any] = {}
        if recorder.switches.details:
            details = {"file_path": call.input.get("file_path"), "full_command": call.input.get("command"),
                       "skill_name": call.input.get("skill"), "subagent_type": call.input.get("subagent_type")}
        if recorder.switches.content:
            call.span.events.append(("tool.output", now(), {"tool.input": _compact(call.input), "tool.output": text}))
        recorder.end(call.span, {"duration_ms": round(call.span.ms), "result_tokens": -(-len(text) // 4), **details})
        if call.decision == "reject":
            return
        status = call.result.status if call.result is not None else "error" if failed else "success"
        decided = {"decision_type": call.decision or None, "decision_source": call.source or None}
        recorder.event("tool_result", {
            "tool_name": recorder.tool_name(call.name), "tool_use_id": call.id, "success": not failed,
            "duration_ms": round(call.ms), "error_type": call.code or None, **decided,
            "error": call.error if failed and recorder.switches.details else None,
            "tool_input_size_bytes": size(call.input), "tool_result_size_bytes": weight,
            "mcp_server_scope": self.watch.scope_of(call.name), "tool_parameters": self._parameters(call, call.more),
            "tool_input": _shortened(call.input) if recorder.switches.details else None,
            "kernel.ran": call.ran, "kernel.status": status, "kernel.tool_digest": digest(call.name),
            "kernel.input_digest": digest(call.name, call.input), "kernel.result_digest": digest(text)}, call.span.place)
        if call.name == "Skill" and not failed:
            self.watch.hearing.skill(str(call.input.get("skill") or ""), "claude-proactive")

    def _parameters(self, call: Call, more: dict[str, Any] | None = None) -> str | None:
        if not self.watch.recorder.switches.details:
            return None
        given, mcp = call.input, mcp_of(call.name)
        found: dict[str, Any] = {}
        if call.name == "Bash":
            command = str(given.get("command") or "")
            found = {"bash_command": command.split(maxsplit=1)[0] if command.strip() else "", "full_command": command,
                     **{k: given[k] for k in ("timeout", "description", "dangerouslyDisableSandbox") if k in given}}
        elif mcp is not None:
            found = {"mcp_server_name": mcp[0], "mcp_tool_name": mcp[1]}
        elif call.name == "Skill":
            found = {"skill_name": given.get("skill")}
        elif call.name in ("Agent", "Task"):
            found = {"subagent_type": given.get("subagent_type") or "general-purpose"}
        found |= more or {}
        return _compact(found) if found else None

    def cancel(self) -> None:
        """The run is over; a call that is still open has no result."""
        for call in self._open.values():
            self.watch.recorder.end(call.span, {"duration_ms": round(call.span.ms)})
        self._open.clear()
        self._announced.clear()


def _answer_source(answer: dict[str, Any]) -> str:
    if answer.get("behavior") == "allow":
        return "user_permanent" if answer.get("updatedPermissions") else "user_temporary"
    return "user_abort" if answer.get("interrupt") else "user_reject"


def _source(name: str) -> str:
    return "mcp" if name.startswith("mcp__") else "builtin" if name in redaction.TOOLS else "plugin"


def changed_lines(structured: dict[str, Any]) -> tuple[int, int]:
    """Lines that an edit added and removed, from the tool's output object."""
    if structured.get("type") == "create":
        return len(str(structured.get("content") or "").splitlines()), 0
    added = removed = 0
    if "new_source" in structured:
        old = str(structured.get("old_source") or "") if structured.get("edit_mode") != "insert" else ""
        new = str(structured.get("new_source") or "") if structured.get("edit_mode") != "delete" else ""
        return len(new.splitlines()), len(old.splitlines())
    for hunk in structured.get("structuredPatch") or ():
        lines = hunk.get("lines") if isinstance(hunk, dict) else None
        for line in lines if isinstance(lines, list) else ():
            added += str(line).startswith("+")
            removed += str(line).startswith("-")
    return added, removed


def digest(*values: Any) -> str:
    """Tells equal from other within this process."""
    try:
        raw = msgspec.json.encode(values, order="sorted", enc_hook=str)
    except (TypeError, ValueError, RecursionError):
        raw = repr(values).encode("utf-8", "replace")
    return hashlib.blake2b(raw, digest_size=8, key=_KEY).hexdigest()


def _compact(value: Any) -> str:
    try:
        return msgspec.json.encode(value, enc_hook=str).decode()
    except (TypeError, ValueError, RecursionError):
        return repr(value)


def _shortened(input: dict[str, Any]) -> str:
    """The input as JSON: long values cut, about four thousand characters in all."""
    def short(value: Any) -> Any:
        if isinstance(value, str):
            return redaction.cut(value, LONGEST_VALUE)
        if isinstance(value, dict):
            return {str(k): short(v) for k, v in value.items()}
        return [short(v) for v in value] if isinstance(value, list) else value

    return redaction.cut(_compact(short(input)), LONGEST_INPUT)


def _text(content: str | list[Block]) -> str:
    return content if isinstance(content, str) else text_of(b for b in content if isinstance(b, dict))
