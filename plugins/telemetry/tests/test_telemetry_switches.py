"""Off by default; what is switched and how (observability contract, section 1)."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from kernel_telemetry import switches

from kernel import Options, Settings
from kernel.settings import Layer
from kernel.testing import Kit, text

PLAIN = {"OTEL_METRICS_EXPORTER": "otlp", "OTEL_LOGS_EXPORTER": "otlp", "OTEL_EXPORTER_OTLP_PROTOCOL": "http/protobuf"}


def settings(tmp_path: Path, managed: dict[str, Any] | None = None, user: dict[str, Any] | None = None) -> Settings:
    layers = [Layer("managed", "managed", managed, "/")] if managed else []
    layers += [Layer("user", "user", user, "/")] if user else []
    return Settings(layers, [], config_dir=tmp_path, project_root=tmp_path, trusted=True)


def read(tmp_path: Path, env: dict[str, str], **more: Any) -> switches.Switches:
    options = Options(cwd=tmp_path, **more.pop("options", {}))
    return switches.read(settings(tmp_path, **more), options, {**PLAIN, **env})


@pytest.mark.parametrize("env", [{}, {"CLAUDE_CODE_ENABLE_TELEMETRY": "0"}, {"CLAUDE_CODE_ENABLE_TELEMETRY": "1"}],
                         ids=["off", "zero", "no exporter"])
def test_off_means_no_middleware_and_nothing_computed(tmp_path: Path, kernel_home: Path, monkeypatch: pytest.MonkeyPatch,
                                                      env: dict[str, str]) -> None:
    for name, value in env.items():
        monkeypatch.setenv(name, value)
    kit = Kit(tmp_path, [text("hi")], installed=["telemetry"])
    run = kit.play("hello")
    assert "telemetry" not in kit.harness.middleware.names()
    assert [type(m).__name__ for m in run.session.middleware] == ["_Witness"] and run.session.hearers == []
    assert not (kernel_home / ".claude.json").exists()


def test_off_imports_nothing_but_the_plugin_module(tmp_path: Path) -> None:
    """In a process of its own: neither the SDK nor the rest of this package is entered."""
    program = """if True:
        import sys
        from pathlib import Path
        from kernel.testing import Kit, text
        Kit(Path(sys.argv[1]), [text("hi")], installed=["telemetry"]).play("hello")
        ours = sorted(m for m in sys.modules if m.startswith(("kernel_telemetry", "opentelemetry")))
        print(",".join(ours))"""
    done = subprocess.run([sys.executable, "-c", program, str(tmp_path)], capture_output=True, text=True, check=True,
                          env={"HOME": str(tmp_path), "PATH": "/usr/bin:/bin"})
    assert done.stdout.strip() == "kernel_telemetry,kernel_telemetry.plugin"


def test_traces_need_both_switches(tmp_path: Path) -> None:
    env = {"OTEL_TRACES_EXPORTER": "otlp"}
    assert read(tmp_path, env).traces.exporters == ()
    for name in ("CLAUDE_CODE_ENHANCED_TELEMETRY_BETA", "ENABLE_ENHANCED_TELEMETRY_BETA"):
        assert read(tmp_path, {**env, name: "1"}).traces.exporters == ("otlp",)


def test_exporters_are_a_list_and_a_wrong_one_is_named(tmp_path: Path) -> None:
    found = read(tmp_path, {"OTEL_METRICS_EXPORTER": "prometheus, console,none", "OTEL_LOGS_EXPORTER": "prometheus"})
    assert found.metrics.exporters == ("prometheus", "console") and found.logs.exporters == ()
    assert found.problems == ["OTEL_LOGS_EXPORTER=prometheus: expected one of otlp, console, none; it is left out"]


def test_the_protocol_has_no_default(tmp_path: Path) -> None:
    found = read(tmp_path, {"OTEL_EXPORTER_OTLP_PROTOCOL": ""})
    assert not found.any
    assert found.problems[0] == ("OTEL_EXPORTER_OTLP_PROTOCOL is not set, so no metrics are exported: set it to one of grpc, "
                                 "http/json, http/protobuf")
    found = read(tmp_path, {"OTEL_EXPORTER_OTLP_PROTOCOL": "", "OTEL_EXPORTER_OTLP_LOGS_PROTOCOL": "http/json"})
    assert found.logs.protocol == "http/json" and found.metrics.exporters == ()


def test_endpoints_and_headers_of_one_signal(tmp_path: Path) -> None:
    found = read(tmp_path, {"OTEL_EXPORTER_OTLP_ENDPOINT": "http://a:1/", "OTEL_EXPORTER_OTLP_LOGS_ENDPOINT": "http://b:2/x",
                            "OTEL_EXPORTER_OTLP_HEADERS": "A=1,b=two%20words", "OTEL_EXPORTER_OTLP_LOGS_HEADERS": "a=3"})
    assert found.metrics.endpoint == "http://a:1/v1/metrics" and found.logs.endpoint == "http://b:2/x"
    assert found.metrics.headers == {"a": "1", "b": "two words"} and found.logs.headers == {"a": "3", "b": "two words"}
    assert read(tmp_path, {"OTEL_EXPORTER_OTLP_ENDPOINT": "http://a:1", "OTEL_EXPORTER_OTLP_PROTOCOL": "grpc"}).logs.endpoint \
        == "http://a:1"


def test_resource_attributes(tmp_path: Path) -> None:
    found = read(tmp_path, {"OTEL_RESOURCE_ATTRIBUTES": "team=a%20b,cost.center=7,bad one=x,empty,user.id=mine"})
    assert found.custom == {"team": "a b", "cost.center": "7", "user.id": "mine"}


@pytest.mark.parametrize(("given", "format", "refused"), [
    ({}, "stream-json", True), ({}, "json", True), ({}, "text", False), ({"CLAUDE_CODE_ENTRYPOINT": "sdk-py"}, "text", True)])
def test_console_is_refused_where_stdout_is_a_programs(tmp_path: Path, given: dict[str, str], format: str, refused: bool) -> None:
    found = read(tmp_path, {**given, "OTEL_LOGS_EXPORTER": "console"}, options={"output_format": format})
    assert found.logs.exporters == (() if refused else ("console",))
    assert bool(found.problems) is refused


def test_prompts_open_responses_unless_those_are_closed(tmp_path: Path) -> None:
    for env, prompts, responses in (({}, False, False), ({"OTEL_LOG_USER_PROMPTS": "1"}, True, True),
                                    ({"OTEL_LOG_USER_PROMPTS": "1", "OTEL_LOG_ASSISTANT_RESPONSES": "0"}, True, False),
                                    ({"OTEL_LOG_ASSISTANT_RESPONSES": "1"}, False, True)):
        found = read(tmp_path, env)
        assert (found.prompts, found.responses) == (prompts, responses)


def test_raw_bodies_open_the_other_three(tmp_path: Path) -> None:
    traced = {"CLAUDE_CODE_ENHANCED_TELEMETRY_BETA": "1", "OTEL_TRACES_EXPORTER": "otlp"}
    found = read(tmp_path, {**traced, "OTEL_LOG_RAW_API_BODIES": "file:/tmp/x"})
    assert found.prompts and found.responses and found.details and found.content and found.bodies == "/tmp/x"
    assert read(tmp_path, {"OTEL_LOG_RAW_API_BODIES": "1"}).bodies == "inline"
    assert not read(tmp_path, {"OTEL_LOG_TOOL_CONTENT": "1"}).content, "without traces there is no place for it"


GENERIC, ONE = "OTEL_EXPORTER_OTLP_ENDPOINT", "OTEL_EXPORTER_OTLP_LOGS_ENDPOINT"


@pytest.mark.parametrize(("managed", "logs", "metrics"), [
    ({}, "http://mine", "http://my-all/v1/metrics"),
    ({GENERIC: "http://firm"}, "http://firm/v1/logs", "http://firm/v1/metrics"),
    ({GENERIC: "http://firm", ONE: "http://firm-logs"}, "http://firm-logs", "http://firm/v1/metrics"),
    ({"OTEL_EXPORTER_OTLP_HEADERS": "authorization=x"}, "", ""),
    ({"OTEL_EXPORTER_OTLP_METRICS_CLIENT_KEY": "k", ONE: "http://firm-logs"}, "http://firm-logs", "")])
def test_managed_settings_take_away_where_a_person_would_send_it(tmp_path: Path, managed: dict[str, str], logs: str,
                                                                 metrics: str) -> None:
    env = {GENERIC: "http://my-all", ONE: "http://mine", **managed}  # the harness puts settings' env into the process's
    found = read(tmp_path, env, managed={"env": managed} if managed else None)
    assert (found.logs.endpoint, found.metrics.endpoint) == (logs, metrics)


def test_a_managed_helper_s_headers_go_to_no_endpoint_of_a_person(tmp_path: Path) -> None:
    found = read(tmp_path, {GENERIC: "http://my-all"}, managed={"otelHeadersHelper": "/firm/headers"})
    assert (found.helper, found.logs.endpoint) == ("/firm/headers", "")


def test_settings_of_ours(tmp_path: Path) -> None:
    found = read(tmp_path, {}, user={"kernel": {"telemetry": {"prefix": "acme", "officialMarketplaces": ["acme-market"]}},
                                     "otelHeadersHelper": "./headers.sh"})
    assert (found.prefix, found.official, found.helper) == ("acme", frozenset({"acme-market"}), "./headers.sh")
    found = read(tmp_path, {}, user={"kernel": {"telemetry": 7}, "otelHeadersHelper": ["x"]})
    assert (found.prefix, found.helper) == ("claude_code", "")


def test_problems_are_announced(tmp_path: Path, switched: Callable[..., None]) -> None:
    switched(OTEL_LOGS_EXPORTER="carrier-pigeon", OTEL_METRICS_EXPORTER="none", OTEL_TRACES_EXPORTER="none")
    kit = Kit(tmp_path, [text("hi")], installed=["telemetry"])
    run = kit.play("hello")
    assert any("plugin telemetry: OTEL_LOGS_EXPORTER=carrier-pigeon" in a for a in kit.harness.announced)
    assert run.session.hearers == [], "nothing would be exported, so nothing is watched"
