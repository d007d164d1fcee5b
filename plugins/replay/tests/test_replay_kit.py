"""Recorded and replayed in one process, with the test kit."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import anyio
from kernel_replay.recording import load
from kernel_replay.testing import assert_replays, recorded, replayed

from kernel import ModelError, PreToolUse, PreToolUseResult, Tool, ToolContext, ToolError, ToolResult
from kernel.testing import Kit, Turn, call, module, text


class Wait(Tool):
    """Answers after so many milliseconds; the later the call, the sooner."""

    name = "Wait"
    description = "Waits."
    input_schema = {"type": "object"}

    def is_read_only(self, input: dict[str, Any]) -> bool:
        return True

    async def call(self, input: dict[str, Any], context: ToolContext) -> ToolResult:
        await anyio.sleep(input["ms"] / 1000)
        if input.get("fail"):
            raise ToolError("not_found", "there is none")
        return ToolResult(content=f"{context.session.clock.timestamp()} {id(self)}", structured={"ms": input["ms"]})


class Never(Tool):
    name = "Wait"
    description = "Waits."
    input_schema = {"type": "object"}

    def is_read_only(self, input: dict[str, Any]) -> bool:
        return True

    async def call(self, input: dict[str, Any], context: ToolContext) -> ToolResult:
        raise AssertionError("it is not run again")


def guard(event: PreToolUse) -> PreToolUseResult | None:
    if event.tool_input.get("ms") == 7:
        return PreToolUseResult(permission_decision="deny", permission_decision_reason="seven")
    return PreToolUseResult(additional_context=f"{event.tool_use_id} is seen")


TALK = [[call("Wait", "a", ms=30), call("Wait", "b", ms=20), call("Wait", "c", ms=1, fail=True), call("Wait", "d", ms=7)],
        Turn(fail=ModelError("busy", kind="overloaded_error", status=529, retry_after=0.01)), text("done"), text("and again")]


def test_a_run_replays_without_its_model_and_its_tools(kernel_kit: Callable[..., Kit], tmp_path: Path) -> None:
    kit = recorded(kernel_kit(*TALK, tools=[Wait()], hooks={"guard": module(pre_tool_use=guard)}), tmp_path / "run.jsonl")
    kit.play("go", "and again")
    report = assert_replays(tmp_path / "run.jsonl", kernel_kit(tools=[Never()], hooks={"guard": module(pre_tool_use=guard)}))
    assert report.requests == 4 and report.outputs == len(kit.outputs)
    assert report.events == report.of and not report.cut


def test_the_same_in_another_folder(kernel_kit: Callable[..., Kit], tmp_path: Path) -> None:
    one, other = tmp_path / "one", tmp_path / "another"
    one.mkdir(), other.mkdir()
    recorded(kernel_kit(*TALK, tools=[Wait()], cwd=one), tmp_path / "run.jsonl").play("go", "and again")
    assert_replays(tmp_path / "run.jsonl", kernel_kit(tools=[Never()], cwd=other))


def test_a_hook_that_answers_otherwise_is_the_first_difference(kernel_kit: Callable[..., Kit], tmp_path: Path) -> None:
    recorded(kernel_kit(*TALK, tools=[Wait()], hooks={"guard": module(pre_tool_use=guard)}), tmp_path / "run.jsonl").play("go")

    def milder(event: PreToolUse) -> PreToolUseResult | None:
        return None if event.tool_input.get("ms") == 7 else guard(event)

    report = replayed(tmp_path / "run.jsonl", kernel_kit(tools=[Never()], hooks={"guard": module(pre_tool_use=milder)}))
    assert report.difference is not None and report.difference.plugin == "guard"
    assert report.difference.wire()["step"] == "hooks of PreToolUse d"
    assert "seven" in "\n".join(report.difference.lines())


def test_a_tool_that_describes_itself_otherwise_is_seen_in_the_first_request(kernel_kit: Callable[..., Kit],
                                                                              tmp_path: Path) -> None:
    recorded(kernel_kit(*TALK, tools=[Wait()]), tmp_path / "run.jsonl").play("go")

    class Longer(Never):
        description = "Waits longer."

    report = replayed(tmp_path / "run.jsonl", kernel_kit(tools=[Longer()]))
    assert report.difference is not None and report.difference.path == "$.tools[0].description"
    assert report.difference.step[0] == "model" and report.difference.got == "Waits longer."


def test_the_file_is_its_owners_alone_and_holds_no_credentials(kernel_kit: Callable[..., Kit], tmp_path: Path,
                                                              monkeypatch: Any) -> None:
    monkeypatch.setenv("SOME_SERVICE_TOKEN", "abcdefgh-12345678")
    kit = kernel_kit(text("the token is abcdefgh-12345678"))
    recorded(kit, tmp_path / "run.jsonl").play("which token? abcdefgh-12345678")
    path = tmp_path / "run.jsonl"
    assert path.stat().st_mode & 0o777 == 0o600
    assert b"abcdefgh" not in path.read_bytes() and b"[SOME_SERVICE_TOKEN]" in path.read_bytes()
    assert_replays(path, kernel_kit())
    assert load(path).steps > 3
