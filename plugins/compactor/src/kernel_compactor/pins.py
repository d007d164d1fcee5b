"""What is kept word for word: the request that is being worked on, and what the person put between ``<pin>`` tags.

Each stands in a block of its own, so no text, however odd, can pass for another part.
"""

from __future__ import annotations

import re
from collections.abc import Iterable

from kernel import Block, reminder, text_block
from kernel_compactor.prompts import FRONT, GO_ON

REQUEST_CHARS = 40_000
END_TAG = "</pin>"
_PIN = re.compile(r"<pin>(.*?)</pin>", re.DOTALL)
_PINNED = "Pinned by the person, word for word:\n"
_TYPED = "The person pinned this; keep it in mind:\n"
_ASKED = "The person's last request, word for word:\n<request>\n"
_END = "\n</request>"
_HOST = "<system-reminder>"


def pinned(messages: Iterable[tuple[str, list[Block]]]) -> list[str]:
    """Every pinned text, each once, in the order in which it came. Only the person pins: results and summaries do not."""
    found: list[str] = []
    for text in _texts(messages):
        if text.startswith(f"{_HOST}\n{_TYPED}") or not text.startswith((FRONT, _ASKED, _HOST)):
            found += _PIN.findall(text)
    return list(dict.fromkeys(found))


def request(messages: Iterable[tuple[str, list[Block]]]) -> str:
    """The last thing that the person asked for, also over an earlier compaction; empty where it cannot be told."""
    last = ""
    for text in _texts(messages):
        if text.startswith(_ASKED):
            last = text.removeprefix(_ASKED).removesuffix(_END)
        elif not text.startswith((FRONT, _PINNED, GO_ON, _HOST)):
            last = text
    return last


def prompt_of(blocks: list[Block]) -> str:
    """What the person said in one message, without what the harness put around it."""
    texts = [str(b.get("text", "")) for b in blocks if b.get("type") == "text"]
    return "\n".join(text for text in texts if not text.startswith(_HOST))


def told(pins: list[str], asked: str) -> list[Block]:
    """The blocks of the first message after a compaction that hold them."""
    blocks = [text_block(_PINNED + "\n".join(f"<pin>{pin}</pin>" for pin in pins))] if pins else []
    return [*blocks, text_block(_ASKED + asked + _END)] if asked else blocks


def typed(pin: str) -> Block:
    """What tells the model of a pin of ``/pin``; it is found again after a resume."""
    return reminder(f"{_TYPED}<pin>{pin}</pin>")


def _texts(messages: Iterable[tuple[str, list[Block]]]) -> Iterable[str]:
    for role, blocks in messages:
        if role == "user":
            yield from (str(b.get("text", "")) for b in blocks if b.get("type") == "text")
