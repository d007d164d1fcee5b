"""The sessions that there are, without reading them whole (sessions contract, section 2.5)."""

from __future__ import annotations

from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from msgspec import Struct

from kernel_sessions.chain import first_prompt
from kernel_sessions.paths import transcripts
from kernel_sessions.reader import decode, ends


class Listed(Struct):
    """One line of a list. ``shown``: title, last prompt, summary or first prompt, whichever there is first."""

    path: Path
    size: int
    changed: datetime
    title: str
    tag: str
    branch: str
    cwd: str
    shown: str

    @property
    def session_id(self) -> str:
        return self.path.stem.lower()

    def wire(self) -> dict[str, Any]:
        return {"session": self.session_id, "changed": self.changed.isoformat(timespec="seconds"), "size": self.size,
                "title": self.title or None, "tag": self.tag or None, "branch": self.branch or None, "cwd": self.cwd or None,
                "shown": self.shown, "path": str(self.path)}


def listed(folders: list[Path]) -> list[Listed]:
    """The sessions of these project folders, the one that changed last first."""
    found = [item for folder in folders for path, stamp in transcripts(folder) if (item := _item(path, stamp))]
    return sorted(found, key=lambda item: item.changed, reverse=True)


def _item(path: Path, stamp: int) -> Listed | None:
    """``None`` for a subagent's file and for one that holds nothing to show."""
    try:
        seen = ends(path)
    except OSError:
        return None
    entries = [entry for raw in seen.head.split(b"\n") if raw and (entry := decode(raw))]
    if not entries or entries[0].get("isSidechain") is True:
        return None
    facts = {kind: fact.value for kind, fact in seen.facts().items()}
    said = first_prompt(entries)
    title = facts.get("custom-title") or facts.get("ai-title") or ""
    shown = title or facts.get("last-prompt") or facts.get("summary") or said
    first = next((e for e in entries if isinstance(e.get("cwd"), str)), {})
    return Listed(path, seen.size, datetime.fromtimestamp(stamp / 1e9, UTC), title, facts.get("tag", ""),
                  str(first.get("gitBranch") or ""), str(first.get("cwd") or ""), " ".join(shown.split())) if shown else None
