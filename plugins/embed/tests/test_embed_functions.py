"""Functions as tools and hooks: what the model is told of them, what they get, what they may return."""

from __future__ import annotations

import threading
from collections.abc import Callable
from dataclasses import dataclass
from datetime import date
from enum import Enum
from typing import Annotated, Any, Literal, TypedDict

import msgspec
import pytest
from kernel_embed import add_context, allow, deny, hook, tool
from kernel_embed.answers import answer
from kernel_embed.signatures import read_docstring

from kernel import (
    PermissionRequest,
    PostToolUse,
    PreToolUse,
    PreToolUseResult,
    Session,
    Stop,
    ToolContext,
    ToolError,
    ToolResult,
    UsageError,
)
from kernel.testing import call, event, text

Make = Callable[..., Any]
anyio_test = pytest.mark.anyio


class Colour(Enum):
    RED = "red"
    BLUE = "blue"


@dataclass
class Point:
    x: int
    y: int = 0


class Box(TypedDict):
    corners: list[Point]


class Query(msgspec.Struct):
    words: list[str]
    since: date | None = None


@tool(read_only=True)
def everything(path: str, limit: int = 10, *, mode: Literal["fast", "deep"] = "fast", colour: Colour = Colour.RED,
               where: Point | None = None, box: Box | None = None, query: Query | None = None,
               note: Annotated[str, "what for"] = "", context: ToolContext | None = None) -> str:
    """Does everything.

    In two paragraphs.

    Args:
        path: where to look,
            from the root
        limit (int): at most so many

    Returns:
        what it did
    """
    return f"{path} {limit} {mode} {colour} {where} {box} {query}"


def test_what_the_model_is_told() -> None:
    schema = everything.input_schema
    assert everything.name == "everything" and everything.description.startswith("Does everything.\n\nIn two paragraphs.")
    assert "Args" not in everything.description and "what it did" in everything.description
    given = schema["properties"]
    assert given["path"] == {"type": "string", "description": "where to look, from the root"} and schema["required"] == ["path"]
    assert given["limit"] == {"type": "integer", "description": "at most so many", "default": 10}
    assert given["mode"]["enum"] == ["deep", "fast"] and given["colour"]["default"] == "red"
    assert given["note"]["description"] == "what for"
    assert set(schema["$defs"]) >= {"Point", "Box", "Query"} and schema["additionalProperties"] is False
    assert everything.permission == "free" and everything.is_concurrency_safe({})


class Shop:
    def price(self, item: str) -> str:
        """Tells a price."""
        return f"{item}: 3"


def test_methods_are_tools_without_self() -> None:
    made = tool(Shop().price)
    assert list(made.input_schema["properties"]) == ["item"] and made("tea") == "tea: 3"


def test_it_stays_a_function() -> None:
    assert everything("a", mode="deep").startswith("a 10 deep") and everything.__name__ == "everything"


@anyio_test
async def test_arguments_come_in_the_types_of_the_function(scripted: Make) -> None:
    agent, model = scripted(
        call("everything", "c1", path="p", limit="3", colour="blue", where={"x": 1}, box={"corners": [{"x": 1, "y": 2}]},
             query={"words": ["a"], "since": "2026-01-02"}),
        call("everything", "c2", path="p", where={"x": "no"}), call("everything", "c3", path=1), text("done"), tools=[everything])
    async with agent:
        await agent.ask("go")
    results = {b["tool_use_id"]: b for m in model.requests[-1]["messages"] for b in m["content"] if b["type"] == "tool_result"}
    assert results["c1"]["content"] == ("p 3 fast Colour.BLUE Point(x=1, y=0) {'corners': [Point(x=1, y=2)]} "
                                        "Query(words=['a'], since=datetime.date(2026, 1, 2))")
    assert results["c2"]["is_error"] and results["c3"]["is_error"] and "path" in results["c3"]["content"]


@anyio_test
async def test_models_of_pydantic(scripted: Make) -> None:
    pydantic = pytest.importorskip("pydantic")

    class Inner(pydantic.BaseModel):  # type: ignore[name-defined,misc,unused-ignore]
        size: int = pydantic.Field(gt=0, description="in bytes")

    def measure(inner: Any, inners: Any) -> Any:
        """Measures."""
        assert isinstance(inner, Inner) and all(isinstance(i, Inner) for i in inners)
        return inner

    measure.__annotations__ = {"inner": Inner, "inners": list[Inner]}
    made = tool(read_only=True)(measure)
    assert made.input_schema["properties"]["inner"]["properties"]["size"]["description"] == "in bytes"
    agent, model = scripted(call("measure", "c1", inner={"size": 3}, inners=[{"size": 1}]),
                            call("measure", "c2", inner={"size": 0}, inners=[]), text("done"), tools=[made])
    async with agent:
        await agent.ask("go")
    results = {b["tool_use_id"]: b for m in model.requests[-1]["messages"] for b in m["content"] if b["type"] == "tool_result"}
    assert msgspec.json.decode(results["c1"]["content"]) == {"size": 3} and results["c2"]["is_error"]


def test_what_cannot_be_described_is_refused_with_the_parameter() -> None:
    def bare(path) -> str:  # type: ignore[no-untyped-def]
        """Bare."""

    def open_ended(*paths: str) -> str:
        """Open."""
        return ""

    def strange(thing: threading.Lock) -> str:
        """Strange."""
        return ""

    def silent(path: str) -> str:
        return path

    for function, said in ((bare, "parameter path: has no type"), (open_ended, "parameter paths: a model names"),
                           (strange, "parameter thing: the type"), (silent, "tool silent: has no description")):
        with pytest.raises(UsageError, match=said):
            tool(function)
    with pytest.raises(UsageError, match="does not fit"):
        tool(name="two words", description="x")(silent)


@anyio_test
async def test_what_a_tool_may_return_and_raise(scripted: Make, caplog: pytest.LogCaptureFixture) -> None:
    values: dict[str, Any] = {"text": "as it is", "none": None, "number": 3, "data": [Point(1, 2)], "lock": threading.Lock(),
                              "result": ToolResult(content="mine", status="partial")}

    @tool(read_only=True)
    def give(what: str) -> Any:
        """Gives."""
        if what == "expected":
            raise ToolError("not_found", "there is none; look elsewhere")
        return values[what]

    names = [*values, "expected", "missing"]
    agent, model = scripted([call("give", n, what=n) for n in names], text("done"), tools=[give])
    async with agent:
        await agent.ask("go")
    results = {b["tool_use_id"]: b for m in model.requests[-1]["messages"] for b in m["content"] if b["type"] == "tool_result"}
    said = {n: results[n]["content"] for n in names}
    assert said["text"] == "as it is" and said["none"] == "(no output)" and said["number"] == "3" and said["result"] == "mine"
    assert msgspec.json.decode(said["data"]) == [{"x": 1, "y": 2}]
    assert "neither text nor JSON" in said["lock"] and said["expected"] == "there is none; look elsewhere"
    assert "KeyError" in said["missing"] and results["missing"]["is_error"]
    assert [r.exc_info is not None for r in caplog.records if "give raised KeyError" in r.getMessage()] == [True]


@anyio_test
async def test_functions_run_in_threads_and_coroutines_in_the_loop(scripted: Make) -> None:
    seen: dict[str, int] = {}

    @tool(read_only=True)
    def plain(context: ToolContext) -> str:
        """Plain."""
        seen["plain"] = threading.get_ident()
        return context.call_id

    @tool(read_only=True)
    async def coroutine() -> str:
        """Async."""
        seen["coroutine"] = threading.get_ident()
        return ""

    agent, model = scripted([call("plain", "c1"), call("coroutine")], text("done"), tools=[plain, coroutine])
    async with agent:
        await agent.ask("go")
    assert seen["coroutine"] == threading.get_ident() != seen["plain"] and plain.input_schema["properties"] == {}
    assert "'content': 'c1'" in str(model.requests[1]["messages"][-1])


@anyio_test
async def test_two_tools_of_one_name_are_refused(scripted: Make) -> None:
    def make(name: str) -> Any:
        return tool(name=name, description="x")(lambda: "")

    agent, _ = scripted(tools=[make("same"), make("same")])
    with pytest.raises(UsageError, match="tool same: cannot be registered"):
        await agent.open()


@pytest.mark.parametrize(("doc", "text", "said"), [
    ("One.\n\n:param a: first\n  and more\n:param int b: second\n:returns: it", "One.", {"a": "first and more", "b": "second"}),
    ("One.\n\nArgs:\n    a: first: with colon\n    b (str, optional): second\n\nRaises:\n    X: no\n\nMore.", "One.\n\nMore.",
     {"a": "first: with colon", "b": "second"}),
    ("", "", {}), ("One: two.", "One: two.", {}),
])
def test_docstrings(doc: str, text: str, said: dict[str, str]) -> None:
    assert read_docstring(doc) == (text, said)


# -- hooks -----------------------------------------------------------------------------------------------------------------
@tool(read_only=True)
def look(at: str) -> str:
    """Looks."""
    return f"saw {at}"


@anyio_test
async def test_hooks_refuse_rewrite_and_add(scripted: Make) -> None:
    @hook(PreToolUse, matcher="look|other")
    def gate(event: PreToolUse) -> Any:
        return {"a": deny("not a"), "b": allow(input={"at": "c"}), "d": PreToolUseResult(additional_context="careful"),
                "e": [add_context("one"), add_context("two")]}.get(event.tool_input["at"])

    @hook("PostToolUse")
    async def after(event: PostToolUse, session: Session) -> Any:
        return add_context(f"{session.id == event.session_id} {event.tool_response}")

    @hook("PreToolUse", matcher="Bash")
    def elsewhere(event: Any) -> Any:
        raise AssertionError("its matcher covers nothing here")

    agent, model = scripted([call("look", n, at=n) for n in "abde"], text("done"), tools=[look], hooks=[gate, after, elsewhere])
    async with agent:
        await agent.ask("go")
    results = {b["tool_use_id"]: b["content"] for b in model.requests[1]["messages"][-1]["content"] if b["type"] == "tool_result"}
    assert "not a" in results["a"] and results["b"] == "saw c"
    told = str(model.requests[1]["messages"][-1])
    assert all(word in told for word in ("careful", "one", "two", "True saw c"))
    assert gate(event("PreToolUse", tool_name="look", tool_input={"at": "a"})) == deny("not a")


@anyio_test
async def test_a_gate_that_raises_or_answers_nonsense_refuses_and_is_named(scripted: Make) -> None:
    @hook("PreToolUse")
    def broken(event: Any) -> Any:
        if event.tool_input["at"] == "a":
            raise ValueError("out of order")
        return "yes"

    heard: list[str] = []
    agent, model = scripted([call("look", n, at=n) for n in "ab"], text("done"), tools=[look], hooks=[broken],
                            on_notice=lambda notice: heard.append(notice.text))
    async with agent:
        await agent.ask("go")
    results = [b["content"] for m in model.requests[1]["messages"] for b in m["content"] if b["type"] == "tool_result"]
    assert "saw" not in str(results) and "broken" in str(results)
    assert [t for t in heard if "broken" in t and "out of order" in t] and [t for t in heard if "returned str" in t]


@anyio_test
async def test_the_end_of_a_turn_can_be_refused(scripted: Make) -> None:
    @hook(Stop)
    def not_yet(event: Stop) -> Any:
        return None if event.stop_hook_active else deny("run the tests first")

    agent, model = scripted(text("done"), text("really done"), hooks=[not_yet])
    async with agent:
        assert (await agent.ask("go")).text.endswith("really done")
    assert "run the tests first" in str(model.requests[1]["messages"][-1])


@anyio_test
async def test_hooks_with_one_name_are_all_called(scripted: Make) -> None:
    called: list[int] = []

    def make(number: int) -> Any:
        @hook("UserPromptSubmit")
        def same(event: Any) -> None:
            called.append(number)
        return same

    agent, _ = scripted(text("done"), hooks=[make(1), make(2)])
    async with agent:
        await agent.ask("go")
    assert sorted(called) == [1, 2]


def test_hooks_that_mean_nothing_are_refused() -> None:
    with pytest.raises(UsageError, match="did you mean 'PreToolUse'"):
        hook("PreToolUze")
    for name, matcher, said in (("PreToolUse", "(", "no regular expression"), ("Stop", "x", "has nothing that a matcher"),
                                ("PreToolUse", " | ", "separators only")):
        with pytest.raises(UsageError, match=said):
            hook(name, matcher=matcher)(lambda event: None)
    with pytest.raises(UsageError, match="takes the event"):
        hook("Stop")(lambda: None)


@pytest.mark.parametrize(("given", "kind", "said"), [
    (deny("x", interrupt=True), PreToolUse, "permission question only"), (allow(), PostToolUse, "does not fit PostToolUse"),
    (deny("x"), PostToolUse, "nothing can be refused"), (add_context("x"), PermissionRequest, "does not fit"),
    (allow(remember=True), PreToolUse, "for on_permission"), (3, PreToolUse, "expected deny")])
def test_answers_that_do_not_fit_their_event(given: Any, kind: Any, said: str) -> None:
    with pytest.raises(TypeError, match=said):
        answer(event(kind.__name__), given)
