"""Images and documents of old turns give way before a request is larger than the API takes (context contract, section 7)."""

from __future__ import annotations

from typing import Any

from kernel import Block, Session, text_block
from kernel_compactor.state import state

MOST = 24 * 1024 * 1024
"""Characters of encoded images and documents in one request; the API takes 32 MB in all."""
KEPT = 3
"""Messages of the user at the end that keep theirs."""
GONE = "(An image or a document stood here; it was dropped because the request became too large. Read it again if it matters.)"


def make_room(session: Session) -> int:
    """Drop the oldest, down to half of what is allowed, so that it does not happen at every request.

    :returns: how many were dropped.
    """
    mine = state(session)
    messages = session.history.messages
    if mine.measured is not session.history:
        mine.measured, mine.looked, mine.media = session.history, 0, 0
    mine.media += sum(_size(block) for _, blocks in messages[mine.looked:] for block in blocks)
    mine.looked = len(messages)
    if mine.media <= MOST:
        return 0
    users = [n for n, (role, _) in enumerate(messages) if role == "user"]
    old = set(users[:-KEPT])
    changed: list[Any] = []
    dropped = 0
    for number, (role, blocks) in enumerate(messages):
        if number in old and mine.media > MOST // 2 and (size := sum(map(_size, blocks))):
            mine.media -= size
            dropped += sum(map(_count, blocks))
            blocks = [without(block, GONE) for block in blocks]
        changed.append((role, blocks))
    if dropped:
        session.rewrite(changed)
    return dropped


def without(block: Block, line: str) -> Block:
    """The block with a line in the place of each image and document; the block itself where there is none."""
    if not _count(block):
        return block
    if block.get("type") != "tool_result":
        return text_block(line)
    return {**block, "content": [without(b, line) if isinstance(b, dict) else b for b in block["content"]]}


def _parts(block: Block) -> list[Block]:
    if block.get("type") in ("image", "document"):
        return [block]
    content = block.get("content")
    inner = content if block.get("type") == "tool_result" and isinstance(content, list) else ()
    return [part for b in inner if isinstance(b, dict) for part in _parts(b)]


def _count(block: Block) -> int:
    return len(_parts(block))


def _size(block: Block) -> int:
    sources = [part.get("source") for part in _parts(block)]
    return sum(len(str(source.get("data") or "")) for source in sources if isinstance(source, dict))


def without_any(messages: list[Any], line: str) -> list[Any] | None:
    """The same messages without images and documents; ``None`` where there is none."""
    if not any(_count(block) for _, blocks in messages for block in blocks):
        return None
    return [(role, [without(block, line) for block in blocks]) for role, blocks in messages]

