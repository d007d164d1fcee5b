"""Decisions on paper: a file system that is a dictionary, and the public tools as far as the policy looks at them.

For tests, for explanations of calls whose tool is not installed, and for trying out rules.
"""

from __future__ import annotations

import posixpath
from collections.abc import Iterable, Mapping
from typing import Any, ClassVar, Literal

from kernel import PermissionCall, Tool, Verdict

from .facts import Facts
from .policy import RulesPolicy
from .rules import PRIMARY, Behavior, Rule, RuleSet, Source, faults
from .view import View, posix


class PaperView:
    """The injected file system of a case. Paths that are not named do not exist.

    :param links: path -> where it points to.
    """

    def __init__(self, *, home: str = "/home/u", files: Iterable[str] = (), dirs: Iterable[str] = (),
                 links: Mapping[str, str] | None = None, case_insensitive: bool = False, windows: bool = False) -> None:
        self.windows = windows
        self.home = posix(home) if windows else home
        self._fold = case_insensitive or windows
        self._links = {self._key(k): v for k, v in (links or {}).items()}
        self._dirs = {self._key(d) for d in dirs}
        self._files = {self._key(f) for f in files}
        for path in [*self._files, *self._links, *self._dirs]:
            while path not in ("/", ""):
                path = posixpath.dirname(path)
                self._dirs.add(path)

    def _key(self, path: str) -> str:
        path = posixpath.normpath(posix(path) if self.windows else path)
        return path.casefold() if self._fold else path

    def resolve(self, path: str) -> str | None:
        for _ in range(40):
            parts, done = [p for p in path.split("/") if p], "/"
            for i, part in enumerate(parts):
                done = posixpath.normpath(posixpath.join(done, part))
                target = self._links.get(self._key(done))
                if target is not None:
                    path = posixpath.join(posixpath.dirname(done), target, *parts[i + 1:])
                    break
            else:
                return done
        return None

    def exists(self, path: str) -> bool:
        key = self._key(path)
        return key in self._files or key in self._dirs or key in self._links

    def is_dir(self, path: str) -> bool:
        real = self.resolve(path)
        return real is not None and self._key(real) in self._dirs

    def is_link(self, path: str) -> bool:
        parent, name = posixpath.split(path)
        return self._key(posixpath.join(self.resolve(parent) or parent, name)) in self._links

    def entries(self, path: str) -> list[str] | None:
        if not self.is_dir(path):
            return None
        folder = self._key(self.resolve(path) or path)
        return sorted({posixpath.basename(p) for p in (*self._files, *self._dirs, *self._links)
                       if posixpath.dirname(p) == folder and p != folder})

    def ignores_case(self, path: str) -> bool:
        return self._fold


_PERMISSION: dict[str, Literal["free", "ask", "path", "command", "user"]] = {
    **dict.fromkeys(("Read", "Grep", "Glob", "Edit", "MultiEdit", "Write", "NotebookEdit"), "path"),
    **dict.fromkeys(("Bash", "PowerShell"), "command"),
    **dict.fromkeys("WebFetch WebSearch Skill Monitor Workflow ExitPlanMode EnterWorktree Artifact".split(), "ask"),
    "AskUserQuestion": "user",
}
_FIELDS = {
    "Bash": ("command", "description", "timeout", "run_in_background", "dangerouslyDisableSandbox"),
    "PowerShell": ("command", "description", "timeout", "run_in_background"),
    "Read": ("file_path", "offset", "limit", "pages"), "Edit": ("file_path", "old_string", "new_string", "replace_all"),
    "Write": ("file_path", "content"), "NotebookEdit": ("notebook_path", "new_source", "cell_id", "cell_type", "edit_mode"),
    "Grep": ("pattern", "path", "glob", "output_mode", "type"), "Glob": ("pattern", "path"),
    "WebFetch": ("url", "prompt"), "WebSearch": ("query", "allowed_domains", "blocked_domains"), "Skill": ("skill", "args"),
    "Agent": ("description", "prompt", "subagent_type", "model", "isolation", "name", "run_in_background"),
    "AskUserQuestion": ("questions", "answers"),
}


def paper_tool(tool_name: str) -> Tool:
    """A stand-in for a tool: what rules need to know of it, and nothing that runs."""
    asks = tool_name.startswith("mcp__")
    rule = "Read" if tool_name in ("Grep", "Glob") else "Edit" if tool_name in ("Write", "MultiEdit", "NotebookEdit") else None

    class PaperTool(Tool):
        name: ClassVar[str] = tool_name
        aliases = ("Task",) if tool_name == "Agent" else ()
        description: ClassVar[str] = "A stand-in."
        input_schema: ClassVar[dict[str, Any]] = {"type": "object", "properties": {f: {} for f in _FIELDS.get(tool_name, ())}}
        permission = "ask" if asks else _PERMISSION.get(tool_name, "free")
        rule_name = rule
        rule_field = PRIMARY.get(tool_name, {"Skill": "skill"}.get(tool_name))

        def is_read_only(self, input: dict[str, Any]) -> bool:
            return tool_name in ("Read", "Grep", "Glob")

    return PaperTool()


class Paper:
    """A policy over rules that are written down on the spot.

    Rules are texts (source ``project``) or pairs of text and source. ``warnings`` tell what is wrong with them.

    :param view: the file system; an empty one by default. :param facts: anything else that ``Facts`` takes.
    """

    def __init__(self, *, allow: Iterable[str | tuple[str, Source]] = (), ask: Iterable[str | tuple[str, Source]] = (),
                 deny: Iterable[str | tuple[str, Source]] = (), view: View | None = None, cwd: str = "/proj/app",
                 directories: tuple[str, ...] = (), anchors: Mapping[str, str] | None = None, **facts: Any) -> None:
        self.view = view or PaperView()
        self.cwd = cwd
        self.warnings: list[str] = []
        self.anchors = {"user": f"{self.view.home}/.claude", "managed": "/", **(anchors or {})}
        lists: tuple[tuple[Behavior, Iterable[str | tuple[str, Source]]], ...] = (("allow", allow), ("ask", ask), ("deny", deny))
        rules = [rule for behavior, items in lists for item in items if (rule := self._rule(behavior, item))]
        self.facts = Facts(RuleSet(rules), self.view, cwd, directories, **facts)
        self.policy = RulesPolicy(lambda: self.facts, tools=lambda name: None, apply=lambda changes: [],
                                  complain=self.warnings.append)

    def _rule(self, behavior: Behavior, item: str | tuple[str, Source]) -> Rule | None:
        text: str
        source: Source
        text, source = (item, "project") if isinstance(item, str) else item
        rule = Rule(text, behavior, source, self.anchors.get(source, self.cwd))
        fault, counts = faults(rule, set())
        if fault:
            self.warnings.append(f"{text}: {fault}")
        return rule if counts else None

    def call(self, tool: str, input: dict[str, Any], *, mode: str = "default", hook: Literal["allow", "ask"] | None = None,
             hook_rewrote: bool = False, cwd: str | None = None) -> PermissionCall:
        return PermissionCall(tool=paper_tool(tool), input=input, cwd=cwd or self.cwd, mode=mode, hook=hook,
                              hook_rewrote=hook_rewrote)

    def decide(self, tool: str, input: dict[str, Any], **more: Any) -> Verdict:
        return self.policy.decide(self.call(tool, input, **more))

    def bash(self, command: str, **more: Any) -> str:
        """The decision about a command, in one word."""
        return self.decide("Bash", {"command": command}, **more).behavior
