"""What a command put where something protected was missing (``.mcp.json``, ``.vscode`` ...) is set aside.

Mounts keep what exists. What does not exist cannot be covered without leaving empty files in people's folders, so it
is looked for after each command instead. Nothing is lost: it gets another name, and both the person and the model are
told. What appears while no command runs, or is written by a file tool, was made by somebody who may: it is protected
from then on.
"""

from __future__ import annotations

import os
from collections.abc import Iterable
from itertools import count
from typing import TYPE_CHECKING

from kernel_sandbox.view import under

if TYPE_CHECKING:
    from kernel_sandbox.confinement import Confinement

SUFFIX = ".set-aside"
_NOBODYS = ("commondir",)
"""Nobody has a reason to make it there."""


class Aside:
    """One per session."""

    def __init__(self, sandbox: Confinement) -> None:
        self._sandbox = sandbox
        self._written: set[str] = set()

    def before(self) -> None:
        """Ahead of a confined command: what is there now was not made by one, unless one runs in the background."""
        found = self._sandbox.protection()
        tasks = self._sandbox.session.plugin_state.get("tasks")
        if isinstance(tasks, dict) and any(getattr(task, "status", "") == "running" for task in tasks.values()):
            return
        there = [p for p in found.absent if os.path.basename(p) not in _NOBODYS and os.path.lexists(p)]
        found.absent = [p for p in found.absent if p not in there]
        found.kept += there

    def written(self, paths: Iterable[str]) -> None:
        """A tool that has permission wrote these files."""
        real = [os.path.join(os.path.realpath(os.path.dirname(p)), os.path.basename(p)) for p in paths]
        self._written.update(p for p in self._sandbox.protection().absent if any(under(r, p) for r in real))

    def after(self) -> list[str]:
        """Set aside what appeared, and say so, one line for each."""
        lines: list[str] = []
        for path in self._sandbox.protection().absent:
            if path in self._written or not os.path.lexists(path):
                continue
            target = next(name for n in count(1) if not os.path.lexists(name := f"{path}{SUFFIX}{n if n > 1 else ''}"))
            try:
                os.rename(path, target)
                what = f"it was renamed to {os.path.basename(target)}"
            except OSError as error:
                what = f"it could not be set aside ({error.strerror}); look at it before you use this folder"
            self._sandbox.session.notice(f"sandbox: a confined command made {path}, which other programs obey by themselves; "
                                         f"{what}", guard=True)
            lines.append(f"[sandbox] {path} is protected: commands cannot create it, so {what}. Create it with Write, which asks "
                         "for approval.")
        return lines
