"""Who searches: the model provider's own server, or a backend of another plugin."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Any

from msgspec import Struct, field

from kernel import History, Response, Session, ToolError, text_block
from kernel_tools_web import side

BUILT_IN = "provider"
BACKENDS = "web.search"
"""``session.root.plugin_state[BACKENDS]`` maps names to backends; other plugins add theirs when a session starts."""
MAX_USES = 8
MAX_PAUSES = 4
ANSWER_TOKENS = 4_096
TEXT_CHARS = 2_000

SYSTEM = [text_block("You search the web with the tool web_search and say in a few sentences what was found.")]

Backend = Callable[[Session, str, list[str], list[str]], Awaitable[list[Any]]]
"""(session, query, allowed domains, blocked domains) -> results: ``{"title", "url"}`` objects, or texts."""


class Found(Struct):
    """``results`` in the documented shape; ``count``: how many searches were made."""

    results: list[Any] = field(default_factory=list)
    count: int = 0


def backend_name(session: Session) -> str:
    """The setting ``kernel.web.search``: ``provider`` (the default), a backend's name, or ``false``."""
    given = session.settings.get("kernel.web.search", BUILT_IN)
    return given if isinstance(given, str) else "" if given is False else BUILT_IN


async def search(session: Session, query: str, allowed: list[str], blocked: list[str]) -> Found:
    """:raises ToolError: ``rate_limited``, ``search_failed``, ``model_failed``."""
    name = backend_name(session)
    if name == BUILT_IN:
        return await _by_provider(session, query, allowed, blocked)
    backends = session.root.plugin_state.get(BACKENDS)
    backend: Backend | None = backends.get(name) if isinstance(backends, dict) else None
    if backend is None:
        known = ", ".join([BUILT_IN, *(backends if isinstance(backends, dict) else ())])
        raise ToolError("search_failed", f"The setting kernel.web.search names {name!r}, which is not there; known: {known}.")
    return _collected(await backend(session, query, allowed, blocked))


def _collected(given: list[Any]) -> Found:
    """A backend's results; what does not fit is left out."""
    content = [{"title": str(r.get("title") or r["url"]), "url": r["url"]}
               for r in given if isinstance(r, dict) and isinstance(r.get("url"), str)]
    return Found([{"tool_use_id": "search_1", "content": content}, *(r for r in given if isinstance(r, str))], 1)


# -- the provider's server tool -------------------------------------------------------------------------------------------
async def _by_provider(session: Session, query: str, allowed: list[str], blocked: list[str]) -> Found:
    tool: dict[str, Any] = {"type": "web_search_20250305", "name": "web_search", "max_uses": MAX_USES}
    if allowed:
        tool["allowed_domains"] = allowed
    if blocked:
        tool["blocked_domains"] = blocked
    history = History([("user", f"Search the web for: {query}")])
    answers: list[Response] = []
    for _ in range(MAX_PAUSES + 1):
        request = session.request(
            system=SYSTEM, tools=[tool], history=history, max_tokens=ANSWER_TOKENS, thinking=None, effort=None, betas=[])
        answer = await side.ask(session, [session.model_info], request, "The search was not made")
        answers.append(answer)
        if answer.stop_reason != "pause_turn" or not answer.blocks:
            break
        history.append("assistant", answer.blocks)  # the server goes on where it paused
    return _read(answers)


def _read(answers: list[Response]) -> Found:
    found, failures = Found(), []
    for block in (b for a in answers for b in a.blocks):
        if block.get("type") == "server_tool_use":
            found.count += 1
        elif block.get("type") == "web_search_tool_result":
            content = block.get("content")
            if isinstance(content, list):
                found.results.append({"tool_use_id": str(block.get("tool_use_id") or ""), "content": [
                    {"title": str(r.get("title") or ""), "url": str(r.get("url") or "")}
                    for r in content if isinstance(r, dict)]})
            else:
                failures.append(str(content.get("error_code")) if isinstance(content, dict) else "unknown")
                found.results.append(f"A search failed: {failures[-1]}")
        elif block.get("type") == "text" and str(block.get("text") or "").strip():
            found.results.append(str(block["text"]).strip()[:TEXT_CHARS])
    if failures and not any(isinstance(r, dict) for r in found.results):
        code = "rate_limited" if "too_many_requests" in failures else "search_failed"
        raise ToolError(code, f"The search failed: {', '.join(dict.fromkeys(failures))}.", retryable=True)
    return found
