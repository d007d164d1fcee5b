"""What outlives a turn: a compact line about it, and the ids that were cited."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from kernel import Block, Extension, Harness, Leave, Session, UsageError, reminder, text_of
from kernel_evidence.book import book, record_path, turn_of
from kernel_evidence.validators import cited_in

SETTINGS = "kernel.evidence"


class EvidenceRecord(Extension):
    """At the end of a run one line is written beside the transcript: which evidence was found, and which was cited."""

    name = "evidence"

    def check(self, harness: Harness) -> None:
        given = harness.settings.own(SETTINGS)
        if given is None:
            return
        if not isinstance(given, dict) or set(given) - {"tags", "ttlSeconds"}:
            raise UsageError("must be an object with tags and ttlSeconds", context=f"settings, {SETTINGS}")
        if not isinstance(given.get("tags", True), bool):
            raise UsageError("must be true or false", context=f"settings, {SETTINGS}.tags")
        seconds = given.get("ttlSeconds", {})
        if not isinstance(seconds, dict) or any(
            isinstance(n, bool) or not isinstance(n, int | float) or not n >= 0 for n in seconds.values()
        ):
            raise UsageError("must map source types to seconds", context=f"settings, {SETTINGS}.ttlSeconds")

    async def before_prompt(self, session: Session) -> None:
        book(session).slim()

    async def at_end(self, session: Session, leave: Leave) -> None:
        kept = book(session)
        found = kept.of(turn_of(session))
        answer = _answer(session)
        cited = [e for e in cited_in(session.result_facts.get("structured_output"), answer) if e in kept.items]
        kept.cited = list(dict.fromkeys([*kept.cited, *cited]))
        path = record_path(session)
        if found and path is not None:
            line = {
                "turn_id": turn_of(session),
                "found": [e.evidence_id for e in found],
                "cited": cited,
                "items": [
                    {
                        "evidence_id": e.evidence_id,
                        "source_type": e.source_type,
                        "uri": e.uri,
                        "locator": e.locator,
                        "content_hash": e.content_hash,
                        "trust": e.trust,
                        "retrieved_at": e.retrieved_at,
                    }
                    for e in found
                ],
            }
            _append(path, line, session)

    async def after_compaction(self, session: Session) -> list[Block]:
        kept = book(session)
        known = [kept.items[e] for e in kept.cited if e in kept.items]
        if not known:
            return []
        lines = "\n".join(
            f"[{e.evidence_id}] {e.source_type} {e.uri} {json.dumps(e.locator) if e.locator else ''}".rstrip() for e in known
        )
        return [reminder(f"Evidence that was cited so far, by id; it can be cited again while it is current:\n{lines}")]


def _answer(session: Session) -> str:
    for role, blocks in reversed(session.history.messages):
        if role == "assistant":
            return text_of(blocks)
    return ""


def _append(path: Path, line: dict[str, Any], session: Session) -> None:
    try:
        path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
        with path.open("a", encoding="utf-8", errors="replace") as file:
            file.write(json.dumps(line, ensure_ascii=False) + "\n")
    except OSError as error:
        session.debug(f"plugin evidence: {path} cannot be written: {error}")
