"""From the session's messages to lines: what is over goes above, what goes on is shown live. Knows no terminal.

``plain`` is the form for screen readers and dumb terminals: each thing is a line with its kind in words, nothing moves.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from functools import lru_cache
from typing import Any

from kernel import (
    AssistantMessage,
    ConversationReset,
    Output,
    ResultMessage,
    StreamMessage,
    SystemMessage,
    ToolProgress,
    UserMessage,
)
from kernel_terminal import markdown, rows
from kernel_terminal.lines import Line, cut, cut_line, hung, spoken, words, wrapped
from kernel_terminal.rows import Ended, Row
from kernel_terminal.safe import one_line, plain

KEPT_RESULTS = 20
LIVE_TEXT_LINES = 12
LIVE_TEXT_CHARS = 8_000
LIVE_CALLS = 6
FRAMES = "⠋⠙⠹⠸⠼⠴⠦⠧⠇⠏"
LONG_TURN_S = 10.0
"""A turn that took longer ends with a line that says so."""


class View:
    """:param columns: how wide the terminal is now."""

    def __init__(self, *, plain: bool = False, columns: Callable[[], int] = lambda: 80, cwd: str = "",
                 clock: Callable[[], float] = time.monotonic) -> None:
        self.plain = plain
        self.columns = columns
        self.cwd = cwd
        self.clock = clock
        self.calls: dict[str, Row] = {}
        self.tasks: dict[str, str] = {}
        """Background tasks that run: id -> description."""
        self.ended: list[Ended] = []
        self.doing = ""
        self.began: float | None = None
        """When the running turn began."""
        self._text = ""
        self._shown = 0
        """How many characters of the streamed text were printed already."""
        self._steps = 0
        self._answered = False
        self._last_blank = True
        self._announced: set[str] = set()
        self._noted = ""

    # -- the turn ------------------------------------------------------------------------------------------------------------
    def start(self, doing: str = "Thinking") -> None:
        self.began, self.doing = self.clock(), doing
        self._text, self._shown, self._steps, self._answered = "", 0, 0, False

    def stop(self) -> list[Line]:
        """The turn is over; what still ran has no result any more."""
        self.began, self.doing = None, ""
        self.calls.clear()
        return self._flush()

    # -- messages -----------------------------------------------------------------------------------------------------------
    def take(self, message: Output) -> list[Line]:
        """What is to be printed because of a message."""
        if isinstance(message, StreamMessage):
            return self._stream(message) if message.parent_tool_use_id is None else []
        if isinstance(message, AssistantMessage):
            return self._assistant(message)
        if isinstance(message, UserMessage):
            return self._user(message)
        if isinstance(message, ResultMessage):
            return self._result(message)
        if isinstance(message, SystemMessage):
            return self._system(message.subtype, message.data)
        if isinstance(message, ToolProgress):
            self._progress(message)
        if isinstance(message, ConversationReset):
            self.ended.clear()
        return []

    def _stream(self, message: StreamMessage) -> list[Line]:
        event = message.event
        kind = event.get("type")
        if kind == "message_start":
            self._text, self._shown = "", 0
            self.doing = "Thinking"
        elif kind == "content_block_start":
            block = event.get("content_block") or {}
            self.doing = {"text": "Answering", "tool_use": f"Preparing {one_line(block.get('name') or 'a call', 40)}"}.get(
                str(block.get("type")), "Thinking")
            if block.get("type") == "text":
                self._text, self._shown = "", 0
        elif kind == "content_block_delta":
            delta = event.get("delta") or {}
            if delta.get("type") == "text_delta" and isinstance(delta.get("text"), str):
                self._text += delta["text"]
                return self._settle()
        return []

    def _settle(self) -> list[Line]:
        """Blocks that will not change any more. In the plain form nothing is shown before it is whole."""
        if self.plain:
            return []
        ready = markdown.settled(self._text[self._shown:])
        if not ready:
            return []
        part = self._text[self._shown:self._shown + ready]
        self._shown += ready
        return self._prose(part)

    def _flush(self) -> list[Line]:
        """What was streamed and not yet printed, where no whole message comes any more."""
        rest, self._text, self._shown = self._text[self._shown:], "", 0
        return self._prose(rest) if rest.strip() else []

    def _assistant(self, message: AssistantMessage) -> list[Line]:
        out: list[Line] = []
        for block in message.message.get("content") or ():
            kind = block.get("type")
            if message.parent_tool_use_id is not None:
                if kind == "tool_use":
                    self._step_of_agent(message.parent_tool_use_id, block)
            elif kind == "text" and message.error:
                self._answered = True
                out += self._note(str(block.get("text", "")), "bad", "Error")
            elif kind == "text":
                out += self._whole(str(block.get("text", "")))
            elif kind == "tool_use":
                self._steps += 1
                given = block.get("input")
                row = Row(str(block.get("id")), str(block.get("name")), given if isinstance(given, dict) else {}, self.clock(),
                          self.cwd)
                self.calls[row.id] = row
                self.doing = ""
                if self.plain:
                    out += self._words("Tool started", f"{row.label}: {row.about}" if row.about else row.label)
        return out

    def _whole(self, text: str) -> list[Line]:
        """A text that is finished: what of it was not printed while it was streamed."""
        streamed, shown = self._text, self._shown
        self._text, self._shown, self._answered = "", 0, True
        rest = text[shown:] if shown and text.startswith(streamed[:shown]) else text
        return self._prose(rest) if rest.strip() else []

    def _step_of_agent(self, parent: str, block: dict[str, Any]) -> None:
        row = self.calls.get(parent)
        if row is not None:
            row.steps += 1
            name, given = str(block.get("name")), block.get("input")
            row.last = one_line(f"{name} {rows.about(name, given if isinstance(given, dict) else {}, self.cwd)}")

    def _user(self, message: UserMessage) -> list[Line]:
        content = message.message.get("content")
        out: list[Line] = []
        if message.parent_tool_use_id is not None:
            return out
        for block in content if isinstance(content, list) else ():
            if isinstance(block, dict) and block.get("type") == "tool_result":
                row = self.calls.pop(str(block.get("tool_use_id")), None)
                if row is not None:
                    out += self._call_ended(rows.ended(row, block, message.tool_use_result, self.clock()))
        if message.is_synthetic and isinstance(content, str):
            out += self._background(_without_tags(content))
        if not self.calls:
            self.doing = "Thinking"
        return out

    def _call_ended(self, end: Ended) -> list[Line]:
        self.ended = [*self.ended[1 - KEPT_RESULTS:], end]
        if not self.plain:
            return self._after_text(rows.finished(end, self.columns()))
        facts = rows.outcome(end) + ([rows.seconds(end.seconds)] if end.seconds >= 0.1 else [])
        kind = "Tool refused" if end.row.refused else "Tool failed" if end.failed else "Tool finished"
        told = ", ".join(dict.fromkeys(f for f in facts if f not in ("failed", "refused")))
        return [*self._words(kind, f"{end.row.label}{': ' if told else ''}{told}"),
                *(line for part in rows.body(end) for line in self._words("Output", spoken(part)))]

    def _result(self, message: ResultMessage) -> list[Line]:
        out: list[Line] = self._flush()
        reason = message.terminal_reason
        if reason.startswith("aborted"):
            out += self._note("Interrupted. Say what to do instead.", "warn", "Turn")
        elif message.is_error or message.subtype != "success":
            texts = message.errors if isinstance(message.errors, list) else []
            said = message.result if isinstance(message.result, str) else "\n".join(map(str, texts)) or message.subtype
            if not (self._answered and isinstance(message.result, str)):
                out += self._note(said, "bad", "Error")
        elif isinstance(message.result, str) and message.result.strip() and not self._answered:
            out += self._words("Result", message.result) if self.plain else self.result(message.result)
        took = message.duration_ms / 1000
        if took >= LONG_TURN_S:
            facts = [rows.seconds(took), f"{self._steps} calls" if self._steps != 1 else "1 call"]
            out += self._note(f"({', '.join(facts)})", "dim", "Turn")
        return out

    # -- what the host says -----------------------------------------------------------------------------------------------------
    def _system(self, subtype: str, data: dict[str, Any]) -> list[Line]:
        if subtype == "informational":
            text = plain(data.get("content", ""))
            if text in self._announced:
                return []  # said already, as what must not stay unseen
            warning = data.get("level") == "warning"
            return self._note(text, "warn" if warning else "dim", "Warning" if warning else "Note")
        if subtype == "api_retry":
            status = f" ({data['error_status']})" if data.get("error_status") else ""
            wait = rows.seconds(float(data.get("retry_delay_ms") or 0) / 1000)
            tries = f"try {data.get('attempt')} of {data.get('max_retries')}"
            self.doing = f"Waiting for the model, {tries}"
            return self._note(f"The model could not be asked{status}; {tries} in {wait}.", "warn", "Waiting")
        if subtype == "status":
            if data.get("status") == "compacting":
                self.doing = "Summing the conversation up"
                return self._words("Status", "summing the conversation up") if self.plain else []
            if data.get("permissionMode") and self.plain:
                return self._words("Mode", str(data["permissionMode"]))
            return []
        if subtype == "compact_boundary":
            facts = data.get("compact_metadata") or {}
            before = facts.get("pre_tokens") if isinstance(facts, dict) else None
            size = f" ({before:,} tokens before)" if isinstance(before, int) else ""
            return self._note(f"The conversation was summed up to make room{size}.", "dim", "Status")
        if subtype == "permission_denied":
            row = self.calls.get(str(data.get("tool_use_id")))
            if row is not None:
                row.refused = plain(data.get("message") or "refused")
            return []
        return self._task(subtype, data)

    def _task(self, subtype: str, data: dict[str, Any]) -> list[Line]:
        if subtype == "background_tasks_changed" and isinstance(data.get("tasks"), list):
            self.tasks = {str(t.get("task_id")): one_line(t.get("description", "")) for t in data["tasks"] if isinstance(t, dict)}
        elif subtype == "task_progress":
            row = self.calls.get(str(data.get("tool_use_id")))
            if row is not None and data.get("last_tool_name") and not row.last:
                row.last = one_line(data["last_tool_name"])
        elif subtype == "task_notification" and str(data.get("task_id")) not in self.calls:
            if data.get("tool_use_id") not in self.calls:
                told = data.get("summary") or f"task {data.get('task_id')}: {data.get('status')}"
                return self._background(told)
        return []

    def _background(self, text: Any) -> list[Line]:
        """What ended in the background: clients are told, and then the model is."""
        told = one_line(text)
        if told == self._noted:
            return []
        self._noted = told
        return self._note(told, "dim", "Background")

    def _progress(self, message: ToolProgress) -> None:
        row = self.calls.get(message.tool_use_id)
        if row is not None and message.data:
            told = message.data.get("message") or message.data.get("output_bytes")
            row.told = one_line(f"{told:,} bytes" if isinstance(told, int) else told or "", 60)

    def answered(self, call_id: str) -> None:
        """A question about the call was answered: its time begins now, and what was shown then is not shown again."""
        row = self.calls.get(call_id)
        if row is not None:
            row.began, row.seen = self.clock(), True

    def announce(self, text: str) -> list[Line]:
        """What must not stay unseen. It may come as a message, too; it is shown once."""
        text = plain(text)
        self._announced.add(text)
        return self._note(text, "warn", "Warning")

    # -- forms -----------------------------------------------------------------------------------------------------------------
    def said(self, text: str) -> list[Line]:
        """What the person typed."""
        text = plain(text)
        if self.plain:
            return []  # it stands there already
        self._last_blank = False
        return [[], *([("accent", "> " if n == 0 else "  "), ("you", t)] for n, t in enumerate(text.splitlines() or [""]))]

    def past(self, role: str, text: str) -> list[Line]:
        """What was said before the conversation was taken up again."""
        return self._prose(text, "You" if role == "user" else "Assistant")

    def _prose(self, text: str, kind: str = "Assistant") -> list[Line]:
        text = plain(text).strip("\n")
        if self.plain:
            return self._words(kind, text)
        lines = markdown.rendered(text, self.columns())
        return self._after_text(lines, blank=True) if lines else []

    def _after_text(self, lines: list[Line], *, blank: bool = False) -> list[Line]:
        """Text stands apart from rows by a blank line; neighbouring rows do not."""
        gap: list[Line] = [[]] if blank or not self._last_blank else []
        self._last_blank = not blank
        return [*gap, *lines]

    def _note(self, text: str, style: str, kind: str) -> list[Line]:
        if self.plain:
            return self._words(kind, text)
        text = plain(text)
        mark = {"warn": "! ", "bad": "✗ "}.get(style, "  ")
        self._last_blank = True
        out: list[Line] = []
        for part in text.splitlines() or [""]:
            out += wrapped([(style, part)], min(self.columns(), markdown.WIDEST), mark if not out else "  ", "  ")
        return out

    def _words(self, kind: str, text: str) -> list[Line]:
        return [words(f"{kind}: {part}") for part in plain(text).splitlines() if part.strip()] or [words(f"{kind}.")]

    def note(self, text: str) -> list[Line]:
        """The terminal's own word."""
        return self._note(text, "dim", "Note")

    def result(self, text: str) -> list[Line]:
        """What a command of the terminal answers: lines as they are."""
        self._last_blank = True
        return [words(line) for line in plain(text).splitlines()] if self.plain else [
            [], *(part for line in plain(text).splitlines()
                  for part in hung(words(f"  {line}" if line else ""), self.columns() - 1))]

    def whole_result(self) -> list[Line]:
        """All of the last result that was folded."""
        if not self.ended:
            return self.note("There is no result to show.")
        end = self.ended[-1]
        title = f"{end.row.label} {end.row.about}"
        return [[], [("tool", cut(title, self.columns()))], *(rows.body(end, whole=True) or [[("dim", "  (no output)")]])]

    # -- live --------------------------------------------------------------------------------------------------------------------
    def live(self, height: int) -> list[Line]:
        """What goes on, at most so many lines."""
        columns, now = self.columns(), self.clock()
        out: list[Line] = []
        rest = self._text[self._shown:]
        if rest.strip():
            out += [[], *_growing(rest[-LIVE_TEXT_CHARS:], columns)[-min(LIVE_TEXT_LINES, max(height - 3, 1)):]]
        frame = FRAMES[int(now * 10) % len(FRAMES)]
        calls = list(self.calls.values())
        for row in calls[:LIVE_CALLS]:
            more = f" · {row.steps} steps · {row.last}" if row.steps else f" · {row.told}" if row.told else ""
            out.append(cut_line([("running", f"{frame} "), ("tool", row.label), ("", f" {cut(row.about, max(columns // 2, 20))}"),
                                 ("dim", f" · {rows.seconds(now - row.began)}{more}")], columns - 1))
        if len(calls) > LIVE_CALLS:
            out.append([("dim", f"  and {len(calls) - LIVE_CALLS} more calls")])
        if self.began is not None and not calls:
            out.append(cut_line([("running", f"{frame} "), ("", f"{self.doing or 'Working'}…"),
                                 ("dim", f" {rows.seconds(now - self.began)} · esc interrupts")], columns - 1))
        return out[-height:] if height > 0 else []

    def activity(self) -> str:
        """What is going on, in a few words."""
        if self.calls:
            return next(iter(self.calls.values())).label
        return self.doing if self.began is not None else ""


@lru_cache(maxsize=1)
def _growing(text: str, columns: int) -> list[Line]:
    """A text as far as it came. It is asked for several times for one picture, ten times a second, and is mostly the same."""
    return markdown.rendered(plain(text), columns)


def _without_tags(text: str) -> str:
    import re

    summary = re.search(r"<summary>(.*?)</summary>", text, re.DOTALL)
    return summary[1] if summary else re.sub(r"<[^<>]{1,60}>", " ", text)
