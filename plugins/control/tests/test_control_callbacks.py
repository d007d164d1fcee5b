"""What the harness asks the program: permissions, hooks, its MCP servers; and the transcript's mirror (SDK contract, 5 to 9)."""

from __future__ import annotations

import json
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

TOUCH = "turns:\n  - calls: [{tool: Bash, id: toolu_1, input: {command: touch made}}]\n  - text: done\n"
ASK = ("--permission-prompt-tool", "stdio")


def tool_result(one: Any, id: str = "toolu_1") -> str:
    def fits(frame: Any) -> Any:
        blocks = frame["message"]["content"] if frame["type"] == "user" else []
        return [b for b in blocks if isinstance(b, dict) and b.get("tool_use_id") == id]
    return str(fits(one.until(fits))[0]["content"])


# -- permissions ---------------------------------------------------------------------------------------------------------------
def test_a_question_comes_behind_its_call_and_the_answer_decides(host: Callable[..., Any], tmp_path: Path) -> None:
    one = host(TOUCH, *ASK)
    one.say("Go.")
    question = one.asked("can_use_tool")
    asked = question["request"]
    assert asked["tool_name"] == "Bash" and asked["input"]["command"] == "touch made" and asked["tool_use_id"] == "toolu_1"
    assert asked["blocked_path"] is None and asked["permission_suggestions"][0]["rules"][0]["toolName"] == "Bash"
    calls = [f for f in one.seen if f["type"] == "assistant" and f["message"]["content"][0].get("id") == "toolu_1"]
    assert calls and one.seen.index(calls[0]) < one.seen.index(question)
    one.reply(question, {"behavior": "allow", "updatedInput": {"command": "touch other"}, "toolUseID": "toolu_1",
                         "updatedPermissions": [{"type": "setMode", "mode": "acceptEdits"}]})
    one.result()
    assert (tmp_path / "other").exists() and not (tmp_path / "made").exists()
    assert [f["permissionMode"] for f in one.seen if f.get("subtype") == "status"] == ["acceptEdits"]


NO: list[tuple[Any, str]] = [
    ({"behavior": "deny", "message": "the host says no"}, "the host says no"),
    ({"behavior": "maybe"}, "neither allow nor deny"), ({}, "neither allow nor deny"), (None, "neither allow nor deny"),
    ([1], "with an error"), ({"behavior": "allow", "updatedInput": "x"}, "updatedInput")]


def test_what_is_no_yes_is_a_no(host: Callable[..., Any], tmp_path: Path) -> None:
    turns = (f"  - calls: [{{tool: Bash, id: toolu_{n}, input: {{command: touch made}}}}]\n  - text: done\n"
             for n in range(len(NO)))
    one = host("turns:\n" + "".join(turns), *ASK)
    for n, (answer, said) in enumerate(NO):
        one.say("Go.")
        one.reply(one.asked("can_use_tool", len(one.seen)), answer)
        assert said in tool_result(one, f"toolu_{n}"), answer
        assert one.result()["permission_denials"][0]["tool_use_id"] == f"toolu_{n}"
    assert not (tmp_path / "made").exists()


def test_an_error_of_the_program_is_a_no_with_its_text(host: Callable[..., Any]) -> None:
    one = host(TOUCH, *ASK)
    one.say("Go.")
    question = one.asked("can_use_tool")
    one.send({"type": "control_response",
              "response": {"subtype": "error", "request_id": question["request_id"], "error": "the callback raised"}})
    assert "the callback raised" in tool_result(one)


def test_a_no_can_end_the_turn(host: Callable[..., Any]) -> None:
    one = host(TOUCH, *ASK)
    one.say("Go.")
    one.reply(one.asked("can_use_tool"), {"behavior": "deny", "message": "stop it", "interrupt": True})
    one.result()
    assert not [f for f in one.seen if f["type"] == "assistant" and f["message"]["content"][0].get("text") == "done"]


def test_an_interrupt_withdraws_an_open_question(host: Callable[..., Any]) -> None:
    one = host(TOUCH, *ASK)
    one.say("Go.")
    question = one.asked("can_use_tool")
    one.ask("interrupt")
    assert one.until(lambda f: f["type"] == "control_cancel_request")["request_id"] == question["request_id"]
    assert one.result()["terminal_reason"] == "aborted_tools"
    one.reply(question, {"behavior": "allow", "updatedInput": {"command": "touch made"}})  # too late, and taken for nothing else
    one.say("Go on.")
    assert one.result()["result"] == "done" and not (one.folder / "made").exists()


def test_closed_input_cancels_an_open_question_and_the_process_ends(host: Callable[..., Any]) -> None:
    one = host(TOUCH, *ASK)
    one.say("Go.")
    one.asked("can_use_tool")
    began = time.monotonic()
    assert one.end() in (0, 1)
    assert time.monotonic() - began < 20  # five seconds on a machine that is not busy
    assert one.seen[-1]["type"] == "result" and not (one.folder / "made").exists()


def test_questions_about_calls_that_run_side_by_side_are_open_at_once(host: Callable[..., Any], tmp_path: Path) -> None:
    outside = tmp_path.parent / f"{tmp_path.name}-outside"
    outside.mkdir()
    for name in ("a", "b"):
        (outside / name).write_text(f"content of {name}")
    calls = ", ".join(f"{{tool: Read, id: toolu_{n}, input: {{file_path: '{outside / n}'}}}}" for n in "ab")
    one = host(f"turns:\n  - calls: [{calls}]\n  - text: done\n", *ASK)
    one.say("Go.")
    first = one.asked("can_use_tool")
    second = one.asked("can_use_tool", one.seen.index(first) + 1)
    assert {f["request"]["tool_use_id"] for f in (first, second)} == {"toolu_a", "toolu_b"}
    one.reply(second, {"behavior": "allow"})
    one.reply(first, {"behavior": "deny", "message": "not this one"})
    assert "not this one" in tool_result(one, first["request"]["tool_use_id"])
    assert "content of" in tool_result(one, second["request"]["tool_use_id"])
    assert one.result()["result"] == "done"


def test_a_question_to_a_person_is_answered_through_the_input(host: Callable[..., Any]) -> None:
    one = host("turns:\n  - calls: [{tool: AskUserQuestion, id: toolu_1, input: {questions: [{question: 'Which colour?', "
               "header: Colour, multiSelect: false, options: [{label: red, description: r}, {label: blue, description: b}]}]}}]\n"
               "  - text: done\n", *ASK)
    one.say("Go.")
    question = one.asked("can_use_tool")
    assert question["request"]["tool_name"] == "AskUserQuestion"
    one.reply(question, {"behavior": "allow", "updatedInput": {
        **question["request"]["input"], "answers": {"Which colour?": "blue"}}})
    assert "blue" in tool_result(one)


def test_a_second_initialize_replaces_hooks_and_brings_open_questions_again(host: Callable[..., Any]) -> None:
    one = host(TOUCH, *ASK)
    one.call("initialize", hooks={"Stop": [{"hookCallbackIds": ["old"]}]})
    one.say("Go.")
    question = one.asked("can_use_tool")
    answer = one.answer(one.ask("initialize", hooks={"Stop": [{"hookCallbackIds": ["new"]}]}))
    assert answer["pending_permission_requests"] == [question]
    one.until(lambda f: f.get("subtype") == "background_tasks_changed")
    one.reply(question, {"behavior": "deny", "message": "no"})
    stop = one.asked("hook_callback")
    assert stop["request"]["callback_id"] == "new"
    one.reply(stop, {})
    one.result()


# -- hooks ---------------------------------------------------------------------------------------------------------------------
def test_hooks_of_one_event_are_asked_at_once_and_a_no_wins(host: Callable[..., Any], tmp_path: Path) -> None:
    one = host(TOUCH, "--allowedTools", "Bash")
    one.call("initialize", hooks={"PreToolUse": [{"matcher": "Bash", "hookCallbackIds": ["a", "b"]},
                                                 {"matcher": "Read", "hookCallbackIds": ["c"]}],
                                  "NoSuchEvent": [{"hookCallbackIds": ["d"]}]})
    one.say("Go.")
    first = one.asked("hook_callback")
    second = one.asked("hook_callback", one.seen.index(first) + 1)
    assert {first["request"]["callback_id"], second["request"]["callback_id"]} == {"a", "b"}
    facts = first["request"]["input"]
    assert facts["hook_event_name"] == "PreToolUse" and facts["tool_input"]["command"] == "touch made"
    assert first["request"]["tool_use_id"] == facts["tool_use_id"] == "toolu_1"
    assert facts.keys() >= {"session_id", "transcript_path", "cwd", "permission_mode"}
    one.reply(second, {"hookSpecificOutput": {"hookEventName": "PreToolUse", "permissionDecision": "deny",
                                              "permissionDecisionReason": "the host hook says no"}})
    one.reply(first, {"async": False})
    assert "the host hook says no" in tool_result(one) and not (tmp_path / "made").exists()


def test_a_hook_that_does_not_answer_in_time_is_withdrawn_and_blocks_the_call(host: Callable[..., Any], tmp_path: Path) -> None:
    one = host(TOUCH, "--allowedTools", "Bash")
    one.call("initialize", hooks={"PreToolUse": [{"matcher": None, "hookCallbackIds": ["slow"], "timeout": 0.2}]})
    one.say("Go.")
    asked = one.asked("hook_callback")
    assert one.until(lambda f: f["type"] == "control_cancel_request")["request_id"] == asked["request_id"]
    one.reply(asked, {"hookSpecificOutput": {"hookEventName": "PreToolUse", "permissionDecision": "allow"}})
    one.result()
    assert not (tmp_path / "made").exists()


def test_hooks_are_there_when_the_session_starts_and_can_end_a_turn(host: Callable[..., Any]) -> None:
    one = host(TOUCH, "--allowedTools", "Bash")
    id = one.ask("initialize", hooks={"SessionStart": [{"hookCallbackIds": ["start"]}],
                                      "PostToolUse": [{"hookCallbackIds": ["post"]}]})
    start = one.asked("hook_callback")
    assert start["request"]["input"]["source"] == "startup" and start["request"]["tool_use_id"] is None
    one.reply(start, {})
    assert one.answer(id)["subtype"] == "success"
    one.say("Go.")
    post = one.asked("hook_callback", one.seen.index(start) + 1)
    assert post["request"]["callback_id"] == "post"
    one.reply(post, {"continue": False, "stopReason": "enough"})
    assert one.result()["terminal_reason"] == "hook_stopped"


# -- MCP servers of the program --------------------------------------------------------------------------------------------------
def serve_one(one: Any, request: dict[str, Any], answers: dict[str, Callable[[dict[str, Any]], Any]]) -> None:
    """Play the server for one message."""
    message = request["request"]["message"]
    server = request["request"]["server_name"]
    if "id" not in message:
        one.reply(request, {"mcp_response": {"jsonrpc": "2.0", "result": {}}})
        return
    method = message["method"]
    if method == "initialize":
        result: Any = {"protocolVersion": message["params"]["protocolVersion"], "capabilities": {"tools": {}},
                       "serverInfo": {"name": server, "version": "1"}}
    elif method == "tools/list":
        result = {"tools": [{"name": "add", "description": "Adds.", "inputSchema": {"type": "object", "properties": {}}}]}
    elif method == "tools/call":
        result = answers[server](message["params"])
    else:
        one.reply(request, {"mcp_response": {"jsonrpc": "2.0", "id": message["id"],
                                             "error": {"code": -32601, "message": "Method not found"}}})
        return
    one.reply(request, {"mcp_response": {"jsonrpc": "2.0", "id": message["id"], "result": result}})


def test_two_servers_of_the_program_with_the_same_tool(host: Callable[..., Any]) -> None:
    config = {"mcpServers": {"left": {"type": "sdk", "name": "left"}, "right": {"type": "sdk", "name": "right"}}}
    one = host("turns:\n  - calls: [{tool: mcp__left__add, id: toolu_1, input: {}}, "
               "{tool: mcp__right__add, id: toolu_2, input: {}}]\n  - text: done\n", "--mcp-config", json.dumps(config),
               "--allowedTools", "mcp__left,mcp__right",
               ENABLE_TOOL_SEARCH="false")
    answers = {"left": lambda p: {"content": [{"type": "text", "text": "from left"}]},
               "right": lambda p: {"content": [{"type": "text", "text": "the handler raised"}], "isError": True}}
    id = one.ask("initialize", hooks=None)
    said = False
    at = 0
    while True:
        while at == len(one.seen):
            one.next()
        frame, at = one.seen[at], at + 1
        if frame["type"] == "control_request":
            serve_one(one, frame, answers)
        if not said and frame["type"] == "control_response":
            one.say("Go.")
            said = True
        if frame["type"] == "result":
            break
    assert one.answer(id)["subtype"] == "success"
    assert "from left" in tool_result(one, "toolu_1") and "the handler raised" in tool_result(one, "toolu_2")
    status = {s["name"]: s for s in one.call("mcp_status")["mcpServers"]}
    assert {s["status"] for s in status.values()} == {"connected"} and status["left"]["config"]["type"] == "sdk"
    assert status["left"]["tools"][0]["name"] == "add" and status["left"]["serverInfo"]["name"] == "left"
    assert one.call("mcp_toggle", serverName="right", enabled=False) == {}
    assert {s["name"]: s["status"] for s in one.call("mcp_status")["mcpServers"]}["right"] == "disabled"


# -- the mirror ------------------------------------------------------------------------------------------------------------------
def test_the_mirror_is_the_file_and_comes_before_the_result(host: Callable[..., Any]) -> None:
    one = host(TOUCH + "  - text: two\n", "--allowedTools", "Bash", "--session-mirror")
    one.say("Go.")
    one.result()
    files: dict[str, list[Any]] = {}
    for frame in one.seen:
        if frame["type"] == "transcript_mirror":
            assert frame.keys() == {"type", "filePath", "entries"}
            files.setdefault(frame["filePath"], []).extend(frame["entries"])
    (path, entries), = files.items()
    assert Path(path).is_relative_to(one.folder / "home" / ".claude" / "projects")
    on_disk = [json.loads(line) for line in Path(path).read_text().splitlines()]
    assert on_disk and entries == on_disk
    one.say("/clear")
    reset = one.until(lambda f: f["type"] == "conversation_reset")
    one.result()
    one.say("Go on.")
    one.result()
    assert one.end() == 0
    mirrored = [e for f in one.seen if f["type"] == "transcript_mirror" and reset["new_conversation_id"] in f["filePath"]
                for e in f["entries"]]
    other = next((Path(path).parent).glob(f"{reset['new_conversation_id']}.jsonl"))
    assert mirrored == [json.loads(line) for line in other.read_text().splitlines()]


def test_a_frame_of_the_mirror_stays_below_a_mebibyte(host: Callable[..., Any], tmp_path: Path) -> None:
    one = host("turns:\n  - text: " + "x" * 10 + "\n", "--session-mirror")
    block = {"type": "text", "text": "y" * 400_000}
    one.send({"type": "user", "message": {"role": "user", "content": [block, block]}})
    one.result()
    assert one.end() == 0
    assert max(len(raw) for raw, f in zip(one.raw, one.seen, strict=True) if f["type"] == "transcript_mirror") < 2**20
