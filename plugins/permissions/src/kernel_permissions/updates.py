"""Permission updates: what an answer to a question changes, for the session or in a file (hooks contract, 13.5)."""

from __future__ import annotations

import json
import os
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

from kernel import KernelError, config_dir, git_root

from .rules import Behavior, Rule, RuleError, Source, faults

if TYPE_CHECKING:
    from kernel import Session

    from .sources import Sources

_DESTINATIONS: dict[str, Source] = {
    "session": "session", "localSettings": "local", "projectSettings": "project", "userSettings": "user"}


class UpdateError(ValueError):
    """An update that cannot be applied; the text says why."""


class Updates:
    """Applies updates to the rules of a session, and writes them where they are meant to last."""

    def __init__(self, session: Session, sources: Sources) -> None:
        self.session = session
        self.sources = sources
        self._kinds: dict[str, Callable[[dict[str, Any], Source], None]] = {
            "addRules": self._add, "replaceRules": self._replace, "removeRules": self._remove, "setMode": self._mode,
            "addDirectories": self._add_directories, "removeDirectories": self._remove_directories}

    def apply(self, changes: list[dict[str, Any]]) -> list[str]:
        """Apply each entry that can be; the others come back in words."""
        problems: list[str] = []
        for change in changes:
            try:
                if not isinstance(change, dict) or change.get("type") not in self._kinds:
                    raise UpdateError(f"'type' must be one of {', '.join(self._kinds)}")
                destination = _DESTINATIONS.get(str(change.get("destination", "session")))
                if destination is None:
                    raise UpdateError(f"'destination' must be one of {', '.join(_DESTINATIONS)}")
                self._kinds[change["type"]](change, destination)
            except (UpdateError, KernelError, OSError) as error:
                kind = change.get("type", "?") if isinstance(change, dict) else "?"
                problems.append(f"permission update {kind}: {error}")
        self.sources.changed()
        return problems

    # -- rules ---------------------------------------------------------------------------------------------------------
    def _parse(self, change: dict[str, Any], source: Source) -> tuple[Behavior, list[Rule]]:
        behavior, entries = change.get("behavior"), change.get("rules")
        if behavior not in ("allow", "ask", "deny"):
            raise UpdateError("'behavior' must be allow, ask or deny")
        if not isinstance(entries, list) or not all(isinstance(e, dict) and isinstance(e.get("toolName"), str) for e in entries):
            raise UpdateError("'rules' must be a list of {toolName, ruleContent?}")
        directory = str(self.session.settings.config_dir) if source == "user" else self.sources.cwd
        rules: list[Rule] = []
        for entry in entries:
            text = rule_text(entry["toolName"], entry.get("ruleContent"))
            try:
                rule = Rule(text, cast(Behavior, behavior), source, directory, "an answer in this session")
            except RuleError as error:
                raise UpdateError(f"the rule {text!r}: {error}") from None
            fault, counts = faults(rule, {rule.tool})
            if not counts:
                raise UpdateError(f"the rule {text!r}: {fault}")
            rules.append(rule)
        return cast(Behavior, behavior), rules

    def _add(self, change: dict[str, Any], source: Source) -> None:
        behavior, rules = self._parse(change, source)
        self._write(source, f"permissions.{behavior}", lambda old: [*old, *(r.text for r in rules if r.text not in old)])
        self.sources.removed -= {(r.source, r.behavior, r.text) for r in rules}
        self.sources.added += rules

    def _replace(self, change: dict[str, Any], source: Source) -> None:
        behavior, rules = self._parse(change, source)
        self._write(source, f"permissions.{behavior}", lambda old: [r.text for r in rules])
        current = [r for r in self.sources.facts().rules.lists[behavior] if r.source == source]
        self._drop(current)
        self.sources.added += rules

    def _remove(self, change: dict[str, Any], source: Source) -> None:
        behavior, rules = self._parse(change, source)
        texts = {r.text for r in rules}
        self._write(source, f"permissions.{behavior}", lambda old: [t for t in old if t not in texts])
        self._drop(rules)

    def _drop(self, rules: list[Rule]) -> None:
        keys = {(r.source, r.behavior, r.text) for r in rules}
        self.sources.added = [r for r in self.sources.added if (r.source, r.behavior, r.text) not in keys]
        self.sources.removed |= keys

    # -- directories and mode ------------------------------------------------------------------------------------------
    def _folders(self, change: dict[str, Any]) -> list[str]:
        folders = change.get("directories")
        if not isinstance(folders, list) or not all(isinstance(f, str) and f and "\0" not in f for f in folders):
            raise UpdateError("'directories' must be a list of paths")
        return [os.path.join(self.sources.cwd, os.path.expanduser(f)) for f in folders]

    def _add_directories(self, change: dict[str, Any], source: Source) -> None:
        folders = self._folders(change)
        self._write(source, "permissions.additionalDirectories", lambda old: [*old, *(f for f in folders if f not in old)])
        self.sources.dropped_directories -= set(folders)
        self.sources.directories += [f for f in folders if f not in self.sources.directories]

    def _remove_directories(self, change: dict[str, Any], source: Source) -> None:
        folders = self._folders(change)
        self._write(source, "permissions.additionalDirectories", lambda old: [f for f in old if f not in folders])
        self.sources.directories = [d for d in self.sources.directories if d not in folders]
        self.sources.dropped_directories |= set(folders)

    def _mode(self, change: dict[str, Any], source: Source) -> None:
        mode = change.get("mode")
        if not isinstance(mode, str):
            raise UpdateError("'mode' must be a string")
        if mode == "bypassPermissions" and not self.sources.bypass_available():
            return  # documented: nothing happens
        self.session.set_mode(mode)
        if source != "session" and mode != "bypassPermissions":
            self._save(source, lambda permissions: permissions.__setitem__("defaultMode", mode))

    # -- files ---------------------------------------------------------------------------------------------------------
    def _write(self, source: Source, key: str, change: Callable[[list[str]], list[str]]) -> None:
        """Change one list in the file of a scope; nothing for ``session``."""
        if source == "session":
            return
        name = key.partition(".")[2]

        def edit(permissions: dict[str, Any]) -> None:
            old = permissions.get(name)
            permissions[name] = change(list(old) if isinstance(old, list) else [])
        self._save(source, edit)

    def _save(self, source: Source, edit: Callable[[dict[str, Any]], None]) -> None:
        path = Path(os.path.realpath(self._file(source)))
        try:
            data = json.loads(path.read_text("utf-8-sig"))
        except FileNotFoundError:
            data = {}
        except ValueError as error:
            raise UpdateError(f"{path} is no valid JSON and is left as it is ({error})") from None
        if not isinstance(data, dict):
            raise UpdateError(f"{path} holds no JSON object and is left as it is")
        permissions = data.setdefault("permissions", {})
        if not isinstance(permissions, dict):
            raise UpdateError(f"{path}: 'permissions' is no object")
        edit(permissions)
        path.parent.mkdir(parents=True, exist_ok=True)
        from tempfile import NamedTemporaryFile

        with NamedTemporaryFile("w", encoding="utf-8", dir=path.parent, prefix=".settings-", delete=False) as file:
            try:
                json.dump(data, file, ensure_ascii=False, indent=2)
                file.write("\n")
                file.flush()
                os.fsync(file.fileno())
                if path.exists():
                    os.chmod(file.name, path.stat().st_mode & 0o777)
                os.replace(file.name, path)
            except BaseException:
                os.unlink(file.name)
                raise

    def _file(self, source: Source) -> Path:
        """Where a scope's settings lie: the file that was read, or the place where it would be looked for."""
        for layer in self.session.settings.layers:
            if layer.scope == source:
                return Path(layer.path)
        cwd = Path(self.sources.cwd)
        if source == "user":
            return config_dir() / "settings.json"
        if source == "project":
            return cwd / ".claude" / "settings.json"
        root = git_root(cwd)
        if root is None or root == Path.home() or os.environ.get("CLAUDE_CODE_ENTRYPOINT", "").startswith("sdk-"):
            root = cwd
        return root / ".claude" / "settings.local.json"


def rule_text(tool: str, content: Any) -> str:
    """The rule as settings hold it; parentheses and backslashes of the content are escaped."""
    if not isinstance(content, str) or not content:
        return tool
    escaped = content.replace("\\", "\\\\").replace("(", r"\(").replace(")", r"\)")
    return f"{tool}({escaped})"
