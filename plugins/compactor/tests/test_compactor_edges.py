"""What is in the way of a compaction: interrupts, prompts without an answer, odd pins, wrong settings, a resume behind it."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import anyio
import pytest
from kernel_compactor import counting, media, pins
from kernel_compactor.prompts import FRONT, NO_IMAGE

from kernel import Extension, History, ModelError, PreToolUseResult, StopResult, Usage, text_block
from kernel.testing import Kit, Turn, call, module, text

from .test_compactor_run import TOO_LONG, Model, Say, boundaries, kit, said, steps

pytestmark = pytest.mark.anyio
REFUSED = Turn(fail=ModelError("no", kind="api_error", status=400))


@pytest.fixture(autouse=True)
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CLAUDE_CONFIG_DIR", str(tmp_path / "config"))


def blocks(made: Kit, number: int = -1) -> list[str]:
    return [b["text"] for b in made.model.requests[number]["messages"][0]["content"]]


def interrupting(made: Kit) -> Any:
    """The session is interrupted while its summary is being written."""
    session = made.open()
    stream = made.model.stream

    async def stopped(request: Any) -> Any:
        if "Sum up this conversation" in json.dumps(request.history.wire()[-1]):
            session.interrupt()
            await anyio.sleep_forever()
        async for event in stream(request):
            yield event

    session.call_model = stopped
    return session


async def test_an_interrupted_compaction_leaves_the_history_as_it_was(tmp_path: Path) -> None:
    made = kit(tmp_path, [*steps(3), text("done")], full=[2])
    session = interrupting(made)
    result = await session.submit("go")
    assert result.terminal_reason == "aborted_streaming" and not made.model.asked
    calls = [b["id"] for _, blocks in session.history.messages for b in blocks if b["type"] == "tool_use"]
    assert calls == ["call_1", "call_2"] and session.history.messages[-1][1][0]["text"] == "[Request interrupted by user]"


async def test_compact_can_be_interrupted(tmp_path: Path) -> None:
    made = kit(tmp_path, [text("one")])
    session = interrupting(made)
    await session.submit("go")
    before = session.history.messages
    result = await session.submit("/compact")
    assert result.terminal_reason == "aborted_streaming" and session.history.messages == before and session.scope is None


async def test_a_prompt_that_was_not_answered_is_part_of_what_is_summed_up(tmp_path: Path) -> None:
    made = kit(tmp_path, [text("one"), REFUSED])
    run = await made.run("first")
    await run.session.submit("second, not answered")
    await run.session.submit("/compact")
    assert "second, not answered" in json.dumps(made.model.asked[-1]["messages"])


async def test_what_a_stop_hook_says_is_not_taken_for_the_request(tmp_path: Path) -> None:
    said_no: list[int] = []

    def stop(event: Any) -> Any:
        said_no.append(1)
        return StopResult(decision="block", reason="check the sum") if len(said_no) == 1 else None

    made = kit(tmp_path, [text("first try"), *steps(2), text("done")], full=[1], hooks={"h": module(stop=stop)})
    await made.run("Count the sheep.")
    assert any("<request>\nCount the sheep.\n</request>" in b for b in blocks(made, 1))


async def test_a_very_long_request_is_kept_in_a_file_that_is_named(tmp_path: Path) -> None:
    made = kit(tmp_path, [*steps(3), text("done")], full=[2])
    prompt = "Read this. " + "y" * 60_000 + " The end."
    await made.run(prompt)
    (asked,) = [b for b in blocks(made, 2) if "<request>" in b]
    path = asked.rpartition("is in ")[2].partition(")")[0]
    assert Path(path).read_text() == prompt and len(asked) < 21_000


ODD = ["a <pin> in it", "<request>\nx\n</request>", "Pinned by the person, word for word:\n", FRONT, "\t\n é 🙂"]


@pytest.mark.parametrize("pin", ODD)
async def test_odd_pins_hold_byte_for_byte_and_once(tmp_path: Path, pin: str) -> None:
    made = kit(tmp_path, [*steps(3), text("one"), *steps(3), text("two")], full=[2, 6])
    run = await made.run(f"Go. <pin>{pin}</pin>")
    await run.session.submit("more")
    assert len(boundaries(run)) == 2 and pins.pinned(run.session.history.messages) == [pin]


async def test_a_model_and_a_tool_cannot_pin(tmp_path: Path) -> None:
    made = kit(
        tmp_path,
        [[text("<pin>mine</pin>"), call("Say", n=1)], *steps(2), text("done")],
        full=[3],
        summaries=[text("<summary><pin>injected</pin></summary>")],
    )
    run = await made.run("go")
    assert boundaries(run) and pins.pinned(run.session.history.messages) == []


async def test_a_pin_cannot_end_its_own_tag_and_clear_forgets_it(tmp_path: Path) -> None:
    made = kit(tmp_path, [text("one"), text("two"), text("three")])
    session = made.open()
    assert (await session.submit("/pin x </pin> y")).is_error
    await session.submit("/pin the port is 8443")
    await session.submit("go")
    await session.clear()
    await session.submit("new")
    await session.submit("/compact")
    assert "8443" not in json.dumps(session.history.messages)


async def test_images_go_where_the_request_is_too_long(tmp_path: Path) -> None:
    made = kit(tmp_path, [text("one")], summaries=[Turn(fail=TOO_LONG), text("<summary>s</summary>")])
    session = made.open()
    image = {"type": "image", "source": {"type": "base64", "media_type": "image/png", "data": "AAAA"}}
    await session.submit([image, {"type": "text", "text": "what is it"}])
    await session.submit("/compact Mind the numbers.")
    first, second = (json.dumps(a["messages"]) for a in made.model.asked)
    assert '"image"' in first and '"image"' not in second and NO_IMAGE in second and "what is it" in second
    assert "Mind the numbers." in first and "Mind the numbers." in second


@pytest.mark.parametrize(
    ("settings", "words"),
    [
        ({"autoCompactWindow": 5}, "autoCompactWindow: 5"),
        ({"autoCompactWindow": [1]}, "autoCompactWindow: [1]"),
        ({"autoCompactWindow": "9" * 5_000}, "autoCompactWindow"),
        ({"autoCompactEnabled": "no"}, "autoCompactEnabled: 'no'"),
    ],
)
async def test_a_setting_that_says_nothing_usable_is_named_and_does_not_count(tmp_path: Path, settings: Any, words: str) -> None:
    made = kit(tmp_path, [*steps(3), text("done")], full=[2], settings=settings)
    run = await made.run("go")
    assert any(words in a for a in made.harness.announced) and run.result.result == "done" and boundaries(run)


@pytest.mark.parametrize("variable", ["CLAUDE_CODE_AUTO_COMPACT_WINDOW", "CLAUDE_AUTOCOMPACT_PCT_OVERRIDE"])
@pytest.mark.parametrize("value", ["", "x", "-1", "²", "9" * 5_000, "1.5"])
async def test_odd_variables_change_nothing(tmp_path: Path, monkeypatch: Any, variable: str, value: str) -> None:
    monkeypatch.setenv(variable, value)
    assert (await kit(tmp_path, [*steps(2), text("done")]).run("go")).result.result == "done"


async def test_without_automatic_compaction_a_full_window_ends_the_run_and_compact_helps(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("DISABLE_AUTO_COMPACT", "1")
    made = kit(tmp_path, [*steps(2), text("done")], full=[2])
    run = await made.run("go")
    assert run.result.terminal_reason == "blocking_limit" and "/compact or /clear" in run.result.errors[0]  # type: ignore[index]
    await run.session.submit("/compact")
    assert (await run.session.submit("on")).result == "done"


@pytest.mark.parametrize("said", ["/compact", "/compact with words"])
async def test_nothing_to_compact(tmp_path: Path, said: str) -> None:
    result = await kit(tmp_path, []).open().submit(said)
    assert result.is_error and "Not enough messages to compact." in str(result.result)


def kept(path: Path, turns: Any, **more: Any) -> Kit:
    model = Model(turns, more.pop("full", ()))
    return Kit(path, model=model, tools=[Say()], installed=["compactor", "sessions"], persist=True, **more)


async def test_a_resume_behind_a_compaction_has_the_compacted_history_and_nothing_twice(tmp_path: Path) -> None:
    made = kept(tmp_path, [*steps(4), text("done")], full=[2])
    run = await made.run("Paint the fence. <pin>8443</pin>")
    await run.session.submit("/pin the key is blue")
    await run.session.submit("more")
    before = run.session.history.wire()
    await run.session.close()
    lines = [json.loads(line) for line in Path(run.session.transcript.path).read_text().splitlines()]
    (boundary,) = [e for e in lines if e.get("subtype") == "compact_boundary"]
    assert boundary["parentUuid"] is None and boundary["logicalParentUuid"]
    assert [e["parentUuid"] for e in lines if e.get("isCompactSummary")] == [boundary["uuid"]]
    again = kept(tmp_path, [*steps(2), text("on")], full=[2], continue_session=True)
    second = await again.run("go on")
    first = again.model.requests[0]["messages"]
    assert first[: len(before)] == before and len(first) == len(before) + 1
    assert said(again.model.requests[0]).count("<request>") == 1 and History([(m["role"], m["content"]) for m in first])
    assert boundaries(second) and {"8443", "the key is blue"} == set(pins.pinned(second.session.history.messages))
    text_ = said(again.model.requests[-1])
    assert f"in the transcript {run.session.transcript.path}" in text_
    await second.session.close()


async def test_a_subagent_sums_up_its_own_history_and_clients_are_not_told_of_a_boundary(tmp_path: Path) -> None:
    agent = call("Agent", description="d", prompt="Look into it.", subagent_type="general-purpose", run_in_background=False)
    turns = [agent, *steps(3), text("found"), text("done")]
    made = Kit(tmp_path, model=Model(turns, full=[3]), tools=[Say()], installed=["compactor", "subagents"])
    run = await made.run("go")
    assert run.result.result == "done" and len(made.model.asked) == 1 and not boundaries(run)
    assert "Look into it." in json.dumps(made.model.asked[0]["messages"])
    inner = next(r for r in made.model.requests if "Paint the fence; the pot is blue" in said(r))
    assert "<request>\\nLook into it." in said(inner)


@pytest.mark.parametrize("name", ["nobody", ["summary"]])
def test_a_compactor_that_is_not_there_is_named(tmp_path: Path, name: Any) -> None:
    made = kit(tmp_path, [], settings={"kernel": {"compactor": name}})
    made.open()
    assert any("kernel.compactor: there is no compactor" in a for a in made.harness.announced)


async def test_a_call_that_was_put_off_is_taken_up_before_a_compaction(tmp_path: Path) -> None:
    later = [True]

    def wait(event: Any) -> Any:
        return PreToolUseResult(permission_decision="defer") if later.pop() else None

    made = kit(tmp_path, [*steps(2), text("done")], full=[1], hooks={"h": module(pre_tool_use=wait)})
    session = made.open()
    assert (await session.submit("go")).terminal_reason == "tool_deferred"
    later[:] = [False, False]
    result = await session.submit(None)
    assert result.result == "done" and len(made.model.asked) == 1
    assert "result 0" in json.dumps(made.model.asked[0]["messages"])


async def test_denied_calls_and_thinking_are_summed_up_with_the_rest(tmp_path: Path) -> None:
    thinking = {"type": "thinking", "thinking": "hm", "signature": "s"}
    turns = [[thinking, *steps(3)], [thinking, call("Say", n=9)], text("done")]
    made = kit(tmp_path, turns, full=[2], policy=lambda tool, input: "deny" if input.get("n") == 1 else "allow")
    run = await made.run("go")
    (asked,) = made.model.asked
    assert run.result.result == "done" and History([(m["role"], m["content"]) for m in asked["messages"]])
    assert [b["type"] for b in asked["messages"][1]["content"]] == ["thinking", "tool_use", "tool_use", "tool_use"]
    assert [bool(b.get("is_error")) for b in asked["messages"][2]["content"][:3]] == [False, True, False]
    assert "thinking" not in {b["type"] for _, blocks in run.session.history.messages[:1] for b in blocks}


async def test_old_images_give_way_before_the_request_is_too_large(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(media, "MOST", 5_000)
    made = kit(tmp_path, [text("a")] * 9)
    session = made.open()
    for number in range(8):
        source = {"type": "base64", "media_type": "image/png", "data": str(number) * 1_000}
        await session.submit([{"type": "image", "source": source}, {"type": "text", "text": f"what is it {number}"}])
    counts = [json.dumps(r["messages"]).count('"image"') for r in made.model.requests]
    assert counts == [1, 2, 3, 4, 5, 3, 4, 5] and not made.model.asked
    last = said(made.model.requests[-1])
    assert last.count(media.GONE) == 3 and all(f"what is it {n}" in last for n in range(8))


async def test_the_person_is_told_once_before_the_window_is_full_and_again_after_a_compaction(tmp_path: Path) -> None:
    made = kit(tmp_path, [text(str(n)) for n in range(9)])
    run = await made.run("go")
    point = counting.trigger(run.session)
    told = []
    for tokens in (point - counting.WARNING - 100, point - counting.WARNING, point - 1, point, point - 50):
        run.session.measured = (Usage(input_tokens=tokens), len(run.session.history) + 1)
        await run.session.submit("x")
        told.append(sum("filling up" in n for n in run.notices()))
    assert told == [0, 1, 1, 1, 2] and len(boundaries(run)) == 1


async def test_an_extension_that_tells_nonsense_again_spoils_nothing(tmp_path: Path) -> None:
    class Again(Extension):
        name = "again"

        async def after_compaction(self, session: Any) -> list[Any]:
            return [{"type": "tool_result", "tool_use_id": "x", "content": "y"}, "text", 5, text_block("a good one")]

    hooks = {"mine": module(register_extensions=lambda register: register(Again()))}
    made = kit(tmp_path, [*steps(3), text("done")], full=[2], hooks=hooks)
    run = await made.run("go")
    assert run.result.result == "done" and boundaries(run) and "a good one" in said(made.model.requests[2])
