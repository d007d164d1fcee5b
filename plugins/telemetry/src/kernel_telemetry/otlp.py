"""Exporters over the network: OTLP in its three protocols, Prometheus, headers from a helper.

The two http protocols are one POST of the same message, as protocol buffers or as JSON; grpc and Prometheus need packages of
their own.
"""

from __future__ import annotations

import gzip
import importlib
import os
import ssl
import subprocess
import threading
import time
from collections.abc import Callable, Sequence
from http.client import HTTPException
from typing import TYPE_CHECKING, Any
from urllib.error import HTTPError
from urllib.parse import urlsplit
from urllib.request import HTTPRedirectHandler, HTTPSHandler, Request, build_opener

import msgspec
from opentelemetry.exporter.otlp.proto.common._log_encoder import encode_logs
from opentelemetry.exporter.otlp.proto.common.metrics_encoder import encode_metrics
from opentelemetry.exporter.otlp.proto.common.trace_encoder import encode_spans
from opentelemetry.sdk._logs.export import LogRecordExporter, LogRecordExportResult
from opentelemetry.sdk.metrics.export import AggregationTemporality, MetricExporter, MetricExportResult, MetricReader
from opentelemetry.sdk.trace.export import SpanExporter, SpanExportResult

if TYPE_CHECKING:
    from kernel_telemetry.pipeline import Pipeline
    from kernel_telemetry.switches import Signal

HELPER_S = 30.0
TRIES = 3
AGAIN = frozenset({429, 502, 503, 504})
PROMETHEUS_PORT = 9464
_LOCAL = "http://localhost:4318/v1/"
_GRPC = {"logs": ("_log_exporter", "OTLPLogExporter"), "metrics": ("metric_exporter", "OTLPMetricExporter"),
         "traces": ("trace_exporter", "OTLPSpanExporter")}


class Missing(Exception):
    """A package is not installed; the text says how to get it."""


def exporter(signal: str, pipeline: Pipeline, helper: Helper | None,
             preferred: dict[type, AggregationTemporality] | None = None) -> Any:
    """The OTLP exporter of a signal; ``pipeline.hurry`` gets what tells it that somebody waits.

    :raises Missing: its package is not there.
    """
    where: Signal = getattr(pipeline.switches, signal)
    if where.protocol == "grpc":
        return _grpc(signal, where, {"preferred_temporality": preferred} if signal == "metrics" else {})
    post = Post(signal, where, helper, lambda text: pipeline.log(text))
    made = Metrics(post, preferred) if signal == "metrics" else Logs(post) if signal == "logs" else Spans(post)
    pipeline.hurry.append(post.hurried)
    return made


def _grpc(signal: str, where: Signal, more: dict[str, Any]) -> Any:
    module, name = _GRPC[signal]
    try:
        made: Any = getattr(importlib.import_module(f"opentelemetry.exporter.otlp.proto.grpc.{module}"), name)
    except ImportError:
        raise Missing("the protocol grpc needs a package that is not installed: pip install 'kernel-telemetry[grpc]', or use "
                      "OTEL_EXPORTER_OTLP_PROTOCOL=http/protobuf") from None
    if where.endpoint:
        more = {**more, "endpoint": where.endpoint, "insecure": not where.endpoint.startswith("https:")}
    return made(headers=where.headers or None, **more)


def prometheus() -> MetricReader:
    """An endpoint to be scraped, on port 9464 of this machine (``OTEL_EXPORTER_PROMETHEUS_HOST``, ``_PORT``)."""
    try:
        found: Any = importlib.import_module("opentelemetry.exporter.prometheus")
    except ImportError:
        raise Missing("it needs a package that is not installed: pip install 'kernel-telemetry[prometheus]'") from None
    reader: MetricReader = found.PrometheusMetricReader()
    port = os.environ.get("OTEL_EXPORTER_PROMETHEUS_PORT", "")
    found.start_http_server(int(port) if port.isdecimal() else PROMETHEUS_PORT,
                            addr=os.environ.get("OTEL_EXPORTER_PROMETHEUS_HOST") or "localhost")
    return reader


# -- headers from a command ------------------------------------------------------------------------------------------------
class Helper:
    """Headers that a command prints as a JSON object: run before the first export and again when they are old."""

    def __init__(self, pipeline: Pipeline) -> None:
        self._pipeline = pipeline
        self._lock = threading.Lock()
        self._headers: dict[str, str] = {}
        self._due = 0.0

    def headers(self) -> dict[str, str]:
        """The headers as they are now. A helper that fails is told of, and the old ones stay."""
        with self._lock:
            if time.monotonic() >= self._due:
                self._due = time.monotonic() + self._pipeline.switches.helper_ms / 1000
                try:
                    self._headers = self._run()
                except (OSError, ValueError, subprocess.SubprocessError) as error:
                    self._pipeline.failures.append(f"plugin telemetry: otelHeadersHelper failed: {error}")
            return self._headers

    def _run(self) -> dict[str, str]:
        env = {name: value for name, value in os.environ.items() if not name.startswith("OTEL_")}
        command = ["/bin/sh", "-c", self._pipeline.switches.helper]  # a command line of the person's own settings
        done = subprocess.run(command, capture_output=True, timeout=HELPER_S, stdin=subprocess.DEVNULL, env=env, check=False)  # noqa: S603
        if done.returncode:
            raise ValueError(f"it ended with exit code {done.returncode}")
        try:
            found = msgspec.json.decode(done.stdout, type=dict[str, str])
        except msgspec.MsgspecError:
            raise ValueError("it printed no JSON object of texts") from None
        self._pipeline.secrets.add(found.values())
        return found


# -- OTLP over HTTP ----------------------------------------------------------------------------------------------------------
class _Stay(HTTPRedirectHandler):
    """A redirect is a failure: following it would hand the headers to somebody else."""

    def redirect_request(self, *args: Any) -> None:
        return None


class Post:
    """One address.

    :raises ValueError: it is no address.
    """

    def __init__(self, signal: str, where: Signal, helper: Helper | None, log: Callable[[str], None]) -> None:
        self._url = where.endpoint or f"{_LOCAL}{signal}"
        if not self._url.startswith(("http://", "https://")):
            raise ValueError("the endpoint is no http:// or https:// address")
        self._shown = f"{urlsplit(self._url).hostname}{urlsplit(self._url).path}"  # the rest may hold a password
        self._json = where.protocol == "http/json"
        self._headers, self._helper, self._log = where.headers, helper, log
        self._gzip = _variable(signal, "COMPRESSION") == "gzip"
        timeout = _variable(signal, "TIMEOUT")
        self._seconds = float(timeout) if timeout.replace(".", "", 1).isdecimal() else 10.0
        secure = self._url.startswith("https:")
        tls = ssl.create_default_context(cafile=_variable(signal, "CERTIFICATE") or None) if secure else None
        if tls is not None and (certificate := os.environ.get("CLAUDE_CODE_CLIENT_CERT")):
            tls.load_cert_chain(certificate, os.environ.get("CLAUDE_CODE_CLIENT_KEY") or None,
                                os.environ.get("CLAUDE_CODE_CLIENT_KEY_PASSPHRASE"))
        self._open = build_opener(_Stay(), *([HTTPSHandler(context=tls)] if tls else [])).open
        self.hurried = threading.Event()
        """Somebody waits for the end: what fails now is not tried again."""

    def __call__(self, message: Any) -> bool:
        """Whether it was taken. What may pass is tried again; called in a thread of the SDK."""
        headers = {**self._headers, **(self._helper.headers() if self._helper else {})}
        headers["content-type"] = "application/json" if self._json else "application/x-protobuf"
        body: bytes = as_json(message) if self._json else message.SerializeToString()
        if self._gzip:
            body, headers["content-encoding"] = gzip.compress(body), "gzip"
        for attempt in range(1, TRIES + 1):
            try:
                with self._open(Request(self._url, body, headers), timeout=self._seconds):  # noqa: S310  # the scheme was looked at
                    return True
            except (OSError, HTTPException) as error:  # HTTPError and URLError are an OSError
                status = error.code if isinstance(error, HTTPError) else None
                self._log(f"telemetry: export to {self._shown} failed: {error}")
                if attempt == TRIES or (status is not None and status not in AGAIN) or self.hurried.wait(2 ** (attempt - 1)):
                    return False
        return False


def _variable(signal: str, what: str) -> str:
    names = (f"OTEL_EXPORTER_OTLP_{signal.upper()}_{what}", f"OTEL_EXPORTER_OTLP_{what}")
    return next((value for name in names if (value := os.environ.get(name, "").strip())), "")


def as_json(message: Any) -> bytes:
    """OTLP's JSON: ids in hexadecimal, where JSON of protocol buffers has base64."""
    wire = importlib.import_module("google.protobuf.json_format").MessageToDict(message, use_integers_for_enums=True)
    _hex_ids(wire)
    return msgspec.json.encode(wire)


def _hex_ids(value: Any) -> None:
    from base64 import b64decode

    for name, inner in value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ():
        if name in ("traceId", "spanId", "parentSpanId") and isinstance(inner, str):
            value[name] = b64decode(inner).hex()
        else:
            _hex_ids(inner)


class Logs(LogRecordExporter):
    def __init__(self, post: Post) -> None:
        self.post = post

    def export(self, batch: Sequence[Any]) -> LogRecordExportResult:
        return LogRecordExportResult.SUCCESS if self.post(encode_logs(batch)) else LogRecordExportResult.FAILURE

    def force_flush(self, timeout_millis: int = 30_000) -> bool:
        return True

    def shutdown(self) -> None:
        self.post.hurried.set()


class Spans(SpanExporter):
    def __init__(self, post: Post) -> None:
        self.post = post

    def export(self, spans: Sequence[Any]) -> SpanExportResult:
        return SpanExportResult.SUCCESS if self.post(encode_spans(spans)) else SpanExportResult.FAILURE

    def shutdown(self) -> None:
        self.post.hurried.set()


class Metrics(MetricExporter):
    def __init__(self, post: Post, preferred_temporality: dict[type, AggregationTemporality] | None = None) -> None:
        super().__init__(preferred_temporality=preferred_temporality)
        self.post = post

    def export(self, metrics_data: Any, timeout_millis: float = 10_000, **more: Any) -> MetricExportResult:
        return MetricExportResult.SUCCESS if self.post(encode_metrics(metrics_data)) else MetricExportResult.FAILURE

    def force_flush(self, timeout_millis: float = 10_000) -> bool:
        return True

    def shutdown(self, timeout_millis: float = 30_000, **more: Any) -> None:
        self.post.hurried.set()
