"""What a "don't ask again" would save: permission updates that go with an ``ask`` (permissions contract, 5.5)."""

from __future__ import annotations

import posixpath
from collections.abc import Iterable
from typing import Any

from .forms import Sub
from .wrappers import EXEC, LOOSE, SHELLS

MOST = 5
_TWO_WORDS = frozenset((
    "git npm pnpm yarn bun cargo go docker podman kubectl helm uv pip pip3 poetry gh aws gcloud az terraform make systemctl apt "
    "brew dotnet mvn gradle bundle rails composer conda pdm hatch just nx turbo deno").split())
_NEVER_WIDE = frozenset((
    "rm rmdir dd mkfs shred python python3 node ruby perl php eval source . exec curl wget ssh scp chmod chown kill pkill "
    "killall find awk sed tee npx uvx bunx").split()) | SHELLS | LOOSE | EXEC.keys()


def add_rules(tool: str, contents: Iterable[str | None], destination: str = "localSettings") -> list[dict[str, Any]]:
    rules: list[dict[str, str]] = [{"toolName": tool} if c is None else {"toolName": tool, "ruleContent": c}
                                   for c in dict.fromkeys(contents)]
    return [{"type": "addRules", "rules": rules[:MOST], "behavior": "allow", "destination": destination}] if rules else []


def for_commands(missing: Iterable[tuple[Sub, str]]) -> list[dict[str, Any]]:
    """One rule for each part that needed approval."""
    commands: list[str] = []
    reads: list[str] = []
    for sub, _ in missing:
        words = sub.words
        if sub.simple.kind != "command" or not words or sub.assigns:
            continue
        if words[0].value == "cd":
            if len(words) == 2 and words[1].literal is not None:
                folder = posixpath.normpath(words[1].literal)
                reads.append(f"/{folder}/**" if folder.startswith("/") else f"{folder}/**")
        else:
            commands.append(_content(sub))
    return [*add_rules("Bash", commands[:MOST]), *add_rules("Read", reads[:max(0, MOST - len(commands))])]


def _content(sub: Sub) -> str:
    words = sub.words
    name = words[0].text
    escaped = " ".join(w.text for w in words)
    if sub.exact_only or not words[0].plain or name in _NEVER_WIDE or any("*" in w.text for w in words[:2]):
        return sub.simple.text if sub.exact_only else escaped
    if name in _TWO_WORDS:
        if len(words) > 1 and words[1].plain and words[1].text[:1].isalpha():
            return f"{name} {words[1].text} *"
        return escaped
    return f"{name} *"


def for_path(access: str, path: str) -> list[dict[str, Any]]:
    if access == "read":
        return add_rules("Read", [f"/{posixpath.dirname(path)}/**"], "session")
    return [{"type": "setMode", "mode": "acceptEdits", "destination": "session"}]
