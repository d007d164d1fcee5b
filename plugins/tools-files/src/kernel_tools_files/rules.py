"""Questions to the session's permission policy about reading a path (permissions contract, 6.2, rules 2 and 3)."""

from __future__ import annotations

import os

import anyio

from kernel import PermissionCall, Tool, ToolContext, ToolError, Verdict
from kernel_tools_files.paths import NEAR, ListedPath, Target, near_paths, printable


class ReadRules:
    """What the policy says about reading single files, for one call of a tool. Answers are kept for its length.

    Asked in the event loop's thread only: a policy need not be safe for others.
    """

    def __init__(self, context: ToolContext, read: Tool) -> None:
        self._session = context.session
        self._read = read
        self._denied: dict[str, bool] = {}
        self._folders: dict[str, str] = {}

    def denied(self, path: str) -> bool:
        """Whether a rule keeps the file from being read. A policy that fails keeps it too."""
        known = self._denied.get(path)
        if known is None:
            verdict = self._decide(path)
            known = self._denied[path] = verdict is None or verdict.behavior == "deny"
        return known

    def free(self, path: str) -> bool:
        """Whether Read is offered and would need no prompt for the file."""
        verdict = self._decide(path) if self._read.name in self._session.toolbox.by_name else None
        return verdict is not None and verdict.behavior == "allow"

    def _listed(self, path: str) -> ListedPath:
        """A search names many files of few folders: each folder is resolved once in the course of a call."""
        input = ListedPath(file_path=path)
        folder, name = os.path.split(path)
        if name in ("", ".", "..") or os.path.islink(path):
            input.resolved = os.path.realpath(path)
        else:
            if folder not in self._folders:
                self._folders[folder] = os.path.realpath(folder)
            input.resolved = os.path.join(self._folders[folder], name)
        return input

    def _decide(self, path: str) -> Verdict | None:
        session = self._session
        try:
            return session.policy.decide(PermissionCall(
                tool=self._read, input=self._listed(path), cwd=session.state.cwd, mode=session.state.permission_mode,
                agent_id=session.agent_id))
        except Exception as error:
            session.debug(f"the permission policy failed on reading {path}: {error!r}")
            return None


async def missing(target: Target, context: ToolContext, rules: ReadRules) -> ToolError:
    """``not_found``, with what may have been meant; names that a rule hides are not told."""
    near = await anyio.to_thread.run_sync(near_paths, target.path, context.cwd)
    named = [printable(path) for path in near if not rules.denied(path)][:NEAR]
    hint = f" Did you mean {', '.join(named)}?" if named else ""
    return ToolError("not_found", f"{target.shown} does not exist. The working directory is {context.cwd}.{hint}")
