"""Model requests: each attempt is seen by the middleware, and what they come to together is told (sections 3 to 5)."""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

import msgspec

from kernel import ModelError, ModelRequest, Session, StreamEvent, Usage
from kernel_telemetry import spans
from kernel_telemetry.recorder import Recorder, current
from kernel_telemetry.spans import Span, now

if TYPE_CHECKING:
    from kernel_telemetry.watch import Watch

THINKING = frozenset({"thinking", "redacted_thinking"})
TOKENS = {"inputTokens": ("input", "input_tokens"), "outputTokens": ("output", "output_tokens"),
          "cacheReadInputTokens": ("cacheRead", "cache_read_input_tokens"),
          "cacheCreationInputTokens": ("cacheCreation", "cache_creation_input_tokens")}
"""Name in ``modelUsage`` -> value of ``type``, field of ``Usage``."""
FIRST_PARTY = "api.anthropic.com"


class Attempt:
    """One try. ``request`` is what is sent."""

    def __init__(self, ask: Ask, request: ModelRequest) -> None:
        self.ask = ask
        self.request = request
        self.began = now()
        self.client_id: str | None = None
        self.headers: Mapping[str, str] = {}
        self.usage = Usage()
        self.first = 0
        self.id = self.model = ""
        self.stop_reason: str | None = None
        self.finished = False
        self.details: dict[str, Any] = {}
        self.calls = False
        self.length = 0
        self.texts: list[str] = []
        self.parts: list[dict[str, Any]] | None = None

    def saw(self, event: StreamEvent) -> None:
        """One event of the stream, as it is passed on."""
        kind = event.get("type")
        self.first = self.first or (now() if kind != "ping" else 0)
        if kind == "content_block_delta":
            self._delta(event.get("delta") or {})
        elif kind == "content_block_start":
            block = event.get("content_block") or {}
            self.calls = self.calls or block.get("type") == "tool_use"
            if self.parts is not None:
                self.parts.append(dict(block))
        elif kind == "message_start":
            message = event.get("message") or {}
            self.id, self.model = str(message.get("id") or ""), str(message.get("model") or "")
            self.usage.take(message.get("usage"))
        elif kind == "message_delta":
            delta = event.get("delta") or {}
            self.stop_reason = delta.get("stop_reason", self.stop_reason)
            self.details = delta.get("stop_details") or self.details
            self.usage.take(event.get("usage"))
        elif kind == "message_stop":
            self.finished = True

    def _delta(self, delta: dict[str, Any]) -> None:
        text = delta.get("text")
        if isinstance(text, str):
            self.length += len(text)
            if self.ask.recorder.switches.responses:
                self.texts.append(text)
        if self.parts:
            for name, field in (("text", "text"), ("partial_json", "input"), ("thinking", "thinking")):
                if isinstance(delta.get(name), str):
                    before = self.parts[-1].get(field)
                    self.parts[-1][field] = (before if isinstance(before, str) else "") + delta[name]

    @property
    def request_id(self) -> str | None:
        return self.headers.get("request-id") or None


class Ask:
    """One request with all its tries. ``source``: ``main``, ``subagent`` or ``auxiliary``."""

    def __init__(self, recorder: Recorder, session: Session, request: ModelRequest, source: str, span: Span) -> None:
        self.recorder = recorder
        self.session = session
        self.request = request
        self.source = source
        self.span = span
        self.began = span.start
        self.attempts: list[Attempt] = []
        self.failed: tuple[Exception, int] | None = None
        """The last try's failure and when it came; whether there is another try is seen later."""

    def common(self) -> dict[str, Any]:
        """Attributes of every event about it."""
        speed = "fast" if self.request.extra.get("speed") == "fast" else "normal"
        return {"model": self.request.model, "query_source": self.source, "speed": speed, "effort": self.request.effort,
                **self.recorder.attribution(self.session)}


class Asks:
    """The requests of one context."""

    def __init__(self, watch: Watch) -> None:
        self.watch = watch
        self._open: dict[int, Ask] = {}
        self.said: dict[str, tuple[Attempt, Ask]] = {}
        """Message id -> an answer with text whose message is still to be shown."""

    # -- one try -----------------------------------------------------------------------------------------------------------
    def begin(self, request: ModelRequest) -> Attempt:
        """A try begins: of a new request, or again of one that failed."""
        session, recorder = self.watch.session, self.watch.recorder
        ask = self._open.get(id(request))
        if ask is None:
            ours = request.history is session.history
            if ours:
                self.give_up()
            source = "auxiliary" if not ours else "main" if session.parent is None else "subagent"
            ask = self._open[id(request)] = Ask(recorder, session, request, source, self._span(request, source))
            if source == "subagent":
                recorder.models[str(session.agent_id)] = request.model
        ask.failed = None
        attempt = Attempt(ask, request)
        ask.attempts.append(attempt)
        self._along(attempt, session)
        ask.span.events.append(("gen_ai.request.attempt", attempt.began, {
            "attempt": len(ask.attempts), "client_request_id": attempt.client_id}))
        if recorder.switches.bodies:
            attempt.parts = []
            body = {"model": request.model, "max_tokens": request.max_tokens, "system": request.system, "tools": request.tools,
                    "messages": _without_thinking(request.history.wire())}
            self._body("api_request_body", body, ask, attempt)
        return attempt

    def _along(self, attempt: Attempt, session: Session) -> None:
        """What goes along: ids that the server's side can be found by, to whom they may be told."""
        recorder = self.watch.recorder
        base = os.environ.get("ANTHROPIC_BASE_URL", "").strip()
        first_party = session.provider.name == "anthropic" and (not base or urlsplit(base).hostname == FIRST_PARTY)
        headers = dict(attempt.request.headers)
        if first_party:
            attempt.client_id = headers["x-client-request-id"] = session.clock.new_id()
        if recorder.traced and (first_party or recorder.switches.propagate):
            headers["traceparent"] = attempt.ask.span.place.traceparent
            if attempt.ask.span.place.state:
                headers["tracestate"] = attempt.ask.span.place.state
        before = attempt.request.heard

        def heard(answer: Mapping[str, str]) -> None:
            attempt.headers = answer
            if before is not None:
                before(answer)

        attempt.request = msgspec.structs.replace(attempt.request, headers=headers, heard=heard)

    def _span(self, request: ModelRequest, source: str) -> Span:
        session, recorder = self.watch.session, self.watch.recorder
        inside = current.get()
        in_tool = source == "auxiliary" and inside is not None and inside[0] is session
        parent = inside[1].place if in_tool and inside is not None else self.watch.parent()
        where = "tool" if in_tool or session.parent is not None else "interaction" if recorder.interaction else "standalone"
        return recorder.begin("llm_request", parent, {
            "model": request.model, "gen_ai.system": session.provider.name, "gen_ai.request.model": request.model,
            "query_source": source, "speed": "fast" if request.extra.get("speed") == "fast" else "normal",
            "llm_request.context": where, **self.watch.agent_ids(), **recorder.attribution(session)})

    # -- how it ended --------------------------------------------------------------------------------------------------------
    def ended(self, attempt: Attempt) -> None:
        """The stream came to its end, or stopped without one."""
        whole = attempt.stop_reason is not None or (attempt.finished and attempt.ask.source != "auxiliary")
        if whole:
            self._succeeded(attempt)
        else:
            self.failed(attempt, ModelError("the answer ended early", kind="connection_error"))

    def _succeeded(self, attempt: Attempt) -> None:
        ask, recorder = attempt.ask, self.watch.recorder
        self._open.pop(id(ask.request), None)
        at = now()
        took = (at - attempt.began) / 1e6
        usage, cost = self._paid(attempt)
        ttft = (attempt.first - attempt.began) / 1e6 if attempt.first else None
        tokens = {"input_tokens": usage.input_tokens, "output_tokens": usage.output_tokens,
                  "cache_read_tokens": usage.cache_read_input_tokens, "cache_creation_tokens": usage.cache_creation_input_tokens}
        ids = {"request_id": attempt.request_id, "client_request_id": attempt.client_id}
        recorder.event("api_request", {
            **ask.common(), **tokens, **ids, "cost_usd": cost, "cost_usd_micros": round(cost * 1_000_000),
            "duration_ms": round(took), "kernel.ttft_ms": None if ttft is None else round(ttft, 1)}, ask.span.place)
        if attempt.stop_reason == "refusal":
            category = attempt.details.get("category")
            recorder.event("api_refusal", {
                **ask.common(), "request_id": attempt.request_id, "attempt": len(ask.attempts), "server_fallback_hop": False,
                "has_category": category is not None, "has_explanation": bool(attempt.details.get("explanation")),
                "category": category if recorder.switches.details else None}, ask.span.place)
        if attempt.parts is not None:
            self._body("api_response_body", {
                "id": attempt.id, "model": attempt.model, "stop_reason": attempt.stop_reason, "usage": msgspec.to_builtins(usage),
                "content": _without_thinking([{"content": attempt.parts}])[0]["content"]}, ask, attempt)
        if attempt.length and ask.source != "auxiliary":
            self.said[attempt.id] = (attempt, ask)
        elif attempt.length:
            self.told(attempt, ask, None)
        recorder.end(ask.span, {
            **tokens, **ids, "duration_ms": round((at - ask.began) / 1e6), "ttft_ms": None if ttft is None else round(ttft, 1),
            "gen_ai.response.id": attempt.id or None, "attempt": len(ask.attempts), "success": True,
            "response.has_tool_call": attempt.calls, "stop_reason": attempt.stop_reason,
            "gen_ai.response.finish_reasons": [attempt.stop_reason] if attempt.stop_reason else None}, at=at)
        if ask.source == "main":
            recorder.busy.append((ask.began, at))

    def failed(self, attempt: Attempt, error: BaseException) -> None:
        """The stream broke, or never began. What had been completed counts, as the kernel counts it."""
        ask, recorder, session = attempt.ask, self.watch.recorder, self.watch.session
        if not isinstance(error, Exception):  # interrupted: nothing of it is counted, but for what an auxiliary one cost
            self._open.pop(id(ask.request), None)
            if ask.source == "auxiliary":
                self._paid(attempt)
            recorder.end(ask.span, {"duration_ms": round((now() - ask.began) / 1e6), "attempt": len(ask.attempts),
                                    "success": False, "error": "aborted"})
            return
        whole = session.partial if ask.source != "auxiliary" else None
        if whole is not None:
            kinds = {str(b.get("type")) for b in whole.complete.values()}
            if whole.stop_reason is not None or kinds - THINKING or (kinds and whole.begun - THINKING):
                self._succeeded(attempt)
                return
        elif ask.source == "auxiliary":
            self._paid(attempt)
        ask.failed = (error, now())

    def give_up(self, main: bool = False) -> None:
        """No further try will come for the requests that failed.

        :param main: of the conversation itself alone.
        """
        for key, ask in list(self._open.items()):
            if ask.failed is not None and (not main or ask.source != "auxiliary"):
                del self._open[key]
                self._lost(ask, *ask.failed)

    def _lost(self, ask: Ask, error: Exception, at: int) -> None:
        recorder, attempt = self.watch.recorder, ask.attempts[-1]
        status = getattr(error, "status", None)
        text = getattr(error, "message", None) or f"{type(error).__name__}"
        request_id = getattr(error, "request_id", "") or attempt.request_id
        took = round((at - ask.began) / 1e6)
        common = ask.common()
        recorder.event("api_error", {
            **common, "error": text, "status_code": status, "duration_ms": took, "attempt": len(ask.attempts),
            "request_id": request_id, "client_request_id": attempt.client_id}, ask.span.place)
        if len(ask.attempts) > 1:
            recorder.event("api_retries_exhausted", {
                "model": common["model"], "error": text, "status_code": status, "total_attempts": len(ask.attempts),
                "total_retry_duration_ms": took, "speed": common["speed"]}, ask.span.place)
        recorder.end(ask.span, {
            "duration_ms": took, "attempt": len(ask.attempts), "success": False, "status_code": status, "error": text,
            "request_id": request_id, "client_request_id": attempt.client_id}, error=text, at=at)
        if ask.source == "main":
            recorder.busy.append((ask.began, at))

    def _paid(self, attempt: Attempt) -> tuple[Usage, float]:
        """Count what it cost."""
        ask, recorder, session, usage = attempt.ask, self.watch.recorder, self.watch.session, attempt.usage
        model = session.model_info.id if ask.source != "auxiliary" else ask.request.model
        info = session.model_info if model == session.model_info.id else session.provider.resolve(model)
        cost = usage.cost(info.prices if info is not None else None)
        told = {**ask.common(), "model": model}
        if told["speed"] == "normal":
            del told["speed"]
        counted = recorder.counted.setdefault(model, {})
        for name, (kind, field) in TOKENS.items():
            counted[name] = counted.get(name, 0) + getattr(usage, field)
            recorder.count("token.usage", getattr(usage, field), {**told, "type": kind})
        counted["costUSD"] = counted.get("costUSD", 0) + cost
        recorder.count("cost.usage", cost, told)
        if answering := spans.parse(attempt.headers.get("traceresponse", "")):
            ask.span.links.append(answering)
        return usage, cost

    def told(self, attempt: Attempt, ask: Ask, uuid: str | None) -> None:
        """An answer with text was shown."""
        recorder = self.watch.recorder
        text = "".join(attempt.texts) if recorder.switches.responses else "<REDACTED>"
        recorder.event("assistant_response", {
            "response_length": attempt.length, "response": text, "model": ask.request.model, "request_id": attempt.request_id,
            "message.uuid": uuid, "query_source": ask.source}, ask.span.place)

    def _body(self, name: str, body: Any, ask: Ask, attempt: Attempt) -> None:
        recorder = self.watch.recorder
        text = msgspec.json.encode(body, enc_hook=str).decode()
        shown: dict[str, Any] = {"body": text, "body_truncated": len(text) > recorder.switches.content_max}
        if recorder.switches.bodies != "inline":
            folder = Path(recorder.switches.bodies)
            folder.mkdir(parents=True, exist_ok=True, mode=0o700)
            path = folder / f"{recorder.session.clock.new_id()}.{name.removeprefix('api_').removesuffix('_body')}.json"
            with open(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "w", encoding="utf-8") as file:
                file.write(recorder.pipeline.secrets.hide(text))
            shown = {"body_ref": str(path), "body_truncated": False}
        response = {"request_id": attempt.request_id} if name == "api_response_body" else {}
        told = {"body_length": len(text), "model": ask.request.model, "query_source": ask.source}
        recorder.event(name, {**shown, **told, **response}, ask.span.place)


def _without_thinking(messages: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """The messages with what a model thought left out."""
    return [{**m, "content": [{"type": b.get("type"), "thinking": "<REDACTED>"} if b.get("type") in THINKING else b
                              for b in m["content"]]} for m in messages]
