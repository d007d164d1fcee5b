"""What an agent remembers from one session to the next (subagents contract, 3.3)."""

from __future__ import annotations

import os
import re
import stat
from pathlib import Path
from typing import TYPE_CHECKING

from msgspec import Struct

from kernel import env_switch
from kernel_subagents.definition import Definition

if TYPE_CHECKING:
    from kernel import Session

FOLDERS = "permissions.folders"
"""Where the permission policy finds folders that a context keeps notes in."""
LINES = 200
BYTES = 25 * 1024
_OFF = frozenset({"0", "false", "no", "off"})


class Memory(Struct):
    """A folder of an agent's own."""

    path: Path

    def prompt(self) -> str:
        """How to use it, and the beginning of its index."""
        index = self.path / "MEMORY.md"
        kept = beginning(index)
        return (f"# Your memory\nYou have a folder that outlives this task: {self.path}\nKeep there what will help you next "
                "time: what you learned about this project, what worked and what did not. MEMORY.md in it is an index of short "
                f"lines, each with the file that holds more; only its first {LINES} lines are shown to you, so keep it short. "
                "Read the files you need, correct what turned out wrong, and write down what is new before you end.\n\n"
                + (f"MEMORY.md says:\n{kept}" if kept else "MEMORY.md is empty so far."))


def folder(root: Session, definition: Definition) -> Memory | None:
    """The agent's folder, made where it is missing; ``None`` where it has none or memory is off."""
    if definition.memory is None or not _on(root):
        return None
    name = re.sub(r"[^A-Za-z0-9_.-]", "-", definition.name).lstrip(".") or "agent"
    project = Path(root.project_root) / ".claude"
    base = {"user": root.settings.config_dir / "agent-memory", "project": project / "agent-memory",
            "local": project / "agent-memory-local"}[definition.memory]
    path = base / name
    try:
        if definition.memory != "user" and not path.resolve().is_relative_to(Path(root.project_root).resolve()):
            root.notice(f"agent {definition.name}: its memory {path} leads out of the project, so it has none")
            return None
        path.mkdir(parents=True, exist_ok=True, mode=0o700)
    except OSError as error:
        root.notice(f"agent {definition.name}: its memory {path} cannot be made ({error.strerror or error})")
        return None
    return Memory(path)


def grants(memory: Memory | None) -> tuple[str, ...]:
    """Rules that let it use its folder."""
    if memory is None:
        return ()
    literal = re.sub(r"([*?\[\]\\()])", r"\\\1", str(memory.path))
    return (f"Read(/{literal}/**)", f"Edit(/{literal}/**)")


def beginning(path: Path) -> str:
    """The first lines of a file, within the limits; empty where it cannot be read.

    A link is not followed: a folder in a project may come with a clone, and its index is shown without a question.
    """
    try:
        fd = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC | os.O_NOFOLLOW)
        with os.fdopen(fd, "rb") as file:
            raw = file.read(BYTES + 1) if stat.S_ISREG(os.fstat(fd).st_mode) else b""
    except OSError:
        return ""
    lines = raw[:BYTES].decode("utf-8", "replace").splitlines()[:LINES]
    return "\n".join(lines).strip()


def _on(root: Session) -> bool:
    """Whether sessions remember at all: the variable wins over the setting."""
    off = env_switch("CLAUDE_CODE_DISABLE_AUTO_MEMORY")
    return root.settings.get("autoMemoryEnabled") is not False if off is None else not off
