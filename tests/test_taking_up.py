"""What a middleware needs that takes up a run of another process (decision 39)."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from kernel import Middleware, Tool, ToolError, ToolResult
from kernel.testing import Kit, call, installed, module, text


class Checked(Tool):
    name = "Checked"
    description = "Refuses every input."
    input_schema = {"type": "object", "properties": {"a": {"type": "integer"}}}

    def prepare_input(self, input: dict[str, Any], context: Any) -> dict[str, Any]:
        return {**input, "prepared": True}

    def validate_input(self, input: dict[str, Any], context: Any) -> None:
        raise ToolError("no", "not this one")

    async def call(self, input: dict[str, Any], context: Any) -> ToolResult:
        return ToolResult(content=str(input))


class Knows(Middleware):
    name = "knows"

    def for_session(self, session: Any) -> Middleware:
        session.ran_before["c1"] = {"a": 7}
        return self


def test_a_call_that_ran_before_is_not_checked_again_and_has_the_input_it_had(tmp_path: Path) -> None:
    knows = module(register_middleware=lambda register: register(Knows()))
    run = Kit(tmp_path, [[call("Checked", "c1", a=1), call("Checked", "c2", a=1)], text("done")], tools=[Checked()],
              hooks={"knows": knows}).play("go")
    assert run.result_of("c1")["content"] == "{'a': 7}"
    assert "not this one" in run.result_of("c2")["content"]


def test_a_session_says_what_it_was_asked_and_where_it_can_be_taken_up(tmp_path: Path, monkeypatch: Any) -> None:
    monkeypatch.setenv("CLAUDE_CONFIG_DIR", str(tmp_path / "config"))
    kept: dict[str, Any] = {"installed": ["sessions"], "persist": True} if installed("sessions") else {}
    kit = Kit(tmp_path, [text("one"), text("two")], **kept)
    session = kit.open()
    assert session.asked is None and session.last_entry is None

    async def talk() -> tuple[Any, Any]:
        await session.submit("first")
        asked, last = session.asked, session.last_entry
        await session.submit("second", uuid="11111111-1111-4111-8111-111111111111")
        assert session.asked == ("second", "11111111-1111-4111-8111-111111111111")
        await session.close()
        return asked, last

    import anyio

    asked, last = anyio.run(talk)
    assert asked[0] == "first" and last is not None
    if kept:
        again = Kit(tmp_path, [text("three")], **kept, resume=session.id, resume_at=last).play("third")
        said = [b["text"] for m in again.requests[0]["messages"] for b in m["content"]]
        assert said == ["first", "one", "third"], "the entry is the last one of the first run"
        cut = Kit(tmp_path, [text("four")], **kept, resume=session.id, resume_at=asked[1]).play("fourth")
        assert [b["text"] for m in cut.requests[0]["messages"] for b in m["content"]] == ["first", "fourth"]
