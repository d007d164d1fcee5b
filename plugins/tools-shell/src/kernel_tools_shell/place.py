"""Which working directory a session has after a command (tools contract, 10.1 rule 2)."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from kernel import env_switch

if TYPE_CHECKING:
    from kernel import Session


class Place(NamedTuple):
    """A directory, and what the model should know of it."""

    cwd: str
    note: str = ""


def before(session: Session, cwd: str) -> Place:
    """Where a command starts: the session's directory, or the project's if that was deleted in between."""
    if os.path.isdir(cwd):
        return Place(cwd)
    return Place(session.project_root, f"Shell cwd was reset to {session.project_root} ({cwd} no longer exists)")


def after(session: Session, cwd: str, ended_in: str | None) -> Place:
    """Where the session stands once a command that began in ``cwd`` has ended in another directory.

    :param ended_in: the resolved directory; ``None`` where the command did not tell.
    """
    root = session.project_root
    if session.agent_id:  # subagents never keep it
        return Place(cwd, f"Shell cwd was reset to {cwd}" if ended_in and not _same(ended_in, cwd) else "")
    if env_switch("CLAUDE_BASH_MAINTAIN_PROJECT_WORKING_DIR"):
        ended_elsewhere = ended_in is not None and not _same(ended_in, root)
        return Place(root, f"Shell cwd was reset to {root}" if ended_elsewhere else "")
    if ended_in is None or _same(ended_in, cwd):
        return Place(cwd) if os.path.isdir(cwd) else Place(root, f"Shell cwd was reset to {root} ({cwd} no longer exists)")
    if os.path.isdir(ended_in):
        for directory in allowed(session):
            inside = _below(ended_in, directory)
            if inside is not None:
                return Place(inside)
    return Place(root, f"Shell cwd was reset to {root}")


def allowed(session: Session) -> list[str]:
    """The project and the directories that were added to it. A project's own list counts only once it is trusted."""
    root = session.project_root
    found = [root, *(os.path.join(root, directory) for directory in session.options.add_dirs)]
    for layer, value in session.settings.by_layer("permissions.additionalDirectories"):
        if isinstance(value, list) and (layer.scope not in ("project", "local") or session.settings.trusted):
            found += [os.path.join(layer.directory, os.path.expanduser(entry)) for entry in value if isinstance(entry, str)]
    return found


def _same(one: str, other: str) -> bool:
    return one == other or os.path.realpath(one) == os.path.realpath(other)


def _below(resolved: str, directory: str) -> str | None:
    """The resolved directory as a path below the other one, as that is spelt; ``None`` where it lies outside."""
    real = os.path.realpath(directory)
    if resolved != real and not resolved.startswith(real.rstrip("/") + "/"):
        return None
    return str(Path(directory, os.path.relpath(resolved, real))) if resolved != real else directory
