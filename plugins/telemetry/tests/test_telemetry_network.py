"""Real exporters: an OTLP receiver behind the ``kernel`` command, servers that are down or hang, Prometheus, a headers helper."""

from __future__ import annotations

import json
import os
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any
from urllib.request import urlopen

import pytest

from kernel.testing import Kit, installed, text

SCRIPT = """\
turns:
  - text: I look.
    calls: [{tool: Bash, input: {command: "echo hello"}}]
  - text: Done.
"""


def kernel(folder: Path, *flags: str, script: str = SCRIPT, **env: str) -> subprocess.CompletedProcess[str]:
    (folder / "talk.yaml").write_text(script)
    home = folder / "home"
    home.mkdir(exist_ok=True)
    base = {"HOME": str(home), "PATH": os.environ["PATH"], "CLAUDE_CODE_ENABLE_TELEMETRY": "1", "OTEL_METRICS_EXPORTER": "otlp",
            "CLAUDE_CODE_ENHANCED_TELEMETRY_BETA": "1", "OTEL_LOGS_EXPORTER": "otlp", "OTEL_TRACES_EXPORTER": "otlp",
            "OTEL_EXPORTER_OTLP_PROTOCOL": "http/protobuf"}
    return subprocess.run([sys.executable, "-m", "kernel", "-p", "hello", "--model", "script:talk.yaml", "--allowedTools", "Bash",
                           *flags], cwd=folder, env={**base, **env}, capture_output=True, text=True, timeout=60)


needs_command = pytest.mark.skipif(
    not all(map(installed, ("headless", "model-script", "tools-shell", "permissions"))), reason="needs the print mode")


def attributes(items: Any) -> dict[str, Any]:
    return {item.key: getattr(item.value, item.value.WhichOneof("value")) for item in items}


@needs_command
def test_the_command_exports_to_a_receiver(tmp_path: Path, receiver: Any) -> None:
    done = kernel(tmp_path, OTEL_EXPORTER_OTLP_ENDPOINT=receiver.url, OTEL_EXPORTER_OTLP_COMPRESSION="gzip",
                  OTEL_EXPORTER_OTLP_HEADERS="x-team=blue", OTEL_RESOURCE_ATTRIBUTES="team=blue")
    assert (done.returncode, done.stdout.strip(), done.stderr) == (0, "Done.", "")
    records = [r for m in receiver.of("logs") for rl in m.resource_logs for sl in rl.scope_logs for r in sl.log_records]
    names = [attributes(r.attributes)["event.name"] for r in records]
    assert {"user_prompt", "api_request", "tool_decision", "tool_result", "kernel.run", "plugin_loaded"} <= set(names)
    assert records[0].body.string_value == f"claude_code.{names[0]}" == records[0].event_name
    scopes = [sm for e in receiver.of("metrics") for rm in e.resource_metrics for sm in rm.scope_metrics]
    metrics = {m.name: m for sm in scopes for m in sm.metrics}
    assert metrics["claude_code.session.count"].sum.aggregation_temporality == 1, "delta"
    assert metrics["claude_code.token.usage"].unit == "tokens"
    spans = [s for e in receiver.of("traces") for rs in e.resource_spans for ss in rs.scope_spans for s in ss.spans]
    assert {s.name for s in spans} >= {"claude_code.interaction", "claude_code.llm_request", "claude_code.tool.execution"}
    resource = attributes(receiver.of("logs")[0].resource_logs[0].resource.attributes)
    assert resource["service.name"] == "kernel" and resource["team"] == "blue" and resource["os.type"]
    assert {h["x-team"] for _, h, _ in receiver.got} == {"blue"}
    config = tmp_path / "home" / ".claude.json"
    kept = json.loads(config.read_text())["userID"]
    assert {attributes(r.attributes)["user.id"] for r in records} == {kept} and config.stat().st_mode & 0o777 == 0o600
    kernel(tmp_path, OTEL_EXPORTER_OTLP_ENDPOINT=receiver.url)
    assert json.loads(config.read_text())["userID"] == kept


@needs_command
def test_json_over_http_has_hexadecimal_ids(tmp_path: Path, receiver: Any) -> None:
    kernel(tmp_path, OTEL_EXPORTER_OTLP_ENDPOINT=receiver.url, OTEL_EXPORTER_OTLP_PROTOCOL="http/json")
    spans = [s for e in receiver.of("traces") for rs in e["resourceSpans"] for ss in rs["scopeSpans"] for s in ss["spans"]]
    assert spans and all(len(s["traceId"]) == 32 and int(s["spanId"], 16) for s in spans)
    assert receiver.of("logs")[0]["resourceLogs"] and receiver.of("metrics")[0]["resourceMetrics"]


@needs_command
@pytest.mark.parametrize("kind", ["closed", "hanging", "failing"])
def test_a_server_that_is_down_changes_nothing_but_the_debug_log(tmp_path: Path, kind: str) -> None:
    server = socket.create_server(("127.0.0.1", 0))
    port = server.getsockname()[1]
    if kind == "closed":
        server.close()
    elif kind == "failing":
        def refuse() -> None:
            while True:
                try:
                    connection, _ = server.accept()
                except OSError:
                    return
                with connection:
                    connection.recv(65536)
                    connection.sendall(b"HTTP/1.1 500 No\r\ncontent-length: 0\r\nconnection: close\r\n\r\n")

        threading.Thread(target=refuse, daemon=True).start()
    done = kernel(tmp_path, "--output-format", "json", "--debug-file", str(tmp_path / "log"),
                  OTEL_EXPORTER_OTLP_ENDPOINT=f"http://127.0.0.1:{port}", CLAUDE_CODE_OTEL_SHUTDOWN_TIMEOUT_MS="700",
                  OTEL_EXPORTER_OTLP_TIMEOUT="3600")  # without the limit the command would not end
    server.close()
    result = json.loads(done.stdout)
    assert (done.returncode, result["result"], done.stderr) == (0, "Done.", "")
    log = (tmp_path / "log").read_text()
    assert "telemetry: " in log
    if kind == "hanging":
        assert "not everything was exported within 0.7 s" in log


@needs_command
def test_the_console_is_refused_where_stdout_is_json(tmp_path: Path) -> None:
    done = kernel(tmp_path, "--output-format", "stream-json", "--verbose", OTEL_METRICS_EXPORTER="console",
                  OTEL_LOGS_EXPORTER="console", OTEL_TRACES_EXPORTER="console")
    assert done.returncode == 0 and all(json.loads(line)["type"] for line in done.stdout.splitlines())
    assert "OTEL_LOGS_EXPORTER=console is refused: it would write between the JSON on stdout" in done.stderr
    done = kernel(tmp_path, OTEL_LOGS_EXPORTER="console", OTEL_METRICS_EXPORTER="none", OTEL_TRACES_EXPORTER="none")
    assert "claude_code.user_prompt" in done.stdout and done.stderr == ""


@needs_command
def test_a_project_that_is_not_trusted_cannot_switch_it_on(tmp_path: Path, receiver: Any) -> None:
    env = {"CLAUDE_CODE_ENABLE_TELEMETRY": "1", "OTEL_EXPORTER_OTLP_ENDPOINT": receiver.url, "OTEL_LOG_USER_PROMPTS": "1"}
    (tmp_path / ".claude").mkdir()
    (tmp_path / ".claude" / "settings.json").write_text(json.dumps({"env": env}))
    done = kernel(tmp_path, CLAUDE_CODE_ENABLE_TELEMETRY="0", OTEL_EXPORTER_OTLP_ENDPOINT="")
    assert done.returncode == 0 and not receiver.got
    assert "ignored: this workspace has not been trusted" in done.stderr
    assert not (tmp_path / "home" / ".claude.json").exists()


@needs_command
def test_headers_come_from_a_helper(tmp_path: Path, receiver: Any) -> None:
    helper = tmp_path / "headers.sh"
    helper.write_text("#!/bin/sh\nenv | grep -q ^OTEL_ && exit 1\necho run >> count\n"
                      "echo '{\"Authorization\": \"Bearer from-helper-1\"}'\n")
    helper.chmod(0o755)
    settings = json.dumps({"otelHeadersHelper": str(helper)})
    done = kernel(tmp_path, "--settings", settings, OTEL_EXPORTER_OTLP_ENDPOINT=receiver.url, OTEL_LOG_USER_PROMPTS="1")
    assert done.stderr == "" and {h["authorization"] for _, h, _ in receiver.got} == {"Bearer from-helper-1"}
    assert (tmp_path / "count").read_text() == "run\n", "once for all signals, until it is old"
    helper.write_text("#!/bin/sh\nexit 3\n")
    done = kernel(tmp_path, "--settings", settings, OTEL_EXPORTER_OTLP_ENDPOINT=receiver.url)
    assert done.returncode == 0 and "otelHeadersHelper failed: it ended with exit code 3" in done.stderr


def test_headers_are_renewed_when_they_are_old(tmp_path: Path, told: Any) -> None:
    from kernel_telemetry.otlp import Helper
    from kernel_telemetry.pipeline import Pipeline
    from kernel_telemetry.switches import Switches

    (tmp_path / "h.sh").write_text(f"echo x >> {tmp_path}/n; echo '{{\"n\": \"'$(wc -l < {tmp_path}/n)'\"}}'")
    pipeline = Pipeline(Switches(helper=f"sh {tmp_path}/h.sh", helper_ms=1), lambda pipeline: None)  # type: ignore[arg-type,return-value]
    helper = Helper(pipeline)
    first = helper.headers()
    time.sleep(0.01)
    assert (first, helper.headers()) == ({"n": "1"}, {"n": "2"})


def test_prometheus_is_scraped(tmp_path: Path, switched: Callable[..., None]) -> None:
    pytest.importorskip("prometheus_client")
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    switched(OTEL_METRICS_EXPORTER="prometheus", OTEL_LOGS_EXPORTER="none", OTEL_TRACES_EXPORTER="none",
             OTEL_EXPORTER_PROMETHEUS_PORT=str(port))
    Kit(tmp_path, [text("hi")], installed=["telemetry"]).play("hello")
    with urlopen(f"http://localhost:{port}/metrics", timeout=10) as answer:
        page = answer.read().decode()
    assert 'claude_code_token_usage_total{' in page and 'type="input"' in page, "no unit in the name"
    assert "kernel_run_duration_bucket" in page


def test_a_missing_package_is_named(tmp_path: Path, switched: Callable[..., None], monkeypatch: pytest.MonkeyPatch) -> None:
    switched(OTEL_EXPORTER_OTLP_PROTOCOL="grpc", OTEL_METRICS_EXPORTER="otlp,prometheus")
    for name in ("trace_exporter", "metric_exporter", "_log_exporter"):
        monkeypatch.setitem(sys.modules, f"opentelemetry.exporter.otlp.proto.grpc.{name}", None)
    monkeypatch.setitem(sys.modules, "opentelemetry.exporter.prometheus", None)
    kit = Kit(tmp_path, [text("hi")], installed=["telemetry"])
    assert kit.play("hello").text == "hi"
    said = "\n".join(kit.harness.announced)
    assert "pip install 'kernel-telemetry[grpc]'" in said and "pip install 'kernel-telemetry[prometheus]'" in said


def test_grpc_reaches_a_server(tmp_path: Path, switched: Callable[..., None]) -> None:
    grpc = pytest.importorskip("grpc")
    pytest.importorskip("opentelemetry.exporter.otlp.proto.grpc")
    from concurrent.futures import ThreadPoolExecutor

    from opentelemetry.proto.collector.logs.v1 import logs_service_pb2 as messages, logs_service_pb2_grpc as service

    got: list[Any] = []

    class Logs(service.LogsServiceServicer):  # type: ignore[misc]
        def Export(self, request: Any, context: Any) -> Any:
            got.append((request, dict(context.invocation_metadata())))
            return messages.ExportLogsServiceResponse()

    server = grpc.server(ThreadPoolExecutor(2))
    service.add_LogsServiceServicer_to_server(Logs(), server)
    port = server.add_insecure_port("127.0.0.1:0")
    server.start()
    try:
        switched(OTEL_EXPORTER_OTLP_PROTOCOL="grpc", OTEL_EXPORTER_OTLP_ENDPOINT=f"http://127.0.0.1:{port}",
                 OTEL_METRICS_EXPORTER="none", OTEL_TRACES_EXPORTER="none", OTEL_EXPORTER_OTLP_HEADERS="x-team=blue")
        Kit(tmp_path, [text("hi")], installed=["telemetry"]).play("hello")
    finally:
        server.stop(0)
    records = [r for m, _ in got for rl in m.resource_logs for sl in rl.scope_logs for r in sl.log_records]
    assert "claude_code.user_prompt" in {r.event_name for r in records} and got[0][1]["x-team"] == "blue"
