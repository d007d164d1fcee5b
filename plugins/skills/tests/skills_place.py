"""What the tests of skills write and how they look at a run."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from kernel.testing import Kit, Run, text

WITH = ("skills", "permissions", "tools-shell", "tools-files", "command-hooks")
END = text("done")


def write(root: Path, path: str, body: str = "Step one.\n", **fields: Any) -> Path:
    head = "".join(f"{key.replace('_', '-')}: {value}\n" for key, value in fields.items())
    (root / path).parent.mkdir(parents=True, exist_ok=True)
    (root / path).write_text(f"---\n{head}---\n{body}" if head else body)
    return root / path


def skill(root: Path, name: str, body: str = "Step one.\n", **fields: Any) -> Path:
    return write(root, f".claude/skills/{name}/SKILL.md", body, **{"description": f"Does {name}.", **fields})


def kit(root: Path, *turns: Any, **options: Any) -> Kit:
    return Kit(root, turns or [END] * 9, **{"installed": WITH, **options})


def seen(run: Run, request: int = -1) -> str:
    """All text of one request's messages."""
    return "\n".join(str(block.get("text") or block.get("content", "")) for message in run.requests[request]["messages"]
                     for block in message["content"])


def init(run: Run, turn: int = -1) -> dict[str, Any]:
    return [m.data for m in run.outputs if getattr(m, "subtype", "") == "init"][turn]
