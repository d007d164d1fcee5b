"""The frames of the protocol (SDK contract, section 2), and how they are read and written."""

from __future__ import annotations

import json
from typing import Any

import msgspec

SDK = "0.2.143"
"""The release of the public SDK for Python whose side of the protocol this follows."""

_LINE_ENDS = ((b"\xe2\x80\xa8", b"\\u2028"), (b"\xe2\x80\xa9", b"\\u2029"), (b"\xc2\x85", b"\\u0085"))


class Refused(Exception):
    """A request that cannot be served; the text is the error response."""


class NoAnswer(Exception):
    """The program answered a request of ours with an error, or is gone; the text says which."""


class Gone(NoAnswer):
    """Its side is closed: nothing is answered any more."""


def line(frame: dict[str, Any]) -> bytes:
    """One line of JSON, without the line end; every reader sees one line."""
    try:
        return escaped(msgspec.json.encode(frame, enc_hook=str))
    except (UnicodeEncodeError, TypeError, RecursionError):
        return json.dumps(frame, default=str).encode()


def escaped(data: bytes) -> bytes:
    """JSON without the characters that some readers take for a line end."""
    for raw, escape in _LINE_ENDS:
        if raw in data:
            data = data.replace(raw, escape)
    return data


def success(request_id: str, response: dict[str, Any], beside: dict[str, Any] | None = None) -> dict[str, Any]:
    """:param beside: fields of the wrapper, next to ``response``."""
    return {"type": "control_response",
            "response": {"subtype": "success", "request_id": request_id, "response": response, **(beside or {})}}


def failure(request_id: str, text: str) -> dict[str, Any]:
    return {"type": "control_response", "response": {"subtype": "error", "request_id": request_id, "error": text}}


def field(request: dict[str, Any], name: str, kind: type | tuple[type, ...], *, required: bool = True) -> Any:
    """A field of a request; ``None`` where it is missing and may be.

    :raises Refused: it is missing or of another type.
    """
    value = request.get(name)
    if value is None and not required:
        return None
    kinds = kind if isinstance(kind, tuple) else (kind,)
    if not isinstance(value, kinds) or (isinstance(value, bool) and bool not in kinds):
        wanted = " or ".join(_NAMES.get(k, k.__name__) for k in kinds)
        raise Refused(f"{str(request.get('subtype'))[:60]}: the field {name!r} must be {wanted}")
    return value


_NAMES: dict[type, str] = {str: "a string", bool: "true or false", int: "a number", float: "a number", dict: "an object",
                           list: "a list"}
