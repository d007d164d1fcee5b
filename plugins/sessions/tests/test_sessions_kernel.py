"""The store under the real loop: what a second process sends to the model is what the first one said."""

from __future__ import annotations

from typing import Any

import pytest

from kernel import Tool, ToolContext, ToolResult
from kernel.testing import Kit, call, text


class Stop(BaseException):
    """Ends the process in the middle, as a kill would."""


class Note(Tool):
    name = "Note"
    input_schema = {"type": "object", "properties": {"value": {"type": "string"}}, "required": ["value"]}

    def description(self) -> str:
        return "Note a value."

    async def call(self, input: dict[str, Any], context: ToolContext) -> ToolResult:
        if input["value"] == "kill":
            raise Stop
        return ToolResult(content=f"noted {input['value']}")


def kit(home: Any, turns: list[Any], **options: Any) -> Kit:
    return Kit(home.cwd, turns, tools=[Note()], installed=["sessions"], persist=True, **options)


@pytest.mark.anyio
async def test_a_resumed_conversation_sends_what_was_said(home: Any) -> None:
    first = kit(home, [[text("I note."), call("Note", "c1", value="a"), call("Note", "c2", value="b")], text("done")])
    run = await first.run("Note a and b.")
    await run.session.close()
    second = kit(home, [text("yes")], resume=run.session.id)
    again = await second.run("Sure?")
    assert again.session.id == run.session.id
    kept = [*first.model.requests[-1]["messages"], {"role": "assistant", "content": [text("done")]}]
    assert again.requests[0]["messages"][:-1] == kept
    await again.session.close()


@pytest.mark.anyio
async def test_a_killed_call_is_answered_on_resume_and_finished_ones_keep_their_results(home: Any) -> None:
    first = kit(home, [[call("Note", "c1", value="a")], [call("Note", "c2", value="kill")]])
    session = first.open()
    with pytest.raises((Stop, BaseExceptionGroup)):
        await session.submit("Go.")
    second = kit(home, [text("I see.")], resume=session.id)
    assert second.harness.one("stores", "files") is not None
    again = await second.run("Well?")
    assert "noted a" in str(again.result_of("c1")["content"])
    assert again.result_of("c2")["is_error"] and "interrupted" in again.result_of("c2")["content"]
    await again.session.close()


@pytest.mark.anyio
async def test_a_fork_goes_on_beside_its_source(home: Any) -> None:
    run = await kit(home, [text("noted")]).run("My number is 7.")
    await run.session.close()
    fork = await kit(home, [text("ok")], resume=run.session.id, fork_session=True).run("Now 8.")
    await fork.session.close()
    assert fork.session.id != run.session.id and len(fork.requests[0]["messages"]) == 3
    source = await kit(home, [text("7")], resume=run.session.id).run("And?")
    await source.session.close()
    assert "Now 8." not in str(source.requests[0]["messages"])
