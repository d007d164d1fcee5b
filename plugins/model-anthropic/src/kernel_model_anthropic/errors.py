"""What went wrong, in the kernel's terms (loop contract, section 8.1). Nothing here decides on retrying.

No message shows a secret: an echo of the key in an answer is blacked out, and texts of the HTTP library, which quote
headers and proxy addresses, are not passed on.
"""

from __future__ import annotations

import math
import re
import time
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import msgspec

from kernel import ModelError, StreamError

if TYPE_CHECKING:
    from kernel_model_anthropic.target import Target

KINDS = {400: "invalid_request_error", 401: "authentication_error", 402: "billing_error", 403: "permission_error",
         404: "not_found_error", 408: "timeout_error", 409: "conflict_error", 413: "request_too_large",
         422: "invalid_request_error", 429: "rate_limit_error", 504: "timeout_error", 529: "overloaded_error"}
STATUS = {"invalid_request_error": 400, "authentication_error": 401, "billing_error": 402, "permission_error": 403,
          "not_found_error": 404, "conflict_error": 409, "request_too_large": 413, "rate_limit_error": 429,
          "api_error": 500, "timeout_error": 504, "overloaded_error": 529}
"""The HTTP status that an ``error`` event stands for."""
SPENT = frozenset({"contract_spend_limit_reached", "enforced_spend_limit_reached",
                   "linked_organization_spend_limit_reached", "storage_quota_exceeded"})
"""``error.details.error_code`` values that no waiting helps against."""
CONTEXT = "plugin model-anthropic"
EXCERPT = 200
LONGEST = 2_000
_KIND = re.compile(r"[a-z][a-z0-9_]{1,63}")


def from_answer(status: int, headers: Mapping[str, str], body: bytes, target: Target) -> ModelError:
    """An answer with an error status. A redirect is one: following it would hand the key to somebody else."""
    if 300 <= status < 400:
        return ModelError(f"{target.host} redirects instead of answering", kind="not_a_model_response", status=status,
                          should_retry=False, context=CONTEXT, hint="set ANTHROPIC_BASE_URL to the final address")
    data = _object(body)
    error = data.get("error")
    kind, message, code = _parts(error if isinstance(error, dict) else {"message": error or data.get("message")})
    said = headers.get("x-should-retry", "").lower()
    should = {"true": True, "false": False}.get(said, False if code in SPENT else None)
    request_id = headers.get("request-id") or data.get("request_id")
    return ModelError(
        redact(message or _excerpt(body) or f"HTTP {status} with an empty body", target.secrets),
        kind=kind or KINDS.get(status) or ("api_error" if status >= 500 else "invalid_request_error"),
        status=status, retry_after=retry_after(headers), should_retry=should,
        request_id=request_id if isinstance(request_id, str) else "", context=CONTEXT, hint=_hint(status))


def from_event(event: object, data: str, target: Target, request_id: str, began: bool) -> ModelError:
    """An ``error`` event: like a failed request of that error type. ``data`` is its text, for where it is no JSON."""
    whole = event if isinstance(event, dict) else {}
    error = whole.get("error")
    kind, message, code = _parts(error if isinstance(error, dict) else {"message": error or whole.get("message")})
    kind = kind or "api_error"
    own_id = whole.get("request_id")
    make = StreamError if began else ModelError
    return make(redact(message or _excerpt(data), target.secrets), kind=kind,
                status=STATUS.get(kind), should_retry=False if code in SPENT else None,
                request_id=own_id if isinstance(own_id, str) else request_id, context=CONTEXT)


def no_model_response(what: str, shown: str | bytes, target: Target, *, status: int | None, began: bool = False) -> ModelError:
    """An answer that is none of a model: names what came back."""
    found = redact(_excerpt(shown), target.secrets)
    make = StreamError if began else ModelError
    return make(f"{target.host} sent {what}, not an answer of a model{f': {found}' if found else ''}",
                kind="not_a_model_response", status=status, should_retry=False, context=CONTEXT,
                hint="check ANTHROPIC_BASE_URL and what stands between here and the server")


def from_transport(error: BaseException, target: Target, began: bool) -> ModelError:
    """A request that got no whole answer: TLS, DNS, a refused or broken connection, silence."""
    import ssl

    import httpx

    make = StreamError if began else ModelError
    tls = next((e for e in _chain(error) if isinstance(e, ssl.SSLError)), None)
    if tls is not None and not isinstance(tls, ssl.SSLEOFError | ssl.SSLZeroReturnError):
        reason = getattr(tls, "verify_message", "") or tls.reason or "handshake failed"
        return make(f"no secure connection to {target.host}: {reason}", kind="connection_error", should_retry=False,
                    context=CONTEXT, hint="SSL_CERT_FILE names the certificates of a company's own authority")
    if isinstance(error, httpx.ReadTimeout | httpx.WriteTimeout | TimeoutError):
        what = "said nothing for too long" if began else "did not answer in time"
        return make(f"{target.host} {what}", kind="timeout_error", context=CONTEXT)
    if isinstance(error, httpx.ProxyError):
        return make("the proxy refused the connection", kind="connection_error", context=CONTEXT,
                    hint="check HTTP_PROXY and HTTPS_PROXY")
    if isinstance(error, httpx.LocalProtocolError | httpx.UnsupportedProtocol | httpx.InvalidURL):
        return make(f"the request cannot be sent ({type(error).__name__})", kind="invalid_request_error",
                    should_retry=False, context=CONTEXT, hint="check ANTHROPIC_BASE_URL and ANTHROPIC_CUSTOM_HEADERS")
    doing = "lost the connection to" if not isinstance(error, httpx.ConnectError | httpx.ConnectTimeout) else "cannot connect to"
    cause = next((e.strerror for e in _chain(error) if isinstance(e, OSError) and e.strerror), None)
    return make(f"{doing} {target.host}{f': {cause}' if cause else ''}", kind="connection_error", context=CONTEXT)


def _chain(error: BaseException) -> list[BaseException]:
    """The error and what it came from, groups opened."""
    found: list[BaseException] = []
    waiting: list[BaseException | None] = [error]
    while waiting:
        item = waiting.pop(0)
        if item is None or item in found:
            continue
        found.append(item)
        waiting += [*(item.exceptions if isinstance(item, BaseExceptionGroup) else ()), item.__cause__, item.__context__]
    return found


def retry_after(headers: Mapping[str, str]) -> float | None:
    """Seconds that the server asks to wait: ``retry-after-ms``, then ``retry-after`` in seconds or as a date."""
    wait = _number(headers.get("retry-after-ms"))
    if wait is not None:
        return wait / 1000
    given = headers.get("retry-after")
    wait = _number(given)
    if wait is None and given:
        from email.utils import mktime_tz, parsedate_tz

        try:
            date = parsedate_tz(given)
            wait = max(0.0, mktime_tz(date) - time.time()) if date else None
        except (ValueError, OverflowError):
            return None
    return wait


def _number(text: str | None) -> float | None:
    try:
        value = float(text or "")
    except ValueError:
        return None
    return value if math.isfinite(value) and value >= 0 else None


def redact(text: str, secrets: tuple[str, ...]) -> str:
    for secret in secrets:
        text = text.replace(secret, "[redacted]")
    return text[:LONGEST]


def _parts(error: dict[str, Any]) -> tuple[str, str, str]:
    """Kind, message and code of an error object; empty where it has none that can be used."""
    kind, message, details = error.get("type"), error.get("message"), error.get("details")
    code = details.get("error_code") if isinstance(details, dict) else None
    return (kind if isinstance(kind, str) and _KIND.fullmatch(kind) else "",
            message if isinstance(message, str) else "", code if isinstance(code, str) else "")


def _object(body: bytes) -> dict[str, Any]:
    try:
        value = msgspec.json.decode(body)
    except (msgspec.DecodeError, UnicodeError, RecursionError):
        return {}
    return value if isinstance(value, dict) else {}


def _excerpt(body: str | bytes) -> str:
    text = body.decode("utf-8", "replace") if isinstance(body, bytes) else body
    return " ".join(text.split())[:EXCERPT]


def _hint(status: int) -> str:
    return {401: "check ANTHROPIC_API_KEY or ANTHROPIC_AUTH_TOKEN", 404: "check the model's name and ANTHROPIC_BASE_URL",
            }.get(status, "")
