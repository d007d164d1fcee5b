"""What plugins add to a running session: extensions, typed commands, tools that come and go, room in the window."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from kernel.errors import KernelError, ModelError
from kernel.events import UserPromptExpansionResult
from kernel.extension import Expansion, Extension
from kernel.messages import Block, History, text_block
from kernel.models import ModelRequest
from kernel.request import is_too_long, side_request
from kernel.session import Session
from kernel.testing import FakeClock, Kit, Run, Turn, call, module, text
from kernel.tools import Tool, ToolContext, ToolResult

pytestmark = pytest.mark.anyio


class Echo(Tool):
    description = "Says it again."
    input_schema = {"type": "object", "properties": {"text": {"type": "string"}}}
    permission = "free"

    def __init__(self, name: str = "Echo") -> None:
        self.name = name  # type: ignore[misc]

    async def call(self, input: dict[str, Any], context: ToolContext) -> ToolResult:
        return ToolResult(content=f"{self.name}: {input.get('text')}")


class Typed:
    """A typed command that becomes a prompt, answers by itself, or fails."""

    description = argument_hint = ""
    source = "test"

    def __init__(self, name: str, kind: str = "slash_command", *, answer: str = "", fail: str = "") -> None:
        self.name, self.kind, self._answer, self._fail = name, kind, answer, fail

    async def expand(self, session: Session, args: str) -> Expansion:
        if self._fail:
            raise KernelError(self._fail)
        return Expansion(text=self._answer) if self._answer else Expansion(blocks=[text_block(f"Review {args!r}, please.")])


class Probe(Extension):
    """Notes what it is asked, in order, and does what the test gives it to do."""

    def __init__(self, name: str = "probe", **does: Any) -> None:
        self.name = name
        self.does = does
        self.calls: list[str] = []

    async def _do(self, what: str, session: Session) -> Any:
        self.calls.append(what)
        return self.does[what](session) if what in self.does else None

    async def open(self, session: Session) -> None:
        await self._do("open", session)

    async def before_prompt(self, session: Session) -> None:
        await self._do("before_prompt", session)

    async def before_request(self, session: Session) -> None:
        await self._do("before_request", session)

    async def after_compaction(self, session: Session) -> list[Block]:
        return await self._do("after_compaction", session) or []

    async def close(self, session: Session) -> None:
        await self._do("close", session)


def kit(path: Path, *turns: Any, probe: Extension | None = None, **brings: Any) -> Kit:
    hooks = {"mine": module(**({"register_extensions": lambda register: register(probe)} if probe else {}), **brings)}
    return Kit(path, turns, hooks=hooks)


def types(session: Session, *commands: Typed) -> None:
    session.commands |= {c.name: c for c in commands}


def prompt_of(run: Run) -> str:
    return "\n".join(b["text"] for b in run.requests[0]["messages"][0]["content"])


# -- the life of a session -----------------------------------------------------------------------------------------------
async def test_an_extension_is_asked_at_every_moment_of_a_session(tmp_path: Path) -> None:
    probe = Probe()
    run = await kit(tmp_path, call("Nothing"), text("done"), text("more"), probe=probe).run("go")
    await run.session.submit("again")
    await run.session.close()
    round_ = ["before_prompt", "before_request"]
    assert probe.calls == ["open", *round_, "before_request", *round_, "close"]


async def test_what_it_adds_before_a_request_goes_behind_the_last_message_and_is_kept(tmp_path: Path) -> None:
    probe = Probe(before_request=lambda session: session.add_context("the file changed"))
    run = await kit(tmp_path, text("seen"), probe=probe).run("go")
    assert "the file changed" in run.requests[0]["messages"][0]["content"][-1]["text"]
    assert any(e.extra.get("isMeta") for e in run.session.transcript.entries)  # type: ignore[attr-defined]


@pytest.mark.parametrize("moment", ["open", "before_prompt", "before_request", "close"])
async def test_one_that_raises_is_announced_with_its_plugin_and_ends_nothing(tmp_path: Path, moment: str) -> None:
    def fail(session: Session) -> None:
        raise RuntimeError("no disk")

    made = kit(tmp_path, text("done"), probe=Probe(**{moment: fail}))
    run = await made.run("go")
    await run.session.close()
    assert run.result.result == "done"
    assert any("plugin mine" in a and f"{moment} of the extension 'probe'" in a and "no disk" in a
               for a in made.harness.announced)


# -- typed commands ------------------------------------------------------------------------------------------------------
async def test_a_typed_command_becomes_a_prompt(tmp_path: Path) -> None:
    seen: list[Any] = []
    made = kit(tmp_path, text("done"), probe=Probe(open=lambda s: types(s, Typed("review"))),
               user_prompt_expansion=lambda event: seen.append(event))
    run = await made.run("/review the parser")
    assert "Review 'the parser', please." in prompt_of(run) and "/review" not in prompt_of(run)
    (event,) = seen
    assert (event.command_name, event.command_args, event.expansion_type, event.prompt, event.command_source) == \
        ("review", "the parser", "slash_command", "/review the parser", "test")


async def test_what_no_command_has_the_name_of_is_a_prompt(tmp_path: Path) -> None:
    run = await kit(tmp_path, text("done"), probe=Probe(open=lambda s: types(s, Typed("review")))).run("/etc/passwd is what?")
    assert "/etc/passwd is what?" in prompt_of(run)


async def test_a_hook_can_refuse_a_command_and_add_to_it(tmp_path: Path) -> None:
    no = UserPromptExpansionResult(decision="block", reason="not on Fridays")
    opened = Probe(open=lambda s: types(s, Typed("review")))
    run = await kit(tmp_path, probe=opened, user_prompt_expansion=lambda event: no).run("/review x")
    assert run.result.result == "not on Fridays" and not run.requests
    more = UserPromptExpansionResult(additional_context="mind the tabs")
    run = await kit(tmp_path, text("done"), probe=opened, user_prompt_expansion=lambda event: more).run("/review x")
    assert "UserPromptExpansion hook additional context: mind the tabs" in prompt_of(run)


@pytest.mark.parametrize(("command", "result", "is_error"), [
    (Typed("cost", "", answer="It cost nothing."), "It cost nothing.", False),
    (Typed("cost", "", fail="there is no ledger"), "/cost: there is no ledger", True)])
async def test_a_command_may_answer_without_the_model(tmp_path: Path, command: Typed, result: str, is_error: bool) -> None:
    def never(event: Any) -> None:
        raise AssertionError("a command of the harness itself expands to nothing")

    run = await kit(tmp_path, probe=Probe(open=lambda s: types(s, command)), user_prompt_expansion=never).run("/cost")
    assert (run.result.result, run.result.is_error) == (result, is_error) and not run.requests
    assert not run.session.history.messages


# -- tools that come and go ----------------------------------------------------------------------------------------------
async def test_tools_of_an_extension_stand_behind_those_of_plugins(tmp_path: Path) -> None:
    probe = Probe(open=lambda s: s.toolbox.offer([Echo("mcp__a__echo")]))
    made = Kit(tmp_path, [call("mcp__a__echo", text="hi"), text("done")], tools=[Echo()],
               hooks={"mine": module(register_extensions=lambda register: register(probe))})
    run = await made.run("go")
    assert [t["name"] for t in run.requests[0]["tools"]] == ["Echo", "mcp__a__echo"]
    assert run.result_of("call_1")["content"] == "mcp__a__echo: hi"


async def test_a_deferred_tool_is_not_shown_until_it_is_loaded_and_then_stands_last(tmp_path: Path) -> None:
    probe = Probe(open=lambda s: s.toolbox.offer([Echo("Late"), Echo("Later")], deferred=True))
    made = Kit(tmp_path, [text("one"), text("two"), call("Later", text="x"), text("three")], tools=[Echo()],
               hooks={"mine": module(register_extensions=lambda register: register(probe))})
    run = await made.run("go")
    box = run.session.toolbox
    assert [t.name for t in box.load(["Late", "Nothing"])] == ["Late"] and list(box.deferred) == ["Later"]
    await run.session.submit("go on")
    shown = [[t["name"] for t in request["tools"]] for request in made.model.requests]
    assert shown == [["Echo"], ["Echo", "Late"]]
    await run.session.submit("call one that is still deferred")
    assert "Later: x" in str(made.model.requests[-1]["messages"])


async def test_a_tool_that_was_withdrawn_is_unknown_and_definitions_stay_the_same_object_otherwise(tmp_path: Path) -> None:
    probe = Probe(open=lambda s: s.toolbox.offer([Echo("mcp__a__x"), Echo("mcp__a__y")]))
    made = Kit(tmp_path, [text("one"), call("mcp__a__x"), text("two")], tools=[Echo()],
               hooks={"mine": module(register_extensions=lambda register: register(probe))})
    run = await made.run("go")
    box = run.session.toolbox
    before = box.definitions
    box.withdraw(["nothing"])
    assert box.definitions is before
    box.withdraw(["mcp__a__x"])
    assert [d["name"] for d in box.definitions] == ["Echo", "mcp__a__y"] and "mcp__a__x" not in box.by_name
    await run.session.submit("again")
    assert "unknown_tool" in str(made.model.requests[-1]["messages"])


async def test_a_second_tool_of_a_name_is_left_out_and_said(tmp_path: Path) -> None:
    made = Kit(tmp_path, [call("Echo", text="hi"), text("done")], tools=[Echo()], hooks={
        "mine": module(register_extensions=lambda register: register(Probe(open=lambda s: s.toolbox.offer([Echo()]))))})
    run = await made.run("go")
    assert len(run.requests[0]["tools"]) == 1 and any("second tool with the name Echo" in n for n in run.notices())


# -- room in the window --------------------------------------------------------------------------------------------------
TOO_LONG = ModelError("prompt is too long: 210000 tokens > 200000 maximum", kind="invalid_request_error", status=400)


class Room:
    """A compactor that makes room as often as it may."""

    name = "summary"

    def __init__(self, may: int = 1) -> None:
        self.may, self.asked, self.refused = may, 0, 0

    async def before_request(self, session: Session) -> None:
        self.asked += 1

    async def too_long(self, session: Session, error: ModelError) -> bool:
        self.refused += 1
        return self.refused <= self.may

    async def compact(self, session: Session, trigger: Any, instructions: str = "") -> str:
        return ""


@pytest.mark.parametrize(("turns", "may", "ended", "refused"), [
    ([Turn(fail=TOO_LONG), text("done")], 1, "completed", 1), ([Turn(fail=TOO_LONG)] * 2, 1, "api_error", 1),
    ([Turn(fail=TOO_LONG)], 0, "api_error", 1), ([text("done")], 1, "completed", 0)])
async def test_a_request_that_is_too_long_is_made_to_fit_once(tmp_path: Path, turns: list[Any], may: int, ended: str,
                                                              refused: int) -> None:
    room = Room(may)
    made = Kit(tmp_path, turns, hooks={"mine": module(register_compactors=lambda register: register(room))})
    run = await made.run("go")
    assert (run.result.terminal_reason, room.refused, room.asked) == (ended, refused, 1)


@pytest.mark.parametrize(("error", "expected"), [
    (TOO_LONG, True), (ModelError("x", kind="request_too_large", status=413), True),
    (ModelError("input length and `max_tokens` exceed context limit: 1", kind="invalid_request_error", status=400), True),
    (ModelError("tool names must be unique", kind="invalid_request_error", status=400), False),
    (ModelError("prompt is too long", kind="api_error", status=500), False)])
def test_which_refusals_are_about_length(error: ModelError, expected: bool) -> None:
    assert is_too_long(error) is expected


# -- requests beside the conversation ------------------------------------------------------------------------------------
def failing(status: int, kind: str = "api_error") -> Turn:
    return Turn(fail=ModelError("no", kind=kind, status=status))


@pytest.mark.parametrize(("turns", "tries", "sleeps"), [
    ([text("yes")], 1, 0), ([failing(500), text("yes")], 2, 1), ([failing(529), text("yes")], 3, None),
    ([failing(500)], 1, None), ([failing(400), text("yes")], 3, None), ([failing(500)] * 3, 3, None)])
async def test_a_side_request_is_tried_again_where_that_may_help(tmp_path: Path, turns: list[Any], tries: int,
                                                                 sleeps: int | None) -> None:
    clock = FakeClock()
    session = Kit(tmp_path, turns, clock=clock).open()
    info = session.model_info
    request = ModelRequest(model="", max_tokens=10**9, system=[], tools=[], history=History([("user", "a question")]))
    if sleeps is None:
        with pytest.raises(ModelError):
            await side_request(session, request, info, tries=tries)
        return
    response = await side_request(session, request, info, tries=tries)
    assert response.blocks == [text_block("yes")] and len(clock.sleeps) == sleeps
    assert list(session.spending.by_model) == [info.id] and session.spending.turn.output_tokens == 0
    assert not session.history.messages
