"""The scopes of an installation: which settings file says on or off, and which project it belongs to (contract, 9)."""

from __future__ import annotations

from pathlib import Path

from msgspec import Struct

from kernel import Settings, config_dir, git_root
from kernel_manager.errors import ManagerError

SCOPES = ("user", "project", "local")


class Scopes(Struct, frozen=True):
    """The scopes as seen from one start folder."""

    cwd: Path
    settings: Settings

    @classmethod
    def here(cls, cwd: Path | None = None) -> Scopes:
        cwd = cwd or Path.cwd()
        return cls(cwd, Settings.load(cwd))

    def file(self, scope: str) -> str:
        """:raises ManagerError: ``bad-scope``."""
        if scope == "user":
            return str(config_dir() / "settings.json")
        if scope == "project":
            if (self.cwd / ".claude").resolve() == config_dir().resolve():
                raise ManagerError("bad-scope", "this folder's project settings are your user settings", hint="use --scope user")
            return str(self.cwd / ".claude" / "settings.json")
        if scope == "local":
            return str(self._local_root() / ".claude" / "settings.local.json")
        raise ManagerError("bad-scope", f"there is no scope {scope!r}", hint=f"one of {', '.join(SCOPES)}")

    def project(self, scope: str) -> str | None:
        return {"project": str(self.cwd), "local": str(self._local_root())}.get(scope)

    @property
    def projects(self) -> tuple[str, ...]:
        return (str(self.cwd), str(self._local_root()))

    def _local_root(self) -> Path:
        root = git_root(self.cwd)
        return self.cwd if root is None or root == Path.home() else root

    def enabled(self, id: str) -> tuple[bool | None, str]:
        """Whether settings say on or off, and which scope says it. What an untrusted project says does not count."""
        for layer, value in self.settings.by_layer("enabledPlugins"):
            if isinstance(value, dict) and isinstance(value.get(id), bool):
                if layer.scope in ("project", "local") and not self.settings.trusted:
                    continue
                return value[id], layer.scope
        return None, ""

    def managed(self, id: str) -> bool | None:
        value = self.settings.managed("enabledPlugins")
        found = value.get(id) if isinstance(value, dict) else None
        return found if isinstance(found, bool) else None
