"""A call that a hook put off is taken up again when the conversation is resumed (hooks contract, 13.3)."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from kernel.events import PreToolUseResult
from kernel.messages import normalise
from kernel.session import Session
from kernel.testing import Kit, module, text
from kernel.transcript import Restored

pytestmark = pytest.mark.anyio


def resumed(kit: Kit) -> Session:
    """A session whose transcript ends with a call that was put off."""
    session = kit.open()
    put_off = {"type": "tool_use", "id": "t1", "name": "Probe", "input": {"n": 1}}
    session.transcript.restored = Restored(messages=[("user", "old prompt"), ("assistant", [put_off])], deferred="t1")
    return session


def deciding(*decisions: str | None) -> tuple[Any, list[Any]]:
    """A PreToolUse hook that gives these decisions in turn, and the events that it saw."""
    seen: list[Any] = []

    def pre_tool_use(event: Any) -> Any:
        seen.append(event)
        decision: Any = decisions[len(seen) - 1]
        return PreToolUseResult(permission_decision=decision, permission_decision_reason="why") if decision else None

    return module(pre_tool_use=pre_tool_use), seen


def legal(session: Session) -> bool:
    pairs: Any = [(m["role"], m["content"]) for m in session.history.wire()]
    return normalise(pairs) == (pairs, [])


@pytest.mark.parametrize("prompt", [None, "and then?"])
async def test_the_call_meets_the_gates_again_and_the_conversation_goes_on(
        prompt: str | None, tmp_path: Path, probe: Any) -> None:
    hook, seen = deciding(None)
    kit = Kit(tmp_path, [text("done")], tools=[tool := probe()], hooks={"h": hook})
    session = resumed(kit)
    result = await session.submit(prompt)
    assert [(e.tool_use_id, e.tool_input) for e in seen] == [("t1", {"n": 1})]
    assert tool.ran == [{"n": 1}] and (result.result, result.terminal_reason) == ("done", "completed")
    sent = kit.model.requests[0]["messages"]
    assert [m["role"] for m in sent] == ["user", "assistant", "user"]
    assert sent[2]["content"][0]["content"] == "ran {'n': 1}"
    assert ("and then?" in json.dumps(sent)) == (prompt is not None)
    assert legal(session)


async def test_a_call_that_is_refused_now_is_answered_and_the_conversation_goes_on(tmp_path: Path, probe: Any) -> None:
    hook, _ = deciding("deny")
    kit = Kit(tmp_path, [text("done")], tools=[tool := probe()], hooks={"h": hook})
    session = resumed(kit)
    result = await session.submit(None)
    assert tool.ran == [] and result.result == "done" and len(result.permission_denials) == 1
    assert legal(session)


async def test_it_can_be_put_off_again_without_limit(tmp_path: Path, probe: Any) -> None:
    hook, seen = deciding("defer", "defer", None)
    kit = Kit(tmp_path, [text("done")], tools=[tool := probe()], hooks={"h": hook})
    session = resumed(kit)
    for _ in range(2):
        result = await session.submit(None)
        assert (result.terminal_reason, result.stop_reason) == ("tool_deferred", "tool_deferred")
        assert result.deferred_tool_use == {"id": "t1", "name": "Probe", "input": {"n": 1}}
        assert kit.model.requests == [] and tool.ran == []
    assert (await session.submit(None)).result == "done"
    assert tool.ran == [{"n": 1}] and len(seen) == 3 and legal(session)


async def test_a_prompt_does_not_wait_for_a_call_that_is_put_off_again(tmp_path: Path, probe: Any) -> None:
    hook, _ = deciding("defer")
    kit = Kit(tmp_path, [text("done")], tools=[tool := probe()], hooks={"h": hook})
    session = resumed(kit)
    result = await session.submit("never mind")
    assert tool.ran == [] and result.result == "done" and legal(session)
    answer = kit.model.requests[0]["messages"][2]["content"]
    assert answer[0]["tool_use_id"] == "t1" and answer[0]["is_error"] and answer[1] == text("never mind")


async def test_a_tool_that_is_gone_is_an_error_before_any_hook_and_the_session_can_go_on(tmp_path: Path) -> None:
    hook, seen = deciding()
    kit = Kit(tmp_path, [text("done")], hooks={"h": hook})
    session = resumed(kit)
    result = await session.submit(None)
    assert (result.is_error, result.stop_reason, result.terminal_reason) == (
        True, "tool_deferred_unavailable", "tool_deferred_unavailable")
    assert result.deferred_tool_use == {"id": "t1", "name": "Probe", "input": {"n": 1}}
    assert seen == [] and kit.model.requests == []
    assert (await session.submit("go on without it")).result == "done"
    assert legal(session)
