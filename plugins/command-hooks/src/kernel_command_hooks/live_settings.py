"""Settings files that are edited while a session runs count from the next call on (settings contract, 2; hooks contract, 18.22).

A ``ConfigChange`` handler may keep a change out of the session, but not one of managed settings. A file that can no longer be
read keeps what it said before: a half written file must not switch a guard off.
"""

from __future__ import annotations

import os
from pathlib import Path
from typing import Literal

from kernel import ConfigChange, Layer, Session, Settings, SettingsError, git_root

Source = Literal["user_settings", "project_settings", "local_settings", "policy_settings"]
Mark = tuple[int, int, int]
"""Time of change in nanoseconds, size, number of the file; equal for a file that did not change."""

MANAGED_DIR = "/etc/claude-code"
"""Where managed settings lie if the session began without any."""
SCOPES = ("managed", "cli", "local", "project", "user")


class LiveSettings:
    """The settings of one session, kept up to date."""

    def __init__(self, session: Session) -> None:
        self._session = session
        managed = next((layer.path for layer in session.settings.layers if layer.scope == "managed"), None)
        self._managed_dir = os.path.dirname(managed) if managed else MANAGED_DIR
        self._held: dict[str, Layer | None] = {}
        """What a handler kept out of the session: path -> the layer as it was before; ``None``: there was none."""
        self._marks = self._look_around()

    async def look(self) -> None:
        """Take up what changed since the last look."""
        import anyio

        now = await anyio.to_thread.run_sync(self._look_around, abandon_on_cancel=True)
        changed = [(path, source) for path, (source, mark) in now.items() if self._marks.get(path, (source, None))[1] != mark]
        changed += [(path, source) for path, (source, mark) in self._marks.items() if path not in now and mark is not None]
        self._marks = now
        if changed:
            await self._take_up(changed)

    def _look_around(self) -> dict[str, tuple[Source, Mark | None]]:
        """Every place of a settings file, with how the file looks."""
        root, settings = Path(self._session.project_root), self._session.settings
        managed = Path(self._managed_dir)
        sources = self._session.options.setting_sources
        places: list[tuple[Source, Path]] = [("policy_settings", managed / "managed-settings.json")]
        places += [("policy_settings", path) for path in sorted((managed / "managed-settings.d").glob("*.json"))]
        if "local" in sources:
            folders = dict.fromkeys([git_root(root) or root, root])
            places += [("local_settings", folder / ".claude" / "settings.local.json") for folder in folders]
        if "project" in sources:
            places.append(("project_settings", root / ".claude" / "settings.json"))
        if "user" in sources:
            places.append(("user_settings", settings.config_dir / "settings.json"))
        return {str(path): (source, mark(path)) for source, path in places}

    async def _take_up(self, changed: list[tuple[str, Source]]) -> None:
        session, old = self._session, self._session.settings
        new = self._load(old)
        if new is None:
            return
        before = {layer.path: layer for layer in old.layers}
        after = {layer.path: layer for layer in new.layers}
        self._keep_broken(before, after, new)
        for path, source in changed:
            await self._admit(path, source, before, after)
        for path, layer in self._held.items():
            after.pop(path, None)
            if layer is not None:
                after[path] = layer
        if after == before and new.trusted == old.trusted:
            return
        layers = sorted(after.values(), key=lambda layer: SCOPES.index(layer.scope))
        settings = Settings(layers, new.problems, config_dir=new.config_dir, project_root=new.project_root, trusted=new.trusted)
        session.harness.settings = settings
        os.environ.update(settings.environment())
        session.debug(f"settings were read again: {', '.join(path for path, _ in changed)}")

    def _load(self, old: Settings) -> Settings | None:
        """What the files say now; what is new about them and does not work is announced."""
        session = self._session
        try:
            new = Settings.load(Path(session.project_root), cli=session.options.settings,
                                sources=session.options.setting_sources, managed_dir=self._managed_dir)
        except SettingsError as error:
            session.notice(f"settings were changed and cannot be read again; the ones before stay in force: {error}", guard=True)
            return None
        known = set(map(str, old.problems))
        for problem in new.problems:
            if str(problem) not in known:
                session.notice(str(problem), guard=True)
        return new

    def _keep_broken(self, before: dict[str, Layer], after: dict[str, Layer], new: Settings) -> None:
        """Files that are there and cannot be used keep what they said; managed settings do as a whole."""
        broken = {problem.path for problem in new.problems}
        for path, layer in before.items():
            managed = layer.scope == "managed" and any(os.path.dirname(b).startswith(self._managed_dir) for b in broken)
            if managed or (path in broken and path not in after and os.path.exists(path)):
                after[path] = layer

    async def _admit(self, path: str, source: Source, before: dict[str, Layer], after: dict[str, Layer]) -> None:
        """Ask the handlers about one change. A change of nothing is none."""
        self._held.pop(path, None)
        key = str(Path(self._managed_dir) / "managed-settings.json") if source == "policy_settings" else path
        if before.get(key) == after.get(key):
            return
        merged = await self._session.fire(self._session.make(ConfigChange, source=source, file_path=path))
        if merged.blocked and source != "policy_settings":
            self._session.debug(f"ConfigChange: a hook keeps the change of {path} out of this session")
            self._held[path] = before.get(path)


def mark(path: str | Path) -> Mark | None:
    """``None``: there is no such file, or it cannot be seen."""
    try:
        found = os.stat(path)
    except (OSError, ValueError):  # ValueError: a null byte
        return None
    return found.st_mtime_ns, found.st_size, found.st_ino
