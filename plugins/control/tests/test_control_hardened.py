"""The SDK's end-to-end tests, made strict: what the program sees, what the model saw, what is on disk (SDK e2e contract, 6).

The program is one that speaks the protocol by itself; the model is a server, so that its requests can be read.
"""

from __future__ import annotations

import itertools
import json
import threading
from collections.abc import Callable, Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest

from kernel.testing import installed

NEEDS = ("command-hooks", "mcp", "model-anthropic", "permissions", "sessions", "skills", "structured-output", "subagents",
         "tools-files", "tools-shell")
pytestmark = pytest.mark.skipif(not all(map(installed, NEEDS)), reason=f"needs the plugins {', '.join(NEEDS)}")
ASK = ("--permission-prompt-tool", "stdio")
Blocks = list[dict[str, Any]]


def text(words: str) -> Blocks:
    return [{"type": "text", "text": words}]


_numbers = itertools.count(1)


def call(name: str, id: str = "", /, **input: Any) -> dict[str, Any]:
    return {"type": "tool_use", "id": id or f"toolu_{next(_numbers)}", "name": name, "input": input}


class Api:
    """A model by script: ``answer`` gives the blocks of a request, or a status. ``hangs``: it streams until nobody listens."""

    def __init__(self) -> None:
        self.requests: list[dict[str, Any]] = []
        self.answer: Callable[[dict[str, Any]], Blocks | int] = lambda body: text("fine")
        self.hangs = False
        self.left = threading.Event()
        api = self

        class Handler(BaseHTTPRequestHandler):
            def do_POST(self) -> None:
                body = json.loads(self.rfile.read(int(self.headers["content-length"])))
                api.requests.append(body)
                made = api.answer(body)
                self.send_response(made if isinstance(made, int) else 200)
                self.send_header("content-type", "application/json" if isinstance(made, int) else "text/event-stream")
                self.send_header("connection", "close")
                self.end_headers()
                self.close_connection = True
                if isinstance(made, int):
                    self.wfile.write(b'{"type": "error", "error": {"type": "not_found_error", "message": "no such model"}}')
                    return
                try:
                    for event in api.events(made):
                        self.wfile.write(f"event: {event['type']}\ndata: {json.dumps(event)}\n\n".encode())
                except OSError:
                    api.left.set()

            def log_message(self, *args: object) -> None:
                pass

        self.server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.server.daemon_threads = True
        threading.Thread(target=self.server.serve_forever, args=(0.05,), daemon=True).start()

    def events(self, blocks: Blocks) -> Iterator[dict[str, Any]]:
        usage = {"input_tokens": 9, "output_tokens": 1}
        yield {"type": "message_start", "message": {"id": f"msg_{next(_numbers)}", "type": "message", "role": "assistant",
                                                    "model": "m", "content": [], "usage": usage}}
        for index, block in enumerate(blocks):
            empty = {"input": {}} if block["type"] == "tool_use" else {"text": ""}
            yield {"type": "content_block_start", "index": index, "content_block": {**block, **empty}}
            delta = {"type": "input_json_delta", "partial_json": json.dumps(block["input"])} if block["type"] == "tool_use" else {
                "type": "text_delta", "text": block["text"]}
            yield {"type": "content_block_delta", "index": index, "delta": delta}
            while self.hangs and not self.left.wait(0.02):
                yield {"type": "content_block_delta", "index": index, "delta": {"type": "text_delta", "text": "more "}}
            yield {"type": "content_block_stop", "index": index}
        reason = "tool_use" if any(block["type"] == "tool_use" for block in blocks) else "end_turn"
        yield {"type": "message_delta", "delta": {"stop_reason": reason}, "usage": {"output_tokens": 9}}
        yield {"type": "message_stop"}

    def script(self, *turns: Blocks) -> None:
        """One turn after the other."""
        left = list(turns)
        self.answer = lambda body: left.pop(0)


@pytest.fixture
def api() -> Iterator[Api]:
    api = Api()
    yield api
    api.server.shutdown()
    api.server.server_close()


@pytest.fixture
def program(api: Api, host: Callable[..., Any]) -> Callable[..., Any]:
    """``program(*flags)``: a host whose model is the server."""
    def start(*flags: str, **more: Any) -> Any:
        return host("", *flags, KERNEL_PROVIDER="anthropic", ANTHROPIC_BASE_URL=f"http://127.0.0.1:{api.server.server_address[1]}",
                    ANTHROPIC_API_KEY="k", ENABLE_TOOL_SEARCH="false", **more)

    return start


def results(body: dict[str, Any]) -> dict[str, dict[str, Any]]:
    """Call id -> its result block, of a request; each call has exactly one, in the next message."""
    found = {}
    for message, following in itertools.pairwise([*body["messages"], {"content": []}]):
        content = message["content"] if isinstance(message["content"], list) else []
        calls = [b["id"] for b in content if b["type"] == "tool_use"]
        answers = [b for b in following["content"] if isinstance(b, dict) and b["type"] == "tool_result"]
        assert calls == [b["tool_use_id"] for b in answers]
        found.update({b["tool_use_id"]: b for b in answers})
    return found


def hook(one: Any, begin: int = 0, **answer: Any) -> dict[str, Any]:
    asked: dict[str, Any] = one.asked("hook_callback", begin)
    one.reply(asked, answer)
    return asked


def test_h1_settings_sources_decide_which_commands_there_are(program: Callable[..., Any], tmp_path: Path) -> None:
    (tmp_path / ".claude" / "commands").mkdir(parents=True)
    (tmp_path / ".claude" / "commands" / "ours.md").write_text("Do it.")
    for sources, there in (("user", False), ("user,project", True)):
        one = program("--setting-sources", sources)
        one.say("Go.")
        assert ("ours" in one.until(lambda f: f.get("subtype") == "init")["slash_commands"]) is there
        one.result()


def test_h2_the_permission_mode_counts_from_the_next_call_on(program: Callable[..., Any], api: Api, tmp_path: Path) -> None:
    def write(name: str) -> Blocks:
        return [call("Write", file_path=str(tmp_path / name), content="x")]

    api.script(write("a"), text("one"), write("b"), text("two"))
    one = program(*ASK)
    one.call("set_permission_mode", mode="acceptEdits")
    one.say("Go.")
    assert one.result()["result"] == "one" and (tmp_path / "a").exists() and "can_use_tool" not in str(one.seen)
    one.call("set_permission_mode", mode="default")
    one.say("Again.")
    one.reply(one.asked("can_use_tool"), {"behavior": "deny", "message": "no"})
    assert one.result()["result"] == "two" and not (tmp_path / "b").exists()


def test_h3_the_model_of_each_turn_is_asked(program: Callable[..., Any], api: Api) -> None:
    one = program("--model", "claude-sonnet-4-5")
    for model in ("", "claude-opus-4-5", None):
        if model != "":
            one.call("set_model", model=model)
        one.say("Go.")
        one.result()
    assert [body["model"] for body in api.requests] == ["claude-sonnet-4-5", "claude-opus-4-5", "claude-sonnet-4-5"]


@pytest.mark.parametrize("slowly", [False, True])
def test_h4_an_interrupt_ends_the_request_and_the_next_turn_is_legal(program: Callable[..., Any], api: Api, slowly: bool) -> None:
    api.hangs = True
    api.answer = lambda body: text("I count: ")
    one = program("--include-partial-messages", slowly=slowly)
    one.say("Go.")
    one.until(lambda f: f["type"] == "stream_event" and f["event"]["type"] == "content_block_delta")
    one.call("interrupt")
    result = one.result()
    assert result["is_error"] and result["terminal_reason"] == "aborted_streaming"
    assert api.left.wait(20), "the server still has a listener"
    api.hangs = False
    one.say("Go on.")
    assert not one.result()["is_error"] and results(api.requests[-1]) == {}
    roles = [m["role"] for m in api.requests[-1]["messages"]]
    assert roles == ["user", "assistant"] * (len(roles) // 2) + ["user"]


@pytest.mark.parametrize("slowly", [False, True])
def test_h6_a_hook_that_denies(program: Callable[..., Any], api: Api, tmp_path: Path, slowly: bool) -> None:
    api.script([call("Bash", "toolu_a", command="touch made")], text("done"))
    one = program("--allowedTools", "Bash", slowly=slowly)
    one.call("initialize", hooks={"PreToolUse": [{"matcher": "Bash", "hookCallbackIds": ["h"]}]})
    one.say("Go.")
    hook(one, hookSpecificOutput={"hookEventName": "PreToolUse", "permissionDecision": "deny",
                                  "permissionDecisionReason": "not here"})
    result = one.result()
    assert not (tmp_path / "made").exists() and "not here" in results(api.requests[1])["toolu_a"]["content"]
    assert [d["tool_use_id"] for d in result["permission_denials"]] == ["toolu_a"] and result["result"] == "done"


def test_h7_a_hook_that_stops_the_turn(program: Callable[..., Any], api: Api) -> None:
    api.script([call("Bash", command="echo hi")], text("never asked for"))
    one = program("--allowedTools", "Bash")
    one.call("initialize", hooks={"PostToolUse": [{"hookCallbackIds": ["h"]}]})
    one.say("Go.")
    hook(one, **{"continue": False, "stopReason": "that is enough"})
    result = one.result()
    assert len(api.requests) == 1 and result["terminal_reason"] == "hook_stopped" and "that is enough" in json.dumps(one.seen)


def test_h8_a_hooks_context_is_in_the_next_request(program: Callable[..., Any], api: Api) -> None:
    api.script([call("Bash", command="echo hi")], text("done"))
    one = program("--allowedTools", "Bash")
    one.call("initialize", hooks={"PostToolUse": [{"hookCallbackIds": ["h"]}]})
    one.say("Go.")
    hook(one, hookSpecificOutput={"hookEventName": "PostToolUse", "additionalContext": "the sky is green"})
    one.result()
    assert "the sky is green" in json.dumps(api.requests[1]["messages"][-1]) and "green" not in json.dumps(api.requests[0])


def server_tools(one: Any, *names: str) -> None:
    """Answer what the harness asks the program's MCP server, until its tools are known."""
    asked = 0
    while True:
        frame = one.asked("mcp_message", asked)
        asked = one.seen.index(frame) + 1
        message = frame["request"]["message"]
        told: dict[str, Any] = {}
        if message["method"] == "initialize":
            told = {"protocolVersion": message["params"]["protocolVersion"], "capabilities": {"tools": {}},
                    "serverInfo": {"name": "test", "version": "1"}}
        elif message["method"] == "tools/list":
            told = {"tools": [{"name": n, "description": n, "inputSchema": {"type": "object"}} for n in names]}
        one.reply(frame, {"mcp_response": {"jsonrpc": "2.0", "id": message.get("id", 0), "result": told}})
        if message["method"] == "tools/list":
            return


SDK_SERVER = ("--mcp-config", '{"mcpServers": {"test": {"type": "sdk", "name": "test"}}}')


def test_h10_a_tool_that_is_disallowed_is_not_there(program: Callable[..., Any], api: Api) -> None:
    api.script([call("mcp__test__echo", "toolu_a")], text("done"))
    one = program(*SDK_SERVER, "--allowedTools", "mcp__test__greet", "--disallowedTools", "mcp__test__echo")
    one.say("Go.")
    server_tools(one, "echo", "greet")
    result = one.result()
    names = [tool["name"] for tool in api.requests[0]["tools"]]
    assert "mcp__test__greet" in names and "mcp__test__echo" not in names
    assert results(api.requests[1])["toolu_a"]["is_error"] and result["result"] == "done"
    assert "tools/call" not in json.dumps(one.seen)


def test_h11_a_tool_without_a_rule_is_refused_and_told(program: Callable[..., Any], api: Api) -> None:
    api.script([call("mcp__test__echo", "toolu_a")], text("done"))
    one = program(*SDK_SERVER)
    one.say("Go.")
    server_tools(one, "echo")
    result = one.result()
    assert results(api.requests[1])["toolu_a"]["is_error"] and result["result"] == "done"
    assert [f["tool_use_id"] for f in one.seen if f.get("subtype") == "permission_denied"] == ["toolu_a"]
    assert [d["tool_use_id"] for d in result["permission_denials"]] == ["toolu_a"] and "tools/call" not in json.dumps(one.seen)


def test_h12_a_clean_run_says_nothing_on_stderr(program: Callable[..., Any]) -> None:
    one = program()
    one.say("Go.")
    assert one.result()["result"] == "fine" and one.end() == 0 and one.stderr == ""


def test_h13_a_resumed_conversation_sends_both_turns(program: Callable[..., Any], api: Api) -> None:
    first = program("--session-mirror")
    first.say("Remember 42.")
    id = first.result()["session_id"]
    before = [f["type"] for f in first.seen]
    assert "transcript_mirror" in before and before.index("transcript_mirror") < before.index("result")
    first.end()
    again = program("--resume", id)
    again.say("What was it?")
    assert again.result()["session_id"] == id
    told = json.dumps(api.requests[-1]["messages"])
    assert all(words in told for words in ("Remember 42.", "fine", "What was it?"))


SCHEMA = ("--json-schema", json.dumps({"type": "object", "properties": {"n": {"type": "integer"}}, "required": ["n"]}))


def test_h14_a_value_that_does_not_fit_goes_back_and_an_endless_one_ends(program: Callable[..., Any], api: Api) -> None:
    api.script([call("StructuredOutput", "toolu_a", n="x")], [call("StructuredOutput", n=3)])
    one = program(*SCHEMA)
    one.say("Go.")
    assert one.result()["structured_output"] == {"n": 3} and len(api.requests) == 2
    assert results(api.requests[1])["toolu_a"]["is_error"]
    api.answer = lambda body: [call("StructuredOutput", n="x")]
    other = program(*SCHEMA)
    other.say("Go.")
    result = other.result()
    assert result["subtype"] == "error_max_structured_output_retries" and result["is_error"] and "structured_output" not in result


def test_h15_the_last_of_many_large_agents_gets_its_whole_prompt(program: Callable[..., Any], api: Api) -> None:
    agents = {f"agent-{n}": {"description": f"does {n}", "prompt": f"I am {n}. {'x' * 13_000} the end of {n}"}
              for n in range(20)}
    begin = [call("Agent", description="work", prompt="Do it.", subagent_type="agent-19", run_in_background=False)]

    def answer(body: dict[str, Any]) -> Blocks:
        if "I am 19." in json.dumps(body["system"]):
            return text("done by 19")
        return text("done") if "tool_result" in json.dumps(body["messages"]) else begin

    api.answer = answer
    one = program("--allowedTools", "Agent")
    one.call("initialize", agents=agents)
    one.say("Go.")
    assert one.result()["result"] == "done"
    whole, = [body for body in api.requests if "I am 19." in json.dumps(body["system"])]
    assert agents["agent-19"]["prompt"] in "".join(block["text"] for block in whole["system"])


def test_h16_a_model_that_does_not_exist_is_asked_once(program: Callable[..., Any], api: Api) -> None:
    api.answer = lambda body: 404
    one = program("--model", "claude-gone-1")
    one.say("Go.")
    result = one.result()
    assert (result["subtype"], result["is_error"], result["api_error_status"]) == ("success", True, 404)
    assert result["terminal_reason"] == "api_error" and "no such model" in result["result"] and len(api.requests) == 1
    assert one.end() == 1


@pytest.mark.parametrize("slowly", [False, True])
def test_h17_two_questions_answered_in_reverse_with_another_input_and_a_lasting_yes(
        program: Callable[..., Any], api: Api, tmp_path: Path, slowly: bool) -> None:
    outside = tmp_path.parent / f"{tmp_path.name}-outside"
    outside.mkdir()
    for name in "abc":
        (outside / name).write_text(f"content of {name}")

    def read(id: str, name: str) -> dict[str, Any]:
        return call("Read", id, file_path=str(outside / name))

    api.script([read("toolu_a", "a"), read("toolu_b", "b")], text("one"), [read("toolu_c", "a")], text("two"))
    one = program(*ASK, slowly=slowly)
    one.say("Go.")
    first = one.asked("can_use_tool")
    second = one.asked("can_use_tool", one.seen.index(first) + 1)
    lasting = [{"type": "addRules", "behavior": "allow", "destination": "session", "rules": [{"toolName": "Read"}]}]
    one.reply(second, {"behavior": "allow", "updatedInput": {"file_path": str(outside / "c")}})
    one.reply(first, {"behavior": "allow", "updatedInput": first["request"]["input"], "updatedPermissions": lasting})
    one.result()
    told = results(api.requests[1])
    assert "content of a" in str(told["toolu_a"]["content"]) and "content of c" in str(told["toolu_b"]["content"])
    begin = len(one.seen)
    one.say("Again.")
    assert one.result()["result"] == "two" and "can_use_tool" not in json.dumps(one.seen[begin:])


def test_h18_a_resume_up_to_an_entry_forgets_what_came_behind(program: Callable[..., Any], api: Api) -> None:
    one = program()
    for prompt in ("first", "second"):
        one.say(f"The {prompt} prompt.")
        id = one.result()["session_id"]
    one.end()
    answers = [f for f in one.seen if f["type"] == "assistant"]
    again = program("--resume", id, "--resume-session-at", answers[0]["uuid"])
    again.say("The third prompt.")
    again.result()
    told = json.dumps(api.requests[-1]["messages"])
    assert "The first prompt." in told and "The third prompt." in told and "second" not in told


def test_h19_what_nested_subagents_say_comes_with_the_inner_calls_id(program: Callable[..., Any], api: Api) -> None:
    def agent(id: str, name: str) -> dict[str, Any]:
        return call("Agent", id, description="work", prompt="Do it.", subagent_type=name, run_in_background=False)

    def answer(body: dict[str, Any]) -> Blocks:
        system, done = json.dumps(body["system"]), "tool_result" in json.dumps(body["messages"])
        if "I am inner." in system:
            return text("words of the inner one")
        if "I am outer." in system:
            return text("words of the outer one") if done else [agent("toolu_inner", "inner")]
        return text("done") if done else [agent("toolu_outer", "outer")]

    api.answer = answer
    one = program("--allowedTools", "Agent")
    one.call("initialize", forwardSubagentText=True, agents={
        "outer": {"description": "calls the inner one", "prompt": "I am outer.", "tools": ["Agent"]},
        "inner": {"description": "speaks", "prompt": "I am inner."}})
    one.say("Go.")
    assert one.result()["result"] == "done"
    said = {block["text"]: f["parent_tool_use_id"] for f in one.seen if f["type"] == "assistant"
            for block in f["message"]["content"] if block["type"] == "text"}
    assert said["words of the inner one"] == "toolu_inner" and said["words of the outer one"] == "toolu_outer"
    assert said["done"] is None
