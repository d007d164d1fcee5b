"""Requests of the program: each gets one answer, what it asks for is in force then (SDK contract, sections 2 to 4)."""

from __future__ import annotations

import json
import os
import random
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

TALK = "turns:\n  - text: one\n  - text: two\n  - text: three\n"
SLEEP = "turns:\n  - calls: [{tool: Bash, id: toolu_1, input: {command: 'touch begun; sleep 45'}}]\n  - text: after\n"
FUZZ = int(os.environ.get("KERNEL_CONTROL_FUZZ", "150"))


def test_the_answer_to_initialize_tells_of_the_session_and_names_the_versions(host: Callable[..., Any]) -> None:
    one = host(TALK)
    told = one.call("initialize", hooks={"Stop": [{"matcher": None, "hookCallbackIds": ["h"]}]}, unknown={"field": 1},
                    agents={"poet": {"description": "Writes verse.", "prompt": "You are a poet."}})
    assert {"name": "poet", "description": "Writes verse."}.items() <= next(
        a for a in told["agents"] if a["name"] == "poet").items()
    assert all({"name", "description", "argumentHint"} <= c.keys() for c in told["commands"]) and told["commands"]
    assert told["output_style"] == "default" in told["available_output_styles"]
    assert told["models"][-1]["value"] == "script:script" and told["account"]["apiKeySource"] == "none"
    assert told["hooks_applied"] is True and told["fast_mode_state"] == "off"
    assert told["contract_version"] == "2.1.240" and told["protocol_version"] == "0.2.143"


def test_agents_of_260_kb_arrive_in_one_line(host: Callable[..., Any]) -> None:
    one = host(TALK)
    one.call("initialize", hooks=None, agents={f"agent-{n}": {"description": f"Number {n}.", "prompt": "x" * 13_000}
                                               for n in range(20)})
    one.say("Go.")
    assert {f"agent-{n}" for n in range(20)} <= {*one.until(lambda f: f.get("subtype") == "init")["agents"]}
    assert one.result()["result"] == "one" and one.end() == 0


MALFORMED: list[tuple[dict[str, Any], str]] = [
    ({"subtype": "fly_to_the_moon"}, "fly_to_the_moon"),
    ({"subtype": None}, "Unsupported"),
    ({}, "Unsupported"),
    ({"subtype": ["initialize"]}, "Unsupported"),
    ({"subtype": "set_model", "model": 7}, "model"),
    ({"subtype": "set_model", "model": {}}, "model"),
    ({"subtype": "set_permission_mode"}, "mode"),
    ({"subtype": "set_permission_mode", "mode": "yolo"}, "yolo"),
    ({"subtype": "set_permission_mode", "mode": "bypassPermissions"}, "not available"),
    ({"subtype": "set_permission_mode", "mode": "auto"}, "auto"),
    ({"subtype": "interrupt", "cancel_queued": "yes"}, "cancel_queued"),
    ({"subtype": "rewind_files"}, "user_message_id"),
    ({"subtype": "rewind_files", "user_message_id": "x"}, "File rewinding is not enabled"),
    ({"subtype": "mcp_reconnect", "serverName": "nobody"}, "nobody"),
    ({"subtype": "mcp_toggle", "serverName": "nobody", "enabled": True}, "nobody"),
    ({"subtype": "mcp_toggle", "serverName": "nobody", "enabled": "true"}, "enabled"),
    ({"subtype": "stop_task", "task_id": "nobody"}, "nobody"),
    ({"subtype": "stop_task", "task_id": 3}, "task_id"),
    ({"subtype": "set_max_thinking_tokens", "max_thinking_tokens": -1}, "max_thinking_tokens"),
    ({"subtype": "initialize", "hooks": []}, "hooks"),
    ({"subtype": "initialize", "hooks": {"PreToolUse": [{"hookCallbackIds": "h"}]}}, "hookCallbackIds"),
    ({"subtype": "initialize", "hooks": {"PreToolUse": [{"hookCallbackIds": ["h"], "timeout": "1"}]}}, "timeout"),
    ({"subtype": "initialize", "agents": "poet"}, "agents"),
    ({"subtype": "get_settings"}, "get_settings"),
]


def test_what_cannot_be_served_is_an_error_that_names_it_and_the_session_goes_on(host: Callable[..., Any]) -> None:
    one = host(TALK)
    for request, named in MALFORMED:
        id = f"m{MALFORMED.index((request, named))}"
        one.send({"type": "control_request", "request_id": id, "request": request})
        answer = one.answer(id)
        assert answer["subtype"] == "error" and named in answer["error"], (request, answer)
    for more in ({}, {"request": 3}):
        one.send({"type": "control_request", "request_id": f"q{len(more)}", **more})
        assert one.answer(f"q{len(more)}")["subtype"] == "error"
    broken: list[dict[str, Any]] = [
        {"type": "control_request"}, {"type": "control_response"}, {"type": "control_response", "response": "x"},
        {"type": "control_response", "response": {"subtype": "success", "request_id": "never", "response": {}}},
        {"type": "control_cancel_request", "request_id": "never"}, {"type": "control_cancel_request"},
        {"type": "keep_alive"}, {"type": ["x"]}, {}]
    for frame in broken:
        one.send(frame)
    one.write(b"\n \r\n")
    one.say("Go.")
    assert one.result()["result"] == "one" and one.end() == 0 and one.stderr == ""


def test_requests_are_served_without_initialize_and_a_mode_is_told(host: Callable[..., Any]) -> None:
    one = host(TALK)
    assert one.call("mcp_status") == {"mcpServers": []}
    assert one.call("set_permission_mode", mode="plan") == {}
    assert one.until(lambda f: f.get("subtype") == "status")["permissionMode"] == "plan"
    one.say("Go.")
    assert one.until(lambda f: f.get("subtype") == "init")["permissionMode"] == "plan"
    assert one.result()["result"] == "one"


def test_bypass_is_available_where_the_start_said_so(host: Callable[..., Any]) -> None:
    one = host(TALK, "--allow-dangerously-skip-permissions", IS_SANDBOX="1")
    assert one.call("set_permission_mode", mode="bypassPermissions") == {}


def test_the_context_is_told_part_by_part(host: Callable[..., Any]) -> None:
    one = host(TALK)
    one.say("Go.")
    one.result()
    told = one.call("get_context_usage")
    names = {c["name"]: c for c in told["categories"]}
    assert {"System prompt", "System tools", "Messages", "Free space"} <= names.keys()
    assert sum(c["tokens"] for c in told["categories"]) == told["maxTokens"] and told["totalTokens"] > 0
    assert 0 < told["percentage"] < 100 and told["model"] == "script:script" and told["isAutoCompactEnabled"] is True
    assert told["apiUsage"].keys() == {"input_tokens", "output_tokens", "cache_creation_input_tokens", "cache_read_input_tokens"}
    assert "Bash" in {t["name"] for t in told["systemTools"]} and told["messageBreakdown"]["assistantMessageTokens"] > 0


def test_the_model_changes_between_turns_and_within_one(host: Callable[..., Any], tmp_path: Path) -> None:
    (tmp_path / "other.yaml").write_text("turns:\n  - text: from the other\n  - text: still the other\n")
    one = host("turns:\n  - calls: [{tool: Bash, id: toolu_1, input: {command: "
               "'touch begun; while [ ! -e go ]; do sleep 0.05; done'}}]\n  - text: first again\n", "--allowedTools", "Bash")
    one.say("Go.")
    one.until(lambda f: f["type"] == "assistant")
    while not (tmp_path / "begun").exists():
        pass
    assert one.call("set_model", model="script:other.yaml") == {}
    (tmp_path / "go").touch()
    assert one.result()["result"] == "from the other"
    assert one.call("set_model", model=None) == {}
    one.say("And now?")
    assert one.until(lambda f: f.get("subtype") == "init", len(one.seen))["model"] == "script:script"
    assert one.result()["result"] == "first again"


# -- interrupts --------------------------------------------------------------------------------------------------------------
def test_an_interrupt_ends_the_running_tool_behind_its_receipt(host: Callable[..., Any], tmp_path: Path) -> None:
    one = host(SLEEP, "--allowedTools", "Bash")
    one.say("Go.")
    while not (tmp_path / "begun").exists():
        pass
    one.say("Wait for your turn.", uuid="11111111-1111-4111-8111-111111111111")
    id = one.ask("interrupt")
    result = one.result()
    assert result["subtype"] == "error_during_execution" and result["is_error"] and result["terminal_reason"] == "aborted_tools"
    receipt = one.answer(id)
    assert receipt["response"] == {"still_queued": ["11111111-1111-4111-8111-111111111111"]}
    order = [f["type"] for f in one.seen if f["type"] in ("control_response", "result")]
    assert order == ["control_response", "result"]
    assert one.result()["result"] == "after" and one.end() == 0


def test_queued_prompts_are_dropped_on_demand(host: Callable[..., Any], tmp_path: Path) -> None:
    one = host(SLEEP, "--allowedTools", "Bash")
    one.say("Go.")
    while not (tmp_path / "begun").exists():
        pass
    one.say("Never.", uuid="11111111-1111-4111-8111-111111111111")
    assert one.call("interrupt", cancel_queued=True) == {
        "still_queued": [], "cancelled": ["11111111-1111-4111-8111-111111111111"]}
    assert one.result()["terminal_reason"] == "aborted_tools"
    assert one.end() == 1 and sum(f["type"] == "result" for f in one.seen) == 1


def test_an_interrupt_when_idle_does_nothing_and_one_at_the_first_byte_ends_the_turn(host: Callable[..., Any]) -> None:
    one = host("turns:\n  - {text: one, delay: 30, when: {contains: Go}}\n  - text: two\n")
    assert one.call("interrupt") == {"still_queued": []}
    one.say("Go.")
    one.ask("interrupt")
    first = one.result()
    assert first["subtype"] == "error_during_execution" and first["terminal_reason"] == "aborted_streaming"
    one.say("Still there?")
    assert one.result()["subtype"] == "success" and one.end() == 0


# -- tasks, files ---------------------------------------------------------------------------------------------------------------
def test_a_background_task_is_stopped_and_told_of(host: Callable[..., Any]) -> None:
    one = host("turns:\n  - calls: [{tool: Bash, input: {command: sleep 60, run_in_background: true}}]\n  - text: begun\n",
               "--allowedTools", "Bash")
    one.say("Go.")
    task = one.until(lambda f: f.get("subtype") == "task_started")["task_id"]
    one.result()
    assert one.call("stop_task", task_id=task) == {}
    told = one.until(lambda f: f.get("subtype") == "task_notification")
    assert told["task_id"] == task and told["status"] == "stopped"
    assert "is running" in one.refusal("stop_task", task_id=task)


def test_files_go_back_to_a_message(host: Callable[..., Any], tmp_path: Path) -> None:
    file = tmp_path / "a.txt"
    one = host(f"turns:\n  - calls: [{{tool: Write, input: {{file_path: '{file}', content: changed}}}}]\n  - text: done\n",
               "--permission-mode", "acceptEdits", CLAUDE_CODE_ENABLE_SDK_FILE_CHECKPOINTING="true")
    one.say("Go.", uuid="22222222-2222-4222-8222-222222222222")
    one.result()
    assert file.read_text() == "changed"
    assert one.call("rewind_files", user_message_id="22222222-2222-4222-8222-222222222222", dry_run=True)["canRewind"] is True
    assert file.exists()
    assert one.call("rewind_files", user_message_id="22222222-2222-4222-8222-222222222222")["filesChanged"]
    assert not file.exists()
    assert "No file checkpoint found for this message" in one.refusal("rewind_files", user_message_id="nothing")


# -- anything at all ------------------------------------------------------------------------------------------------------------
VALUES: tuple[Any, ...] = (None, True, False, 0, -1, 2.5, 10**12, "", "x", "default", "plan", "ü\u2028\u0085😀", [], ["x"], {},
                           {"x": [1]}, "x" * 5000)
SUBTYPES = ("initialize", "interrupt", "set_permission_mode", "set_model", "rewind_files", "mcp_status", "mcp_reconnect",
            "mcp_toggle", "stop_task", "get_context_usage", "set_max_thinking_tokens", "mcp_set_servers",
            "apply_flag_settings", "can_use_tool",
            "nothing", "")
FIELDS = ("hooks", "agents", "skills", "mode", "user_message_id", "serverName", "enabled", "task_id", "cancel_queued", "dry_run",
          "max_thinking_tokens", "servers", "subtype2", "excludeDynamicSections", "forwardSubagentText")


def any_request(chance: random.Random) -> Any:
    if chance.random() < 0.05:
        return chance.choice(VALUES)
    subtype = chance.choice([*SUBTYPES, chance.choice(VALUES)])
    return {"subtype": subtype, **{name: chance.choice(VALUES) for name in chance.sample(FIELDS, chance.randint(0, 5))}}


def prompt(n: int) -> dict[str, Any]:
    return {"type": "user", "uuid": f"33333333-3333-4333-8333-{n:012d}", "message": {"role": "user", "content": f"prompt {n}"}}


def test_any_requests_cut_at_any_byte_get_one_answer_each(host: Callable[..., Any]) -> None:
    """``KERNEL_CONTROL_FUZZ`` says how many, ``SEED`` which."""
    seed = int(os.environ.get("SEED") or random.randrange(2**32))
    print(f"SEED={seed}")
    chance = random.Random(seed)
    frames: list[dict[str, Any]] = []
    for n in range(FUZZ):
        frames.append({"type": "control_request", "request_id": f"f{n}", "request": any_request(chance)})
        if chance.random() < 0.05:
            frames.append(prompt(n))
        if chance.random() < 0.2:
            frames.append(chance.choice([
                {"type": "control_response", "response": chance.choice(VALUES)}, {"type": "control_request", "request": {}},
                {"type": "control_cancel_request", "request_id": chance.choice(VALUES)}, {"type": chance.choice(VALUES)},
                {"type": "control_request", "request_id": f"f{chance.randint(0, n)}", "request": {"subtype": "mcp_status"}}]))
    lines = [json.dumps(f, ensure_ascii=chance.random() < 0.5).encode() + chance.choice([b"\n", b"\r\n", b"\n\n"])
             for f in frames]
    data = b"".join(lines)
    one = host("turns:\n  - {text: still here, repeat: true}\n")
    at = 0
    while at < len(data):
        size = chance.randint(1, 700)
        one.write(data[at:at + size])
        at += size
    one.call("set_model", model=None)
    one.say("Are you there?", uuid=prompt(FUZZ)["uuid"])
    last = one.until(lambda f: f["type"] == "result" and f.get("user_message_uuid") == prompt(FUZZ)["uuid"])
    assert last["result"] == "still here"
    assert one.end() == 0, one.stderr
    results = Counter(f["user_message_uuid"] for f in one.seen if f["type"] == "result")
    assert set(results.values()) == {1} and results.keys() <= {prompt(n)["uuid"] for n in range(FUZZ + 1)}
    answers = Counter(f["response"]["request_id"] for f in one.seen if f["type"] == "control_response")
    assert {f"f{n}" for n in range(FUZZ)} <= answers.keys() and set(answers.values()) == {1}
