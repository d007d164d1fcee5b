"""A running session takes up what was installed, updated or removed: on ``/reload-plugins``, or by itself between prompts."""

from __future__ import annotations

from pathlib import Path

from kernel import Expansion, Extension, Session, config_dir, env_switch

STATE = "manager_stamp"


class Reloading(Extension):
    """By itself only where ``kernel.reloadPlugins`` is true in a person's settings, or the contract's variable
    ``CLAUDE_CODE_ENABLE_BACKGROUND_PLUGIN_REFRESH`` is set."""

    name = "plugin-reload"

    async def open(self, session: Session) -> None:
        if session.parent is None:
            session.commands["reload-plugins"] = ReloadPlugins()
            session.plugin_state[STATE] = _stamp(session)

    async def before_prompt(self, session: Session) -> None:
        if session.parent is not None or not _wanted(session):
            return
        stamp = _stamp(session)
        if session.plugin_state.get(STATE) != stamp:
            session.plugin_state[STATE] = stamp
            report = await reload(session)
            if report:
                session.notice(report, level="info")


def _wanted(session: Session) -> bool:
    if env_switch("CLAUDE_CODE_ENABLE_BACKGROUND_PLUGIN_REFRESH"):
        return True
    return session.settings.own("kernel.reloadPlugins") is True


def _stamp(session: Session) -> list[tuple[int, int]]:
    """Changes whenever the state or a settings file was replaced."""
    here = Path(session.project_root) / ".claude"
    files = (config_dir() / "kernel" / "plugins" / "state.json", config_dir() / "settings.json", here / "settings.json",
             here / "settings.local.json")
    found: list[tuple[int, int]] = []
    for file in files:
        try:
            info = file.stat()
        except OSError:
            found.append((0, 0))
        else:
            found.append((info.st_ino, info.st_mtime_ns))
    return found


async def reload(session: Session) -> str:
    """Reload and say what came of it; empty where nothing has changed."""
    done = await session.reload()
    lines = [f"{what}: {', '.join(names)}" for what, names in (("added", done.added), ("changed", done.changed),
                                                               ("removed", done.removed)) if names]
    lines += [f"{name} stays in its old version: {reason}" for name, reason in done.kept.items()]
    return f"Plugins {'; '.join(lines)}" if lines else ""


class ReloadPlugins:
    """``/reload-plugins``."""

    name = "reload-plugins"
    description = "take up plugins that were installed, updated or removed"
    argument_hint = ""
    kind = ""
    source: str | None = None

    async def expand(self, session: Session, args: str) -> Expansion:
        session.plugin_state[STATE] = _stamp(session)
        return Expansion(text=await reload(session) or "The plugins are as they were.")
