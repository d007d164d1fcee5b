"""Which tools stay away until they are searched for (MCP contract, section 8; tools contract, section 15).

Deferred tools are known by name. ``ToolSearch`` brings their schemas, which then stay: a compaction does not take them,
and a resumed session has those that its history uses.
"""

from __future__ import annotations

import os
import re
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

from kernel import env_switch
from kernel_mcp.limits import CHARS_PER_TOKEN
from kernel_mcp.tools import SEARCH, McpTool

if TYPE_CHECKING:
    from kernel import Session, Tool

DEFAULT_SHARE = 10


def wanted() -> tuple[bool | None, int]:
    """``(on, per cent)``: on, off, or ``None`` for "when they take that share of the window"."""
    value = os.environ.get("ENABLE_TOOL_SEARCH", "").strip().lower()
    if env_switch("CLAUDE_CODE_DISABLE_EXPERIMENTAL_BETAS") or value in ("false", "0"):
        return False, 0
    if value in ("true", "1"):
        return True, 0
    if match := re.fullmatch(r"auto(?::(\d{1,3}))?", value):
        return None, min(int(match[1] or DEFAULT_SHARE), 100)
    address = os.environ.get("ANTHROPIC_BASE_URL")
    if address and urlsplit(address).hostname != "api.anthropic.com":
        return None, DEFAULT_SHARE
    return True, 0


class Deferral:
    """The decision for one session, and what its model was told."""

    def __init__(self, session: Session) -> None:
        self._session = session
        self._on, self._share = wanted()
        self.active = False
        """Whether tools are deferred. Once it is so, it stays so: later tools only add names."""
        self._listed: dict[str, None] = {}

    def offer(self, fresh: list[McpTool], all_tools: list[McpTool]) -> None:
        """Offer new tools, deferred or not, and tell the model the names that came and went."""
        session = self._session
        if not self.active and self._search_exists() and self._due(all_tools):
            self.active = True
        used = self._used_before() if self.active and fresh else set()
        away = [t for t in fresh if self.active and t.defer and t.name not in used]
        session.toolbox.offer([t for t in fresh if t not in away])
        if away:
            session.toolbox.offer(away, deferred=True)
            self._offer_search()
        self._tell()

    def _due(self, tools: list[McpTool]) -> bool:
        able = [t for t in tools if t.defer]
        if self._on is not None or not able:
            return bool(self._on and able)
        import msgspec

        chars = sum(len(msgspec.json.encode(t.definition())) for t in able)
        return chars / CHARS_PER_TOKEN * 100 >= self._share * self._session.model_info.context_window

    def _search_exists(self) -> bool:
        """Without the tool that loads them nothing may be deferred."""
        tool: Tool | None = self._session.harness.tools.get(SEARCH)
        wanted = self._session.options.tools
        return (tool is not None and (wanted is None or SEARCH in wanted) and self._session.policy.is_visible(tool)
                and self._session.toolbox.admits(tool))

    def _offer_search(self) -> None:
        tool: Tool | None = self._session.harness.tools.get(SEARCH)
        if tool is not None and SEARCH not in self._session.toolbox.by_name:
            self._session.toolbox.offer([tool])

    def _used_before(self) -> set[str]:
        """Names that the history calls: a resumed conversation goes on with what it had loaded."""
        return {str(b.get("name")) for _, blocks in self._session.history.messages for b in blocks if b.get("type") == "tool_use"}

    def _tell(self) -> None:
        now = dict.fromkeys(self._session.toolbox.deferred)
        came = [n for n in now if n not in self._listed]
        gone = [n for n in self._listed if n not in self._session.toolbox.by_name]
        for name in came:
            self._listed[name] = None
        for name in gone:
            del self._listed[name]
        if came:
            self._session.add_context(listing(came))
        if gone:
            self._session.add_context("These tools are no longer there: " + ", ".join(gone))

    def again(self) -> list[str]:
        """The names that are still deferred."""
        names = list(self._session.toolbox.deferred)
        return [listing(names)] if names else []


def listing(names: list[str]) -> str:
    return (f"More tools can be had with {SEARCH}. Their schemas are not loaded: a call fails until {SEARCH} has brought the "
            f"tool (query \"select:NAME\", or words). Names:\n" + "\n".join(names))
