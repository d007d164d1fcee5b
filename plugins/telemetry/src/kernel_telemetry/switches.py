"""What the environment and the settings ask for, read once when a harness begins (observability contract, section 1)."""

from __future__ import annotations

import os
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any
from urllib.parse import unquote

from msgspec import Struct, field

if TYPE_CHECKING:
    from kernel import Options, Settings

SIGNALS = ("metrics", "logs", "traces")
EXPORTERS = {"metrics": ("otlp", "prometheus", "console"), "logs": ("otlp", "console"), "traces": ("otlp", "console")}
PROTOCOLS = ("grpc", "http/json", "http/protobuf")
CREDENTIALS = ("HEADERS", "CLIENT_KEY", "CLIENT_CERTIFICATE", "CERTIFICATE")
PREFIX = "OTEL_EXPORTER_OTLP_"
DEFAULT_PREFIX = "claude_code"
CONTENT_MAX = 61_440
ON = frozenset({"1", "true", "yes", "on"})


class Signal(Struct, frozen=True, kw_only=True):
    """Where one signal goes. ``endpoint``: the full URL for http protocols, the address for grpc; empty: the default."""

    exporters: tuple[str, ...] = ()
    protocol: str = ""
    endpoint: str = ""
    headers: dict[str, str] = {}
    interval_ms: int = 5_000


class Switches(Struct, frozen=True, kw_only=True):
    """Everything that is switched. ``problems``: what cannot be done as asked, for a person. Times in milliseconds."""

    metrics: Signal = Signal()
    logs: Signal = Signal()
    traces: Signal = Signal()
    cumulative: bool = False
    custom: dict[str, str] = {}
    """Of ``OTEL_RESOURCE_ATTRIBUTES``."""
    service: str = "kernel"
    session_id: bool = True
    version: bool = False
    account: bool = True
    entrypoint: bool = False
    custom_on_metrics: bool = True
    prompts: bool = False
    responses: bool = False
    details: bool = False
    content: bool = False
    bodies: str = ""
    """``inline``, or a folder; empty: no raw bodies."""
    content_max: int = CONTENT_MAX
    helper: str = ""
    helper_ms: int = 1_740_000
    flush_ms: int = 5_000
    shutdown_ms: int = 2_000
    propagate: bool = False
    prefix: str = DEFAULT_PREFIX
    official: frozenset[str] = frozenset()
    """Names of the marketplaces whose plugins and skills are named."""
    problems: list[str] = field(default_factory=list)

    @property
    def any(self) -> bool:
        """Whether anything would leave."""
        return any(getattr(self, signal).exporters for signal in SIGNALS)


def read(settings: Settings, options: Options | None, environ: Mapping[str, str] = os.environ) -> Switches:
    """The switches of a run. Never raises: what cannot be understood is named in ``problems`` and left out."""
    env = _managed_first(dict(environ), settings)
    problems: list[str] = []
    traced = _on(env, "CLAUDE_CODE_ENHANCED_TELEMETRY_BETA") or _on(env, "ENABLE_ENHANCED_TELEMETRY_BETA")
    signals = {signal: _signal(signal, env, options, problems) for signal in SIGNALS if signal != "traces" or traced}
    raw = env.get("OTEL_LOG_RAW_API_BODIES", "").strip()
    bodies = raw.removeprefix("file:") if raw.startswith("file:") else "inline" if raw.lower() in ON else ""
    prompts = _on(env, "OTEL_LOG_USER_PROMPTS") or bool(bodies)
    answers = env.get("OTEL_LOG_ASSISTANT_RESPONSES", "").strip().lower()
    own = settings.own("kernel.telemetry")
    own = own if isinstance(own, dict) else {}
    prefix, official = own.get("prefix"), own.get("officialMarketplaces")
    helper = settings.own("otelHeadersHelper")
    temporality = env.get(f"{PREFIX}METRICS_TEMPORALITY_PREFERENCE", "delta").strip().lower()
    return Switches(
        **signals, cumulative=temporality == "cumulative", custom=resource_attributes(env.get("OTEL_RESOURCE_ATTRIBUTES", "")),
        service=env.get("OTEL_SERVICE_NAME", "").strip() or "kernel",
        session_id=_on(env, "OTEL_METRICS_INCLUDE_SESSION_ID", True), version=_on(env, "OTEL_METRICS_INCLUDE_VERSION"),
        account=_on(env, "OTEL_METRICS_INCLUDE_ACCOUNT_UUID", True), entrypoint=_on(env, "OTEL_METRICS_INCLUDE_ENTRYPOINT"),
        custom_on_metrics=_on(env, "OTEL_METRICS_INCLUDE_RESOURCE_ATTRIBUTES", True),
        prompts=prompts, responses=prompts if not answers else answers in ON,
        details=_on(env, "OTEL_LOG_TOOL_DETAILS") or bool(bodies),
        content=(_on(env, "OTEL_LOG_TOOL_CONTENT") or bool(bodies)) and "traces" in signals, bodies=bodies,
        content_max=_number(env, "CLAUDE_CODE_OTEL_CONTENT_MAX_LENGTH", CONTENT_MAX),
        helper=helper if isinstance(helper, str) else "",
        helper_ms=_number(env, "CLAUDE_CODE_OTEL_HEADERS_HELPER_DEBOUNCE_MS", 1_740_000),
        flush_ms=_number(env, "CLAUDE_CODE_OTEL_FLUSH_TIMEOUT_MS", 5_000),
        shutdown_ms=_number(env, "CLAUDE_CODE_OTEL_SHUTDOWN_TIMEOUT_MS", 2_000),
        propagate=_on(env, "CLAUDE_CODE_PROPAGATE_TRACEPARENT"),
        prefix=prefix if isinstance(prefix, str) and prefix else DEFAULT_PREFIX,
        official=frozenset(m for m in official if isinstance(m, str)) if isinstance(official, list) else frozenset(),
        problems=problems)


def _managed_first(env: dict[str, str], settings: Settings) -> dict[str, str]:
    """What managed settings say takes away what a person said for single signals: data cannot be led elsewhere (rule 4)."""
    managed = settings.managed("env")
    managed = managed if isinstance(managed, dict) else {}
    per_signal = {what: [f"{PREFIX}{signal.upper()}_{what}" for signal in SIGNALS]
                  for what in ("ENDPOINT", "PROTOCOL", *CREDENTIALS)}
    gone: list[str] = []
    for what in ("ENDPOINT", "PROTOCOL"):
        if f"{PREFIX}{what}" in managed:
            gone += per_signal[what]
    credentials = [name for what in CREDENTIALS for name in (f"{PREFIX}{what}", *per_signal[what])]
    credentials += ["CLAUDE_CODE_CLIENT_CERT", "CLAUDE_CODE_CLIENT_KEY"]
    if settings.managed("otelHeadersHelper") is not None or not managed.keys().isdisjoint(credentials):
        gone += [f"{PREFIX}ENDPOINT", *per_signal["ENDPOINT"]]
    return {name: value for name, value in env.items() if name not in gone or name in managed}


def _signal(signal: str, env: Mapping[str, str], options: Options | None, problems: list[str]) -> Signal:
    name = f"OTEL_{signal.upper()}_EXPORTER"
    wanted: list[str] = []
    for word in (w.strip().lower() for w in env.get(name, "").split(",")):
        if word not in ("", "none", *EXPORTERS[signal]):
            problems.append(f"{name}={word}: expected one of {', '.join(EXPORTERS[signal])}, none; it is left out")
        elif word == "console" and _stdout_is_taken(env, options):
            problems.append(f"{name}=console is refused: it would write between the JSON on stdout; use otlp")
        elif word not in ("", "none") and word not in wanted:
            wanted.append(word)
    protocol = _of(signal, "PROTOCOL", env)
    if "otlp" in wanted and protocol not in PROTOCOLS:
        said = f"{PREFIX}PROTOCOL={protocol}" if protocol else f"{PREFIX}PROTOCOL is not set"
        problems.append(f"{said}, so no {signal} are exported: set it to one of {', '.join(PROTOCOLS)}")
        wanted.remove("otlp")
    endpoint = env.get(f"{PREFIX}{signal.upper()}_ENDPOINT", "").strip()
    if not endpoint and (base := env.get(f"{PREFIX}ENDPOINT", "").strip()):
        endpoint = base if protocol == "grpc" else f"{base.rstrip('/')}/v1/{signal}"
    if signal == "metrics":
        interval = _number(env, "OTEL_METRIC_EXPORT_INTERVAL", 60_000)
    else:
        interval = _number(env, f"OTEL_{signal.upper()}_EXPORT_INTERVAL", 5_000)
    headers = {**_headers(env.get(f"{PREFIX}HEADERS", "")), **_headers(env.get(f"{PREFIX}{signal.upper()}_HEADERS", ""))}
    return Signal(exporters=tuple(wanted), protocol=protocol, endpoint=endpoint, headers=headers, interval_ms=interval)


def _of(signal: str, what: str, env: Mapping[str, str]) -> str:
    return (env.get(f"{PREFIX}{signal.upper()}_{what}") or env.get(f"{PREFIX}{what}") or "").strip()


def _stdout_is_taken(env: Mapping[str, str], options: Options | None) -> bool:
    if env.get("CLAUDE_CODE_ENTRYPOINT", "").startswith("sdk-"):
        return True
    return options is not None and options.print_mode and options.output_format != "text"


def _headers(text: str) -> dict[str, str]:
    pairs = (pair.partition("=") for pair in text.split(","))
    return {unquote(name.strip()).lower(): unquote(value.strip()) for name, equals, value in pairs if equals and name.strip()}


def resource_attributes(text: str) -> dict[str, str]:
    """``k=v,k2=v2``, percent-encoded. A pair with a space in it, or without a value, is left out."""
    found: dict[str, str] = {}
    for pair in text.split(","):
        name, equals, value = pair.strip().partition("=")
        if equals and name and not any(c.isspace() for c in f"{name}{value}"):
            found[unquote(name)] = unquote(value)
    return found


def _on(env: Mapping[str, str], name: str, default: bool = False) -> bool:
    given = env.get(name, "").strip().lower()
    return given in ON if given else default


def _number(env: Mapping[str, str], name: str, default: int) -> int:
    given = env.get(name, "").strip()
    return int(given) if given.isdecimal() and 0 < int(given) < 2**31 else default


def as_any(value: Any) -> str:
    """A value as an attribute's text."""
    return "true" if value is True else "false" if value is False else str(value)
