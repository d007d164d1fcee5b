"""One compaction from hook to hook (context contract, 8.2 and 8.3)."""

from __future__ import annotations

from pathlib import Path
from typing import Any, Literal

from kernel import (
    Block,
    Entry,
    History,
    KernelError,
    ModelError,
    PostCompact,
    PreCompact,
    Session,
    SessionStart,
    is_too_long,
    side_request,
    text_block,
    text_of,
)
from kernel_compactor import counting, files, media, pins
from kernel_compactor.prompts import FRONT, GO_ON, INSTRUCTION, MORE, NO_IMAGE, SPILLED, WHERE, summary_of
from kernel_compactor.state import state

FEWEST = 2
TRIES = 3
DROPS = 3
KINDS = ("text", "image", "document")
"""What extensions may tell again; anything else would make the history illegal."""
SHARE = 5
"""A summary request that is too long loses at least one part in so many of the history, from its beginning."""
Messages = list[tuple[Any, list[Block]]]


async def compact(session: Session, trigger: Literal["manual", "auto"], now: int, instructions: str = "") -> dict[str, Any]:
    """Sum the conversation up and put the summary in its place.

    :param now: tokens that the window holds.
    :returns: the receipt: what was kept, what was dropped, where it can be found.
    :raises KernelError: it was not done; the history is as it was.
    """
    messages: Messages = list(session.history.messages)
    if session.history.open_calls:
        raise KernelError("a call waits for its result; send a prompt first")
    if len(messages) < FEWEST:
        raise KernelError("Not enough messages to compact.")
    merged = await session.fire(session.make(PreCompact, trigger=trigger, custom_instructions=instructions or None))
    if merged.blocked:
        raise KernelError(f"a PreCompact hook forbids it: {merged.block_reason or 'no reason was given'}")
    session.say("status", status="compacting")
    try:
        tail = messages[-1:] if trigger == "auto" and state(session).fresh else []
        summary = await _summary(session, messages[:-1] if tail else messages, instructions)
        return await _replace(session, messages, tail, summary, trigger, now)
    finally:
        session.say("status", status=None)


async def _summary(session: Session, messages: Messages, instructions: str) -> str:
    asked = INSTRUCTION + (MORE + instructions if instructions else "")
    for _ in range(DROPS + 1):
        history = History(messages)
        history.append("user", [text_block(asked)])
        request = session.request(history=history, tool_choice={"type": "none"} if session.toolbox.definitions else None)
        try:
            response = await side_request(session, request, session.model_info, tries=TRIES)
        except ModelError as error:
            shorter = media.without_any(messages, NO_IMAGE) or _without_the_oldest(messages)
            if not is_too_long(error) or shorter is None:
                raise KernelError(f"the summary could not be had: {error.message}") from error
            messages = shorter
            continue
        summary = summary_of(text_of(response.blocks))
        if response.stop_reason in ("max_tokens", "refusal") or not summary:
            how = f"ended by {response.stop_reason}" if summary else "empty"
            raise KernelError(f"the summary is no good: the answer was {how}")
        return summary
    raise KernelError("the summary request itself is too long")


def _without_the_oldest(messages: Messages) -> Messages | None:
    """The same without its oldest exchanges, at least a fifth; ``None`` where nothing may go. Calls keep their results."""
    wanted = sum(counting.estimate(blocks) for _, blocks in messages) // SHARE
    gone = 0
    for place, (role, blocks) in enumerate(messages):
        is_prompt = role == "user" and not any(b.get("type") == "tool_result" for b in blocks)
        if place and gone >= wanted and is_prompt:
            return messages[place:]
        gone += counting.estimate(blocks)
    for place in range(len(messages) // SHARE or 1, len(messages)):  # one long turn: cut between two exchanges
        role, blocks = messages[place]
        if role == "assistant" and place > 1:
            note = text_block("(The beginning of the conversation was too long and is left out.)")
            return [("user", [note]), *messages[place:]]
    return None


def _asked(session: Session, messages: Messages) -> str:
    """The request that is being worked on, word for word; of a very long one the beginning, and where it lies."""
    text = state(session).request or pins.request(messages)
    if len(text) <= pins.REQUEST_CHARS:
        return text
    where = session.kept(f"request-{session.clock.new_id()}", text)[1]
    return f"{text[:pins.REQUEST_CHARS // 2]}\n... ({len(text):,} characters in all; the whole {where})"


def _where(session: Session) -> str:
    """Where what is summed up can be looked up."""
    if not session.transcript.kept or not session.transcript.path:
        return ""
    folder = Path(session.transcript.path).with_suffix("") / "tool-results"
    return WHERE.format(path=session.transcript.path) + (SPILLED.format(path=folder) if folder.is_dir() else "")


async def _replace(session: Session, messages: Messages, tail: Messages, summary: str, trigger: Literal["manual", "auto"],
                   now: int) -> dict[str, Any]:
    """The new history, the transcript, the events, the receipt."""
    there = pins.pinned(tail)
    marked = [p for p in dict.fromkeys([*pins.pinned(messages), *state(session).pins]) if p not in there]
    asked = "" if tail or trigger == "manual" else _asked(session, messages)
    first = [text_block(FRONT + summary + _where(session)), *pins.told(marked, asked)]
    if trigger == "auto" and not tail:
        first.append(text_block(GO_ON))
    told = [b for b in await session.told_again() if isinstance(b, dict) and b.get("type") in KINDS]
    reread = files.again(session)
    files.forget_lines(session)
    session.rewrite([("user", [*first, *told, *reread]), *tail])
    uuid = session.clock.new_id()
    counts = (("pinned text(s)", len(marked)), ("request", bool(asked or tail)), ("reminder(s)", len(told)),
              ("file(s)", len(reread)))
    kept = ["the summary", *(f"{int(n)} {what}" for what, n in counts if n)]
    receipt: dict[str, Any] = {
        "stage": "compact", "trigger": trigger, "messages": len(messages), "pre_tokens": now,
        "post_tokens": counting.used(session), "kept": kept, "dropped": len(messages) - len(tail), "boundary": uuid,
        "where": session.transcript.path if session.transcript.kept else "nowhere: the session is not kept"}
    boundary = Entry(type="system", uuid=uuid, extra={
        "subtype": "compact_boundary", "content": "Conversation compacted", "level": "info",
        "compactMetadata": {"trigger": trigger, "preTokens": now, "receipt": receipt}})
    one = Entry(type="user", uuid=session.clock.new_id(), message={"role": "user", "content": first},
                extra={"isCompactSummary": True})
    entries = [boundary, one, *([session.context_entry([*told, *reread])] if told or reread else [])]
    entries += [Entry(type="user", uuid=session.clock.new_id(), message={"role": role, "content": blocks})
                for role, blocks in tail]
    session.record(*entries)
    mine = state(session)
    mine.receipts.append(receipt)
    mine.requests, mine.compacted = 0, True
    mine.told.discard("filling")
    if session.parent is None:  # a client would take a subagent's for the conversation's
        session.say("compact_boundary", compact_metadata={
            "trigger": trigger, "pre_tokens": now, "post_tokens": receipt["post_tokens"], "receipt": receipt})
    await session.fire(session.make(PostCompact, trigger=trigger, compact_summary=summary))
    if session.parent is None:
        await session.hear(session.make(SessionStart, source="compact", model=session.model_info.id, session_title=session.title))
    return receipt
