"""The policy ``sample-plugin``: the model may look and not touch."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from kernel import PermissionCall, Policy, Session, Tool, Verdict


class LookOnly:
    """The policy of one session. Pure: it runs nothing. What it does not know it refuses."""

    def __init__(self, root: Path) -> None:
        self._root = root.resolve()

    def decide(self, call: PermissionCall) -> Verdict:
        if call.tool.permission == "free":
            return Verdict(behavior="allow")
        if not call.tool.is_read_only(call.input):
            return Verdict(behavior="deny", reason_type="rule",
                           message=f"{call.tool.name} may change something; only looking is allowed.")
        for path in call.tool.permission_paths(call.input):
            if not Path(call.cwd, path).resolve().is_relative_to(self._root):
                return Verdict(behavior="deny", reason_type="workingDir", message=f"{path} is outside of {self._root}.")
        # A hook may ask for more care than this policy does, and is never overruled.
        return Verdict(behavior="ask" if call.hook == "ask" else "allow", reason_type="rule")

    def is_visible(self, tool: Tool) -> bool:
        return True

    def matches(self, rule: str, tool_name: str, input: dict[str, Any]) -> bool:
        """Rules of hooks (``if``): by the tool's name alone; one with a specifier counts as a match, so that the hook runs."""
        return rule.partition("(")[0] == tool_name

    def update(self, changes: list[dict[str, Any]]) -> list[str]:
        return ["the policy sample-plugin has no rules that could be changed"] if changes else []


class SamplePluginFactory:
    """Registered under ``name``; the setting ``kernel.policy`` chooses it."""

    name = "sample-plugin"

    def open(self, session: Session) -> Policy:
        return LookOnly(Path(session.project_root))
