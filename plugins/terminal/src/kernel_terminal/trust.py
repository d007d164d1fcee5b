"""Is this folder trusted? Asked once, before anything of it counts (permissions contract, 11; hooks contract, 16).

The answer is ``projects[FOLDER].hasTrustDialogAccepted`` of the global config, which is read, changed and renamed into place
under a lock, so that nothing else of it gets lost.
"""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

from kernel import Settings, UsageError, config_dir, git_root
from kernel_terminal.brought import brought, files
from kernel_terminal.lines import Line, words
from kernel_terminal.questions import Choice, Question
from kernel_terminal.safe import exact_line

MOST = 50
"""Entries of one kind that are listed."""
ENTRY_CHARS = 4_000
"""Of one entry. What is left out because of either bound is said, with the files that hold it, right above the choices."""


def question(settings: Settings) -> Question:
    """What the folder brings, and what trusting it means."""
    body: list[Line] = [words(f"  {exact_line(settings.project_root)}")]
    missing = False
    for title, entries in brought(settings):
        body.append([("bold", f"  {title}:")])
        for entry in entries[:MOST]:
            text = exact_line(entry)
            body.append(words(f"    {text[:ENTRY_CHARS]}"))
            if len(text) > ENTRY_CHARS:
                missing = True
                body.append([("warn", f"    … {len(text) - ENTRY_CHARS:,} more characters of it that are not shown")])
        if len(entries) > MOST:
            missing = True
            body.append([("warn", f"    … {len(entries) - MOST} more that are not shown")])
    if len(body) == 1:
        body.append([("dim", "  It brings no settings, hooks or servers, and no skill, command or agent that runs something.")])
    if missing:
        body.append([("warn", f"  Not all of it is shown. Read before you say yes: {exact_line(', '.join(files(settings)))}")])
    return Question("Do you trust this folder? What it brings will count: commands run, rules allow.", [
        Choice("Yes, I trust it", "yes", detail="remembered for this folder"),
        Choice("No, go on without what it brings", "no",
               detail="until then no hook of a settings file runs, your own included"),
        Choice("Leave", "leave")], body, kind="Trust")


# -- the answer that is kept ---------------------------------------------------------------------------------------------------
def accept(folder: Path) -> None:
    """Remember that the person trusts the folder, and the repository that it is the root of or lies in.

    :raises UsageError: the global config cannot be read or written; it is left as it is.
    """
    path = config_dir() / ".claude.json" if os.environ.get("CLAUDE_CONFIG_DIR") else Path.home() / ".claude.json"
    try:
        path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
        with open(os.open(path.with_name(f"{path.name}.lock"), os.O_RDWR | os.O_CREAT, 0o600), "rb") as lock:
            _wait_for(lock.fileno())
            _change(path, dict.fromkeys((str(git_root(folder) or folder), str(folder))))
    except (OSError, ValueError, RecursionError) as error:
        raise UsageError(f"the answer cannot be kept: {error}", context=str(path), hint="mend or move the file") from None


def _wait_for(number: int) -> None:
    try:
        import fcntl
    except ImportError:  # no such locks on this system: the rename alone keeps the file whole
        return
    fcntl.flock(number, fcntl.LOCK_EX)


def _change(path: Path, folders: Any) -> None:
    target = path.resolve()
    data = json.loads(target.read_text("utf-8-sig")) if target.exists() else {}
    projects = data.setdefault("projects", {}) if isinstance(data, dict) else None
    if not isinstance(projects, dict):
        raise ValueError("it holds no JSON object with projects")
    for folder in folders:
        entry = projects.get(folder)
        projects[folder] = {**(entry if isinstance(entry, dict) else {}), "hasTrustDialogAccepted": True}
    temporary = target.with_name(f".{target.name}.{os.getpid()}.tmp")
    mode = target.stat().st_mode & 0o777 if target.exists() else 0o600
    try:
        with open(os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, mode), "w", encoding="utf-8") as out:
            json.dump(data, out, indent=2, ensure_ascii=False)
            out.write("\n")
            out.flush()
            os.fsync(out.fileno())
        os.replace(temporary, target)
    finally:
        temporary.unlink(missing_ok=True)
