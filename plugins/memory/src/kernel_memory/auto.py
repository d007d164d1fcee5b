"""Auto memory: a folder per project that the model keeps itself (context contract, section 4)."""

from __future__ import annotations

import os
import re
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING

from msgspec import Struct

from kernel import ReadState, git_root, inert
from kernel_memory import switches, texts
from kernel_memory.files import heading
from kernel_memory.places import main_root

if TYPE_CHECKING:
    from kernel import Session

INDEX = "MEMORY.md"
LINES = 200
BYTES = 25 * 1024
"""What of the index is loaded."""
NEAR = 0.9
"""From this part of a limit on a write brings a reminder."""
_NAME = 200
_FIXED_NAME = re.compile(r"[A-Za-z0-9_-]{1,64}")
_HEAD = re.compile(r"\A(\ufeff?---[ \t]*(\r?\n))(.*?)(^---[ \t]*(?:\r?\n|\Z))", re.DOTALL | re.MULTILINE)
_MODIFIED = re.compile(r"^modified:[^\r\n]*", re.MULTILINE)


class Fill(Struct, frozen=True):
    """How full the index is. ``near``: one of its limits is close; ``over``: passed."""

    lines: int
    size: int

    @property
    def over(self) -> bool:
        return self.lines > LINES or self.size > BYTES

    @property
    def near(self) -> bool:
        return self.lines >= LINES * NEAR or self.size >= BYTES * NEAR

    def __str__(self) -> str:
        return f"{self.lines} of {LINES} lines, {self.size:,} of {BYTES:,} bytes"


class AutoMemory(Struct, frozen=True):
    """The folder of a project; it may not exist yet."""

    folder: str

    @property
    def index(self) -> str:
        return os.path.join(self.folder, INDEX)

    def holds(self, path: str) -> bool:
        """Whether a path leads into the folder, with links followed; the folder itself is not meant."""
        return os.path.realpath(path).startswith(os.path.realpath(self.folder) + os.sep)

    def manual(self) -> str:
        return (f"# Memory\nYou have a folder that outlives this session: {self.folder}\n"
                f"{INDEX} in it is an index: one line for each memory, with the file that holds it. Its first {LINES} lines or "
                f"{BYTES // 1024} KB are shown to you at the start of every session, so keep the lines short. Each memory is a "
                "Markdown file of its own with the frontmatter fields name, description and type: user (who the person is and "
                "what they know), feedback (how they want you to work), project (what cannot be seen in the files: goals, "
                "decisions, dates) or reference (where to look things up outside). Read a memory before you rely on it, and "
                "check what it says of files: they may have changed.\n"
                "Write one when you learn something that will matter in a later session and that the project's own files do not "
                "say, or when you are asked to remember; correct or remove what turned out wrong. No secrets, and nothing that "
                "only matters now. Reading and writing there needs no permission; missing folders are made by Write.")

    def beginning(self) -> str:
        """What is loaded of the index; empty where there is none.

        :raises Unusable: it is there and cannot be read.
        """
        if not os.path.lexists(self.index):
            return ""
        text = texts.read(self.index)
        lines = text.split("\n")[:LINES]
        kept = "\n".join(lines).encode()[:BYTES].decode("utf-8", "ignore").strip()
        if not kept:
            return ""
        cut = len(kept) < len(text.strip())
        more = f"\n\n({INDEX} is longer than what is loaded of it: {fill(text)}. Shorten it.)" if cut else ""
        return (f"{heading(self.index)} (your memory, kept by yourself; what is noted there may be out of date):\n\n"
                f"{inert(kept.strip())}{more}")


def of_session(session: Session) -> AutoMemory | None:
    """The project's folder; ``None`` where memory is off."""
    if not switches.auto_memory(session):
        return None
    return AutoMemory(_folder(session))


def _folder(session: Session) -> str:
    given = session.settings.own("autoMemoryDirectory")
    if isinstance(given, str):
        path = os.path.expanduser(given)
        if os.path.isabs(path) and not _holds_more(os.path.realpath(path), session):
            return os.path.normpath(path)
        session.harness.announce(f"memory: autoMemoryDirectory {given!r} is not used: it must be absolute or begin with ~/, and "
                                 "must not hold the project, the home directory or the configuration")
    here = Path(session.root.project_root)
    root = git_root(here)
    projects = session.settings.config_dir / "projects"
    fixed = os.environ.get("CLAUDE_CODE_PROJECT_DIR_NAME", "")
    if os.environ.get("CLAUDE_CONFIG_DIR") and _FIXED_NAME.fullmatch(fixed):
        return str(projects / fixed / "memory")
    return str(projects / project_name(str(main_root(root) if root else here)) / "memory")


def _holds_more(folder: str, session: Session) -> bool:
    """Whether a folder that needs no permission would open other things as well."""
    inside = (session.root.project_root, os.path.expanduser("~"), str(session.settings.config_dir))
    return any((os.path.realpath(p) + os.sep).startswith(folder.rstrip(os.sep) + os.sep) for p in inside)


def project_name(directory: str) -> str:
    """The folder of a project's data, as the session store names it."""
    path = os.path.realpath(directory)
    if not path.isascii():
        import unicodedata

        path = unicodedata.normalize("NFC", path)
    plain = re.sub(r"[^A-Za-z0-9]", "-", path)
    return plain if len(plain) <= _NAME else f"{plain[:_NAME]}-{_hash(path)}"


def _hash(text: str) -> str:
    value = 0
    for character in text:
        value = ((value << 5) - value + ord(character)) & 0xFFFFFFFF
    value = abs(value - (1 << 32) if value & 0x80000000 else value)
    digits = ""
    while value or not digits:
        value, rest = divmod(value, 36)
        digits = "0123456789abcdefghijklmnopqrstuvwxyz"[rest] + digits
    return digits


def fill(text: str) -> Fill:
    return Fill(len(text.rstrip("\n").split("\n")) if text.strip() else 0, len(text.encode("utf-8", "replace")))


# -- behind a write ----------------------------------------------------------------------------------------------------
def stamped(text: str, now: str) -> str:
    """The text with ``modified`` in its frontmatter; without frontmatter as it is. All other bytes stay as they are."""
    head = _HEAD.match(text)
    if head is None or len(head[3]) > 64_000:
        return text
    line = f"modified: {now}"
    if _MODIFIED.search(head[3]):
        fields = _MODIFIED.sub(line, head[3], count=1)
    else:
        fields = f"{head[3]}{line}{head[2]}"
    return f"{head[1]}{fields}{head[4]}{text[head.end():]}"


def stamp(session: Session, path: str) -> None:
    """Write the time of a change into a memory's frontmatter; the model need not read the file again for it."""
    real = os.path.realpath(path)
    draft = f"{real}.{os.urandom(6).hex()}.tmp"
    try:
        with open(real, encoding="utf-8", newline="") as file:
            old = file.read()
        new = stamped(old, session.clock.now().astimezone().isoformat(timespec="seconds"))
        if new == old:
            return
        with open(draft, "x", encoding="utf-8", newline="") as file:
            file.write(new)
            os.fchmod(file.fileno(), os.stat(real).st_mode & 0o777)
        os.replace(draft, real)
        found = os.stat(real)
    except (OSError, ValueError) as error:
        session.debug(f"memory: {path} was not stamped: {error}")
        with suppress(OSError):
            os.unlink(draft)
        return
    if real in session.read_files:
        from hashlib import sha256

        session.read_files[real] = ReadState(mtime_ns=found.st_mtime_ns, size=found.st_size,
                                             digest=sha256(new.encode()).hexdigest())
