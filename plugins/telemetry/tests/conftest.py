"""Exporters in memory, and a receiver of OTLP: a small HTTP server that decodes what it is sent."""

from __future__ import annotations

import gzip
import threading
from collections.abc import Callable, Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

import msgspec
import pytest

SIGNALS = {"OTEL_METRICS_EXPORTER": "otlp", "OTEL_LOGS_EXPORTER": "otlp", "OTEL_TRACES_EXPORTER": "otlp",
           "OTEL_EXPORTER_OTLP_PROTOCOL": "http/protobuf"}
ON = {"CLAUDE_CODE_ENABLE_TELEMETRY": "1", "CLAUDE_CODE_ENHANCED_TELEMETRY_BETA": "1", **SIGNALS}


class Told:
    """What exporters in memory got."""

    def __init__(self) -> None:
        from kernel_telemetry.exporters import temporality
        from opentelemetry.sdk._logs.export import InMemoryLogRecordExporter
        from opentelemetry.sdk.metrics.export import MetricReader
        from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter

        collected = self.collected = list[Any]()
        self.readers: list[MetricReader] = []

        class Reader(MetricReader):
            def _receive_metrics(self, metrics_data: Any, **more: Any) -> None:
                collected.append(metrics_data)

            def shutdown(self, **more: Any) -> None:
                pass

        self._reader = lambda: Reader(preferred_temporality=temporality(cumulative=False))
        class Logs(InMemoryLogRecordExporter):
            def shutdown(self) -> None:
                """Another conversation of the test may follow."""

        class Spans(InMemorySpanExporter):
            def shutdown(self) -> None:
                pass

        self.logs = Logs()
        self._spans = Spans()

    def made(self, pipeline: Any) -> Any:
        self.readers.append(self._reader())
        return [self.readers[-1]], [self.logs], [self._spans]

    @property
    def events(self) -> list[dict[str, Any]]:
        """Attributes of the events, in their order."""
        found = [dict(log.log_record.attributes or {}) for log in self.logs.get_finished_logs()]
        return sorted(found, key=lambda a: a["event.sequence"])

    def named(self, name: str) -> list[dict[str, Any]]:
        return [e for e in self.events if e["event.name"] == name]

    @property
    def spans(self) -> list[Any]:
        return list(self._spans.get_finished_spans())

    @property
    def metrics(self) -> list[Any]:
        """Metrics of all collections so far; each collection's are deltas."""
        for reader in self.readers:
            reader.collect()
        return [m for data in self.collected for r in data.resource_metrics for s in r.scope_metrics for m in s.metrics]

    def points(self, name: str) -> list[tuple[float, dict[str, Any]]]:
        """Values (a histogram's sums) and attributes of a metric."""
        return [(getattr(p, "value", None) if hasattr(p, "value") else p.sum, dict(p.attributes))
                for m in self.metrics if m.name == name for p in m.data.data_points]


@pytest.fixture
def switched(monkeypatch: pytest.MonkeyPatch, kernel_home: Any) -> Callable[..., None]:
    """Switches telemetry on, with more variables."""
    import os

    for name in [n for n in os.environ if n.startswith("OTEL_") or n in ("TRACEPARENT", "TRACESTATE")]:
        monkeypatch.delenv(name)

    def switch(**env: str) -> None:
        for name, value in {**ON, **env}.items():
            monkeypatch.setenv(name, value)

    return switch


@pytest.fixture
def told(switched: Callable[..., None], monkeypatch: pytest.MonkeyPatch) -> Told:
    """Telemetry is on and goes to exporters in memory."""
    from kernel_telemetry import exporters

    switched()
    found = Told()
    monkeypatch.setattr(exporters, "made", found.made)
    return found


class Receiver:
    """An OTLP endpoint. ``got``: (path, headers, decoded message) of each request."""

    def __init__(self) -> None:
        self.got: list[tuple[str, dict[str, str], Any]] = []
        receiver = self

        class Handler(BaseHTTPRequestHandler):
            def do_POST(self) -> None:
                body = self.rfile.read(int(self.headers["content-length"]))
                body = gzip.decompress(body) if self.headers.get("content-encoding") == "gzip" else body
                as_json = self.headers.get("content-type") == "application/json"
                message = msgspec.json.decode(body) if as_json else decode(self.path, body)
                receiver.got.append((self.path, {k.lower(): v for k, v in self.headers.items()}, message))
                self.send_response(200)
                self.send_header("content-length", "0")
                self.end_headers()

            def log_message(self, *args: Any) -> None:
                pass

        self._server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.url = f"http://127.0.0.1:{self._server.server_address[1]}"
        threading.Thread(target=self._server.serve_forever, args=(0.02,), daemon=True).start()

    def close(self) -> None:
        self._server.shutdown()
        self._server.server_close()

    def of(self, signal: str) -> list[Any]:
        return [message for path, _, message in self.got if path.endswith(f"/{signal}")]


def decode(path: str, body: bytes) -> Any:
    from opentelemetry.proto.collector.logs.v1.logs_service_pb2 import ExportLogsServiceRequest
    from opentelemetry.proto.collector.metrics.v1.metrics_service_pb2 import ExportMetricsServiceRequest
    from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest

    kinds: dict[str, Any] = {"logs": ExportLogsServiceRequest, "metrics": ExportMetricsServiceRequest,
                             "traces": ExportTraceServiceRequest}
    message = kinds[path.rsplit("/", 1)[-1]]()
    message.ParseFromString(body)
    return message


@pytest.fixture
def receiver() -> Iterator[Receiver]:
    found = Receiver()
    yield found
    found.close()
