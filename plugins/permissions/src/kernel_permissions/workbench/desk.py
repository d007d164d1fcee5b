"""The rules of a folder without a session: what a policy reads of one, and nothing that runs."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

from kernel import Harness, KernelError, Options, PermissionCall, Session, State, Tool, ToolContext

from ..facts import Facts
from ..paper import paper_tool
from ..rules import RENAMED
from ..sources import Sources
from .files import Unusable

MODES = ("default", "acceptEdits", "plan", "auto", "dontAsk", "bypassPermissions")


def mode_of(name: str) -> str:
    """A permission mode under its documented name.

    :raises Unusable: there is none of that name.
    """
    name = "default" if name == "manual" else name
    if name not in MODES:
        raise Unusable(f"unknown permission mode {name!r}; one of {', '.join(MODES)}")
    return name


class Desk:
    """Stands in for a session where a policy is read on paper.

    :param settings: what ``--settings`` gives.
    :raises Unusable: the folder or the settings cannot be used.
    """

    def __init__(self, cwd: Path, *, settings: str | None = None, mode: str | None = None) -> None:
        cwd = Path(cwd).absolute()
        if not cwd.is_dir():
            raise Unusable(f"--cwd {cwd}: is no folder")
        try:
            self.harness = Harness(Options(cwd=cwd, settings=settings, persist=False))
            mode = mode_of(mode) if mode else self.harness.starting_mode()
        except KernelError as error:
            raise Unusable(str(error)) from None
        self.options = self.harness.options
        self.settings = self.harness.settings
        self.plugins = self.harness.plugins
        self.state = State(cwd=str(cwd), model="", permission_mode=mode)
        self.plugin_state: dict[str, Any] = {}
        self.tools: dict[str, Tool] = {}
        self.sandbox = None
        self.transcript = SimpleNamespace(path="")
        self.sources = Sources(cast(Session, self))

    @property
    def facts(self) -> Facts:
        return self.sources.facts()

    @property
    def warnings(self) -> list[str]:
        """What the session would tell the person about settings and rules."""
        return list(self.harness.announced)

    def tool(self, name: str) -> Tool:
        """The installed tool, a stand-in for a public one that is not installed.

        :raises Unusable: it is neither.
        """
        name = RENAMED.get(name, name)
        for tool in self.harness.tools:
            if name == tool.name or name in tool.aliases:
                return cast(Tool, tool)
        from ..rules import KNOWN_TOOLS

        if name not in KNOWN_TOOLS and not name.startswith("mcp__"):
            from difflib import get_close_matches

            near = get_close_matches(name, sorted(KNOWN_TOOLS), 1, 0.6)
            raise Unusable(f"there is no tool {name!r}{f'; did you mean {near[0]}?' if near else ''}")
        return paper_tool(name)

    def call(self, tool: Tool, input: dict[str, Any]) -> PermissionCall:
        """The call as rules see it: with the absolute paths that the tool itself makes."""
        try:
            input = tool.prepare_input(dict(input), ToolContext(cast(Session, self), "", tool.name))
        except Exception:  # noqa: S110  # the input does not fit; it is decided as it stands
            pass
        return PermissionCall(tool=tool, input=input, cwd=self.state.cwd, mode=self.state.permission_mode)
