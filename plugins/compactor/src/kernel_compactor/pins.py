"""What is kept word for word: the request that is being worked on, and what the person put between ``<pin>`` tags."""

from __future__ import annotations

import re
from collections.abc import Iterable

from kernel import Block
from kernel_compactor.prompts import FRONT

REQUEST_CHARS = 40_000
_PIN = re.compile(r"<pin>(.*?)</pin>", re.DOTALL)
_PINNED = "Pinned by the person, word for word:\n"
_ASKED = "The person's last request, word for word:\n<request>\n"
_END = "\n</request>"


def pinned(messages: Iterable[tuple[str, list[Block]]]) -> list[str]:
    """Every pinned text, each once, in the order in which it came. Only the person pins: results and summaries do not."""
    found: list[str] = []
    for text in _texts(messages):
        if text.startswith(FRONT):
            text = text.rpartition(_PINNED)[2].partition(_ASKED)[0] if _PINNED in text else ""
        found += _PIN.findall(text)
    return list(dict.fromkeys(found))


def request(messages: Iterable[tuple[str, list[Block]]]) -> str:
    """The last thing that the person asked for, also over an earlier compaction; empty where it cannot be told."""
    last = ""
    for text in _texts(messages):
        if text.startswith(FRONT):
            last = text.rpartition(_ASKED)[2].rpartition(_END)[0] if _ASKED in text else last
        else:
            last = text
    return last if len(last) <= REQUEST_CHARS else ""


def told(pins: list[str], asked: str) -> str:
    """The part of the first message after a compaction that holds them."""
    parts = [_PINNED + "\n".join(f"<pin>{pin}</pin>" for pin in pins)] if pins else []
    if asked:
        parts.append(_ASKED + asked + _END)
    return "\n\n".join(parts)


def _texts(messages: Iterable[tuple[str, list[Block]]]) -> Iterable[str]:
    for role, blocks in messages:
        if role == "user" and not any(b.get("type") == "tool_result" for b in blocks):
            for block in blocks:
                text = str(block.get("text", "")) if block.get("type") == "text" else ""
                if text and not text.startswith("<system-reminder>"):
                    yield text
