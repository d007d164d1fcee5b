"""Where two JSON values differ first."""

from __future__ import annotations

from typing import Any

import msgspec
from msgspec import Struct

from kernel_replay.roles import Step, said

SHOWN = 400
"""Characters of a value that are shown."""
SETS = {"tools": "tool", "mcp_servers": "MCP server", "slash_commands": "command", "skills": "skill", "agents": "agent",
        "plugins": "plugin", "plugin_errors": "error of the plugin"}
"""Lists of the ``init`` message that say what is installed -> what one entry is."""
_NOTHING: Any = object()


class Difference(Struct, frozen=True, kw_only=True):
    """The first event that is not as it was recorded.

    ``kind``: ``differs`` (another value), ``missing`` (it never came), ``extra`` (it was not recorded), ``failed`` (the replay
    could not go on). ``event``: its number in the recording, from 1; 0 where it has none. ``path``: where in the event's JSON.
    ``plugin``: whose answer, text or tool it is, where that is known.
    """

    kind: str
    step: Step
    event: int = 0
    path: str = ""
    expected: Any = None
    got: Any = None
    plugin: str = ""
    told: str = ""

    def wire(self) -> dict[str, Any]:
        """As plain data."""
        found: dict[str, Any] = msgspec.to_builtins(self)
        return {**found, "step": said(self.step)}

    def lines(self) -> list[str]:
        """In words."""
        whose = f" (plugin {self.plugin})" if self.plugin else ""
        what = {"differs": "differs", "missing": "never came", "extra": "was not recorded", "failed": "cannot be replayed"}
        head = f"first difference: {said(self.step)}{whose} {what.get(self.kind, self.kind)}"
        lines = [head + (f" (event {self.event})" if self.event else "")]
        lines += [f"  {self.told}"] if self.told else []
        if self.kind == "differs":
            lines += [f"  at        {self.path or '$'}", f"  recorded  {shown(self.expected)}", f"  now       {shown(self.got)}"]
        elif self.got is not None:
            lines.append(f"  now       {shown(self.got)}")
        return lines


def shown(value: Any) -> str:
    if value is None:
        return "nothing"
    text = msgspec.json.encode(value, enc_hook=str).decode()
    return text if len(text) <= SHOWN else f"{text[:SHOWN]} ... ({len(text)} characters)"


def first(expected: Any, got: Any, path: str = "$") -> tuple[str, Any, Any] | None:
    """JSON path, the expected and the other value, of the first place where they differ. Of long texts a piece around it."""
    if type(expected) is not type(got) and not (isinstance(expected, int | float) and isinstance(got, int | float)):
        return path, expected, got
    if isinstance(expected, dict):
        for key in [*expected, *(k for k in got if k not in expected)]:
            there, here = expected.get(key, _NOTHING), got.get(key, _NOTHING)
            if there is _NOTHING or here is _NOTHING:
                return f"{path}.{key}", None if there is _NOTHING else there, None if here is _NOTHING else here
            if found := first(there, here, f"{path}.{key}"):
                return found
        if list(expected) != list(got):
            return f"{path} (the order of its keys)", list(expected), list(got)
        return None
    if isinstance(expected, list):
        for number, (there, here) in enumerate(zip(expected, got, strict=False)):
            if found := first(there, here, f"{path}[{number}]"):
                return found
        if len(expected) != len(got):
            number = min(len(expected), len(got))
            return (f"{path}[{number}]", expected[number] if number < len(expected) else None,
                    got[number] if number < len(got) else None)
        return None
    if isinstance(expected, str) and expected != got:
        return _piece(path, expected, got)
    return None if expected == got else (path, expected, got)


def entries(key: str, expected: Any, got: Any) -> list[str]:
    """What only one of two lists of ``SETS`` names, in words."""
    was, now = ([_name(e) for e in found or ()] for found in (expected, got))
    return [*(f"{SETS[key]} {n} is new" for n in dict.fromkeys(now) if n not in was),
            *(f"{SETS[key]} {n} is not there" for n in dict.fromkeys(was) if n not in now)]


def same_set(expected: dict[str, Any], got: dict[str, Any]) -> tuple[dict[str, Any], dict[str, Any], list[str]]:
    """Two messages without what only one of them has installed, and that in words.

    What both have is left, in its order; of plugins nothing is, since their digests were compared.
    """
    if not all((m.get("type"), m.get("subtype")) == ("system", "init") for m in (expected, got)):
        return expected, got, []
    there, here, notes = dict(expected), dict(got), []
    for key in SETS:
        was, now = there.pop(key, None) or [], here.pop(key, None) or []
        notes += entries(key, was, now)
        if key != "plugins":
            both = {_name(e) for e in was} & {_name(e) for e in now}
            there[key], here[key] = ([e for e in found if _name(e) in both] for found in (was, now))
    return there, here, notes


def _name(entry: Any) -> str:
    return str(entry.get("name") or entry.get("plugin")) if isinstance(entry, dict) else str(entry)


def _piece(path: str, expected: str, got: str) -> tuple[str, str, str]:
    if max(len(expected), len(got)) <= SHOWN // 2:
        return path, expected, got
    at = next((n for n, (a, b) in enumerate(zip(expected, got, strict=False)) if a != b), min(len(expected), len(got)))
    start = max(0, at - 40)
    dots = "... " if start else ""
    return (f"{path} (character {at})", dots + expected[start:at + SHOWN // 2], dots + got[start:at + SHOWN // 2])
