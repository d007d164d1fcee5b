"""The SDK's side: providers and exporters, made and used in the pipeline's thread alone."""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from opentelemetry._logs import LogRecord, SeverityNumber
from opentelemetry.context import Context
from opentelemetry.sdk._logs import LoggerProvider
from opentelemetry.sdk._logs.export import BatchLogRecordProcessor, ConsoleLogRecordExporter, LogRecordExporter
from opentelemetry.sdk.metrics import Counter, Histogram, MeterProvider, ObservableCounter
from opentelemetry.sdk.metrics.export import (
    AggregationTemporality,
    ConsoleMetricExporter,
    MetricExporter,
    MetricReader,
    PeriodicExportingMetricReader,
)
from opentelemetry.sdk.resources import Resource
from opentelemetry.sdk.trace import Event as SpanEvent, ReadableSpan
from opentelemetry.sdk.trace.export import BatchSpanProcessor, ConsoleSpanExporter, SpanExporter
from opentelemetry.sdk.util.instrumentation import InstrumentationScope
from opentelemetry.trace import (
    Link,
    NonRecordingSpan,
    SpanContext,
    SpanKind,
    Status,
    StatusCode,
    TraceFlags,
    TraceState,
    set_span_in_context,
)

from kernel import __version__
from kernel_telemetry import otlp
from kernel_telemetry.identity import resource, user_id

if TYPE_CHECKING:
    from kernel_telemetry.pipeline import Event, Pipeline, Point
    from kernel_telemetry.spans import Place, Span
    from kernel_telemetry.switches import Switches

METER = "com.anthropic.claude_code"
OURS = "kernel"
QUEUE = 4_096
BATCH = 512

Made = tuple[list[MetricReader], list[LogRecordExporter], list[SpanExporter]]


def outlets(pipeline: Pipeline) -> Outlets:
    """What the switches ask for. What cannot be made is told in ``pipeline.failures`` and left out."""
    _hear_the_sdk(pipeline)
    pipeline.common["user.id"] = user_id(pipeline.log)
    return Outlets(pipeline.switches, made(pipeline))


def made(pipeline: Pipeline) -> Made:
    """Readers and exporters of the three signals."""
    switches, pipeline.hurry = pipeline.switches, []
    helper = otlp.Helper(pipeline) if switches.helper else None
    readers, logs, spans = list[MetricReader](), list[LogRecordExporter](), list[SpanExporter]()

    def attempt(signal: str, name: str, make: Callable[[], None]) -> None:
        try:
            make()
        except Exception as error:
            why = str(error) if isinstance(error, otlp.Missing) else f"{type(error).__name__}: {error}"
            pipeline.failures.append(f"plugin telemetry: {signal} are not exported by {name}: {why}")

    for name in switches.metrics.exporters:
        attempt("metrics", name, lambda name=name: readers.append(_reader(name, pipeline, helper)))  # type: ignore[misc]
    for name in switches.logs.exporters:
        attempt("events", name, lambda name=name: logs.append(  # type: ignore[misc]
            ConsoleLogRecordExporter() if name == "console" else otlp.exporter("logs", pipeline, helper)))
    for name in switches.traces.exporters:
        attempt("traces", name, lambda name=name: spans.append(  # type: ignore[misc]
            ConsoleSpanExporter() if name == "console" else otlp.exporter("traces", pipeline, helper)))
    return readers, logs, spans


def temporality(cumulative: bool) -> dict[type, AggregationTemporality]:
    """Delta unless cumulative is asked for; what goes up and down is cumulative always."""
    if cumulative:
        return {}
    return dict.fromkeys((Counter, ObservableCounter, Histogram), AggregationTemporality.DELTA)


def _reader(name: str, pipeline: Pipeline, helper: otlp.Helper | None) -> MetricReader:
    if name == "prometheus":
        return otlp.prometheus()
    switches = pipeline.switches
    preferred = temporality(switches.cumulative)
    exporter: MetricExporter = (ConsoleMetricExporter(preferred_temporality=preferred) if name == "console"
                                else otlp.exporter("metrics", pipeline, helper, preferred))
    return PeriodicExportingMetricReader(exporter, export_interval_millis=switches.metrics.interval_ms)


def _hear_the_sdk(pipeline: Pipeline) -> None:
    """What the SDK has to say about exports goes to the debug log, not to stderr."""
    _to_debug.pipeline = pipeline
    for name in ("opentelemetry", "grpc"):
        logging.getLogger(name).addHandler(_to_debug)  # the same one is added once


class _ToDebug(logging.Handler):
    """The SDK's loggers are the process's: they tell the pipeline that began last."""

    pipeline: Pipeline | None = None

    def emit(self, record: logging.LogRecord) -> None:
        if self.pipeline is not None:
            self.pipeline.log(f"telemetry: {self.pipeline.secrets.hide(record.getMessage())}")


_to_debug = _ToDebug(logging.WARNING)


class Outlets:
    """The three signals as the SDK has them. Nothing here waits for a network: the SDK's own threads export."""

    def __init__(self, switches: Switches, made: Made) -> None:
        self.switches = switches
        readers, logs, spans = made
        self._resource = Resource(resource(switches))
        self._only_prometheus = switches.metrics.exporters == ("prometheus",)
        self._instruments: dict[str, Any] = {}
        self._meters = MeterProvider(readers, self._resource, shutdown_on_exit=False) if readers else None
        self._logs = LoggerProvider(resource=self._resource, shutdown_on_exit=False) if logs else None
        for log in logs:
            assert self._logs is not None
            self._logs.add_log_record_processor(BatchLogRecordProcessor(
                log, schedule_delay_millis=switches.logs.interval_ms, max_queue_size=QUEUE, max_export_batch_size=BATCH))
        self._spans = [BatchSpanProcessor(span, schedule_delay_millis=switches.traces.interval_ms, max_queue_size=QUEUE,
                                          max_export_batch_size=BATCH) for span in spans]
        self._scope = InstrumentationScope(METER, __version__)

    def event(self, event: Event) -> None:
        if self._logs is None:
            return
        name = event.name if event.name.startswith("kernel.") else f"{self.switches.prefix}.{event.name}"
        where = set_span_in_context(NonRecordingSpan(_context(event.place)), Context()) if event.place else Context()
        self._logs.get_logger(f"{METER}.events", __version__).emit(LogRecord(
            timestamp=event.time, observed_timestamp=event.time, body=name, event_name=name,
            severity_number=SeverityNumber.INFO, severity_text="INFO", attributes=event.attributes, context=where))

    def point(self, point: Point) -> None:
        if self._meters is None:
            return
        instrument = self._instruments.get(point.name)
        if instrument is None:
            ours = point.name.startswith("kernel.")
            meter = self._meters.get_meter(OURS if ours else METER, __version__)
            make: Any = getattr(meter, f"create_{point.kind}")
            name = point.name if ours else f"{self.switches.prefix}.{point.name}"
            instrument = self._instruments[point.name] = make(name, unit="" if self._only_prometheus else point.unit)
        if point.kind == "counter":
            instrument.add(point.value, point.attributes)
        elif point.kind == "histogram":
            instrument.record(point.value, point.attributes)
        else:
            instrument.set(point.value, point.attributes)

    def span(self, span: Span) -> None:
        if not self._spans:
            return
        status = Status(StatusCode.ERROR, span.error) if span.error else Status(StatusCode.UNSET)
        made = ReadableSpan(
            f"{self.switches.prefix}.{span.name}", context=_context(span.place),
            parent=_context(span.parent) if span.parent else None, resource=self._resource,
            attributes={"span.type": span.kind, **span.attributes},
            events=[SpanEvent(name, attributes, time) for name, time, attributes in span.events],
            links=[Link(_context(link)) for link in span.links], kind=SpanKind.INTERNAL, status=status,
            start_time=span.start, end_time=span.end, instrumentation_scope=self._scope)
        for processor in self._spans:
            processor.on_end(made)

    def flush(self, seconds: float) -> None:
        """Export all there is, the signals side by side, each once; what is not done in time is left to itself."""
        waits: list[Callable[[int], Any]] = [p.force_flush for p in self._spans]
        waits += [p.force_flush for p in (self._logs, self._meters) if p is not None]
        threads = [threading.Thread(target=_quietly, args=(wait, seconds), name="telemetry flush", daemon=True) for wait in waits]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join(seconds)


    def shutdown(self) -> None:
        """End the SDK's threads; what they still export is not waited for."""
        for part in (*self._spans, self._logs, self._meters):
            if part is not None:
                _quietly(lambda _, part=part: part.shutdown(), 0.0)  # type: ignore[misc]


def _quietly(wait: Callable[[int], Any], seconds: float) -> None:
    try:
        wait(round(seconds * 1000))
    except Exception as error:
        logging.getLogger("opentelemetry").warning("%s: %s", type(error).__name__, error)


def _context(place: Place) -> SpanContext:
    state = TraceState.from_header([place.state]) if place.state else None
    return SpanContext(place.trace_id, place.span_id, is_remote=False, trace_flags=TraceFlags(1), trace_state=state)


