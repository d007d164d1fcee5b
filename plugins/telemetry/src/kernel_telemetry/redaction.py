"""What may be said (observability contract, section 6): names of users' things, secrets, lengths."""

from __future__ import annotations

import hashlib
import os
import re
from collections.abc import Iterable, Mapping
from typing import Any

TOOLS = frozenset((
    "Agent AskUserQuestion Bash BashOutput Edit EnterPlanMode EnterWorktree ExitPlanMode ExitWorktree Glob Grep KillShell LSP "
    "ListAgents ListMcpResourcesTool Monitor MultiEdit NotebookEdit PowerShell Read ReadMcpResourceTool SendMessage Skill "
    "StructuredOutput Task TaskCreate TaskGet TaskList TaskOutput TaskStop TaskUpdate TodoWrite ToolSearch WaitForMcpServers "
    "WebFetch WebSearch Write").split())
"""Tools that the contract names; every other name is somebody's own."""
PLUGINS = frozenset((
    "command-hooks compactor control demo durable embed evidence fleet guards headless inspector linter manager mcp memory "
    "model-anthropic model-script output-styles permissions replay sandbox scaffold serve sessions skills store-sql "
    "structured-output subagents telemetry terminal tools-files tools-shell tools-tasks tools-user tools-web").split())
"""Plugins of this project; every other name is somebody's own."""
AGENTS = frozenset("general-purpose Explore Plan fork claude-code-guide statusline-setup".split())
EDITS = frozenset(("Edit", "Write", "NotebookEdit"))
MARK = "[TRUNCATED]"
REDACTED = "<REDACTED>"
SECRET = "[redacted]"  # noqa: S105  # what stands in the place of one
FEWEST = 6
"""Characters below which a value is no secret that could be told from other text."""
_NAMES = re.compile(r"(API_?KEY|TOKEN|SECRET|PASSWORD|PASSWD|CREDENTIAL|PRIVATE_KEY|ACCESS_KEY)(S|_ID)?$|^AWS_|_HEADERS$")
_SHAPES = re.compile(
    r"sk-ant-[A-Za-z0-9_-]{8,}|\b(?:gh[pousr]_|github_pat_|glpat-|xox[abprs]-)[A-Za-z0-9_-]{16,}|\bAKIA[0-9A-Z]{16}\b"
    r"|\beyJ[A-Za-z0-9_-]{10,}\.[A-Za-z0-9_-]{10,}\.[A-Za-z0-9_-]*"
    r"|(?i:(?<=bearer )|(?<=x-api-key: )|(?<=x-api-key:)|(?<=api_key=)|(?<=password=)|(?<=token=))[^\s\"',;&]{6,}")
_PLAIN = frozenset(("AWS_REGION", "AWS_DEFAULT_REGION", "AWS_PROFILE", "AWS_PAGER", "AWS_SDK_LOAD_CONFIG"))


class Secrets:
    """Values that no attribute may hold, whatever is switched on: of credential variables and of headers."""

    def __init__(self, environ: Mapping[str, str] = os.environ, more: Iterable[str] = ()) -> None:
        values = set(more)
        for name, value in environ.items():
            if name in _PLAIN or not _NAMES.search(name.upper()):
                continue
            values.add(value.strip())
            if name.upper().endswith("_HEADERS"):
                values |= {part.strip() for part in re.split(r"[:=,\n]", value) if len(part.strip()) >= 8}
        self._known: set[str] = set()
        self._values: re.Pattern[str] | None = None
        self.add(values)

    def add(self, values: Iterable[str]) -> None:
        """More of them, as a headers helper finds them."""
        self._known |= {v for v in values if len(v) >= FEWEST}
        longest_first = sorted(self._known, key=len, reverse=True)
        self._values = re.compile("|".join(map(re.escape, longest_first))) if longest_first else None

    def hide(self, text: str) -> str:
        """The text without them."""
        if self._values is not None:
            text = self._values.sub(SECRET, text)
        return _SHAPES.sub(SECRET, text)


def cut(text: str, most: int) -> str:
    """At most ``most`` UTF-16 units, the mark included; no surrogate pair is cut in two."""
    if len(text) * 2 <= most or (len(text) <= most and text.isascii()):
        return text
    raw = text.encode("utf-16-le", "surrogatepass")
    if len(raw) <= most * 2:
        return text
    kept = raw[:max(most - len(MARK), 0) * 2]
    if kept and 0xD8 <= kept[-1] <= 0xDB:  # a high surrogate without its other half
        kept = kept[:-2]
    return kept.decode("utf-16-le", "replace") + MARK[:most]


def clean(value: Any, secrets: Secrets, most: int) -> Any:
    """A value as an attribute may hold it; ``None`` where it cannot."""
    if isinstance(value, bool | int | float):
        return value if not isinstance(value, int) or isinstance(value, bool) or -2**63 <= value < 2**63 else str(value)
    if isinstance(value, str):
        text = value if value.isascii() else value.encode("utf-16", "surrogatepass").decode("utf-16", "replace")
        return cut(secrets.hide(text), most)
    if isinstance(value, list | tuple):
        return [clean(str(v), secrets, most) for v in value]
    return None if value is None else clean(str(value), secrets, most)


def mcp_of(tool: str) -> tuple[str, str] | None:
    """Server and tool of an MCP tool's name."""
    if not tool.startswith("mcp__"):
        return None
    server, _, name = tool.removeprefix("mcp__").partition("__")
    return server, name


def tool_name(name: str, details: bool) -> str:
    """The name that is told: one of the contract's verbatim, ``mcp_tool`` and ``third-party`` for the others."""
    if details or name in TOOLS:
        return name
    return "mcp_tool" if name.startswith("mcp__") else "third-party"


def agent_name(name: str, details: bool) -> str:
    return name if details or name in AGENTS else "custom"


def plugin_name(plugin_id: str, official: frozenset[str], details: bool) -> tuple[str, str]:
    """Plugin and marketplace as they are told."""
    name, _, market = plugin_id.partition("@")
    if market in ("", "installed") and name in PLUGINS:
        return name, "builtin"
    return (name, market) if details or market in official else ("third-party", "third-party")


def hashed(plugin_id: str) -> str:
    """A stable hash for counting without a name."""
    return hashlib.sha256(plugin_id.encode("utf-8", "replace")).hexdigest()[:16]
