"""A required field of the type is missing, empty, or of the wrong type (`command`, `url`, `server`, `tool`, `prompt`, `args`
list).

Why: Rejected, or (empty command) runs nothing.

Bad:

    {"type": "http"}

Good:

    {"type": "http", "url": "https://…"}
"""

from __future__ import annotations

from collections.abc import Iterator

from kernel_linter.hooks_model import Handler
from kernel_linter.rule import Diagnostic
from kernel_linter.tables import HANDLER_COMMON, HANDLER_TYPES
from kernel_linter.types import described, fits
from kernel_linter.words import is_url, shown

CODE = "HOK008"
SEVERITY = "error"
FIX = "none"
ON = "handler"
SINCE = "0.1.0"


def check(handler: Handler) -> Iterator[Diagnostic]:
    if handler.type not in HANDLER_TYPES:
        return
    needs, more = HANDLER_TYPES[handler.type]
    for key in needs:
        value = handler.data.get(key)
        if not isinstance(value, str) or not value.strip():
            yield handler.at(
                f"{key}: required for the type {handler.type}: a non-empty text", *([key] if key in handler.data else [])
            )
    if (
        handler.type == "http"
        and isinstance(handler.data.get("url"), str)
        and handler.data["url"].strip()
        and not is_url(handler.data["url"])
    ):
        yield handler.at(f"url: {shown(handler.data['url'])} is no URL", "url")
    for key, word in {**more, **HANDLER_COMMON}.items():
        if key in handler.data and key not in ("type", "timeout", "shell") and not fits(word, handler.data[key]):
            yield handler.at(f"{key}: expected {described(word)}, found {shown(handler.data[key])}", key)
