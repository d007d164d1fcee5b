"""A function of the program answers permission questions."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from msgspec import Struct, field

from kernel import PermissionCall, Verdict
from kernel_embed.answers import Allow, Deny
from kernel_embed.calling import call
from kernel_embed.notices import LOG


class Question(Struct, frozen=True, kw_only=True):
    """A call that no rule, mode or hook decided.

    ``reason`` says why it is asked; ``suggestions`` are the permission updates that ``allow(remember=True)`` applies.
    ``agent_id`` is set where a subagent asks.
    """

    tool_name: str
    input: dict[str, Any]
    tool_use_id: str
    reason: str = ""
    cwd: str = ""
    mode: str = ""
    agent_id: str | None = None
    suggestions: list[dict[str, Any]] = field(default_factory=list)


OnPermission = Callable[[Question], Any]
"""Answers with ``allow()``, ``deny()``, true or false; ``async`` or not."""


class Asking:
    """The session's asker (``kernel.Asker``). One question at a time: an answer may settle the next one."""

    def __init__(self, function: OnPermission) -> None:
        self._function = function

    async def __call__(self, asked: PermissionCall, verdict: Verdict, tool_use_id: str) -> dict[str, Any]:
        question = Question(tool_name=asked.tool.name, input=asked.input, tool_use_id=tool_use_id, reason=verdict.message,
                            cwd=asked.cwd, mode=asked.mode, agent_id=asked.agent_id, suggestions=verdict.suggestions)
        try:
            given = await call(self._function, question)
            return self._answer(question, given)
        except Exception:
            LOG.exception("on_permission failed for %s; the call is refused", question.tool_name)
            raise

    def _answer(self, question: Question, given: Any) -> dict[str, Any]:
        if given is True:
            given = Allow()
        if given is False or given is None:
            return {"behavior": "deny", "message": ""}
        if isinstance(given, Deny):
            return {"behavior": "deny", "message": given.reason, "interrupt": given.interrupt}
        if not isinstance(given, Allow):
            raise TypeError(f"on_permission returned {type(given).__name__}; expected allow(), deny(), True or False")
        answer: dict[str, Any] = {"behavior": "allow"}
        if given.input is not None:
            answer["updatedInput"] = given.input
        if given.remember:
            answer["updatedPermissions"] = [{**update, "destination": "session"} for update in question.suggestions]
        return answer
