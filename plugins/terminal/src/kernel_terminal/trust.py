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
from kernel_terminal.lines import Line, words
from kernel_terminal.questions import Choice, Question
from kernel_terminal.safe import exact_line

MOST = 12
"""Entries of one kind that are listed; the others are counted."""
WIDENS = {"permissions.allow": "allow rules", "permissions.additionalDirectories": "further folders",
          "permissions.defaultMode": "a permission mode", "enabledPlugins": "plugins", "extraKnownMarketplaces": "marketplaces",
          "apiKeyHelper": "a command that gives the key", "statusLine": "a status line", "outputStyle": "an output style",
          "kernel": "settings of kernel"}


def question(settings: Settings) -> Question:
    """What the folder brings, and what trusting it means."""
    body: list[Line] = [words(f"  {exact_line(settings.project_root)}")]
    for title, entries in brought(settings):
        body.append([("bold", f"  {title}:")])
        body += [words(f"    {exact_line(entry)[:500]}") for entry in entries[:MOST]]
        if len(entries) > MOST:
            body.append([("warn", f"    … and {len(entries) - MOST} more")])
    if len(body) == 1:
        body.append([("dim", "  It brings no settings, hooks or servers of its own.")])
    return Question("Do you trust this folder? What it brings will count: commands run, rules allow.", [
        Choice("Yes, I trust it", "yes", detail="remembered for this folder"),
        Choice("No, go on without what it brings", "no",
               detail="until then no hook of a settings file runs, your own included"),
        Choice("Leave", "leave")], body, kind="Trust")


def brought(settings: Settings) -> list[tuple[str, list[str]]]:
    """What the folder's own files hold that runs something or widens rights, as (kind, entries)."""
    found: list[tuple[str, list[str]]] = []
    theirs = [layer for layer in settings.layers if layer.scope in ("project", "local")]
    hooks = [text for layer in theirs for text in _hooks(layer.data.get("hooks"))]
    if hooks:
        found.append(("Hooks, commands that run by themselves", hooks))
    variables = [f"{name}={value}" for layer in theirs for name, value in _items(layer.data.get("env"))]
    if variables:
        found.append(("Environment variables", variables))
    for key, title in WIDENS.items():
        values = [value for layer, value in settings.by_layer(key) if layer in theirs]
        if values:
            found.append((title[0].upper() + title[1:], [text for value in values for text in _texts(value)]))
    servers = _servers(settings.project_root / ".mcp.json")
    if servers:
        found.append(("MCP servers (asked about one by one)", servers))
    return found


def _hooks(value: Any) -> list[str]:
    out = []
    for event, groups in _items(value):
        for group in groups if isinstance(groups, list) else ():
            for handler in group.get("hooks") or () if isinstance(group, dict) else ():
                if isinstance(handler, dict):
                    what = [handler[k] for k in ("command", "url", "prompt", "tool") if isinstance(handler.get(k), str)]
                    out.append(f"{event}: {what[0] if what else handler}")
    return out


def _servers(path: Path) -> list[str]:
    try:
        data = json.loads(path.read_bytes())
    except (OSError, ValueError, RecursionError):
        return []
    servers = data.get("mcpServers") if isinstance(data, dict) else None
    return [f"{name}: {_command(server)}" for name, server in _items(servers)]


def _command(server: Any) -> str:
    if not isinstance(server, dict):
        return "?"
    arguments = server.get("args")
    words_of = [server.get("command", "?"), *(arguments if isinstance(arguments, list) else [])]
    return str(server.get("url") or " ".join(map(str, words_of)))


def _items(value: Any) -> list[tuple[str, Any]]:
    return list(value.items()) if isinstance(value, dict) else []


def _texts(value: Any) -> list[str]:
    if isinstance(value, list):
        return [v if isinstance(v, str) else json.dumps(v, default=str) for v in value]
    return [f"{k}: {json.dumps(v, default=str)}" for k, v in value.items()] if isinstance(value, dict) else [str(value)]


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
