"""An answer or an ending enters the history, the transcript and the stream, in this order."""

from __future__ import annotations

from typing import TYPE_CHECKING

from kernel import events as e
from kernel.messages import Block, text_block
from kernel.models import Response
from kernel.output import AssistantMessage, UserMessage
from kernel.transcript import Entry

if TYPE_CHECKING:
    from kernel.session import Session


async def take(session: Session, response: Response, aborted: bool = False) -> str | None:
    """Append the answer; one transcript entry and one message per block, with one message id.

    :returns: what a ``MessageDisplay`` hook wants shown instead of the answer's text, if one does.
    """
    blocks = session.history.append("assistant", _with_new_ids(session, response))
    response.blocks = blocks
    entries: list[Entry] = []
    messages: list[AssistantMessage] = []
    for number, block in enumerate(blocks):
        last = number == len(blocks) - 1
        wire = {"id": response.id, "type": "message", "role": "assistant", "model": response.model, "content": [block],
                   "stop_reason": response.stop_reason if last and not aborted else None,
                   "stop_sequence": response.stop_sequence, "usage": response.usage}
        uuid = session.clock.new_id()
        entries.append(Entry(type="assistant", uuid=uuid, message=wire))
        messages.append(AssistantMessage(uuid=uuid, session_id=session.id, message=wire, parent_tool_use_id=None,
                                         aborted=aborted))
    if entries:
        session.record(*entries)  # durable before it is shown, and before its tools run
    instead = await _display(session, messages)
    for message in messages:
        session.emit(message)
    return instead


async def _display(session: Session, messages: list[AssistantMessage]) -> str | None:
    """Let ``MessageDisplay`` hooks replace what is seen; history and transcript keep the original."""
    texts = [m for m in messages if m.message["content"][0].get("type") == "text"]
    if not texts or not session.harness.dispatcher.listens(e.MessageDisplay):
        return None
    whole = "".join(m.message["content"][0]["text"] for m in texts)
    merged = await session.fire(session.make(e.MessageDisplay, turn_id=session.prompt_id, message_id=texts[0].uuid, index=0,
                                             final=True, delta=whole))
    instead: str | None = merged.last.get("display_content")
    if instead is not None:
        for number, shown in enumerate(texts):
            block = {**shown.message["content"][0], "text": instead if number == 0 else ""}
            shown.message = {**shown.message, "content": [block]}
    return instead


def _with_new_ids(session: Session, response: Response) -> list[Block]:
    """The blocks; a call whose id was used before gets a new one (loop contract, 9.6)."""
    blocks: list[Block] = []
    used: set[str] = set()
    for block in response.blocks:
        call = block.get("id")
        if block.get("type") == "tool_use" and (not isinstance(call, str) or call in used or session.history.knows(call)):
            block = {**block, "id": f"toolu_{session.clock.new_id().replace('-', '')[:24]}"}
            if str(call) in response.bad_inputs:
                response.bad_inputs[block["id"]] = response.bad_inputs[str(call)]
        used.add(str(block.get("id")))
        blocks.append(block)
    return blocks


def add(session: Session, blocks: list[Block]) -> None:
    """More for the model that no person typed."""
    session.history.append("user", blocks)
    session.record(session.context_entry(blocks))


def close_calls(session: Session, text: str) -> None:
    """Answer the calls that are still open, so that the history stays legal."""
    results: list[Block] = [{"type": "tool_result", "tool_use_id": call, "content": text, "is_error": True}
                            for call in session.history.open_calls]
    if results:
        session.history.append("user", results)
        session.record(Entry(type="user", uuid=session.clock.new_id(), message={"role": "user", "content": results}))


def mark_interrupt(session: Session, text: str) -> None:
    blocks = [text_block(text)]
    session.history.append("user", blocks)
    uuid = session.clock.new_id()
    message = {"role": "user", "content": blocks}
    session.record(Entry(type="user", uuid=uuid, message=message))
    session.emit(UserMessage(uuid=uuid, session_id=session.id, message=message, parent_tool_use_id=None,
                             timestamp=session.clock.timestamp()))
