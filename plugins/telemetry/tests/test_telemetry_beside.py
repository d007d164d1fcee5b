"""What happens beside requests and calls: commands, skills, mentions, modes, servers, failed compactions; and ids on the wire."""

from __future__ import annotations

import json
import sys
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import anyio
import pytest
from kernel_telemetry import spans

from kernel import ModelError, PreCompactResult
from kernel.testing import Kit, Turn, call, installed, module, text


def play(kit: Kit, *steps: Any) -> None:
    """Prompts, or functions of the session, in one session."""
    async def go() -> None:
        session = kit.open()
        for step in steps:
            if callable(step):
                step(session)
            else:
                await session.submit(step)
        await session.close()

    anyio.run(go)


SKILL = "---\nname: {name}\ndescription: Reviews things.\n---\nReview it.\n"


@pytest.mark.skipif(not installed("skills"), reason="needs skills")
@pytest.mark.parametrize("details", [False, True])
def test_skills_and_typed_commands(tmp_path: Path, told: Any, monkeypatch: pytest.MonkeyPatch, details: bool) -> None:
    monkeypatch.setenv("OTEL_LOG_TOOL_DETAILS", "1" if details else "0")
    for name in ("review", "check"):
        folder = tmp_path / ".claude" / "skills" / name
        folder.mkdir(parents=True)
        (folder / "SKILL.md").write_text(SKILL.format(name=name))
    kit = Kit(tmp_path, [call("Skill", skill="check"), text("done")], installed=["telemetry", "skills"])
    play(kit, "/review the diff")
    typed, model = told.named("skill_activated")
    assert (typed["invocation_trigger"], model["invocation_trigger"]) == ("user-slash", "claude-proactive")
    assert [e["skill.name"] for e in (typed, model)] == (["review", "check"] if details else ["custom_skill"] * 2)
    [prompt] = told.named("user_prompt")
    assert (prompt["command_name"], prompt["command_source"]) == ("review" if details else "custom", "custom")


@pytest.mark.skipif(not installed("tools-files"), reason="needs tools-files")
def test_mentions_are_no_calls_of_the_model(tmp_path: Path, told: Any) -> None:
    (tmp_path / "notes.md").write_text("hello")
    play(Kit(tmp_path, [text("read")], installed=["telemetry", "tools-files"]), "look at @notes.md")
    [event] = told.named("at_mention")
    assert (event["mention_type"], event["success"]) == ("file", "true")
    assert not told.named("tool_result") and not [s for s in told.spans if s.name.endswith("tool")]


def test_a_change_of_mode(tmp_path: Path, told: Any) -> None:
    play(Kit(tmp_path, [text("hi"), text("hi")], installed=["telemetry"]), "one", lambda s: s.set_mode("plan"), "two")
    [event] = told.named("permission_mode_changed")
    assert (event["from_mode"], event["to_mode"]) == ("default", "plan") and "trigger" not in event


@pytest.mark.skipif(not installed("mcp"), reason="needs mcp")
@pytest.mark.parametrize("details", [False, True])
def test_servers_and_their_tools(tmp_path: Path, told: Any, monkeypatch: pytest.MonkeyPatch, details: bool) -> None:
    monkeypatch.setenv("OTEL_LOG_TOOL_DETAILS", "1" if details else "0")
    monkeypatch.setenv("ENABLE_TOOL_SEARCH", "false")
    program = tmp_path / "server.py"
    program.write_text(SERVER)
    config = {"mcpServers": {"secretive": {"command": sys.executable, "args": ["-S", "-E", str(program)]},
                             "absent": {"command": str(tmp_path / "nothing")}}}
    kit = Kit(tmp_path, [call("mcp__secretive__look", "c1"), text("done")], installed=["telemetry", "mcp"],
              extra={"mcp_config": [json.dumps(config)]})
    play(kit, "go")
    events = {e["status"]: e for e in told.named("mcp_server_connection")}
    assert events.keys() == {"connected", "failed"}
    assert events["connected"]["transport_type"] == "stdio" and events["connected"]["server_scope"]
    [result] = told.named("tool_result")
    assert result["tool_name"] == ("mcp__secretive__look" if details else "mcp_tool") and result["success"] == "true"
    assert result["mcp_server_scope"] == events["connected"]["server_scope"]
    assert ("server_name" in events["connected"]) is details
    if not details:
        everything = json.dumps([told.events, [dict(s.attributes) for s in told.spans]], default=str)
        assert "secretive" not in everything


SERVER = """\
import json, sys
for line in sys.stdin:
    asked = json.loads(line)
    if "id" not in asked:
        continue
    method, answer = asked["method"], {}
    if method == "initialize":
        answer = {"protocolVersion": asked["params"]["protocolVersion"], "capabilities": {"tools": {}},
                  "serverInfo": {"name": "s", "version": "1"}}
    elif method == "tools/list":
        answer = {"tools": [{"name": "look", "description": "looks", "inputSchema": {"type": "object"}}]}
    elif method == "tools/call":
        answer = {"content": [{"type": "text", "text": "seen"}]}
    print(json.dumps({"jsonrpc": "2.0", "id": asked["id"], "result": answer}), flush=True)
"""


@pytest.mark.skipif(not installed("compactor"), reason="needs compactor")
def test_a_compaction_that_fails_and_one_that_a_hook_forbids(tmp_path: Path, told: Any) -> None:
    broken = Turn(fail=ModelError("no", kind="invalid_request_error", status=400))
    play(Kit(tmp_path, [text("hi"), broken], installed=["telemetry", "compactor"]), "one", "/compact")
    [failed] = told.named("compaction")
    assert (failed["trigger"], failed["success"], failed["error"]) == ("manual", "false", "no summary")
    assert [e["query_source"] for e in told.named("api_error")] == ["auxiliary"]
    told.logs.clear()
    forbid = module(pre_compact=lambda event: PreCompactResult(decision="block", reason="not now"))
    play(Kit(tmp_path, [text("hi")], installed=["telemetry", "compactor"], hooks={"guard": forbid}), "one", "/compact")
    [refused] = told.named("compaction")
    assert (refused["success"], refused["error"]) == ("false", "blocked by a hook")


def test_kinds_of_starts(tmp_path: Path, told: Any, kernel_home: Any) -> None:
    if not installed("sessions"):
        pytest.skip("needs sessions")
    first = Kit(tmp_path, [text("hi")], installed=["telemetry", "sessions"], persist=True)
    play(first, "hello")
    for more, kind in (({"continue_session": True}, "continue"), ({"resume": first.outputs[0].session_id}, "resume")):
        play(Kit(tmp_path, [text("hi")], installed=["telemetry", "sessions"], persist=True, **more), "again")
        assert kind in {a["start_type"] for _, a in told.points("claude_code.session.count")}
    play(Kit(tmp_path, [text("hi")], installed=["telemetry", "sessions"], persist=True), "a", lambda s: None)
    assert {a["start_type"] for _, a in told.points("claude_code.session.count")} == {"fresh", "continue", "resume"}


class Api:
    """A Messages API that keeps the headers it is sent, and answers with an id and a place in its own trace."""

    def __init__(self) -> None:
        self.headers: list[dict[str, str]] = []
        api = self

        class Handler(BaseHTTPRequestHandler):
            def do_POST(self) -> None:
                self.rfile.read(int(self.headers["content-length"]))
                api.headers.append({k.lower(): v for k, v in self.headers.items()})
                events: list[dict[str, Any]] = [
                    {"type": "message_start", "message": {"id": "msg_1", "model": "m", "usage": {"input_tokens": 3}}},
                    {"type": "content_block_start", "index": 0, "content_block": {"type": "text", "text": ""}},
                    {"type": "content_block_delta", "index": 0, "delta": {"type": "text_delta", "text": "hi"}},
                    {"type": "content_block_stop", "index": 0},
                    {"type": "message_delta", "delta": {"stop_reason": "end_turn"}, "usage": {"output_tokens": 1}},
                    {"type": "message_stop"}]
                body = "".join(f"event: {e['type']}\ndata: {json.dumps(e)}\n\n" for e in events).encode()
                self.send_response(200)
                for name, value in (("content-type", "text/event-stream"), ("content-length", str(len(body))),
                                    ("request-id", "req_42"), ("traceresponse", f"00-{'a' * 32}-{'b' * 16}-01")):
                    self.send_header(name, value)
                self.end_headers()
                self.wfile.write(body)

            def log_message(self, *args: Any) -> None:
                pass

        self.server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        threading.Thread(target=self.server.serve_forever, args=(0.02,), daemon=True).start()


@pytest.fixture
def api(monkeypatch: pytest.MonkeyPatch) -> Iterator[Api]:
    found = Api()
    monkeypatch.setenv("ANTHROPIC_BASE_URL", f"http://127.0.0.1:{found.server.server_address[1]}")
    monkeypatch.setenv("ANTHROPIC_API_KEY", "a-key-for-tests")
    yield found
    found.server.shutdown()
    found.server.server_close()


@pytest.mark.skipif(not installed("model-anthropic"), reason="needs model-anthropic")
@pytest.mark.parametrize("propagate", [False, True])
def test_requests_carry_the_trace_to_a_base_url_of_ones_own_only_where_it_is_switched_on(
        tmp_path: Path, told: Any, api: Api, monkeypatch: pytest.MonkeyPatch, propagate: bool) -> None:
    monkeypatch.setenv("CLAUDE_CODE_PROPAGATE_TRACEPARENT", "1" if propagate else "0")
    play(Kit(tmp_path, installed=["telemetry", "model-anthropic"], model="anthropic:sonnet"), "hello")
    [sent] = api.headers
    [span] = [s for s in told.spans if s.name.endswith("llm_request")]
    assert ("traceparent" in sent) is propagate and "x-client-request-id" not in sent
    if propagate:
        place = spans.parse(sent["traceparent"])
        assert place is not None and place.span_id == span.context.span_id
    assert span.attributes["request_id"] == told.named("api_request")[0]["request_id"] == "req_42"
    assert [hex(link.context.span_id) for link in span.links] == [f"0x{'b' * 16}"]
    assert "a-key-for-tests" not in json.dumps(told.events, default=str)
