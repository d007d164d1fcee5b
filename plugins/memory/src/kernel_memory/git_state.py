"""How the repository stood when the session began (context contract, 1.2). Never looked at again.

A clone may bring a ``.git`` folder of its making (an archive does), and git runs programs that a repository's configuration
names. So nothing of it is used that names a program: the file-system monitor and hooks are off, submodules are not entered,
signatures not checked; and where the configuration names filters, a folder that is not trusted gets no status.
"""

from __future__ import annotations

import os
import re
from pathlib import Path
from typing import TYPE_CHECKING

from kernel import git_root, inert
from kernel_memory.places import first_line

if TYPE_CHECKING:
    import subprocess

    from kernel import Session

STATUS_CHARS = 2_000
COMMITS = 5
SECONDS = 2.0
"""For each command; they run side by side."""
MAX_BYTES = 64 * 1024
QUIET = ["-c", "core.fsmonitor=false", "-c", "core.hooksPath=/dev/null", "-c", "log.showSignature=false", "-c", "color.ui=never",
         "-c", "core.quotePath=false"]
COMMANDS = {
    "branch": ["symbolic-ref", "--quiet", "--short", "HEAD"],
    "refs": ["for-each-ref", "--format=%(refname) %(symref)", "refs/remotes/origin/HEAD", "refs/heads/main", "refs/heads/master"],
    "config": ["config", "--get-regexp", r"^(user\.name|init\.defaultbranch)$"],
    "status": ["status", "--short", "--ignore-submodules=dirty"],
    "log": ["log", f"--max-count={COMMITS}", "--no-decorate", "--oneline", "--no-show-signature"],
}
INTRO = ("# Git\nThis is how the repository stood when the session began. It is a snapshot: it does not follow what happens "
         "during the session.")
_RUNS_PROGRAMS = re.compile(r"^\s*\[\s*(?:filter|include)", re.IGNORECASE | re.MULTILINE)


def snapshot(cwd: str, *, trusted: bool) -> str:
    """The text, empty outside a repository. What a command cannot tell in time is left out. Takes up to two seconds."""
    root = git_root(Path(cwd))
    if root is None:
        return ""
    wanted = dict(COMMANDS)
    if not trusted and _names_programs(root):
        del wanted["status"]
    said = _run(cwd, wanted)
    config = dict(line.partition(" ")[::2] for line in said.get("config", "").splitlines())
    lines = []
    if branch := said.get("branch") or (f"none (detached at {said['log'].partition(' ')[0]})" if said.get("log") else ""):
        lines.append(f"Current branch: {branch}")
    if main := _main_branch(said, config.get("init.defaultbranch", "")):
        lines.append(f"Main branch: {main}")
    if config.get("user.name"):
        lines.append(f"Git user: {config['user.name']}")
    if "status" in said:
        lines.append(f"Status:\n{_cut(said['status']) or '(clean)'}")
    if said.get("log"):
        lines.append(f"Recent commits:\n{said['log']}")
    return inert("\n".join([INTRO, *lines])) if lines else ""


def _main_branch(said: dict[str, str], default: str) -> str:
    """What the remote calls its head; else the branch that is usually the main one and is there."""
    refs = dict(line.partition(" ")[::2] for line in said.get("refs", "").splitlines())
    head = refs.get("refs/remotes/origin/HEAD", "")
    if head.startswith("refs/remotes/origin/"):
        return head.removeprefix("refs/remotes/origin/")
    usual = next((name for name in ("main", "master") if f"refs/heads/{name}" in refs), "")
    return usual or (default if default == said.get("branch") else "")


def _cut(status: str) -> str:
    if len(status) <= STATUS_CHARS:
        return status
    return f"{status[:STATUS_CHARS]}\n... (cut after {STATUS_CHARS:,} characters; run git status to see all)"


def _names_programs(root: Path) -> bool:
    """Whether the repository's own configuration may name filters, which ``git status`` runs."""
    place = root / ".git"
    if not place.is_dir():
        place = root / first_line(place).removeprefix("gitdir: ")
    shared = first_line(place / "commondir")
    for file in (place / "config", place / "config.worktree", *([place / shared / "config"] if shared else [])):
        try:
            with file.open(encoding="utf-8", errors="replace") as opened:
                if _RUNS_PROGRAMS.search(opened.read(1_000_000)):
                    return True
        except FileNotFoundError:
            continue
        except OSError:
            return True
    return False


def _run(cwd: str, commands: dict[str, list[str]]) -> dict[str, str]:
    """What the commands print, side by side, each within its time; failures are left out."""
    import selectors
    import subprocess
    import time

    environment = {**os.environ, "GIT_OPTIONAL_LOCKS": "0", "GIT_TERMINAL_PROMPT": "0", "GIT_PAGER": "cat", "LC_ALL": "C.UTF-8"}
    running: dict[str, subprocess.Popen[bytes]] = {}
    output: dict[str, bytes] = {}
    with selectors.DefaultSelector() as ready:
        try:
            for name, args in commands.items():
                process = subprocess.Popen(  # noqa: S603  # commands of the table above
                    ["git", "--no-optional-locks", *QUIET, *args], cwd=cwd, env=environment,  # noqa: S607  # the person's git
                    stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL)
                running[name], output[name] = process, b""
                assert process.stdout is not None
                ready.register(process.stdout, selectors.EVENT_READ, name)
            until = time.monotonic() + SECONDS
            while ready.get_map() and (left := until - time.monotonic()) > 0:
                for key, _ in ready.select(left):
                    part = os.read(key.fd, 65_536)
                    output[key.data] += part
                    if not part or len(output[key.data]) > MAX_BYTES:
                        ready.unregister(key.fileobj)
        except OSError:
            pass  # there is no git, or it cannot be started
        finally:
            codes = {name: _end(process) for name, process in running.items()}
    return {name: output[name].decode("utf-8", "replace").rstrip() for name, code in codes.items()
            if code == 0 or (name in ("status", "log") and len(output[name]) > MAX_BYTES)}


def _end(process: subprocess.Popen[bytes]) -> int:
    """The exit code; a command that still runs is ended."""
    import subprocess

    assert process.stdout is not None
    process.stdout.close()
    try:
        return process.wait(0.05)
    except subprocess.TimeoutExpired:
        process.kill()
        return process.wait() or -1


def of_session(session: Session) -> str:
    return snapshot(session.state.cwd, trusted=session.settings.trusted)
