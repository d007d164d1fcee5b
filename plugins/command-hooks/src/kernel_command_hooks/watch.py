"""What changes on disk while a session runs: files that hooks ask for, and settings (hooks contract, 18.22, 18.23, 18.25).

Files are looked at once in a while; nothing is looked at where nobody asked for anything.
"""

from __future__ import annotations

import asyncio
import os
from collections.abc import Iterable
from typing import TYPE_CHECKING, Literal

from kernel import FileChanged
from kernel_command_hooks.live_settings import LiveSettings, Mark, mark

if TYPE_CHECKING:
    from kernel_command_hooks.hooks import Hooks

SECONDS = 1.0
"""Between two looks; the setting ``kernel.hooks.watchSeconds`` changes it."""
MAX_PATHS = 10_000

What = Literal["change", "add", "unlink"]


class Marks:
    """Remembers how files looked."""

    def __init__(self) -> None:
        self._seen: dict[str, Mark | None] = {}

    def aim(self, paths: Iterable[str]) -> None:
        """Look at these from now on. How a file looks when it is first named is what later looks are compared with."""
        self._seen = {path: self._seen[path] if path in self._seen else mark(path) for path in paths}

    def changes(self, now: dict[str, Mark | None]) -> list[tuple[str, What]]:
        """What is different from before. Paths that nobody wants any more are passed over."""
        found: list[tuple[str, What]] = []
        for path, after in now.items():
            before = self._seen.get(path, after)
            if after != before:
                self._seen[path] = after
                found.append((path, "add" if before is None else "unlink" if after is None else "change"))
        return found

    @property
    def paths(self) -> list[str]:
        return list(self._seen)


def look_at(paths: list[str]) -> dict[str, Mark | None]:
    return {path: mark(path) for path in paths}


class Watcher:
    """Watches for one session, in a task of its own."""

    def __init__(self, hooks: Hooks) -> None:
        self._hooks = hooks
        self._session = hooks.session
        self._asked: tuple[str, ...] = ()
        self._files = Marks()
        self._live: LiveSettings | None = None
        self._task: asyncio.Task[None] | None = None
        self._looking = asyncio.Lock()
        given = self._session.settings.get("kernel.hooks.watchSeconds")
        usable = isinstance(given, int | float) and not isinstance(given, bool) and given > 0
        self.seconds = max(float(given), 0.02) if usable else SECONDS

    def aim(self, *, settings: bool) -> None:
        """The configuration is new: look at what it names. Starts the task once there is something to look at.

        :param settings: whether settings files are watched; only ever switched on.
        """
        if settings and self._live is None:
            self._live = LiveSettings(self._session)
        self._aim()

    def ask(self, paths: list[str]) -> None:
        """The dynamic list, which hooks answer as ``watchPaths``: it replaces the one before, and may be empty."""
        good = [os.path.normpath(p) for p in paths if os.path.isabs(p)]
        if len(good) < len(paths):
            self._session.debug("watchPaths: paths that are not absolute are left out")
        if len(good) > MAX_PATHS:
            self._session.notice(f"watchPaths: {len(good)} paths are too many; the first {MAX_PATHS} are watched")
        self._asked = tuple(good[:MAX_PATHS])
        self._aim()

    def _aim(self) -> None:
        """File names in matchers mean files of the folder in which the session started."""
        handlers = self._hooks.handlers.get("FileChanged", ())
        names = {name for handler in handlers for name in handler.matcher.text.split("|") if name}
        root = self._session.project_root
        self._files.aim([*(os.path.normpath(os.path.join(root, name)) for name in sorted(names)), *self._asked])
        if self._task is None and (self._files.paths or self._live is not None):
            self._task = asyncio.get_running_loop().create_task(self._watch())

    def stop(self) -> None:
        """The session is over."""
        if self._task is not None:
            self._task.cancel()

    async def _watch(self) -> None:
        while True:
            await asyncio.sleep(self.seconds)
            try:
                await self.look()
            except Exception as error:
                self._session.notice(f"command-hooks: watching files failed: {type(error).__name__}: {error}", guard=True)

    async def look(self) -> None:
        """One round."""
        import anyio

        async with self._looking:
            now = await anyio.to_thread.run_sync(look_at, self._files.paths, abandon_on_cancel=True)
            changed = self._files.changes(now)
            if self._live is not None:
                await self._live.look()
        for path, what in changed:
            await self._session.fire(self._session.make(FileChanged, file_path=path, event=what))
