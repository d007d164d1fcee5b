"""Ask the model once and get a whole answer: streaming, retries, broken streams (loop contract, sections 4 and 8).

The one retry policy of the project. What counts after a failure is what had been completed: an answer that holds a
complete text or tool call is never asked for again, since its calls could run twice.
"""

from __future__ import annotations

from contextlib import aclosing
from typing import TYPE_CHECKING, Any

import msgspec

from kernel.errors import ModelError, StreamError
from kernel.models import ModelInfo, ModelProvider, ModelRequest, Response
from kernel.output import StreamMessage
from kernel.stream import Assembler
from kernel.variables import env_number

if TYPE_CHECKING:
    from kernel.session import Session

MAX_RETRIES = 10
RETRIES_CAP = 15
BACKOFF_S = 0.5
BACKOFF_CAP_S = 32.0
LONGEST_WAIT_S = 60.0
"""A server that asks for a longer wait is reported at once instead of slept through."""
THINKING_RESENDS = 2
THINKING = frozenset({"thinking", "redacted_thinking"})

RETRIED_STATUS = frozenset({408, 409, 429})
RETRIED_KINDS = frozenset({"connection_error", "timeout_error", "api_error", "overloaded_error", "rate_limit_error",
                           "conflict_error"})

CATEGORIES = {401: "authentication_failed", 402: "billing_error", 403: "authentication_failed", 404: "model_not_found",
              429: "rate_limit", 529: "overloaded", 400: "invalid_request", 413: "invalid_request"}


def category(error: ModelError) -> str:
    """The error's class on the stream (headless contract, 5.3)."""
    by_kind = {"overloaded_error": "overloaded", "rate_limit_error": "rate_limit",
               "authentication_error": "authentication_failed", "billing_error": "billing_error",
               "not_found_error": "model_not_found", "invalid_request_error": "invalid_request"}
    if error.kind in by_kind:
        return by_kind[error.kind]
    if error.status is None:
        return "unknown"
    return CATEGORIES.get(error.status, "server_error" if error.status >= 500 else "unknown")


def is_transient(error: ModelError) -> bool:
    """Whether the same request may work later. The server's own word wins."""
    if error.should_retry is not None:
        return error.should_retry
    if error.status is not None:
        return error.status in RETRIED_STATUS or error.status >= 500
    return error.kind in RETRIED_KINDS


def is_too_long(error: ModelError) -> bool:
    """Whether the request was refused for its length (loop contract, 8.5)."""
    text = error.message.lower()
    return error.status == 413 or error.kind == "request_too_large" or (
        error.status in (400, None) and ("prompt is too long" in text or "exceed context limit" in text
                                         or "context window" in text))


def max_retries() -> int:
    return min(env_number("CLAUDE_CODE_MAX_RETRIES", MAX_RETRIES, least=0), RETRIES_CAP)


def wait_seconds(attempt: int, error: ModelError, jitter: float) -> float | None:
    """How long to wait before retry number ``attempt`` (from 1); ``None`` where the server asks for too long.

    :param jitter: between 0 and 1; takes up to a quarter off the backoff.
    """
    backoff = min(BACKOFF_S * 2.0 ** (attempt - 1), BACKOFF_CAP_S) * (1 - 0.25 * jitter)
    asked = error.retry_after or 0.0
    return None if asked > LONGEST_WAIT_S else max(backoff, asked)


async def respond(session: Session, request: ModelRequest) -> Response:
    """One answer, retried as the policy says.

    :raises ModelError: retries are used up or would not help; nothing of the answer counts.
    """
    attempt = resends = 0
    limit = max_retries()
    while True:
        assembler = Assembler()
        began = session.clock.monotonic()
        wait: float | None = 0.0
        try:
            return await _stream(session, request, assembler, began)
        except Exception as caught:
            error = caught if isinstance(caught, ModelError) else _broken(session, caught)
            if assembler.stop_reason is not None:
                return assembler.response()  # the answer is whole; ignore the failure
            kinds = {str(b.get("type")) for b in assembler.complete.values()}
            if kinds - THINKING or (kinds and assembler.begun - THINKING):
                return assembler.response(broken=True)
            if kinds:  # only thinking is complete: ask again quickly, outside the budget
                resends += 1
                if resends > THINKING_RESENDS:
                    raise StreamError("the connection was lost before a response", kind=error.kind,
                                      status=error.status) from error
                continue
            attempt += 1
            wait = wait_seconds(attempt, error, session.clock.random())
            if attempt > limit or wait is None or not is_transient(error):
                raise error from (None if error is caught else caught)
            session.say("api_retry", attempt=attempt, max_retries=limit, retry_delay_ms=round(wait * 1000),
                        error_status=error.status, error=category(error))
        finally:
            session.spending.waited(session.clock.monotonic() - began)
        await session.clock.sleep(wait)


async def side_request(session: Session, request: ModelRequest, info: ModelInfo, *, tries: int = 1,
                       provider: ModelProvider | None = None) -> Response:
    """One whole answer beside the conversation (loop contract, section 2): counted under its own model, never shown.

    :param info: the model; the request gets its name and at most its output limit.
    :param tries: attempts in all, for failures that may pass; an overloaded server (529) is not asked again (8.3).
    :param provider: asks another one than the session's, past the session's middleware.
    :raises ModelError: no attempt gave a whole answer. Half an answer does not count, but is paid for.
    """
    call = session.call_model if provider is None else provider.stream
    wanted = msgspec.structs.replace(request, model=info.id, max_tokens=min(request.max_tokens, info.max_output))
    for attempt in range(1, tries + 1):
        assembler = Assembler()
        began = session.clock.monotonic()
        try:
            async with aclosing(call(wanted)) as events:  # type: ignore[type-var]
                async for event in events:
                    assembler.take(event)
            if assembler.stop_reason is None:
                raise StreamError("the answer ended early", kind="connection_error")
            return assembler.response()
        except Exception as caught:
            error = caught if isinstance(caught, ModelError) else _broken(session, caught)
            wait = wait_seconds(attempt, error, session.clock.random())
            if attempt == tries or wait is None or error.status == 529 or not is_transient(error):
                raise error from (None if error is caught else caught)
        finally:
            session.spending.waited(session.clock.monotonic() - began)
            if assembler.usage.prompt_tokens or assembler.usage.output_tokens:
                session.spending.aside(info, assembler.usage)
        await session.clock.sleep(wait)
    raise AssertionError("at least one try is asked for")


def _broken(session: Session, error: Exception) -> ModelError:
    """A provider or a middleware raised something of its own: the request failed, the run goes on."""
    import traceback

    session.debug("".join(traceback.format_exception(error)))
    return ModelError(f"the request failed with {type(error).__name__}: {error}", kind="provider_error",
                      hint="a plugin is at fault: --debug shows where")


async def _stream(session: Session, request: ModelRequest, assembler: Assembler, began: float) -> Response:
    partial = session.options.include_partial_messages
    session.partial = assembler
    async with aclosing(session.call_model(request)) as events:  # type: ignore[type-var]
        async for event in events:
            assembler.take(event)
            if partial and event.get("type") != "ping":
                _pass_on(session, event, began)
    if not assembler.finished and assembler.stop_reason is None:
        raise StreamError("the answer ended early", kind="connection_error")
    return assembler.response()


def _pass_on(session: Session, event: dict[str, Any], began: float) -> None:
    ttft = round((session.clock.monotonic() - began) * 1000, 1) if event.get("type") == "message_start" else None
    session.emit(StreamMessage(uuid=session.clock.new_id(), session_id=session.id, event=event,
                               parent_tool_use_id=None, ttft_ms=ttft))
