"""The corpus of real plugins as folders that can be checked: its data files, and empty stand-ins for what was left out."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator
from pathlib import Path

SHARED = Path(os.environ.get("KERNEL_SHARED", Path(__file__).resolve().parents[3].parent / "shared"))
CORPUS = SHARED / "corpus"


def repositories() -> list[Path]:
    return sorted(p for p in CORPUS.iterdir() if p.is_dir()) if CORPUS.is_dir() else []


def roots(repository: Path) -> list[str]:
    """The plugin roots of a repository, relative to it."""
    found = {p.parent.parent.relative_to(repository).as_posix() for p in repository.rglob(".claude-plugin/plugin.json")}
    listed = repository / "FILES.json"
    return sorted(found | set(json.loads(listed.read_text("utf-8")) if listed.exists() else ()))


def stand_in(repository: Path, target: Path) -> set[str]:
    """Rebuild a repository; the paths of the data files that are real."""
    real: set[str] = set()
    for path in repository.rglob("*"):
        if path.is_file() and path.name != "FILES.json":
            rel = path.relative_to(repository).as_posix()
            real.add(rel)
            _put(target / rel, path.read_bytes())
    for rel, kind, link in listed(repository):
        path = target / rel
        if os.path.lexists(path):
            if kind == "exec" and path.is_file():
                path.chmod(0o755)
            continue
        if kind == "link":
            path.parent.mkdir(parents=True, exist_ok=True)
            path.symlink_to(link)
        else:
            _put(path, b"#!/bin/sh\n" if kind == "exec" else b"")
            path.chmod(0o755 if kind == "exec" else 0o644)
    return real


def listed(repository: Path) -> Iterator[tuple[str, str, str]]:
    path = repository / "FILES.json"
    for root, rows in (json.loads(path.read_text("utf-8")) if path.exists() else {}).items():
        for row in rows:
            rel = os.path.normpath(os.path.join(root, row[0])).replace("\\", "/")
            if not rel.startswith("..") and not rel.startswith("/"):
                yield rel, row[1], row[2] if len(row) > 2 else ""


def _put(path: Path, data: bytes) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(data)
