"""Who searches: the model provider's own server, or a backend of another plugin."""

from __future__ import annotations

from typing import Any

from msgspec import Struct, field

from kernel import History, Response, SearchBackend, Session, ToolError, text_block
from kernel_tools_web import side

BUILT_IN = "provider"
SERVED_BY = frozenset(("anthropic",))
"""Providers with a search tool on their own server."""
HITS = 20
MAX_USES = 8
MAX_PAUSES = 4
ANSWER_TOKENS = 4_096
TEXT_CHARS = 2_000

SYSTEM = [text_block("You search the web with the tool web_search and say in a few sentences what was found.")]

class Found(Struct):
    """``results`` in the documented shape; ``count``: how many searches were made."""

    results: list[Any] = field(default_factory=list)
    count: int = 0


def backend_name(session: Session) -> str:
    """The setting ``kernel.search``: ``provider``, the name of a backend, an object with ``name`` and what the backend needs, or
    ``false``. Without it the provider's own search is used where it has one. "" where nobody searches.

    An untrusted project does not choose who learns what is searched for.
    """
    given = session.settings.own("kernel.search")
    if isinstance(given, dict):
        given = given.get("name") or ("searxng" if given.get("url") else None)
    if isinstance(given, str):
        return given
    return BUILT_IN if given is not False and session.provider.name in SERVED_BY else ""


async def search(session: Session, query: str, allowed: list[str], blocked: list[str]) -> Found:
    """:raises ToolError: ``rate_limited``, ``search_failed``, ``model_failed``, ``timeout``."""
    name = backend_name(session)
    if name == BUILT_IN:
        if session.provider.name not in SERVED_BY:
            raise ToolError("search_failed", f"Nothing was searched: the provider {session.provider.name!r} has no search of "
                            "its own. Set kernel.search to the name of a search backend, or to false.")
        return await _by_provider(session, query, allowed, blocked)
    backend: SearchBackend | None = session.harness.one("search_backends", name) if name else None
    if backend is None:
        raise ToolError("search_failed", f"Nothing was searched: the setting kernel.search names {name!r}, and no plugin "
                        "provides a search backend of that name. Install one, or set kernel.search to 'searxng' with a url, to "
                        f"'{BUILT_IN}', or to false.")
    hits = await backend.search(session, query, allowed_domains=allowed, blocked_domains=blocked, limit=HITS)
    content = [{"title": str(hit.title or hit.url), "url": hit.url} for hit in hits[:HITS] if isinstance(hit.url, str)]
    return Found([{"tool_use_id": "search_1", "content": content}], 1)


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
