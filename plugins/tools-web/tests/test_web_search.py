"""WebSearch: the provider's server tool in a request of its own, other backends, limits."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from kernel_tools_web import plugin

from kernel import ModelError, SearchHit, Session, SessionStart
from kernel.testing import FakeClock, Kit, Run, ScriptedModel, Turn, call, module, text

pytestmark = pytest.mark.anyio


def asked(id: str = "srv_1", query: str = "q") -> dict[str, Any]:
    return {"type": "server_tool_use", "id": id, "name": "web_search", "input": {"query": query}}


def found(*hits: tuple[str, str], id: str = "srv_1") -> dict[str, Any]:
    return {"type": "web_search_tool_result", "tool_use_id": id, "content": [
        {"type": "web_search_result", "title": title, "url": url, "encrypted_content": "x" * 50, "page_age": None} for title,
        url in hits]}


def failed(code: str, id: str = "srv_1") -> dict[str, Any]:
    return {"type": "web_search_tool_result", "tool_use_id": id,
            "content": {"type": "web_search_tool_result_error", "error_code": code}}


def end(*blocks: dict[str, Any], reason: str = "end_turn", **more: Any) -> Turn:
    return Turn(blocks=list(blocks), stop_reason=reason, **more)


def kit(cwd: Path, *turns: Any, web: dict[str, Any] | None = None, hooks: dict[str, Any] | None = None, **more: Any) -> Kit:
    return Kit(cwd, turns, hooks={"tools-web": plugin, **(hooks or {})}, settings={"kernel": {"web": web or {}}}, **more)


def results(run: Run) -> list[Any]:
    return [r for m in run.outputs if (r := getattr(m, "tool_use_result", None)) is not None]


class Recorder(ScriptedModel):
    """Keeps the whole requests."""

    def __init__(self, turns: Any) -> None:
        super().__init__(turns)
        self.whole: list[Any] = []

    async def stream(self, request: Any) -> Any:
        self.whole.append(request)
        async for event in super().stream(request):
            yield event


async def test_titles_and_urls_come_back(tmp_path: Path) -> None:
    model = Recorder([call("WebSearch", query="python news"), end(
        text("I search."), asked(), found(("One\nof them", "https://a.test/"), ("Two", "https://b.test/")), text("Both are new."),
        usage={"input_tokens": 100, "output_tokens": 10}), text("done")])
    run = await kit(tmp_path, model=model).run("go")
    (result,) = results(run)
    assert result["results"] == ["I search.", {"tool_use_id": "srv_1", "content": [
        {"title": "One\nof them", "url": "https://a.test/"}, {"title": "Two", "url": "https://b.test/"}]}, "Both are new."]
    assert result["query"] == "python news" and result["searchCount"] == 1 and result["durationSeconds"] >= 0
    content = run.result_of("call_1")["content"]
    assert "- One of them: https://a.test/\n- Two: https://b.test/" in content and "never instructions" in content
    assert "encrypted" not in content
    side = model.whole[1]
    assert side.tools == [{"type": "web_search_20250305", "name": "web_search", "max_uses": 8}]
    assert len(side.history) == 1 and side.thinking is None and side.max_tokens == 4096
    assert run.result.model_usage[run.session.model_info.id]["inputTokens"] == 120
    assert run.result.usage.input_tokens == 20


@pytest.mark.parametrize("field", ["allowed_domains", "blocked_domains"])
async def test_domains_are_passed_on(tmp_path: Path, field: str) -> None:
    model = Recorder([call("WebSearch", None, query="qq", **{field: ["a.test"]}), end(text("x")), text("done")])
    await kit(tmp_path, model=model).run("go")
    assert model.whole[1].tools[0][field] == ["a.test"]


async def test_a_pause_is_continued_where_it_was(tmp_path: Path) -> None:
    run = await kit(tmp_path, call("WebSearch", query="qq"), end(asked(), found(("A", "https://a.test/")), reason="pause_turn"),
                    end(asked("srv_2"), found(("B", "https://b.test/"), id="srv_2")), text("done")).run("go")
    assert [r["content"][0]["title"] for r in results(run)[0]["results"]] == ["A", "B"] and results(run)[0]["searchCount"] == 2
    assert [m["role"] for m in run.requests[2]["messages"]] == ["user", "assistant"]


async def test_pauses_without_end_are_left(tmp_path: Path) -> None:
    pauses = [end(asked(f"srv_{n}"), found(("A", "https://a.test/"), id=f"srv_{n}"), reason="pause_turn") for n in range(20)]
    run = await kit(tmp_path, call("WebSearch", query="qq"), *pauses).run("go")
    assert results(run)[0]["searchCount"] == 5


@pytest.mark.parametrize(("answer", "error", "words"), [
    (end(asked(), failed("max_uses_exceeded"), asked("srv_2"), found(("A", "u"), id="srv_2")), False, "max_uses_exceeded"),
    (end(asked(), failed("too_many_requests")), True, "too_many_requests"),
    (end(asked(), failed("unavailable")), True, "unavailable"),
    (end(asked(), {"type": "web_search_tool_result", "tool_use_id": "srv_1", "content": None}), True, "unknown"),
    (end(asked(), found()), False, "(no results)"), (end(text("I know nothing of it.")), False, "I know nothing of it."),
    (end({"type": "web_search_tool_result", "content": [5, {"title": None}]}), False, "- :"),
])
async def test_searches_that_fail_or_find_nothing(tmp_path: Path, answer: Turn, error: bool, words: str) -> None:
    run = await kit(tmp_path, call("WebSearch", query="qq"), answer, text("done")).run("go")
    result = run.result_of("call_1")
    assert result.get("is_error", False) is error and words in result["content"] and run.result.result == "done"


async def test_a_request_that_fails_is_an_error_of_the_call(tmp_path: Path) -> None:
    turns = [Turn(fail=ModelError("secret words", kind="rate_limit_error", status=429)) for _ in range(3)]
    run = await kit(tmp_path, call("WebSearch", query="qq"), *turns, text("done"), clock=FakeClock()).run("go")
    result = run.result_of("call_1")
    assert result["is_error"] and "rate_limit_error" in result["content"] and "secret" not in result["content"]


@pytest.mark.parametrize("input", [
    {"query": "q"}, {"query": "  \n "}, {}, {"query": "qq", "allowed_domains": ["a"], "blocked_domains": ["b"]},
    {"query": "qq", "allowed_domains": "a b"}, {"query": "qq", "blocked_domains": [""]},
])
async def test_bad_input(tmp_path: Path, input: dict[str, Any]) -> None:
    it = kit(tmp_path, call("WebSearch", None, **input), text("done"))
    assert "invalid_arguments" in (await it.run("go")).result_of("call_1")["content"] and it.policy.calls == []


# -- the limit of a session ---------------------------------------------------------------------------------------------
async def test_beyond_the_limit_nothing_is_searched_and_the_result_says_so(tmp_path: Path,
                                                                           monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CLAUDE_CODE_MAX_WEB_SEARCHES_PER_SESSION", "1")
    it = kit(tmp_path, call("WebSearch", query="qq"), end(asked(), found(("A", "u"))), call("WebSearch", "second", query="rr"),
             text("one"),
             call("WebSearch", query="ss"), end(asked(), found(("B", "u"))), text("two"))
    session = it.open()
    run = await it.run("go", session)
    over = run.result_of("second")
    assert "is_error" not in over and "CLAUDE_CODE_MAX_WEB_SEARCHES_PER_SESSION" in over["content"]
    assert results(run)[1]["searchCount"] == 0
    await session.fire(session.make(SessionStart, source="clear"))
    assert results(await it.run("go", session))[2]["results"][0]["content"][0]["title"] == "B"


# -- who searches ---------------------------------------------------------------------------------------------------------
@pytest.mark.parametrize(("provider", "setting", "offered"), [
    ("anthropic", None, True), ("anthropic", "provider", True), ("anthropic", False, False), ("anthropic", "", False),
    ("anthropic", 5, True), ("anthropic", {}, True),
    ("other", None, False), ("other", "provider", False), ("other", {}, False), ("other", "mine", True),
    ("anthropic", "mine", True), ("other", {"url": "http://x.test"}, True), ("other", {"name": "mine"}, True),
])
async def test_where_it_is_offered(tmp_path: Path, provider: str, setting: Any, offered: bool) -> None:
    model = ScriptedModel()
    model.name = provider
    it = Kit(tmp_path, hooks={"tools-web": plugin}, model=model, settings={"kernel": {
        "provider": provider, **({} if setting is None else {"search": setting})}})
    session = it.open()
    await session.start()
    assert ("WebSearch" in session.toolbox.by_name) is offered and "WebFetch" in session.toolbox.by_name


class Mine:
    name = "mine"

    def __init__(self, answer: Any) -> None:
        self.answer = answer
        self.seen: list[Any] = []

    async def search(self, session: Session, query: str, *, allowed_domains: list[str], blocked_domains: list[str],
                     limit: int) -> list[SearchHit]:
        self.seen.append((query, allowed_domains, blocked_domains, limit))
        if isinstance(self.answer, Exception):
            raise self.answer
        return list(self.answer)


def searching(cwd: Path, setting: Any, *turns: Any, backend: Mine | None = None) -> Kit:
    hooks = {"mine": module(register_search_backends=lambda register: register(backend))} if backend else {}
    return Kit(cwd, turns, hooks={"tools-web": plugin, **hooks}, settings={"kernel": {"search": setting}})


async def test_a_backend_of_another_plugin_searches(tmp_path: Path) -> None:
    mine = Mine([SearchHit("A", "https://a.test/"), SearchHit("", "https://b.test/")])
    run = await searching(tmp_path, "mine", call("WebSearch", query="qq", blocked_domains=["x.test"]), text("done"),
                          backend=mine).run("go")
    assert mine.seen == [("qq", [], ["x.test"], 20)] and len(run.requests) == 2
    assert results(run)[0]["results"] == [{"tool_use_id": "search_1", "content": [
        {"title": "A", "url": "https://a.test/"}, {"title": "https://b.test/", "url": "https://b.test/"}]}]


async def test_a_backend_that_is_not_there_is_named_with_the_setting(tmp_path: Path) -> None:
    run = await searching(tmp_path, "mine", call("WebSearch", query="qq"), text("done")).run("go")
    result = run.result_of("call_1")
    assert result["is_error"] and "'mine'" in result["content"] and "kernel.search" in result["content"]


async def test_a_backend_that_breaks_is_an_error_of_the_call(tmp_path: Path) -> None:
    run = await searching(tmp_path, "mine", call("WebSearch", query="qq"), text("done"),
                          backend=Mine(RuntimeError("no network"))).run("go")
    assert run.result_of("call_1")["is_error"] and run.result.result == "done"


async def test_classes_and_schema(tmp_path: Path) -> None:
    from jsonschema.validators import Draft202012Validator

    session = kit(tmp_path).open()
    await session.start()
    tool = session.toolbox.by_name["WebSearch"]
    assert (tool.permission, tool.is_read_only({}), tool.is_concurrency_safe({})) == ("ask", True, True)
    assert "# WebSearch\n" in session.system[0]["text"]
    assert tool.output_schema
    Draft202012Validator(tool.output_schema).validate({"query": "q", "durationSeconds": 0.5, "searchCount": 1, "results": [
        "text", {"tool_use_id": "x", "content": [{"title": "t", "url": "u"}]}]})
