"""A server in a session: what the model sees of its tools, resources and prompts; limits and changes."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Any

import anyio
import pytest
from kernel_mcp.extension import STATE

from kernel.testing import call, text

if TYPE_CHECKING:
    from conftest import Bench


# -- results --------------------------------------------------------------------------------------------------------------
@pytest.mark.parametrize(
    ("name", "given", "piece", "is_error"),
    [
        ("echo", {"text": "hi", "count": 2}, "hihi", False),
        ("nothing", {}, "(no output)", False),
        ("structured", {}, '{"n": 1}', False),
        ("misfit", {}, "does not fit the tool's declared output schema", False),
        ("link", {}, "[Resource mem://note note: a note]", False),
        ("embedded", {}, "inside", False),
        ("blob", {}, "application/pdf content, saved to", False),
        ("audio", {}, "audio/wav content, saved to", False),
        ("bitmap", {}, "image/bmp content, saved to", False),
        ("bad_arguments", {}, "-32602: wrong arguments n is missing", True),
        ("refused", {}, "the disk is full", True),
    ],
)
def test_what_a_server_gives_is_what_the_model_sees(
    bench: Bench, name: str, given: dict[str, Any], piece: str, is_error: bool
) -> None:
    block = bench.seen(name, **given)
    assert piece in str(block["content"]) and bool(block.get("is_error")) is is_error


def test_structured_content_replaces_its_words_and_keeps_images(bench: Bench) -> None:
    words, image = bench.seen("both_kinds")["content"]
    assert words["text"] == '{"n": 2}' and image["source"]["media_type"] == "image/png"


def test_an_error_keeps_all_its_content(bench: Bench) -> None:
    block = bench.seen("refused")
    assert [b["type"] for b in block["content"]] == ["text", "image"] and block["is_error"] is True


def test_a_saved_file_holds_the_bytes_and_is_private(bench: Bench) -> None:
    path = Path(bench.seen("blob")["content"].rpartition("saved to ")[2].rstrip("]"))
    assert path.read_bytes().startswith(b"\x89PNG") and path.stat().st_mode & 0o777 == 0o600 and path.suffix == ".pdf"


@pytest.mark.parametrize(
    ("name", "size", "whole"), [("big", 100_000, True), ("big", 100_001, False), ("capped", 1000, True), ("capped", 1001, False)]
)
def test_a_long_result_goes_to_a_file(bench: Bench, name: str, size: int, whole: bool) -> None:
    """At the limit it is shown whole; one character more, and the model gets a beginning, a path and a hint."""
    content = bench.seen(name, size=size)["content"]
    if whole:
        assert content == "x" * size
        return
    assert len(content) < 3000 and "Grep" in content and f"{size:,} characters" in content
    assert Path(content.partition("is in ")[2].partition(". Read")[0]).read_text() == "x" * size


def test_the_limit_follows_its_variable(bench: Bench, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MAX_MCP_OUTPUT_TOKENS", "100")
    assert "the limit is 400" in bench.seen("lines", count=200)["content"]


def test_a_large_result_is_told_to_the_person(bench: Bench) -> None:
    done = bench.run(bench.kit(call("mcp__good__big", "c1", size=50_000), text("done")))
    assert any("about 12,500 tokens" in notice for notice in done.notices())


def test_wrong_arguments_do_not_leave_the_house(bench: Bench) -> None:
    assert "invalid_arguments" in bench.seen("big", size="many")["content"]


def test_a_definition_is_the_servers_own(bench: Bench) -> None:
    done = bench.run(bench.kit(text("done")))
    tools = {t["name"]: t for t in done.requests[0]["tools"]}
    assert tools["mcp__good__echo"] == {
        "name": "mcp__good__echo",
        "description": "Gives the text back.",
        "input_schema": {"type": "object", "properties": {"text": {"type": "string"}, "count": {"type": "integer"}}},
    }
    names = [n for n in tools if n.startswith("mcp__")]
    assert names == sorted(names)


# -- calls ----------------------------------------------------------------------------------------------------------------
def test_a_call_over_its_limit_is_cancelled_and_the_server_is_told(bench: Bench, tmp_path: Path) -> None:
    log = tmp_path / "log"
    done = bench.run(
        bench.kit(
            call("mcp__good__slow", "c1"),
            call("mcp__good__echo", "c2", text="alive"),
            text("done"),
            server={"timeout": 1000},
            args=("--log", str(log)),
        )
    )
    assert "gave no result within 1 seconds" in done.result_of("c1")["content"]
    assert done.result_of("c2")["content"] == "alive"
    assert "notifications/cancelled" in log.read_text()


def test_silence_ends_a_call_and_progress_does_not(bench: Bench, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CLAUDE_CODE_MCP_TOOL_IDLE_TIMEOUT", "1000")
    done = bench.run(bench.kit(call("mcp__good__slow", "c1"), call("mcp__good__progress", "c2"), text("done")))
    assert "was silent for 1 seconds" in done.result_of("c1")["content"]
    assert done.result_of("c2")["content"] == "done"  # it takes 1.6 seconds, and says so every 0.4


def test_progress_reaches_the_front_end(bench: Bench) -> None:
    done = bench.run(bench.kit(call("mcp__good__progress", "c1"), text("done")))
    told = [m.data for m in done.outputs if type(m).__name__ == "ToolProgress"]
    assert {"progress": 2.0, "total": 4.0, "message": "step 2"} in told


def test_an_interrupt_cancels_the_open_call(bench: Bench, tmp_path: Path) -> None:
    log = tmp_path / "log"
    made = bench.kit(call("mcp__good__slow", "c1"), text("done"), args=("--log", str(log)))

    async def all_of_it() -> None:
        session = made.open()
        async with anyio.create_task_group() as group:
            group.start_soon(made.run, "go", session)
            while not made.model.requests:  # noqa: ASYNC110
                await anyio.sleep(0.05)
            await anyio.sleep(0.3)
            session.interrupt()
        result = session.history.wire()[-1]["content"][0]
        assert result["is_error"] is True
        assert await session.plugin_state[STATE].call("good", "echo", {"text": "still here"}) == ("still here", False)
        await session.close()

    anyio.run(all_of_it)
    assert "notifications/cancelled" in log.read_text()


def test_reads_run_side_by_side_and_hints_never_lower_a_permission(bench: Bench) -> None:
    asked: list[str] = []

    def decide(name: str, input: dict[str, Any]) -> str:
        asked.append(name)
        return "deny"

    done = bench.run(bench.kit(call("mcp__good__echo", "c1", text="a"), text("done"), policy=decide))
    assert asked == ["mcp__good__echo"] and done.result_of("c1")["is_error"] is True


def test_hooks_call_tools_without_tool_events(bench: Bench) -> None:
    """The door of ``mcp_tool`` handlers: text and error flag; a server that is not there is an error."""

    async def all_of_it() -> None:
        session = bench.kit().open()
        await session.start()
        bridge = session.plugin_state[STATE]
        assert await bridge.call("good", "echo", {"text": "x"}) == ("x", False)
        assert await bridge.call("good", "refused", {}) == ("the disk is full", True)
        with pytest.raises(ConnectionError, match="'nobody' is not connected"):
            await bridge.call("nobody", "echo", {})
        await session.close()

    anyio.run(all_of_it)


def test_a_tool_that_needs_a_person_says_so(bench: Bench) -> None:
    async def all_of_it() -> str:
        session = bench.kit().open()
        await session.start()
        await session.close()
        return str(session.toolbox.by_name["mcp__good__user_only"].permission)

    assert anyio.run(all_of_it) == "user"


def test_the_environment_of_a_server(bench: Bench, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TOKEN_1", "tok")
    monkeypatch.setenv("OTEL_SECRET", "no")
    names = ["A", "B", "CLAUDECODE", "CLAUDE_PROJECT_DIR", "OTEL_SECRET", "TOKEN_1"]
    done = bench.run(
        bench.kit(
            [call("mcp__good__env", n, name=n) for n in names],
            text("done"),
            server={"env": {"A": "${TOKEN_1}", "B": "${NOT_SET:-fallback}"}},
        )
    )
    said = [done.result_of(n)["content"] for n in names]
    assert said == ["tok", "fallback", "1", str(tmp_path), "(not set)", "tok"]


# -- changes --------------------------------------------------------------------------------------------------------------
def test_a_tool_that_comes_later_is_in_the_next_request_behind_the_others(bench: Bench) -> None:
    async def all_of_it() -> None:
        made = bench.kit(call("mcp__good__grow", "c1"), text("one"), text("two"))
        session = made.open()
        await made.run("go", session)
        link = session.plugin_state[STATE].links["good"]
        with anyio.fail_after(10):
            while not any(t.name == "grown_0" for t in link.lists.tools):  # noqa: ASYNC110
                await anyio.sleep(0.05)
        await made.run("again", session)
        first, last = (made.model.requests[i]["tools"] for i in (0, -1))
        assert last[: len(first)] == first and [t["name"] for t in last[len(first) :]] == ["mcp__good__grown_0"]
        await session.close()

    anyio.run(all_of_it)


def test_a_server_switched_off_takes_its_tools_along(bench: Bench) -> None:
    async def all_of_it() -> None:
        made = bench.kit(text("one"), text("two"), text("three"))
        session = made.open()
        await made.run("go", session)
        bridge = session.plugin_state[STATE]
        await bridge.toggle("good", False)
        await made.run("again", session)
        assert not any(t["name"].startswith("mcp__") for t in made.model.requests[-1]["tools"])
        assert bridge.status() == [{"name": "good", "status": "disabled"}]
        await bridge.toggle("good", True)
        await made.run("again", session)
        assert any(t["name"] == "mcp__good__echo" for t in made.model.requests[-1]["tools"])
        await session.close()

    anyio.run(all_of_it)


# -- resources, prompts, instructions ---------------------------------------------------------------------------------------
def test_resources_are_listed_and_read(bench: Bench) -> None:
    done = bench.run(
        bench.kit(
            [
                call("ListMcpResourcesTool", "l"),
                call("ReadMcpResource", "r", server="good", uri="mem://note"),
                call("ReadMcpResourceDirTool", "d", server="good", uri="mem://folder"),
                call("ReadMcpResourceTool", "x", server="bad", uri="mem://note"),
                call("ReadMcpResourceTool", "y", server="good", uri="mem://none"),
            ],
            text("done"),
        )
    )
    listed = json.loads(done.result_of("l")["content"])
    assert {"uri": "mem://note", "name": "note", "mimeType": "text/plain", "description": "A note.", "server": "good"} in listed
    first, second = json.loads(done.result_of("r")["content"])["contents"]
    assert first["text"] == "a note from the server" and Path(second["blobSavedTo"]).read_bytes().startswith(b"\x89PNG")
    inside = json.loads(done.result_of("d")["content"])["resources"]
    assert [r["uri"] for r in inside] == ["mem://folder/a.txt", "mem://folder/deep"]
    assert inside[1]["mimeType"] == "inode/directory"
    assert "Servers with resources: good" in done.result_of("x")["content"] and done.result_of("y")["is_error"] is True


def test_a_mentioned_resource_is_added_to_the_prompt(bench: Bench) -> None:
    done = bench.run(bench.kit(text("done")), "Look at @good:mem://note, please; not at a@good.example or @other:mem://x")
    assert "a note from the server" in json.dumps(done.requests[0]["messages"])


@pytest.mark.parametrize(
    ("typed", "expected"),
    [
        ("/mcp__good__greet Ada", "Greet Ada ."),
        ('/mcp__good__greet "Ada L" very warmly', "Greet Ada L very warmly."),
        ("/mcp__good__greet it's me", "Greet it's me."),
    ],
)
def test_a_prompt_is_a_typed_command(bench: Bench, typed: str, expected: str) -> None:
    done = bench.run(bench.kit(text("done")), typed)
    assert any(b.get("text") == expected for b in done.requests[0]["messages"][-1]["content"])


def test_a_prompt_without_its_argument_is_refused_with_its_form(bench: Bench) -> None:
    done = bench.run(bench.kit(text("done")), "/mcp__good__greet")
    assert not done.requests and "missing: who" in str(done.result.result) and "<who> [how]" in str(done.result.result)


def test_the_person_sees_the_servers(bench: Bench) -> None:
    assert str(bench.run(bench.kit(text("done")), "/mcp").result.result).startswith("good (run): connected, ")


def test_instructions_are_told_once_and_cut(bench: Bench) -> None:
    async def all_of_it() -> None:
        made = bench.kit(text("one"), text("two"))
        session = made.open()
        await made.run("go", session)
        await made.run("again", session)
        await session.close()
        told = json.dumps(made.model.requests[-1]["messages"])
        assert told.count("Use echo for echoes.") == 1 and told.count("More words.") < 180

    anyio.run(all_of_it)
