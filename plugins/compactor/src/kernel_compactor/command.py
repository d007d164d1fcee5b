"""``kernel context ledger``: what the prompt cache kept, request by request."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Annotated, Any

from typer import Argument, Option

from kernel import config_dir
from kernel_compactor.ledger import FILE

MAX_NAME = 200
"""Characters of a project's name before it is cut and gets a hash (sessions contract, section 1)."""


def show(session: Annotated[str, Argument(help="a session id")] = "",
         json_: Annotated[bool, Option("--json", help="one JSON array")] = False) -> int:
    """What of the last request's prefix each request of a session kept, and what broke it. Without a session: the newest one of
    this folder's project."""
    path = _find(session)
    if path is None:
        print(f"There is no ledger of {session or 'any session here'}; one is kept for sessions that are kept.")
        return 1
    rows = [row for line in path.read_text("utf-8", "replace").splitlines() if (row := _row(line)) is not None]
    if json_:
        print(json.dumps(rows, indent=1))
        return 0
    print(f"{'request':>7}  {'size':>12}  {'kept':>7}  broken by")
    for row in rows:
        share = "-" if row["request"] == 1 else f"{row.get('share', 1.0):.1%}"
        broke = f"{row['broke']}: {row.get('why', '')}" if row.get("broke") else ""
        print(f"{row['request']:>7}  {row['size']:>10,} B  {share:>7}  {broke}".rstrip())
    later = rows[1:]
    whole = sum(1 for row in later if not row.get("broke"))
    print(f"{whole} of {len(later)} requests kept the whole prefix of the one before." if later else "One request so far.")
    return 0


def _row(line: str) -> dict[str, Any] | None:
    try:
        row = json.loads(line)
    except ValueError:
        return None
    return row if isinstance(row, dict) and isinstance(row.get("request"), int) and isinstance(row.get("size"), int) else None


def _find(session: str) -> Path | None:
    here = "".join(c if c.isascii() and c.isalnum() else "-" for c in str(Path.cwd().resolve()))
    found = [p for p in (config_dir() / "projects").glob(f"*/*/{FILE}")
             if (p.parent.name == session if session else _is_of(p.parent.parent.name, here))]
    return max(found, key=lambda p: p.stat().st_mtime, default=None)


def _is_of(project: str, directory: str) -> bool:
    """Whether a project's folder is the directory's; behind the first part of a long name stands something else."""
    return project == directory if len(directory) <= MAX_NAME else project.startswith(f"{directory[:MAX_NAME]}-")
