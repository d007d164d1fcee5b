"""A conversation as the beginning of a new one (sessions contract, section 4.3)."""

from __future__ import annotations

from typing import Any

from msgspec import Struct

from kernel import Clock
from kernel_sessions.chain import Chain, Graph, first_prompt
from kernel_sessions.entries import line

LEFT_BEHIND = ("teamName", "agentName", "slug", "sourceToolAssistantUUID")


class Copy(Struct):
    """The lines that a fork's file begins with, the entry that goes on, and the fork's title."""

    lines: list[bytes]
    tail: str | None
    title: str


def fork(graph: Graph, chain: Chain, source: str, session_id: str, clock: Clock) -> Copy:
    """Copy a chain and what compactions closed before it, under new uuids, each entry the parent of the next.

    Subagents' entries, progress and abandoned branches stay behind. The source is not touched.

    :param source: the session that is forked.
    :param session_id: the fork.
    """
    stretches = [[e.entry for e in stretch if not e.is_sidechain and e.entry["type"] != "progress"]
                 for stretch in (*graph.before_compaction(chain), chain.lines)]
    new: dict[str, str] = {}
    copies: list[dict[str, Any]] = []
    for stretch in stretches:
        parent: str | None = None
        for original in stretch:
            copied = {**original, "uuid": clock.new_id(), "parentUuid": parent, "sessionId": session_id,
                      "isSidechain": False, "forkedFrom": {"sessionId": source, "messageUuid": original["uuid"]}}
            if "logicalParentUuid" in original:  # it stands in an earlier stretch
                copied["logicalParentUuid"] = new.get(str(original["logicalParentUuid"]))
            for name in LEFT_BEHIND:
                copied.pop(name, None)
            parent = new[original["uuid"]] = copied["uuid"]
            copies.append(copied)
    now = clock.timestamp()
    if copies:
        copies[-1]["timestamp"] = now
    lines = [line(c) for c in copies]
    if graph.journal.replacements:
        lines.append(line({"type": "content-replacement", "sessionId": session_id, "uuid": clock.new_id(), "timestamp": now,
                           "replacements": graph.journal.replacements}))
    said = first_prompt(e for stretch in stretches for e in stretch)
    title = graph.journal.fact("custom-title", "ai-title") or said or "Forked session"
    return Copy(lines, copies[-1]["uuid"] if copies else None, f"{title} (fork)")
