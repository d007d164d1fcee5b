"""A script in place of a model, played through the real loop."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import anyio
import pytest
from hypothesis import given, settings, strategies as st
from kernel_model_script import play
from kernel_model_script.provider import ScriptModel

from kernel import (
    AssistantMessage,
    History,
    ModelError,
    ModelRequest,
    StreamError,
    StreamEvent,
    SystemMessage,
    Tool,
    ToolContext,
    ToolResult,
    UsageError,
)
from kernel.testing import FakeClock, Kit


class Reader(Tool):
    """Answers with the file's text."""

    name = "Read"
    description = "reads"
    input_schema = {"type": "object", "properties": {"file_path": {"type": "string"}}, "required": ["file_path"]}

    async def call(self, input: dict[str, Any], context: ToolContext) -> ToolResult:
        return ToolResult(content=Path(input["file_path"]).read_text().strip())


def write(folder: Path, script: Any, name: str = "talk.yaml") -> Path:
    path = folder / name
    path.write_text(script if isinstance(script, str) else json.dumps(script))
    return path


Streamed = tuple[list[StreamEvent], ModelError | None]


def ask(model: ScriptModel, id: str, prompt: str = "hello", history: History | None = None) -> Streamed:
    request = ModelRequest(model=id, max_tokens=100, system=[], tools=[], history=history or History([("user", prompt)]))

    async def main() -> Streamed:
        events = []
        try:
            async for event in model.stream(request):
                events.append(event)
        except ModelError as error:
            return events, error
        return events, None
    return anyio.run(main)


def opened(path: Path) -> tuple[ScriptModel, str]:
    model = ScriptModel()
    info = model.resolve(str(path))
    assert info is not None
    return model, info.id


def text_of(events: list[StreamEvent]) -> str:
    return "".join(e["delta"].get("text", "") for e in events if e["type"] == "content_block_delta")


# -- through the loop ----------------------------------------------------------------------------------------------------------
def test_the_readme_s_example_plays_as_it_says(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    readme = (Path(__file__).parent.parent / "README.md").read_text()
    example = re.search(r"```yaml\n(.*?)```", readme, re.DOTALL)
    assert example is not None
    monkeypatch.chdir(tmp_path)
    (tmp_path / "greeting.txt").write_text("Hallo Welt\n")
    monkeypatch.setenv("KERNEL_SCRIPT", str(write(tmp_path, example[1])))
    monkeypatch.setenv("KERNEL_PROVIDER", "script")
    kit = Kit(tmp_path, model=ScriptModel(), tools=[Reader()], clock=FakeClock())

    async def main() -> tuple[Any, Any, Any]:
        session = kit.open()
        return (await session.submit("Fix the greeting."), await session.submit("Many thanks!"), await session.submit("And?"))
    first, second, third = anyio.run(main)
    assert first.result == "The file says: Hallo Welt\nNothing to fix.\n"
    assert second.result == "You are welcome."
    assert third.result == "The script fix-the-greeting has ended after 4 turns."
    said = [m for m in kit.outputs if isinstance(m, AssistantMessage)]
    assert [m.message["content"][0]["type"] for m in said[:3]] == ["thinking", "text", "tool_use"]
    assert {m.message["model"] for m in said} == {"script:fix-the-greeting"}
    retries = [m for m in kit.outputs if isinstance(m, SystemMessage) and m.subtype == "api_retry"]
    assert len(retries) == 2


def test_parallel_calls_have_ids_of_their_own_also_when_a_turn_repeats(tmp_path: Path) -> None:
    (tmp_path / "a").write_text("A")
    calls = [{"tool": "Read", "input": {"file_path": str(tmp_path / "a")}}] * 3
    path = write(tmp_path, {"turns": [{"when": {"contains": "go"}, "calls": calls}, {"text": "1"},
                                      {"when": {"contains": "again"}, "calls": calls}, {"text": "{{last_result}}"}]})
    model, id = opened(path)
    kit = Kit(tmp_path, model=model, tools=[Reader()])
    kit.harness.provider_of = lambda name: (model, model.resolve(id))  # type: ignore[method-assign]

    async def main() -> list[Any]:
        session = kit.open()
        await session.submit("go")
        result = await session.submit("again")
        assert result.result == "A"
        return session.history.messages
    ids = [b["id"] for _, blocks in anyio.run(main) for b in blocks if b["type"] == "tool_use"]
    assert len(ids) == len(set(ids)) == 6


# -- choosing ------------------------------------------------------------------------------------------------------------------
@pytest.mark.parametrize(("prompts", "answers"), [
    (["a", "b", "c"], ["one", "two", "ended"]),
    (["x!", "a", "x?", "b"], ["for x", "one", "two", "ended"]),
    (["a", "b", "x"], ["one", "two", "for x"]),
    (["r", "r", "a", "r"], ["again", "again", "one", "again"]),
])
def test_a_guarded_turn_goes_first_the_others_keep_their_order(prompts: list[str], answers: list[str], tmp_path: Path) -> None:
    model, id = opened(write(tmp_path, {"turns": [
        {"text": "one"}, {"when": {"contains": "x"}, "text": "for x"}, {"text": "two"},
        {"when": {"contains": "r"}, "text": "again", "repeat": True}]}))
    got = [text_of(ask(model, id, prompt)[0]) for prompt in prompts]
    assert ["ended" if "has no turn for this" in g else g for g in got] == answers


def test_a_conversation_is_told_by_its_first_prompt(tmp_path: Path) -> None:
    model, id = opened(write(tmp_path, {"turns": [
        {"text": "main"}, {"when": {"first_contains": "count", "contains": "files"}, "text": "agent"}]}))
    agent = History([("user", "count things"), ("assistant", "yes"), ("user", "files")])
    assert text_of(ask(model, id, "go")[0]) == "main"
    assert text_of(ask(model, id, history=agent)[0]) == "agent"
    assert "has ended" in text_of(ask(model, id, history=agent)[0])


def test_what_the_host_added_is_not_what_the_person_said() -> None:
    history = History([("user", [{"type": "text", "text": "<system-reminder>\nsecret\n</system-reminder>"},
                                 {"type": "text", "text": "hello"}]),
                       ("assistant", [{"type": "tool_use", "id": "1", "name": "x", "input": {}}]),
                       ("user", [{"type": "tool_result", "tool_use_id": "1", "content": [{"type": "text", "text": "R"}]},
                                 {"type": "text", "text": "<system-reminder>\nmore\n</system-reminder>"}])])
    assert (play.last_prompt(history), play.first_prompt(history), play.last_result(history)) == ("hello", "hello", "R")
    assert play.last_result(History([("user", "x")])) == ""


# -- what is streamed -----------------------------------------------------------------------------------------------------------
def test_the_stream_has_the_order_of_a_real_one(tmp_path: Path) -> None:
    model, id = opened(write(tmp_path, {"name": "n", "turns": [{
        "thinking": "let me see", "signature": "sig", "text": "one two three four",
        "calls": [{"tool": "Read", "input": {"file_path": "x" * 60}, "id": "t1"},
                  {"tool": "Read", "raw_input": '{"a', "id": "t2"}],
        "usage": {"input_tokens": 7, "output_tokens": 9, "cache_read_input_tokens": 3}, "stop_reason": "max_tokens"}]}))
    events, error = ask(model, id)
    assert error is None
    shape = [f"{e['type']} {e.get('index', '')}".strip() for e in events]
    assert shape[0] == "message_start" and shape[-2:] == ["message_delta", "message_stop"]
    for index in range(4):
        mine = [s.split()[0] for s in shape if s.endswith(f" {index}")]
        assert mine[0] == "content_block_start" and mine[-1] == "content_block_stop"
        assert set(mine[1:-1]) == {"content_block_delta"}
    texts = [e["delta"]["text"] for e in events if e.get("delta", {}).get("type") == "text_delta"]
    assert len(texts) > 1 and "".join(texts) == "one two three four"
    raw = ["".join(e["delta"]["partial_json"] for e in events if e.get("index") == n and "delta" in e) for n in (2, 3)]
    assert json.loads(raw[0]) == {"file_path": "x" * 60} and raw[1] == '{"a'
    assert events[0]["message"]["usage"]["input_tokens"] == 7 and events[0]["message"]["model"] == id == "script:n"
    assert events[-2]["delta"]["stop_reason"] == "max_tokens" and events[-2]["usage"] == {"output_tokens": 9}


@given(st.text())
@settings(deadline=None)
def test_pieces_are_the_text(text: str) -> None:
    assert "".join(play.pieces(text)) == text


def test_an_empty_answer_and_blocks_of_any_type(tmp_path: Path) -> None:
    found = {"type": "web_search_tool_result", "tool_use_id": "s", "content": []}
    model, id = opened(write(tmp_path, {"turns": [{"blocks": []}, {"blocks": [
        {"type": "server_tool_use", "id": "s", "name": "web_search", "input": {"query": "{{last_prompt}}"}}, found]}]}))
    assert [e["type"] for e in ask(model, id)[0]] == ["message_start", "message_delta", "message_stop"]
    events, _ = ask(model, id, "cats")
    assert '"query": "cats"' in "".join(e["delta"].get("partial_json", "") for e in events if e["type"] == "content_block_delta")
    assert {"type": "content_block_start", "index": 1, "content_block": found} in events


def test_templates_reach_into_inputs(tmp_path: Path) -> None:
    history = History([("user", "q"), ("assistant", [{"type": "tool_use", "id": "1", "name": "x", "input": {}}]),
                       ("user", [{"type": "tool_result", "tool_use_id": "1", "content": "a.txt"}])])
    wanted = {"tool": "Read", "input": {"deep": [{"path": "/{{ last_result }}"}]}}
    model, id = opened(write(tmp_path, {"turns": [{"calls": [wanted]}]}))
    events, _ = ask(model, id, history=history)
    raw = "".join(e["delta"]["partial_json"] for e in events if e["type"] == "content_block_delta")
    assert json.loads(raw) == {"deep": [{"path": "/a.txt"}]}


# -- failures --------------------------------------------------------------------------------------------------------------------
@pytest.mark.parametrize(("fail", "expected"), [
    ({"status": 529, "retry_after": 2}, ("overloaded_error", 529, 2.0, None)),
    ({"status": 500}, ("api_error", 500, None, None)),
    ({"status": 400, "kind": "special", "message": "m"}, ("special", 400, None, None)),
    ({}, ("connection_error", None, None, None)),
    ({"kind": "timeout_error", "should_retry": False}, ("timeout_error", None, None, False)),
])
def test_a_failure_is_raised_before_any_event(fail: dict[str, Any], expected: tuple[Any, ...], tmp_path: Path) -> None:
    model, id = opened(write(tmp_path, {"turns": [{"fail": fail}, {"text": "ok"}]}))
    events, error = ask(model, id)
    assert events == [] and type(error) is ModelError
    assert (error.kind, error.status, error.retry_after, error.should_retry) == expected
    assert text_of(ask(model, id)[0]) == "ok"


@pytest.mark.parametrize("after", [0, 1, 3, 99])
def test_a_stream_is_cut_after_so_many_events(after: int, tmp_path: Path) -> None:
    model, id = opened(write(tmp_path, {"turns": [{"text": "one two three", "cut_after": after}]}))
    events, error = ask(model, id)
    if after == 99:
        assert error is None and events[-1]["type"] == "message_stop"
    else:
        assert len(events) == after and error is not None and error.kind == "connection_error"
        assert isinstance(error, StreamError) is (after > 0)


def test_a_failure_behind_text_breaks_the_stream(tmp_path: Path) -> None:
    model, id = opened(write(tmp_path, {"turns": [{"text": "x", "fail": {"kind": "overloaded_error"}}]}))
    events, error = ask(model, id)
    assert text_of(events) == "x" and type(error) is StreamError and error.kind == "overloaded_error"


# -- which script --------------------------------------------------------------------------------------------------------
def test_the_script_comes_from_the_model_s_name_the_variable_or_the_setting(
        tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    monkeypatch.delenv("CLAUDE_CONFIG_DIR", raising=False)
    monkeypatch.delenv("KERNEL_SCRIPT", raising=False)
    with pytest.raises(UsageError, match="no script to play"):
        ScriptModel().resolve("sonnet")
    write(tmp_path, {"kernel": {"script": "scripts/set.yaml"}}, "settings.json")
    (tmp_path / ".claude").mkdir()
    (tmp_path / "settings.json").rename(tmp_path / ".claude" / "settings.json")
    (tmp_path / "scripts").mkdir()
    write(tmp_path, {"turns": [{"text": "s"}]}, "scripts/set.yaml")
    write(tmp_path, {"turns": [{"text": "v"}], "model": {"context_window": 5000}}, "variable.yml")
    write(tmp_path, {"turns": [{"text": "n"}]}, "named.yaml")

    def id_of(name: str) -> str:
        info = ScriptModel().resolve(name)
        assert info is not None
        return info.id
    assert id_of("sonnet") == "script:set"
    monkeypatch.setenv("KERNEL_SCRIPT", "variable.yml")
    assert id_of("sonnet") == "script:variable"
    assert id_of("named.yaml") == "script:named"
    model = ScriptModel()
    info = model.resolve("anything")
    assert info is not None and info.context_window == 5000 and info.prices is None
    assert model.resolve("variable") == model.resolve("script:variable") == info


def test_two_scripts_of_one_name_stay_apart(tmp_path: Path) -> None:
    (tmp_path / "other").mkdir()
    model, first = opened(write(tmp_path, {"turns": [{"text": "1"}]}))
    second = model.resolve(str(write(tmp_path / "other", {"turns": [{"text": "2"}]})))
    assert second is not None and second.id != first == "script:talk"
    assert (text_of(ask(model, second.id)[0]), text_of(ask(model, first)[0])) == ("2", "1")
    again = model.resolve(str(tmp_path / "talk.yaml"))
    assert again is not None and again.id == first


def test_another_model_s_name_plays_the_same_script(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("KERNEL_SCRIPT", raising=False)
    model, id = opened(write(tmp_path, {"turns": [{"text": "1"}]}))
    info = model.resolve("haiku")
    assert info is not None and info.id == id
