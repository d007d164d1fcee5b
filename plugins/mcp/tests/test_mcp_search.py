"""Tool search: what stays away, what is told of it, what is loaded and stays."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import anyio
import pytest

from kernel.testing import Kit, call, text

if TYPE_CHECKING:
    from conftest import Bench


def search(bench: Bench, *turns: Any, args: tuple[str, ...] = (), **more: Any) -> Kit:
    return bench.kit(*turns, args=args, installed=("tools-user",), **more)


def names(request: dict[str, Any]) -> list[str]:
    return [t["name"] for t in request["tools"] if t["name"].startswith("mcp__")]


def test_deferred_tools_are_names_until_they_are_searched_for(bench: Bench, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ENABLE_TOOL_SEARCH", "true")
    done = bench.run(
        search(
            bench,
            call("mcp__good__echo", "c0", text="x"),
            call("ToolSearch", "c1", query="select:mcp__good__echo"),
            call("mcp__good__echo", "c2", text="x"),
            text("done"),
        )
    )
    assert names(done.requests[0]) == ["mcp__good__always"]
    assert "mcp__good__slow" in json.dumps(done.requests[0]["messages"])
    early = done.result_of("c0")
    assert early["is_error"] is True and "ToolSearch" in early["content"] and "select:mcp__good__echo" in early["content"]
    assert "Gives the text back." in done.result_of("c1")["content"]
    assert names(done.requests[2]) == ["mcp__good__always", "mcp__good__echo"] and done.result_of("c2")["content"] == "x"
    assert done.requests[0]["tools"] == done.requests[2]["tools"][:-1]  # the cached beginning stays


@pytest.mark.parametrize(
    ("value", "count", "deferred"),
    [
        ("auto:100", 10, False),
        ("auto:1", 1000, True),
        ("false", 1000, False),
        ("auto:0", 0, True),
    ],
)
def test_the_share_of_the_window_decides(
    bench: Bench, monkeypatch: pytest.MonkeyPatch, value: str, count: int, deferred: bool
) -> None:
    monkeypatch.setenv("ENABLE_TOOL_SEARCH", value)
    done = bench.run(search(bench, text("done"), args=("--tools", str(count))))
    assert (len(names(done.requests[0])) == 1) is deferred


def test_a_thousand_deferred_tools_cost_their_names(bench: Bench, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ENABLE_TOOL_SEARCH", "true")
    few = bench.run(search(bench, text("done"), args=("--tools", "0")))
    many = bench.run(
        search(bench, call("ToolSearch", "c1", query="apples number 997"), text("done"), args=("--tools", "1000"))
    )
    assert few.requests[0]["tools"] == many.requests[0]["tools"]
    grown = len(json.dumps(many.requests[0]["messages"])) - len(json.dumps(few.requests[0]["messages"]))
    assert grown < 1000 * (len("mcp__good__extra_999") + 6)
    assert "mcp__good__extra_997" in many.result_of("c1")["content"].splitlines()[0]


def test_a_search_hint_is_searched(bench: Bench, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ENABLE_TOOL_SEARCH", "true")
    done = bench.run(search(bench, call("ToolSearch", "c1", query="zebra"), text("done")))
    assert '"mcp__good__hinted"' in done.result_of("c1")["content"]


def test_nothing_is_deferred_without_the_tool_that_loads_it(bench: Bench, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ENABLE_TOOL_SEARCH", "true")
    assert len(names(bench.run(bench.kit(text("done"))).requests[0])) > 20


def test_an_always_loaded_server_is_never_deferred(bench: Bench, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ENABLE_TOOL_SEARCH", "true")
    assert len(names(bench.run(search(bench, text("done"), server={"alwaysLoad": True})).requests[0])) > 20


def test_loaded_tools_and_names_survive_a_compaction(bench: Bench, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ENABLE_TOOL_SEARCH", "true")

    async def all_of_it() -> None:
        made = search(bench, call("ToolSearch", "c1", query="select:mcp__good__echo"), text("one"))
        session = made.open()
        await made.run("go", session)
        told: list[Any] = []
        for extension in session.harness.extensions:
            told += await extension.after_compaction(session)
        assert "mcp__good__slow" in json.dumps(told) and "Use echo for echoes." in json.dumps(told)
        assert "mcp__good__echo\n" not in told[-1]["text"]
        assert any(t["name"] == "mcp__good__echo" for t in session.request().tools)
        await session.close()

    anyio.run(all_of_it)


def test_a_resumed_conversation_has_the_tools_that_it_used(bench: Bench, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ENABLE_TOOL_SEARCH", "true")

    def with_history(session: Any) -> None:
        session.transcript.restored.messages.extend(
            [
                ("user", [text("go")]),
                ("assistant", [call("mcp__good__echo", "old", text="x")]),
                ("user", [{"type": "tool_result", "tool_use_id": "old", "content": "x"}]),
                ("assistant", [text("done")]),
            ]
        )

    done = bench.run(search(bench, text("done")), before=with_history)
    assert "mcp__good__echo" in names(done.requests[0])
