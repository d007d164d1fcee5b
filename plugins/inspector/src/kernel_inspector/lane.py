"""One lane: the main conversation or a subagent. Entries and records come in, rows and requests come out.

Rows are only ever added; what comes later (a result, a decision) changes the row it belongs to. So a row's number is its name.
"""

from __future__ import annotations

from typing import Any

from kernel_inspector.measure import size_of
from kernel_inspector.requests import Facts, Requests
from kernel_inspector.rows import Behind, Request, Row, about, count, number, objects, short, stamp
from kernel_inspector.source import Place

CHAIN = frozenset({"user", "assistant", "system", "attachment", "progress"})
DECISIONS = ("permissionDecision", "decision", "behavior")
REASONS = ("permissionDecisionReason", "reason", "message", "stopReason")
INTERRUPTED = "[Request interrupted"
TURN_EVENTS = frozenset({"UserPromptSubmit", "UserPromptExpansion", "SessionStart", "Setup"})
"""Events that are raised before the prompt is written down, and belong to the turn that it begins."""
SLACK_MS = 200
"""How long before its turn's first line a run may have begun."""
LOUD_MS = 100
"""A silent hook that took longer is shown."""


class Lane:
    """``id``: the agent's; empty for the main conversation. ``facts``: title, mode and the like, by type of the line. ``asked``:
    its requests. ``ms``: time spent, by what on.
    """

    def __init__(self, id: str = "", facts: Facts = lambda model: None) -> None:
        self.id = id
        self.title = ""
        self.kind = ""
        self.call = ""
        self.rows: list[Row] = []
        self.behind: list[Behind] = []
        self.asked = Requests(facts)
        self.turns: list[int] = []
        self.facts: dict[str, str] = {}
        self.ms = {"model": 0.0, "tools": 0.0, "hooks": 0.0, "waiting": 0.0}
        self.tail = ""
        self.parents: dict[str, str] = {}
        self.branched = False
        self._calls: dict[str, int] = {}
        self._open: set[str] = set()
        self._early: dict[str, list[dict[str, Any]]] = {}
        self._coming: list[dict[str, Any]] = []
        self._held: list[tuple[Row, Behind]] = []
        self._uuid = ""
        self._message = ""
        self._sizes: dict[str, int] = {}
        self._paid = 0.0
        self._at = 0
        self._waited: int | None = None

    @property
    def requests(self) -> list[Request]:
        return self.asked.found

    # -- the transcript ----------------------------------------------------------------------------------------------
    def entry(self, entry: dict[str, Any], place: Place) -> None:
        kind = entry.get("type")
        if not isinstance(kind, str) or kind not in CHAIN:
            return self._fact(entry)
        uuid = entry.get("uuid")
        before, self._at = self._at, stamp(entry.get("timestamp")) or self._at
        self._waited = max(0, self._at - before) if before else None
        if isinstance(uuid, str):
            self._hang(uuid, entry)
        message = entry.get("message")
        content = message.get("content") if isinstance(message, dict) else None
        blocks = [{"type": "text", "text": content}] if isinstance(content, str) else content if isinstance(content, list) else []
        blocks = [b if isinstance(b, dict) else {} for b in blocks]
        self._uuid = uuid if isinstance(uuid, str) else ""
        if kind == "user":
            self._user(entry, blocks, place)
        elif kind == "assistant" and isinstance(message, dict):
            self.settle()
            self._assistant(entry, message, blocks, place)
        elif kind == "system":
            self.settle()
            self._system(entry, place)
        return None

    def settle(self) -> None:
        """Context that waited for a prompt to follow it: none did."""
        held, self._held = self._held, []
        for row, behind in held:
            row.turn = self._turn
            self.rows.append(row)
            self.behind.append(behind)

    def _hang(self, uuid: str, entry: dict[str, Any]) -> None:
        parent = entry.get("parentUuid") or entry.get("logicalParentUuid")
        parent = parent if isinstance(parent, str) else ""
        if self.tail and parent != self.tail:
            self.branched = True
        self.parents.setdefault(uuid, parent if parent in self.parents else self.tail)
        self.tail = uuid

    def _fact(self, entry: dict[str, Any]) -> None:
        known = {"custom-title": "customTitle", "ai-title": "aiTitle", "permission-mode": "permissionMode", "tag": "tag",
                 "last-prompt": "lastPrompt", "summary": "summary"}
        value = entry.get(known.get(str(entry.get("type")), ""))
        if isinstance(value, str):
            self.facts[str(entry["type"])] = value[:1000]

    def _user(self, entry: dict[str, Any], blocks: list[dict[str, Any]], place: Place) -> None:
        self._message = ""
        said: list[tuple[int, dict[str, Any]]] = []
        for n, block in enumerate(blocks):
            self._count("user", block)
            if block.get("type") == "tool_result":
                self._result(entry, block, place, n)
            elif block:
                said.append((n, block))
        if not said:
            return
        text = " ".join(str(b.get("text")) if b.get("type") == "text" else f"[{short(b.get('type'), 40)}]" for _, b in said[:20])
        n = said[0][0]
        if entry.get("isMeta") or (text.lstrip().startswith("<system-reminder>") and not entry.get("isCompactSummary")):
            row = Row("context", self._at, self._turn, "Context", short(text))
            self._held.append((row, Behind([(place, n)], [], self._uuid)))
            return
        if not (entry.get("isCompactSummary") or text.startswith(INTERRUPTED) or len(said) < len(blocks)):
            self._begin(text, place, n)
            return
        self.settle()
        if entry.get("isCompactSummary"):
            self._sizes = {"user": len(text)}
            self._add(Row("summary", self._at, self._turn, "Summary", short(text)), place, n)
        elif text.startswith(INTERRUPTED):
            self._add(Row("note", self._at, self._turn, "Interrupted", short(text), "error"), place, n)
        else:
            self._add(Row("context", self._at, self._turn, "Context", short(text)), place, n)

    def _begin(self, text: str, place: Place, n: int) -> None:
        for call in self._open:  # nobody waits for them any more
            self.rows[self._calls[call]].state = "lost"
        self._open.clear()
        self.turns.append(len(self.rows))
        self._add(Row("turn", self._at, self._turn, "Task" if self.id else f"Turn {len(self.turns)}", short(text)), place, n)
        self.settle()
        coming, self._coming = self._coming, []
        for record in coming:
            self._hooks_row(record)

    @property
    def _turn(self) -> int:
        return max(0, len(self.turns) - 1)

    def _assistant(self, entry: dict[str, Any], message: dict[str, Any], blocks: list[dict[str, Any]], place: Place) -> None:
        if entry.get("isApiErrorMessage") or message.get("model") == "<synthetic>":
            text = " ".join(str(b.get("text", "")) for b in blocks)
            self._add(Row("note", self._at, self._turn, "API error" if entry.get("isApiErrorMessage") else "Note", short(text),
                          "error" if entry.get("isApiErrorMessage") else ""), place, 0)
            return
        ident = message.get("id") if isinstance(message.get("id"), str) else ""
        if not self.requests or not ident or ident != self._message:
            self._message = ident or ""
            self._request(ident or "", message)
        request = len(self.requests) - 1
        for n, block in enumerate(blocks):
            kind = block.get("type")
            row: Row | None = None
            if kind == "text" and str(block.get("text", "")).strip():
                row = Row("text", self._at, self._turn, "Answer", short(block.get("text")), request=request)
            elif kind in ("thinking", "redacted_thinking"):
                row = Row("thinking", self._at, self._turn, "Thinking", short(block.get("thinking")), request=request)
            elif kind in ("tool_use", "server_tool_use", "mcp_tool_use"):
                self._call(block, place, n, request, "running" if kind == "tool_use" else "ok")
            elif kind and kind != "text":
                row = Row("text", self._at, self._turn, short(kind, 40), short(block), request=request)
            if row is not None:
                self._add(row, place, n)
            self._count("assistant", block)

    def _call(self, block: dict[str, Any], place: Place, n: int, request: int, state: str) -> None:
        ident = str(block.get("id"))
        row = Row("tool", self._at, self._turn, short(block.get("name"), 80) or "?", about(block.get("input")), state,
                  request=request)
        self._calls[ident] = len(self.rows)
        if state == "running":
            self._open.add(ident)
        self._add(row, place, n)
        if self.turns:
            self.rows[self.turns[-1]].tools += 1
        for record in self._early.pop(ident, ()):
            self.record(record)

    def _result(self, entry: dict[str, Any], block: dict[str, Any], place: Place, n: int) -> None:
        at = self._calls.get(str(block.get("tool_use_id")))
        if at is None:
            self._add(Row("note", self._at, self._turn, "A result without its call", short(block.get("content"))), place, n)
            return
        row, behind = self.rows[at], self.behind[at]
        behind.places.append((place, n))
        self._open.discard(str(block.get("tool_use_id")))
        if row.state in ("running", "lost"):
            row.state = "error" if block.get("is_error") else "ok"
        if row.ms is None and self._at and row.at:
            row.ms = max(0, self._at - row.at)
            self.ms["tools"] += row.ms
        if row.state == "error" and self.turns:
            self.rows[self.turns[-1]].errors += 1

    def _system(self, entry: dict[str, Any], place: Place) -> None:
        if entry.get("subtype") == "compact_boundary":
            meta = entry.get("compactMetadata")
            meta = meta if isinstance(meta, dict) else {}
            self._add(Row("compaction", self._at, self._turn, "Compaction", short(
                f"{meta.get('trigger', '')}, {count(meta.get('preTokens')):,} tokens before".strip(", "))), place, -1)
            self._sizes = {}
        else:
            self._add(Row("note", self._at, self._turn, short(entry.get("subtype"), 60) or "Note", short(entry.get("content"))),
                      place, -1)

    def _request(self, ident: str, message: dict[str, Any]) -> None:
        before = self.requests[-1].row if self.requests else 0
        made = self.asked.answer(ident, message, Request(self._at, self._turn, len(self.rows), ms=self._waited),
                                 self._sizes, compacted=any(r.kind == "compaction" for r in self.rows[before:]))
        self.ms["model"] += made.ms or 0
        if self.turns:
            self.rows[self.turns[-1]].out += made.out

    # -- the record ----------------------------------------------------------------------------------------------------
    def record(self, record: dict[str, Any]) -> None:
        kind, at = record.get("kind"), count(record.get("at"))
        ms = number(record.get("ms")) or 0.0
        call = record.get("call")
        if kind == "parts":
            self.asked.begins(record)
        elif kind == "request":
            self._asked(record, at, ms)
        elif kind in ("tool", "decision", "approval", "hooks") and isinstance(call, str):
            if call in self._calls:
                self._of_call(self._calls[call], record, ms)
            else:
                self._early.setdefault(call, []).append(record)
        elif kind == "hooks":
            self.ms["hooks"] += ms
            if str(record.get("event")) in TURN_EVENTS:
                self._coming.append(record)
            else:
                self._hooks_row(record)
        elif kind == "result":
            self._ended(record, at)
        elif kind == "session":
            self._paid = 0.0
        elif kind == "mode":
            self._add(Row("note", at, self._turn, "Permission mode", short(record.get("mode"))), record=record)
        elif kind == "cleared":
            self._add(Row("note", at, self._turn, "Cleared", f"goes on as {short(record.get('to'), 60)}"), record=record)

    def _of_call(self, at: int, record: dict[str, Any], ms: float) -> None:
        row, behind = self.rows[at], self.behind[at]
        behind.records.append(record)
        kind = record["kind"]
        if kind == "tool":
            self.ms["tools"] += ms - (row.ms or 0)
            row.ms = ms
        elif kind == "hooks":
            by = objects(record.get("by"))
            row.hooks += len(by)
            self.ms["hooks"] += ms
            if record.get("event") == "PreToolUse" and any(_says(b, "permissionDecision") == "deny" for b in by):
                row.by = "hook"
                self._deny(row)
        elif kind == "approval":
            self.ms["waiting"] += ms
        elif kind == "decision":
            reason = record.get("reason")
            row.by = {"promptTool": "person", "other": "policy"}.get(str(reason), short(reason, 30)) or "policy"
            if record.get("behavior") == "deny":
                self._deny(row)

    def _deny(self, row: Row) -> None:
        if row.state == "error" and self.turns:  # its result was read before the decision
            self.rows[self.turns[row.turn]].errors -= 1
        row.state = "denied"

    def _hooks_row(self, record: dict[str, Any]) -> None:
        by = objects(record.get("by"))
        spoke = [b for b in by if b.get("says") or b.get("error")]
        ms = number(record.get("ms")) or 0.0
        if not spoke and ms < LOUD_MS:
            return
        text = "; ".join(f"{short(b.get('plugin'), 60)}: {answer_of(b)}" for b in spoke) or f"{len(by)} asked, none answered"
        self._add(Row("hooks", count(record.get("at")), self._turn, short(record.get("event"), 60), short(text),
                      "error" if any(b.get("error") for b in by) else "", ms, hooks=len(by)), record=record)

    def _asked(self, record: dict[str, Any], at: int, ms: float) -> None:
        error = record.get("error")
        if isinstance(error, dict):
            self.ms["model"] += ms
            status = f" {error['status']}" if isinstance(error.get("status"), int) else ""
            self._add(Row("retry", at, self._turn, "Request failed", f"{short(error.get('kind'), 80)}{status}", "error", ms),
                      record=record)
        elif record.get("side"):
            self.ms["model"] += ms
            self._add(Row("note", at, self._turn, "Side request", f"{short(record.get('model'), 80)}, "
                          f"{count(record.get('out')):,} tokens out", ms=ms, usd=number(record.get("usd"))), record=record)
        else:
            self.ms["model"] += self.asked.record(record)

    def _ended(self, record: dict[str, Any], at: int) -> None:
        total, ms = number(record.get("usd")), number(record.get("ms")) or 0.0
        row = self.rows[self.turns[-1]] if self.turns else None
        if row is not None and row.at >= at - ms - SLACK_MS:  # a typed command has an end, and no turn of its own
            row.ms = ms
            self.behind[self.turns[-1]].records.append(record)
            if total is not None:
                row.usd = total - self._paid if total >= self._paid else total
            if record.get("failed"):
                row.state = "error"
        self._paid = total or self._paid
        if record.get("failed"):
            self._add(Row("note", at, self._turn, "Ended", f"{short(record.get('subtype'), 60)} "
                          f"({short(record.get('reason'), 60)})", "error"), record=record)

    # -- inside ------------------------------------------------------------------------------------------------------------
    def _add(self, row: Row, place: Place | None = None, block: int = 0, record: dict[str, Any] | None = None) -> None:
        self.rows.append(row)
        self.behind.append(Behind([], [record]) if record is not None else Behind([(place or (0, 0), block)], [], self._uuid))

    def _count(self, role: str, block: dict[str, Any]) -> None:
        part, size = size_of(role, block)
        self._sizes[part] = self._sizes.get(part, 0) + size

    def row_of(self, call: str) -> Row | None:
        """The row of a tool call."""
        at = self._calls.get(call)
        return None if at is None else self.rows[at]

    def mark_branches(self) -> None:
        """Rows that are not on the way from the last entry to the first belong to a branch that was left."""
        if not self.branched:
            return
        self.branched = False
        way: set[str] = set()
        uuid = self.tail
        while uuid and uuid not in way:
            way.add(uuid)
            uuid = self.parents.get(uuid, "")
        for row, behind in zip(self.rows, self.behind, strict=True):
            if behind.uuid:
                row.aside = behind.uuid not in way


def answer_of(by: dict[str, Any]) -> str:
    """What one hook answered, in a few words: the decision, its reason, then what else it said by its size."""
    if by.get("error"):
        return f"failed: {short(by['error'])}"
    says = by.get("says")
    if not isinstance(says, dict) or not says:
        return "silent"
    decided = [short(says[k]) for k in DECISIONS if isinstance(says.get(k), str)]
    reasons = [short(says[k], 300) for k in REASONS if isinstance(says.get(k), str)]
    rest = [f"{short(k, 40)} " + (f"({v:,} characters)" if isinstance(v, int) and not isinstance(v, bool) else short(v))
            for k, v in says.items() if not (k in DECISIONS + REASONS and isinstance(v, str))]
    return "; ".join(filter(None, [": ".join([*decided, *reasons]), ", ".join(rest)]))


def _says(by: dict[str, Any], name: str) -> Any:
    says = by.get("says")
    return says.get(name) if isinstance(says, dict) else None
