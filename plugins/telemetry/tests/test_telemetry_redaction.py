"""What must never be told, and what each gate opens (observability contract, sections 1 and 6)."""

from __future__ import annotations

import json
import random
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, strategies as st
from kernel_telemetry.redaction import MARK, PLUGINS, Secrets, cut, plugin_name, tool_name

from kernel.testing import Kit, call, installed, text

from . import one_run

needs_all = pytest.mark.skipif(not all(map(installed, one_run.PLUGINS)), reason="needs " + ", ".join(one_run.PLUGINS))
SECRET = one_run.SECRET
GATES = ("OTEL_LOG_USER_PROMPTS", "OTEL_LOG_ASSISTANT_RESPONSES", "OTEL_LOG_TOOL_DETAILS", "OTEL_LOG_TOOL_CONTENT")


def everything(told: Any) -> str:
    """Every attribute of every event, span, span event and data point, as one text."""
    logs = told.logs.get_finished_logs()
    found = [[dict(log.log_record.attributes), log.log_record.body, dict(log.resource.attributes)] for log in logs]
    found += [[dict(s.attributes), s.status.description, [dict(e.attributes) for e in s.events]] for s in told.spans]
    found += [[dict(p.attributes) for p in m.data.data_points] for m in told.metrics]
    return json.dumps(found, default=str)


@needs_all
def test_with_all_gates_closed_nothing_of_a_persons_is_told(tmp_path: Path, told: Any) -> None:
    one_run.play(tmp_path)
    whole = everything(told)
    for planted in (SECRET, "Please do the work", "I begin", "echo", "new.py", "forbidden", "Track", "Missing", "nothing about",
                    str(tmp_path)):
        assert planted not in whole, planted


@needs_all
def test_with_all_gates_open_secrets_are_still_hidden(tmp_path: Path, told: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    for gate in (*GATES, "OTEL_LOG_RAW_API_BODIES"):
        monkeypatch.setenv(gate, "1")
    monkeypatch.setenv("ANTHROPIC_AUTH_TOKEN", "please-do-the-work")
    one_run.play(tmp_path)
    whole = everything(told)
    assert SECRET not in whole and "[redacted]" in whole
    for shown in ("Please do the work", "I begin", "echo", "forbidden", "Track", "nothing about"):
        assert shown in whole, shown
    names = {e["event.name"] for e in told.events}
    assert {"api_request_body", "api_response_body"} <= names


@needs_all
@pytest.mark.parametrize(("gate", "event", "attribute", "shown"), [
    ("OTEL_LOG_USER_PROMPTS", "user_prompt", "prompt", "Please do the work"),
    ("OTEL_LOG_ASSISTANT_RESPONSES", "assistant_response", "response", "I begin"),
    ("OTEL_LOG_TOOL_DETAILS", "tool_result", "tool_input", "echo"),
    ("OTEL_LOG_TOOL_DETAILS", "tool_decision", "tool_parameters", "echo")])
def test_one_gate_opens_one_thing(tmp_path: Path, told: Any, monkeypatch: pytest.MonkeyPatch, gate: str, event: str,
                                  attribute: str, shown: str) -> None:
    monkeypatch.setenv(gate, "1")
    if gate == "OTEL_LOG_USER_PROMPTS":
        monkeypatch.setenv("OTEL_LOG_ASSISTANT_RESPONSES", "0")
    one_run.play(tmp_path)
    assert shown in told.named(event)[0][attribute]
    others = {"user_prompt": "prompt", "assistant_response": "response"}
    for name, closed in others.items():
        if name != event:
            assert {e[closed] for e in told.named(name)} == {"<REDACTED>"}
    content = [e for s in told.spans for e in s.events if e.name == "tool.output"]
    assert not content, "OTEL_LOG_TOOL_CONTENT is closed"


@needs_all
def test_content_of_tools_is_in_span_events(tmp_path: Path, told: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OTEL_LOG_TOOL_CONTENT", "1")
    one_run.play(tmp_path)
    outputs = [e.attributes for s in told.spans for e in s.events if e.name == "tool.output"]
    assert outputs and any("redacted" in o["tool.output"] for o in outputs) and SECRET not in everything(told)


def test_raw_bodies_go_to_files(tmp_path: Path, told: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    folder = tmp_path / "bodies"
    monkeypatch.setenv("OTEL_LOG_RAW_API_BODIES", f"file:{folder}")
    Kit(tmp_path, [[{"type": "thinking", "thinking": "hm", "signature": "x"}, text("hi")]], installed=["telemetry"]).play("hello")
    [asked], [answered] = told.named("api_request_body"), told.named("api_response_body")
    request, response = (json.loads(Path(e["body_ref"]).read_text()) for e in (asked, answered))
    assert request["messages"][0]["content"][0]["text"] == "hello" and "body" not in asked
    assert [b["type"] for b in response["content"]] == ["thinking", "text"] and "hm" not in json.dumps(response)
    assert {p.stat().st_mode & 0o777 for p in folder.iterdir()} == {0o600} and folder.stat().st_mode & 0o777 == 0o700


def units(value: str) -> int:
    return len(value.encode("utf-16-le", "surrogatepass")) // 2


@pytest.mark.parametrize("value", ["a" * 99, "a" * 100, "a" * 101, "😀" * 49, "😀" * 50, "😀" * 51, "a" + "😀" * 50, "é" * 101])
def test_content_is_cut_at_the_limit_and_not_inside_an_emoji(value: str) -> None:
    short = cut(value, 100)
    if units(value) <= 100:
        assert short == value
        return
    assert units(short) <= 100 and short.endswith(MARK)
    short.encode("utf-8")  # no half of a pair is left
    kept = short.removesuffix(MARK)
    assert value.startswith(kept) and units(kept) in (100 - len(MARK), 99 - len(MARK))


@given(st.text(alphabet=st.characters(codec="utf-16"), max_size=80), st.integers(0, 90))
def test_cut_holds_its_limit_for_any_text(value: str, most: int) -> None:
    short = cut(value, most)
    assert units(short) <= most
    assert short == value or units(value) > most
    short.encode("utf-8")


def test_the_limit_counts_for_a_prompt(tmp_path: Path, told: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OTEL_LOG_USER_PROMPTS", "1")
    monkeypatch.setenv("CLAUDE_CODE_OTEL_CONTENT_MAX_LENGTH", "40")
    Kit(tmp_path, [text("hi")], installed=["telemetry"]).play("x" * 28 + "😀" * 20)
    [event] = told.named("user_prompt")
    assert event["prompt"] == "x" * 28 + MARK and event["prompt_length"] == 48
    [span] = [s for s in told.spans if s.name.endswith("interaction")]
    assert span.attributes["user_prompt"] == event["prompt"]


@pytest.mark.parametrize("secret", ["sk-ant-api03-abcdefgh12345678", "ghp_0123456789abcdefghij", "AKIA0123456789ABCDEF",
                                    "eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiIxMjM0NTY3ODkwIn0.c2lnbmF0dXJl"])
def test_values_that_look_like_keys_are_hidden(secret: str) -> None:
    assert secret not in Secrets({}).hide(f"use {secret} here") and "use " in Secrets({}).hide(f"use {secret} here")


def test_values_of_credential_variables_are_hidden() -> None:
    seed = random.randrange(10**6)
    value = f"not-shaped-like-a-key-{seed}"
    headers = f"X-Proxy: {value}-two\nb: c"
    secrets = Secrets({"MY_SERVICE_API_KEY": value, "ANTHROPIC_CUSTOM_HEADERS": headers, "PATH": "/usr/bin"})
    hidden = secrets.hide(f"{value} {value}-two /usr/bin Authorization: Bearer abcdef123456")
    assert value not in hidden and "abcdef123456" not in hidden and "/usr/bin" in hidden, seed


def test_names() -> None:
    assert tool_name("Bash", details=False) == "Bash"
    assert tool_name("mcp__mine__look", details=False) == "mcp_tool"
    assert tool_name("MyTool", details=False) == "third-party" and tool_name("MyTool", details=True) == "MyTool"
    assert plugin_name("skills@installed", frozenset(), details=False) == ("skills", "builtin")
    assert plugin_name("skills@market", frozenset(), details=False) == ("third-party", "third-party"), "another one of that name"
    assert {p.name for p in (Path(__file__).parents[3] / "plugins").iterdir()} >= PLUGINS
    assert plugin_name("p@market", frozenset(), details=False) == ("third-party", "third-party")
    assert plugin_name("p@market", frozenset({"market"}), details=False) == ("p", "market")


@needs_all
def test_no_id_path_or_text_is_an_attribute_of_a_metric(tmp_path: Path, told: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OTEL_METRICS_INCLUDE_SESSION_ID", "false")
    one_run.play(tmp_path)
    ids = {e["prompt.id"] for e in told.events if "prompt.id" in e} | {e["session.id"] for e in told.events}
    values = {str(v) for m in told.metrics for p in m.data.data_points for v in p.attributes.values()}
    assert not values & ids and not any("/" in v or "call_" in v for v in values)


def test_switches_of_metric_attributes(tmp_path: Path, told: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OTEL_RESOURCE_ATTRIBUTES", "team=a,session.id=fake,user.id=fake,app.version=0")
    for name in ("VERSION", "ENTRYPOINT"):
        monkeypatch.setenv(f"OTEL_METRICS_INCLUDE_{name}", "true")
    run = Kit(tmp_path, [call("Nope"), text("hi")], installed=["telemetry"]).play("hello")
    [(_, attributes)] = told.points("claude_code.session.count")
    assert attributes["team"] == "a" and attributes["session.id"] == run.session.id
    assert attributes["app.version"] and attributes["app.entrypoint"] == "sdk-cli"
    assert told.events[0]["team"] == "a" and told.logs.get_finished_logs()[0].resource.attributes["team"] == "a"
    assert "fake" not in (attributes["user.id"], told.events[0]["user.id"]) and attributes["app.version"] != "0"


def test_custom_attributes_can_be_kept_off_metrics(tmp_path: Path, told: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OTEL_RESOURCE_ATTRIBUTES", "team=a")
    monkeypatch.setenv("OTEL_METRICS_INCLUDE_RESOURCE_ATTRIBUTES", "false")
    Kit(tmp_path, [text("hi")], installed=["telemetry"]).play("hello")
    assert not any("team" in a for _, a in told.points("claude_code.token.usage")) and told.events[0]["team"] == "a"
