"""The calls of a run: what was asked, what was run, what the model was told."""

from __future__ import annotations

import json
import re
from typing import Any

from msgspec import Struct

from kernel_evals.play import Played

_CODE = re.compile(r"<tool_use_error>(\w+):")


class Call(Struct, kw_only=True):
    """``run``: its line in the trace, where it came so far. ``told``: the text of its result; ``error``: shown as one.
    ``turn``: which run of the conversation, from 0."""

    id: str
    tool: str
    input: dict[str, Any]
    turn: int
    agent: str | None
    run: dict[str, Any] | None = None
    told: str | None = None
    error: bool = False

    @property
    def failed(self) -> bool:
        return self.run is not None and self.run.get("error_code") is not None

    @property
    def code(self) -> str | None:
        """Its error code: of the run, or of what kept it from one; ``permission_denied`` where a gate did."""
        if self.run is not None:
            return self.run.get("error_code")
        found = _CODE.search(self.told or "")
        return found[1] if found else "permission_denied" if self.error else None

    @property
    def status(self) -> str:
        if self.run is not None:
            return str(self.run.get("status"))
        return "blocked" if self.code == "permission_denied" else "fatal_error" if self.error else "cancelled"

    @property
    def refused(self) -> bool:
        """A gate kept it from running: a rule, a hook, or nobody who could be asked."""
        return self.run is None and self.code == "permission_denied"


def calls(played: Played) -> list[Call]:
    """In the order in which they were asked for; subagents' too."""
    ran = {line["id"]: line for line in played.trace if line.get("kind") == "call"}
    found: dict[str, Call] = {}
    turn = 0
    for message in played.messages:
        kind = message.get("type")
        if kind == "result":
            turn += 1
        for block in _blocks(message) if kind in ("assistant", "user") else ():
            if block.get("type") == "tool_use" and isinstance(block.get("id"), str):
                given = block.get("input")
                found[block["id"]] = Call(id=block["id"], tool=str(block.get("name")), turn=turn, run=ran.get(block["id"]),
                                          input=given if isinstance(given, dict) else {}, agent=message.get("parent_tool_use_id"))
            elif block.get("type") == "tool_result" and block.get("tool_use_id") in found:
                call = found[block["tool_use_id"]]
                call.told, call.error = flat(block.get("content")), block.get("is_error") is True
    return list(found.values())


def matches(call: Call, tool: str, text: str) -> bool:
    return call.tool == tool and text in json.dumps(call.input, ensure_ascii=False)


def _blocks(message: dict[str, Any]) -> list[dict[str, Any]]:
    inner = message.get("message")
    content = inner.get("content") if isinstance(inner, dict) else None
    return [b for b in content if isinstance(b, dict)] if isinstance(content, list) else []


def results(played: Played) -> list[dict[str, Any]]:
    return [m for m in played.messages if m.get("type") == "result"]


def flat(value: Any) -> str:
    """All texts of a value, a line each."""
    if isinstance(value, str):
        return value
    if isinstance(value, dict):
        return "\n".join(flat(v) for v in value.values() if isinstance(v, str | dict | list))
    return "\n".join(flat(v) for v in value) if isinstance(value, list) else ""


def one_line(text: str) -> str:
    """For a terminal: what a run wrote moves no cursor and sets no colour."""
    return "".join(c if c.isprintable() else " " for c in text)[:300]


def requests(played: Played) -> list[dict[str, Any]]:
    """Requests of the conversation itself, not of subagents; a summary's is one of them."""
    return [line for line in played.trace if line.get("kind") == "request" and not line.get("agent")]


def asked(request: dict[str, Any]) -> str:
    return f"{request.get('system', '')}\n{flat(request.get('messages'))}"
