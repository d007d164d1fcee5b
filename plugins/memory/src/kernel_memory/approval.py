"""Whether a project's instructions may import files from elsewhere: one answer per project, kept in the global config."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING, Any

import msgspec

from kernel import KernelError, config_dir, git_root

if TYPE_CHECKING:
    from kernel import Session

FIELD = "hasClaudeMdExternalIncludesApproved"


def is_approved(session: Session) -> bool:
    """False where nothing can be read: nobody approved then."""
    entry = _read().get("projects", {})
    mine = entry.get(key(Path(session.project_root))) if isinstance(entry, dict) else None
    return isinstance(mine, dict) and mine.get(FIELD) is True


def approve(project: Path, approved: bool) -> Path:
    """Keep the answer.

    :raises KernelError: the file holds something else than one JSON object; it is left as it is.
    """
    path = config_file()
    data = _read(strict=True)
    projects = data.setdefault("projects", {})
    entry = projects.setdefault(key(project), {}) if isinstance(projects, dict) else None
    if not isinstance(entry, dict):
        raise KernelError("projects: must be an object of objects", context=str(path))
    entry[FIELD] = approved
    path.parent.mkdir(parents=True, exist_ok=True)
    draft = path.with_name(f"{path.name}.{os.urandom(6).hex()}.tmp")
    descriptor = os.open(draft, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600)
    with os.fdopen(descriptor, "wb") as file:
        file.write(msgspec.json.format(msgspec.json.encode(data), indent=2))
    os.replace(draft, os.path.realpath(path))
    return path


def key(project: Path) -> str:
    return str(git_root(project) or project)


def config_file() -> Path:
    return config_dir() / ".claude.json" if os.environ.get("CLAUDE_CONFIG_DIR") else Path.home() / ".claude.json"


def _read(strict: bool = False) -> dict[str, Any]:
    path = config_file()
    try:
        data = msgspec.json.decode(path.read_bytes())
    except FileNotFoundError:
        return {}
    except (OSError, msgspec.DecodeError) as error:
        if strict:
            raise KernelError(f"cannot be used: {error}", context=str(path), hint="mend or move the file") from None
        return {}
    if not isinstance(data, dict):
        if strict:
            raise KernelError("must hold one JSON object", context=str(path), hint="mend or move the file")
        return {}
    return data
