"""Versions and npm ranges: whether a text is one (plugins contract, section 8)."""

from __future__ import annotations

import re

_ID = r"(?:0|[1-9]\d*|\d*[A-Za-z-][0-9A-Za-z-]*)"
VERSION = re.compile(rf"^(?:0|[1-9]\d*)\.(?:0|[1-9]\d*)\.(?:0|[1-9]\d*)(?:-{_ID}(?:\.{_ID})*)?(?:\+[0-9A-Za-z.-]+)?$")
_X = r"(?:0|[1-9]\d*|[xX*])"
_PARTIAL = rf"v?{_X}(?:\.{_X}(?:\.{_X}(?:-{_ID}(?:\.{_ID})*)?(?:\+[0-9A-Za-z.-]+)?)?)?"
_SIMPLE = re.compile(rf"^(?:(?:>=|<=|>|<|=|~>?|\^)\s*)?{_PARTIAL}$")
_HYPHEN = re.compile(rf"^\s*{_PARTIAL}\s+-\s+{_PARTIAL}\s*$")


def is_version(text: str) -> bool:
    return len(text) <= 256 and bool(VERSION.match(text))


def is_range(text: str) -> bool:
    """Whether npm reads the text as a range: ``||``, comparators side by side, hyphen ranges, ``x``, ``*``."""
    if len(text) > 256:
        return False
    return all(_alternative(part) for part in text.split("||"))


def _alternative(text: str) -> bool:
    if not text.strip() or _HYPHEN.match(text):
        return True
    joined = re.sub(r"(>=|<=|>|<|=|~>?|\^)\s+", r"\1", text.strip())
    return all(_SIMPLE.match(word) for word in joined.split())
