"""Messages in the shape of the Messages API, and the history that keeps them legal (decision D6).

Content blocks are plain dictionaries, never changed once they are in a history. A message is encoded once; later
requests reuse its bytes, so the work of a turn does not grow with the conversation.

The pairing invariant (loop contract, section 5.1) is checked where a message enters: every ``tool_use`` of an
assistant message is answered exactly once, at the front of the next message, in call order. A history from outside
(a transcript, a plugin) goes through ``normalise`` first.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from typing import Any, Literal

import msgspec

from kernel.errors import HistoryError

Block = dict[str, Any]
Role = Literal["user", "assistant"]

_encode = msgspec.json.encode


def text_block(text: str) -> Block:
    return {"type": "text", "text": text}


def reminder(text: str) -> Block:
    """A text block that the host adds to what a person or a tool said."""
    return text_block(f"<system-reminder>\n{text}\n</system-reminder>")


def inert(text: str) -> str:
    """Somebody's text that can neither end nor imitate the reminder it stands in."""
    return re.sub(r"(?i)<(?=\s*+(?:/\s*+)?system-reminder)", r"<\\", text)


def hook_context(hook: str, text: str) -> Block:
    """Text that a hook adds, as the model sees it."""
    return reminder(f"{hook} hook additional context: {text}")


def scrub(value: Any) -> Any:
    """The same value with lone surrogates replaced by U+FFFD; the API refuses them (5.2, row 19)."""
    if isinstance(value, str):
        return value if value.isascii() else value.encode("utf-16", "surrogatepass").decode("utf-16", "replace")
    if isinstance(value, dict):
        return {scrub(k): scrub(v) for k, v in value.items()}
    if isinstance(value, list | tuple):
        return [scrub(v) for v in value]
    return value


def encode(value: Any) -> bytes:
    """Compact JSON; lone surrogates are replaced."""
    try:
        return _encode(value)
    except UnicodeEncodeError:
        return _encode(scrub(value))


def blocks_of(content: str | Iterable[Block]) -> list[Block]:
    """Content as a list of blocks, without blank text."""
    if isinstance(content, str):
        content = [text_block(content)]
    return [b for b in content if not (b.get("type") == "text" and not str(b.get("text", "")).strip())]


def text_of(content: str | Iterable[Block]) -> str:
    """All text blocks of a message, joined."""
    if isinstance(content, str):
        return content
    return "".join(b.get("text", "") for b in content if b.get("type") == "text")


class History:
    """The messages of one conversation, legal at any moment between two turns.

    ``append`` is the only way in. Neighbours of one role become one message on the wire.

    :raises HistoryError: from ``append``, for a message that the API would refuse; nothing is added.
    """

    def __init__(self, messages: Iterable[tuple[Role, str | list[Block]]] = ()) -> None:
        self.messages: list[tuple[Role, list[Block]]] = []
        self._ids: set[str] = set()
        self._open: list[str] = []
        self._closed: list[bytes] = []          # finished wire messages
        self._role: Role | None = None          # the role of the wire message that is still growing
        self._chunks: list[bytes] = []          # its encoded blocks
        for role, content in messages:
            self.append(role, content)

    def __len__(self) -> int:
        return len(self.messages)

    @property
    def open_calls(self) -> list[str]:
        """Ids of tool calls that the next message must answer."""
        return list(self._open)

    def knows(self, call: str) -> bool:
        """Whether a tool call with that id is in the history."""
        return call in self._ids

    def append(self, role: Role, content: str | list[Block]) -> list[Block]:
        """Add a message; blank text is left out, and a message of nothing else is not added at all."""
        blocks = blocks_of(content)
        if not blocks:
            return []
        calls = self._check(role, blocks)
        encoded = [encode(b) for b in blocks]
        if role == self._role:
            self._chunks += encoded
        else:
            if self._role is not None:
                self._closed.append(_wire(self._role, self._chunks))
            self._role, self._chunks = role, encoded
        self._ids.update(calls)
        self._open = calls
        self.messages.append((role, blocks))
        return blocks

    def _check(self, role: Role, blocks: list[Block]) -> list[str]:
        """The ids of the calls that this message opens."""
        if role == "user":
            answered = [b.get("tool_use_id") for b in blocks if b.get("type") == "tool_result"]
            if answered != self._open:
                raise HistoryError("the results do not answer the open tool calls, each once and in call order",
                                   context=f"expected {self._open}, found {answered}")
            if any(b.get("type") != "tool_result" for b in blocks[: len(answered)]):
                raise HistoryError("tool results must stand before all other blocks of their message")
            return []
        if self._role is None:
            raise HistoryError("the first message must be the user's")
        if self._open:
            raise HistoryError("an assistant message before the open tool calls are answered",
                               context=f"open: {self._open}")
        calls = [str(b.get("id")) for b in blocks if b.get("type") == "tool_use"]
        twice = [c for n, c in enumerate(calls) if c in self._ids or c in calls[:n]]
        if twice:
            raise HistoryError("tool call ids must be unique", context=f"used twice: {twice[0]}")
        return calls

    def encode(self, mark: Block | None = None) -> bytes:
        """The JSON array of all messages, from the bytes of each block.

        :param mark: merged into the last block (a cache breakpoint); the kept bytes stay without it.
        """
        if self._role is None:
            return b"[]"
        chunks = self._chunks
        if mark:
            last = self.messages[-1][1][-1]
            if last.get("type") not in ("thinking", "redacted_thinking"):
                chunks = [*chunks[:-1], encode({**last, **mark})]
        return b"[" + b",".join([*self._closed, _wire(self._role, chunks)]) + b"]"

    def wire(self) -> list[dict[str, Any]]:
        """The messages as they go to the API, neighbours of one role merged. For tests and plugins; costs O(n)."""
        merged: list[dict[str, Any]] = []
        for role, blocks in self.messages:
            if merged and merged[-1]["role"] == role:
                merged[-1]["content"].extend(blocks)
            else:
                merged.append({"role": role, "content": list(blocks)})
        return merged


def _wire(role: Role, chunks: list[bytes]) -> bytes:
    return b'{"role":"%b","content":[%b]}' % (role.encode(), b",".join(chunks))


# -- histories from outside -----------------------------------------------------------------------------------------
INTERRUPTED = "The call was interrupted before its result was recorded. Its effect is unknown: check before you repeat it."


def normalise(messages: Iterable[tuple[Role, str | list[Block]]], *, keep_thinking: bool = True,
              keep_open: str | None = None) -> tuple[list[tuple[Role, list[Block]]], list[str]]:
    """Make any history legal (loop contract, 5.3). Pure and idempotent; a legal history comes back unchanged.

    :param keep_thinking: false after a switch of model or account, whose signatures would be refused.
    :param keep_open: the call at the very end that a hook put off; it stays open where it is the only one.
    :returns: the messages, neighbours of one role merged, and one line per change.
    """
    changes: list[str] = []
    merged = list(_merged(messages, keep_thinking, changes))
    out: list[tuple[Role, list[Block]]] = []
    seen: set[str] = set()
    open_calls: list[str] = []
    waiting: list[Any] = []
    for number, (role, blocks) in enumerate(merged):
        if role == "assistant" and not out:
            changes.append("an assistant message before the first user message was dropped")
            continue
        if role == "assistant":
            blocks = _unique_calls(blocks, seen, changes)
        blocks = _in_place(role, blocks, out, waiting, number == len(merged) - 1, changes)
        if role == "user":
            blocks = _answered(open_calls, blocks, changes)
            open_calls = []
        else:
            if open_calls:  # the user message in between was empty
                out.append(("user", _answered(open_calls, [], changes)))
                open_calls = []
            open_calls = [b["id"] for b in blocks if b.get("type") == "tool_use"]
        if not blocks:
            continue
        if out and out[-1][0] == role:
            out[-1] = (role, [*out[-1][1], *blocks])
        else:
            out.append((role, blocks))
    if open_calls and open_calls != [keep_open]:
        out.append(("user", _answered(open_calls, [], changes)))
    return out, changes


def _merged(messages: Iterable[tuple[Role, str | list[Block]]], keep_thinking: bool,
            changes: list[str]) -> Iterator[tuple[Role, list[Block]]]:
    role: Role | None = None
    blocks: list[Block] = []
    for next_role, content in messages:
        usable = content if isinstance(content, str) else [
            b for b in content if isinstance(b, dict) and isinstance(b.get("type"), str)]
        good = [scrub(b) for b in blocks_of(usable)]
        if not keep_thinking:
            good = [b for b in good if b.get("type") not in ("thinking", "redacted_thinking")]
        if not isinstance(content, str) and len(good) != len(content):
            changes.append(f"{len(content) - len(good)} blank or dropped block(s) left out")
        if not good:
            continue
        if next_role != role:
            if role is not None:
                yield role, blocks
            role, blocks = next_role, []
        blocks += good
    if role is not None:
        yield role, blocks


_SERVER_CALLS = frozenset({"server_tool_use", "mcp_tool_use"})


def _in_place(role: Role, blocks: list[Block], before: list[tuple[Role, list[Block]]], waiting: list[Any], last: bool,
              changes: list[str]) -> list[Block]:
    """Calls stand in assistant messages, results in user messages; a server tool goes with its result (5.2, row 8).

    :param before: the messages so far, which may hold such tools too.
    :param waiting: ids of server tools whose result is still to come; kept from message to message.
    :param last: the last message may hold such a tool (a paused answer), and so may one that also calls tools of ours.
    """
    good: list[Block] = []
    for block in blocks:
        kind = str(block.get("type"))
        if kind in _SERVER_CALLS and role == "assistant" and block.get("id") not in waiting:
            waiting.append(block.get("id"))
        elif kind.endswith("_tool_result") and role == "assistant" and block.get("tool_use_id") in waiting:
            waiting.remove(block.get("tool_use_id"))
        elif kind in _SERVER_CALLS or kind.endswith("_tool_result") or (role, kind) in _MISPLACED:
            changes.append(f"a {kind} block that cannot stand there was dropped")
            continue
        good.append(block)
    if waiting and role == "assistant" and not last and not any(b.get("type") == "tool_use" for b in good):
        _end_wait([*(b for _, b in before), good], waiting, changes)
    return good


def _end_wait(places: list[list[Block]], waiting: list[Any], changes: list[str]) -> None:
    """An answer that calls nothing ends the wait: server tools still without a result are dropped, wherever they stand."""
    for ident in waiting:
        changes.append(f"a server tool without its result was dropped: {ident}")
        place, at = next((place, at) for place in reversed(places) for at in reversed(range(len(place)))
                         if place[at].get("type") in _SERVER_CALLS and place[at].get("id") == ident)
        del place[at]
    waiting.clear()


_MISPLACED = frozenset({("user", "tool_use"), ("assistant", "tool_result")})


def _answered(open_calls: list[str], blocks: list[Block], changes: list[str]) -> list[Block]:
    """One result per open call, in call order and first; the other blocks behind them."""
    found: dict[str, Block] = {}
    rest: list[Block] = []
    for block in blocks:
        if block.get("type") != "tool_result":
            rest.append(block)
        elif block.get("tool_use_id") in open_calls and block["tool_use_id"] not in found:
            found[block["tool_use_id"]] = block
        else:
            changes.append(f"a result without its call was dropped: {block.get('tool_use_id')}")
    for call in open_calls:
        if call not in found:
            changes.append(f"a call without a result was answered: {call}")
            found[call] = {"type": "tool_result", "tool_use_id": call, "content": INTERRUPTED, "is_error": True}
    ordered = [found[call] for call in open_calls] + rest
    if found and [id(b) for b in ordered if id(b) in {id(x) for x in blocks}] != [id(b) for b in blocks if b in ordered]:
        changes.append("results were moved to the front, in call order")
    return ordered


def _unique_calls(blocks: list[Block], seen: set[str], changes: list[str]) -> list[Block]:
    out = []
    for block in blocks:
        if block.get("type") == "tool_use":
            if not isinstance(block.get("id"), str) or block["id"] in seen:
                changes.append(f"a call with a missing or repeated id was dropped: {block.get('id')}")
                continue
            seen.add(block["id"])
        out.append(block)
    return out
