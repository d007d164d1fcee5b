"""The global config file and ``.mcp.json``: read, and written so that unknown keys stay (MCP contract, 1.1)."""

from __future__ import annotations

import json
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

from kernel import UsageError, config_dir, git_root

PROJECT_FILE = ".mcp.json"


def global_config() -> Path:
    """``~/.claude.json``, which follows ``CLAUDE_CONFIG_DIR``."""
    return config_dir() / ".claude.json" if os.environ.get("CLAUDE_CONFIG_DIR") else Path.home() / ".claude.json"


def state_dir() -> Path:
    """Where this plugin keeps what is its own: tokens, caches."""
    return config_dir() / "kernel" / "mcp"


def project_key(cwd: Path) -> str:
    """The name of a project in the global config."""
    return str(git_root(cwd) or cwd)


def read_object(path: Path) -> dict[str, Any] | None:
    """The JSON object of a file; ``None`` where there is no file.

    :raises ValueError: it is there and holds no JSON object; the text says where it is broken.
    """
    try:
        raw = path.read_bytes()
    except (FileNotFoundError, NotADirectoryError):
        return None
    except OSError as error:
        raise ValueError(f"cannot be read: {error.strerror}") from None
    try:
        data = json.loads(raw.decode("utf-8-sig", "replace"))
    except (ValueError, RecursionError) as error:
        raise ValueError(f"is not valid JSON: {error}") from None
    if not isinstance(data, dict):
        raise ValueError(f"must hold one JSON object, found {type(data).__name__}")
    return data


def change(path: Path, edit: Callable[[dict[str, Any]], None], *, mode: int | None = None) -> None:
    """Read, edit, write beside and rename. Writers wait for each other, so that none loses what another wrote.

    :raises UsageError: the file that is there cannot be read; it is left as it is.
    """
    path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
    with _lock(path):
        try:
            data = read_object(path)
        except ValueError as error:
            raise UsageError(str(error), context=str(path), hint="mend or move the file") from None
        fresh = data is None
        data = data or {}
        edit(data)
        target = path.resolve()
        temporary = target.with_name(f".{target.name}.{os.getpid()}.tmp")
        wanted = mode if mode is not None else 0o600 if fresh else target.stat().st_mode & 0o777
        number = os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, wanted)
        try:
            with os.fdopen(number, "w", encoding="utf-8", errors="replace") as out:
                json.dump(data, out, indent=2, ensure_ascii=False)
                out.write("\n")
                out.flush()
                os.fsync(out.fileno())
            temporary.chmod(wanted)
            os.replace(temporary, target)
        finally:
            temporary.unlink(missing_ok=True)


class _lock:
    """Holds ``<file>.lock`` for as long as a change takes; gone with the process that holds it."""

    def __init__(self, path: Path) -> None:
        self._path = path.with_name(f"{path.name}.lock")
        self._number = -1

    def __enter__(self) -> None:
        try:
            import fcntl
        except ImportError:  # no such locks on this system: the rename alone keeps the file whole
            return
        self._number = os.open(self._path, os.O_RDWR | os.O_CREAT, 0o600)
        fcntl.flock(self._number, fcntl.LOCK_EX)

    def __exit__(self, *error: object) -> None:
        if self._number >= 0:
            os.close(self._number)


def project_entry(data: dict[str, Any], cwd: Path) -> dict[str, Any]:
    """What the global config holds for a project."""
    projects = data.get("projects")
    for key in (project_key(cwd), str(cwd)):
        entry = projects.get(key) if isinstance(projects, dict) else None
        if isinstance(entry, dict):
            return entry
    return {}


def own_entry(data: dict[str, Any], cwd: Path) -> dict[str, Any]:
    """The same for writing: made where it is missing."""
    projects = data.setdefault("projects", {})
    if not isinstance(projects, dict):
        raise UsageError("projects must be an object", context=str(global_config()), hint="mend the file")
    entry = projects.setdefault(project_key(cwd), {})
    if not isinstance(entry, dict):
        raise UsageError("the project's entry must be an object", context=str(global_config()), hint="mend the file")
    return entry
