"""ToolSearch: the forms of a query, the ranking, what is shown."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, strategies as st
from kernel_tools_user import plugin
from kernel_tools_user.tool_search import SCHEMA_CHARS, find

from kernel import Tool
from kernel.testing import Kit, call, text


def tool(name: str, description: str = "", *, defer: bool = True, aliases: tuple[str, ...] = (), fields: int = 1) -> Tool:
    kind = type(name, (Tool,), {
        "name": name, "description": description, "aliases": aliases, "defer": defer, "permission": "free",
        "input_schema": {"type": "object", "properties": {f"field{n}": {"type": "string"} for n in range(fields)}}})
    made: Tool = kind()
    return made


TOOLS = [
    tool("mcp__github__create_issue", "Opens an issue in a repository of GitHub."),
    tool("mcp__github__list_issues", "Lists the issues of a repository."),
    tool("mcp__slack__send_message", "Sends a message to a channel."),
    tool("NotebookEdit", "Changes a cell of a notebook.", defer=False),
    tool("ReadPages", "Reads pages.", aliases=("PageReader",)),
]


@pytest.mark.parametrize(("query", "names"), [
    ("select:NotebookEdit", ["NotebookEdit"]),
    ("select:mcp__slack__send_message, NotebookEdit", ["mcp__slack__send_message", "NotebookEdit"]),
    ("Select: notebookedit,notebookedit,nothing", ["NotebookEdit"]),
    ("select:PageReader", ["ReadPages"]),
    ("select:", []), ("select:Notebook", []),
    ("create issue", ["mcp__github__create_issue", "mcp__github__list_issues"]),
    ("issues", ["mcp__github__list_issues"]),
    ("+slack message", ["mcp__slack__send_message"]),
    ("+github message", ["mcp__github__create_issue", "mcp__github__list_issues"]),
    ("+github +issues", ["mcp__github__list_issues"]),
    ("+nothing issue", []),
    ("notebook", ["NotebookEdit"]), ("edit", ["NotebookEdit"]), ("cell", ["NotebookEdit"]), ("pages", ["ReadPages"]),
    ("mcp__slack__send_message", ["mcp__slack__send_message"]),
    ("please use `mcp__slack__send_message`.", ["mcp__slack__send_message"]),
    ("NotebookEdit issue", ["NotebookEdit", "mcp__github__create_issue", "mcp__github__list_issues"]),
    ("+", []), ("???", []), ("", []),
])
def test_forms_of_a_query(query: str, names: list[str]) -> None:
    found = [t.name for t in find(TOOLS, query, 5).tools]
    assert found[: len(names)] == names and (names or not found)
    if query.startswith(("select", "+", "mcp", "Select")):
        assert found == names


def test_a_name_that_does_not_exist_is_reported() -> None:
    found = find(TOOLS, "select:NotebookEdit,NoSuch", 5)
    assert [t.name for t in found.tools] == ["NotebookEdit"] and found.missing == ["NoSuch"]


@given(st.text(max_size=60), st.integers(1, 5))
def test_any_query_gives_different_tools_within_the_limit(query: str, limit: int) -> None:
    found = find(TOOLS, query, limit).tools
    assert len(found) <= limit and len({t.name for t in found}) == len(found)


@given(st.sampled_from(TOOLS), st.text(alphabet="abc +_.", max_size=20))
def test_a_full_name_in_the_query_comes_first(wanted: Tool, around: str) -> None:
    assert find(TOOLS, f"{around} {wanted.name}", 5).tools[0] is wanted


async def searched(cwd: Path, tools: list[Tool], **input: Any) -> tuple[str, Any]:
    run = await Kit(cwd, [call("ToolSearch", None, **input), text("done")], tools=tools, hooks={"tools-user": plugin}).run("go")
    shown = [m.tool_use_result for m in run.outputs if getattr(m, "tool_use_result", None) is not None]  # type: ignore[attr-defined]
    content: str = run.result_of("call_1")["content"]
    return content, shown[0]


@pytest.mark.anyio
async def test_the_schemas_are_shown_as_text(tmp_path: Path) -> None:
    content, result = await searched(tmp_path, TOOLS, query="select:NotebookEdit,NoSuch")
    line, missing = content.splitlines()
    assert json.loads(line) == TOOLS[3].definition() and "NoSuch" in missing
    assert result == {"matches": ["NotebookEdit"], "query": "select:NotebookEdit,NoSuch", "missing": ["NoSuch"]}


@pytest.mark.anyio
@pytest.mark.parametrize(("asked", "given_"), [(1, 1), (5, 5), (50, 5), (None, 5)])
async def test_at_most_five(tmp_path: Path, asked: int | None, given_: int) -> None:
    tools = [tool(f"Tool{n}", "same words") for n in range(8)]
    _, result = await searched(tmp_path, tools, query="words", **({"max_results": asked} if asked else {}))
    assert result["matches"] == [f"Tool{n}" for n in range(given_)]


@pytest.mark.anyio
async def test_deferred_tools_come_first_among_equals(tmp_path: Path) -> None:
    _, result = await searched(tmp_path, [tool("One", "same", defer=False), tool("Two", "same")], query="same")
    assert result["matches"] == ["Two", "One"]


@pytest.mark.anyio
async def test_schemas_over_the_budget_are_named_only(tmp_path: Path) -> None:
    tools = [tool(f"Tool{n}", "same words", fields=800) for n in range(3)]
    content, result = await searched(tmp_path, tools, query="words")
    assert len(content) <= SCHEMA_CHARS + 500 and len(result["matches"]) == 3
    assert "select:Tool2 shows it first" in content


@pytest.mark.anyio
async def test_nothing_found_is_no_failure(tmp_path: Path) -> None:
    content, result = await searched(tmp_path, TOOLS, query="zebra")
    assert "No tool matches" in content and result["matches"] == []


@pytest.mark.anyio
@pytest.mark.parametrize(("tools", "offered"), [(TOOLS, True), ([tool("A", defer=False)], False), ([], False)])
async def test_it_is_offered_where_a_tool_is_deferred(tmp_path: Path, tools: list[Tool], offered: bool) -> None:
    session = Kit(tmp_path, tools=tools, hooks={"tools-user": plugin}).open()
    await session.start()
    assert ("ToolSearch" in session.toolbox.by_name) is offered
