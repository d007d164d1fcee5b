"""Where a request goes and what its headers are: read from the environment, for each request anew.

So a changed ``env`` setting or a renewed token counts from the next request on.
"""

from __future__ import annotations

import os
from urllib.parse import SplitResult, urlsplit

from msgspec import Struct

from kernel import ModelError, ModelRequest, __version__, env_switch
from kernel_model_anthropic import models

HOME = "https://api.anthropic.com"
VERSION = "2023-06-01"
"""The API version that every gateway speaks. The later one takes fields away that are never sent here."""
USER_AGENT = f"kernel-harness/{__version__} (model-anthropic)"

CONNECT_S = 5.0
ANSWER_S = 600.0
"""Until the answer's headers are there; ``API_TIMEOUT_MS``."""
SILENCE_S = 300.0
LONGEST_SILENCE_S = 1800.0


class Target(Struct, frozen=True, kw_only=True):
    """One request's address. ``secrets`` are the values that no message may show."""

    url: str
    host: str
    secure: bool
    headers: dict[str, str]
    secrets: tuple[str, ...]


def target(request: ModelRequest) -> Target:
    """The address of a request.

    :raises ModelError: no credentials, or a variable that cannot be used; the variable is named, never its value.
    """
    base = os.environ.get("ANTHROPIC_BASE_URL", "").strip().rstrip("/")
    url = _parts(base or HOME)
    custom = _custom_headers()
    key, token = _secret("ANTHROPIC_API_KEY"), _secret("ANTHROPIC_AUTH_TOKEN")
    if not (key or token or base or custom.keys() & {"x-api-key", "authorization"}):
        raise ModelError("There are no credentials for the Messages API", kind="authentication_error",
                         context="plugin model-anthropic",
                         hint="set ANTHROPIC_API_KEY or ANTHROPIC_AUTH_TOKEN; --model script:FILE plays a script without")
    headers = {"content-type": "application/json", "accept": "application/json", "user-agent": USER_AGENT,
               "accept-encoding": "identity", "anthropic-version": VERSION}
    if key:
        headers["x-api-key"] = key
    if token:
        headers["authorization"] = f"Bearer {token}"
    betas = _betas(request)
    if betas:
        headers["anthropic-beta"] = ",".join(betas)
    secrets = tuple(s for s in (key, token, url.password, *custom.values()) if s and len(s) >= 6)
    return Target(url=f"{base or HOME}/v1/messages", host=str(url.hostname), secure=url.scheme == "https",
                  headers={**request.headers, **headers, **custom}, secrets=secrets)


def _parts(base: str) -> SplitResult:
    try:
        url = urlsplit(base)
        if url.scheme in ("http", "https") and url.hostname and url.port != 0 and not url.query and not url.fragment:
            return url
    except ValueError:  # a broken port or IPv6 address; the text may hold a password
        pass
    raise ModelError("ANTHROPIC_BASE_URL is no plain http:// or https:// URL", kind="invalid_request_error",
                     context="plugin model-anthropic", hint="for example http://localhost:8080")


def _secret(name: str) -> str:
    value = os.environ.get(name, "").strip()
    _check_header(name, value)
    return value


def _check_header(name: str, value: str) -> None:
    # The HTTP library would refuse it too, with the value in its message.
    if not value.isascii() or not value.replace("\t", " ").isprintable():
        raise ModelError(f"{name} holds characters that an HTTP header cannot carry", kind="authentication_error",
                         context="plugin model-anthropic", hint=f"set {name} again; look for line breaks and quotes")


def _custom_headers() -> dict[str, str]:
    """``ANTHROPIC_CUSTOM_HEADERS``: ``Name: Value`` lines; they win over ours. Names are lower case here."""
    headers: dict[str, str] = {}
    for line in os.environ.get("ANTHROPIC_CUSTOM_HEADERS", "").splitlines():
        name, colon, value = line.partition(":")
        name = name.strip().lower()
        if not colon or not name:
            continue
        if not name.isascii() or not name.replace("-", "").replace("_", "").isalnum():
            raise ModelError("ANTHROPIC_CUSTOM_HEADERS holds a name that is no header name", kind="invalid_request_error",
                             context="plugin model-anthropic", hint="write one 'Name: Value' in a line")
        _check_header("ANTHROPIC_CUSTOM_HEADERS", value.strip())
        headers[name] = value.strip()
    return headers


def _betas(request: ModelRequest) -> list[str]:
    """Names of beta features, each once, in the order in which they were asked for."""
    if env_switch("CLAUDE_CODE_DISABLE_EXPERIMENTAL_BETAS"):
        return []
    given = [*request.betas, *os.environ.get("ANTHROPIC_BETAS", "").split(",")]
    if models.split(request.model)[1]:
        given.append(models.LONG_BETA)
    return list(dict.fromkeys(b.strip() for b in given if b.strip()))


def _milliseconds(name: str, default: float) -> float:
    given = os.environ.get(name, "").strip()
    return int(given) / 1000 if given.isdigit() and int(given) > 0 else default


def answer_seconds() -> float:
    """How long the server may take until its answer begins."""
    return _milliseconds("API_TIMEOUT_MS", ANSWER_S)


def silence_seconds() -> float:
    """How long a stream may say nothing, pings included (loop contract, 8.4): never under five minutes."""
    return min(max(_milliseconds("CLAUDE_STREAM_IDLE_TIMEOUT_MS", SILENCE_S), SILENCE_S), LONGEST_SILENCE_S)
