"""The http handler: POST the event, read JSON (hooks contract, sections 3.4 and 6.3)."""

from __future__ import annotations

import os
import re
from typing import TYPE_CHECKING, Any

from kernel_command_hooks.answer import Ran, json_object
from kernel_command_hooks.handlers import Http
from kernel_command_hooks.process import MAX_BYTES
from kernel_command_hooks.run_command import Call, decode

if TYPE_CHECKING:
    import httpx

    from kernel import Session

MAX_REDIRECTS = 5
_VARIABLE = re.compile(r"\$(?:\{([A-Za-z_][A-Za-z0-9_]*)\}|([A-Za-z_][A-Za-z0-9_]*))")
_DEFAULT_PORTS = {"http": ":80", "https": ":443"}
_CONTROL = re.compile(r"[\x00-\x1f\x7f]")


async def run(call: Call) -> Ran:
    """One request; a status can never refuse, only JSON in a 2xx answer can."""
    import anyio
    import httpx

    spec = call.handler.spec
    assert isinstance(spec, Http)
    try:
        url = httpx.URL(spec.url)
    except (httpx.InvalidURL, ValueError) as error:
        return _error(f"the URL is not valid: {error}", unusable=True)
    if url.scheme not in ("http", "https") or not url.host:
        return _error("the URL must begin with http:// or https:// and name a host", unusable=True)
    allowed = listed(call.session, "allowedHttpHookUrls")
    if allowed is not None and not any(covers(pattern, url) for pattern in allowed):
        return _error(f"{spec.text()} is not among allowedHttpHookUrls, so the hook is not run", unusable=True)
    try:
        with anyio.fail_after(call.timeout):
            return await _post(call, spec, url)
    except TimeoutError:
        return Ran(code=None, timed_out=True, timeout=call.timeout, http=True)
    except (httpx.HTTPError, httpx.InvalidURL, OSError, ValueError) as error:
        return _error(f"{spec.text()} could not be asked: {type(error).__name__}: {error}".rstrip(": "))


async def _post(call: Call, spec: Http, url: httpx.URL) -> Ran:
    import httpx

    headers = [(name.encode("ascii", "replace"), value.encode("utf-8", "replace"))
               for name, value in fill_headers(spec, call.session).items() if name.lower() != "content-type"]
    headers.append((b"Content-Type", b"application/json"))
    # Loading certificates costs 20 ms; a redirect never changes the scheme, so plain http needs none.
    async with httpx.AsyncClient(verify=url.scheme == "https", timeout=None, follow_redirects=False) as client:  # noqa: S113
        for _ in range(MAX_REDIRECTS + 1):
            request = client.build_request("POST", url, content=call.payload.rstrip(), headers=headers)
            response = await client.send(request, stream=True)
            try:
                if response.status_code not in (307, 308):
                    return await _read(response)
                target = url.join(response.headers.get("location", ""))
            finally:
                await response.aclose()
            if (target.scheme, target.host, target.port) != (url.scheme, url.host, url.port):
                return _error(f"answered with a redirect to another host ({target.host}), which is not followed")
            url = target
    return _error(f"answered with more than {MAX_REDIRECTS} redirects")


async def _read(response: httpx.Response) -> Ran:
    if not 200 <= response.status_code < 300:
        return _error(f"answered with status {response.status_code}")
    body = bytearray()
    async for piece in response.aiter_bytes():
        body += piece
        if len(body) > MAX_BYTES:
            return _error(f"answered with more than {MAX_BYTES} bytes")
    ran = Ran(stdout=decode(bytes(body)), http=True)
    if ran.stdout.strip() and json_object(ran, []) is None:
        return _error("answered with something else than one JSON object")
    return ran


def _error(text: str, *, unusable: bool = False) -> Ran:
    return Ran(code=None, error=f"Failed with non-blocking status code: {text}", unusable=unusable, http=True)


# -- limits that settings set ------------------------------------------------------------------------------------------
def listed(session: Session, key: str) -> list[str] | None:
    """A list that all settings files together define; ``None`` where none does. Something that is no list allows nothing."""
    found = session.settings.by_layer(key)
    if not found:
        return None
    return [item for _, value in found if isinstance(value, list) for item in value if isinstance(item, str)]


def covers(pattern: str, url: httpx.URL) -> bool:
    """Whether a pattern covers a URL. ``*`` in the host part never reaches into the path, so that
    ``https://*.example.com/*`` cannot be met by ``https://other.net/.example.com/``. User and password are left out."""
    host = url.host.lower().rstrip(".")
    authority = (f"[{host}]" if ":" in host else host) + (f":{url.port}" if url.port is not None else "")
    path = url.raw_path.decode("ascii", "replace")
    scheme, separator, rest = pattern.partition("://")
    if not separator:
        return _glob(pattern, f"{url.scheme}://{authority}{path}")
    wanted, slash, tail = rest.partition("/")
    parts = re.fullmatch(r"(\[[^\]]*\]|[^:]*)(:.*)?", wanted.lower())
    if parts is None or not _glob(scheme.lower(), url.scheme):
        return False
    port = "" if parts[2] == _DEFAULT_PORTS.get(url.scheme) else parts[2] or ""
    if not _glob(parts[1].rstrip(".") + port, authority):
        return False
    return _glob(slash + tail, path) if slash else path == "/" or wanted.endswith("*")


def _glob(pattern: str, text: str) -> bool:
    return re.fullmatch(".*".join(map(re.escape, pattern.split("*"))), text, re.DOTALL) is not None


def fill_headers(spec: Http, session: Session) -> dict[str, str]:
    """Headers with the variables that both the handler and the settings allow; any other reference is empty."""
    limit = listed(session, "httpHookAllowedEnvVars")
    allowed = set(spec.allowed_env_vars) if limit is None else set(spec.allowed_env_vars) & set(limit)

    def value(match: re.Match[str]) -> str:
        name: Any = match[1] or match[2]
        return os.environ.get(name, "") if name in allowed else ""

    return {name: _CONTROL.sub("", _VARIABLE.sub(value, text)) for name, text in spec.headers.items()}
