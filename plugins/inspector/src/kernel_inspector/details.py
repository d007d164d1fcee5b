"""All that is known of one row, read again from where it stands."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

from kernel_inspector.lane import Lane, answer_of
from kernel_inspector.model import SessionModel
from kernel_inspector.rows import Request, objects, short

SHOWN = 100_000
"""Characters of a text that are sent unless all of it is asked for."""
MOST = 8_000_000
Section = dict[str, Any]


def details(model: SessionModel, lane: Lane, row: int, *, full: bool = False) -> dict[str, Any]:
    """``{"row", "number", "lane", "uuid", "sections": [{"title", "kind", ...}]}``.

    A section is a ``text``, a ``diff`` (``before``, ``after``), ``fields`` (pairs), ``hooks``, or a ``table`` (``head``,
    ``rows``).
    """
    from kernel_inspector.views import wire

    if not 0 <= row < len(lane.rows):
        return {"row": None, "number": row, "lane": lane.id, "sections": []}
    limit = MOST if full else SHOWN
    shown, behind = lane.rows[row], lane.behind[row]
    sections: list[Section] = []
    results: list[Section] = []
    for n, (place, block) in enumerate(behind.places):
        entry = model.line(lane.id, place)
        if not entry:
            sections.append(_text("Gone", "The transcript is not there any more, or was written anew.", limit))
        elif shown.kind != "tool":
            sections += _said(entry, block, shown.kind, limit)
        elif n:
            results += _result(entry, _block(entry, block), limit)
        else:
            sections += _call(_block(entry, block), limit)
    sections += [*_decided(behind.records), *_hooks(behind.records), *_records(behind.records), *results]
    if shown.request is not None and shown.request < len(lane.requests):
        sections += _request(lane, shown.request)
    return {"row": wire(shown), "number": row, "lane": lane.id, "uuid": behind.uuid, "sections": sections}


def texts(entry: dict[str, Any], block: int) -> Iterator[str]:
    """What a search looks through: the texts of one block of an entry; of all of it for -1."""
    if block < 0:
        yield str(entry.get("content") or "")
        return
    yield from strings(_block(entry, block))


def strings(value: Any, depth: int = 0) -> Iterator[str]:
    """All texts in a value, the names of fields left out."""
    if isinstance(value, str):
        yield value
    elif depth < 30 and isinstance(value, dict):
        for key, inner in value.items():
            if key not in ("type", "id", "tool_use_id", "signature", "data"):
                yield from strings(inner, depth + 1)
    elif depth < 30 and isinstance(value, list):
        for inner in value:
            yield from strings(inner, depth + 1)


def _block(entry: dict[str, Any], number: int) -> dict[str, Any]:
    message = entry.get("message")
    content = message.get("content") if isinstance(message, dict) else None
    if isinstance(content, str):
        return {"type": "text", "text": content}
    if isinstance(content, list) and 0 <= number < len(content) and isinstance(content[number], dict):
        found: dict[str, Any] = content[number]
        return found
    return {}


def _text(title: str, text: Any, limit: int) -> Section:
    if not isinstance(text, str):
        text = json.dumps(text, indent=2, ensure_ascii=False, default=str)
    section = {"title": title, "kind": "text", "text": text[:limit]}
    if len(text) > limit:
        section["cut"] = len(text)
    return section


def _fields(title: str, pairs: dict[str, Any]) -> list[Section]:
    filled = [[k, str(v)] for k, v in pairs.items() if v not in (None, "", [], {})]
    return [{"title": title, "kind": "fields", "fields": filled}] if filled else []


def _call(block: dict[str, Any], limit: int) -> list[Section]:
    """The input: a change as a difference, long texts each by itself, the rest as fields."""
    given = block.get("input")
    if not isinstance(given, dict):
        return [_text("Input", given, limit)]
    sections: list[Section] = []
    rest = dict(given)
    if isinstance(given.get("old_string"), str) and isinstance(given.get("new_string"), str):
        sections.append({"title": "Change", "kind": "diff", "before": rest.pop("old_string")[:limit],
                         "after": rest.pop("new_string")[:limit]})
    long = {k: v for k, v in rest.items()
            if not isinstance(v, str | int | float | bool | None) or len(str(v)) > 120 or "\n" in str(v)}
    sections = _fields("Input", {k: v for k, v in rest.items() if k not in long}) + sections
    return sections + [_text(f"Input: {short(k, 60)}", v, limit) for k, v in long.items()]


def _result(entry: dict[str, Any], block: dict[str, Any], limit: int) -> list[Section]:
    content = block.get("content")
    if isinstance(content, list):
        content = "\n".join(str(b.get("text")) if b.get("type") == "text" else f"[{b.get('type')}]"
                            for b in content if isinstance(b, dict))
    sections = [_text("Result (error)" if block.get("is_error") else "Result", content if content is not None else "", limit)]
    structured = entry.get("toolUseResult")
    if isinstance(structured, dict | list) and structured:
        sections.append({**_text("For programs and hooks", structured, limit), "closed": True})
    return sections


def _said(entry: dict[str, Any], number: int, kind: str, limit: int) -> list[Section]:
    message = entry.get("message")
    content = message.get("content") if isinstance(message, dict) else None
    if number < 0 or content is None:
        return [_text("Text", entry.get("content") or "", limit), *_fields("Facts", {
            k: json.dumps(v) for k, v in entry.items() if k in ("compactMetadata", "level", "subtype")})]
    if kind in ("turn", "context", "summary") and isinstance(content, list):
        return [_text("Text", b.get("text", "") if b.get("type") == "text" else f"[{short(b.get('type'), 40)}]", limit)
                for b in content if isinstance(b, dict) and b.get("type") != "tool_result"]
    block = _block(entry, number)
    return [_text("Text", block.get("text") or block.get("thinking") or (block if block.get("type") not in (
        "text", "thinking", "redacted_thinking") else "(not readable)"), limit)]


def _decided(records: list[dict[str, Any]]) -> list[Section]:
    """Who decided, with the rule and the file it stands in."""
    words = {"promptTool": "whoever was asked", "rule": "a rule", "mode": "the permission mode", "hook": "a hook",
             "classifier": "the classifier", "safety": "a safety check", "workingDir": "the working directory",
             "subcommands": "its parts, each by itself", "asyncAgent": "nobody can be asked in the background"}
    sections: list[Section] = []
    for record in records:
        if record.get("kind") == "decision":
            reason = str(record.get("reason"))
            sections += _fields("Decision", {
                "answer": record.get("behavior"), "decided by": words.get(reason, "the policy" if reason == "other" else reason),
                "rule": record.get("rule"), "from": _whence(record), "mode": record.get("mode"),
                "hooks said": record.get("hook"), "input": "rewritten by a hook" if record.get("rewrote") else None,
                "took": _ms(record.get("ms"))})
        elif record.get("kind") == "approval":
            sections += _fields("Question", {
                "answer": record.get("behavior"), "asked because of": words.get(str(record.get("why")), record.get("why")),
                "rule": record.get("rule"), "from": _whence(record), "waited": _ms(record.get("ms")),
                "input": "rewritten" if record.get("rewrote") else None, "rules added": record.get("rules")})
        elif record.get("kind") == "tool":
            sections += _fields("Run", {"status": record.get("status"), "took": _ms(record.get("ms"))})
    return sections


def _whence(record: dict[str, Any]) -> str:
    return ", ".join(short(part, 500) for part in (record.get("source"), record.get("file")) if part)


def _hooks(records: list[dict[str, Any]]) -> list[Section]:
    """Every hook that was asked, with its answer; those that said something first."""
    asked = []
    for record in records:
        if record.get("kind") == "hooks":
            for by in objects(record.get("by")):
                asked.append({"event": short(record.get("event"), 60), "plugin": short(by.get("plugin"), 80),
                              "answer": answer_of(by), "time": _ms(by.get("ms")) or "",
                              "from": short(by.get("source"), 300), "loud": bool(by.get("says") or by.get("error"))})
    asked.sort(key=lambda a: not a["loud"])
    return [{"title": "Hooks", "kind": "hooks", "hooks": asked}] if asked else []


def _records(records: list[dict[str, Any]]) -> list[Section]:
    sections: list[Section] = []
    for record in records:
        if record.get("kind") == "result":
            sections += _fields("End of the turn", {
                "as": record.get("subtype"), "reason": record.get("reason"), "took": _ms(record.get("ms")),
                "of it for the model": _ms(record.get("api")), "answers": record.get("turns"),
                "refused calls": record.get("denials"),
                "cost of the session so far": f"${record['usd']:.4f}" if isinstance(record.get("usd"), float) else None})
        elif record.get("kind") == "request":
            error = record.get("error")
            error = error if isinstance(error, dict) else {}
            sections += _fields("Request", {
                "model": record.get("model"), "took": _ms(record.get("ms")), "error": error.get("kind"),
                "status": error.get("status"), "messages": record.get("messages"),
                "tokens out": record.get("out")})
    return sections


def _request(lane: Lane, number: int) -> list[Section]:
    request: Request = lane.requests[number]
    sections = _fields(f"Request {number + 1}", {
        "model": request.model, "took": _ms(request.ms), "first token after": _ms(request.ttft),
        "cache read": f"{request.read:,}" if request.read else None,
        "cache written": f"{request.written:,}" if request.written else None,
        "not cached": f"{request.fresh:,}", "out": f"{request.out:,}",
        "cost": None if request.usd is None else f"${request.usd:.4f}",
        "cache broken by": f"{request.broke} ({request.lost:,} tokens again)" if request.broke else None})
    if request.parts:
        sections.append({"title": "What it consisted of, estimated", "kind": "table", "head": ["part", "tokens"], "closed": True,
                         "rows": [[k, f"{v:,}"] for k, v in request.parts.items()]})
    before = lane.asked.before(request)
    if before:
        sections.append({"title": f"System prompt and tools, {len(before)} parts", "kind": "table", "closed": True,
                         "head": ["part", "from", "layer", "tokens"],
                         "rows": [[short(name, 80), short(source, 80), short(layer, 40), f"{tokens:,}"]
                                  for layer, name, source, tokens in before]})
    return sections


def _ms(value: Any) -> str | None:
    if not isinstance(value, int | float):
        return None
    if value < 1000:
        return f"{value:.3g} ms" if value else "under 0.1 ms"
    return f"{value / 1000:.1f} s" if value < 120_000 else f"{value / 60_000:.1f} min"
