"""Hook implementations."""

from __future__ import annotations

from typing import TYPE_CHECKING

from kernel import hookimpl

if TYPE_CHECKING:
    from kernel import Registry, SearchBackend, Session, SessionStart, Tool


@hookimpl
def register_tools(register: Registry[Tool]) -> None:
    from kernel_tools_web.fetch_tool import WebFetch
    from kernel_tools_web.search_tool import WebSearch

    register(WebFetch())
    register(WebSearch())


@hookimpl
def register_search_backends(register: Registry[SearchBackend]) -> None:
    from kernel_tools_web.searxng import SearXNG

    register(SearXNG())


@hookimpl
def session_start(event: SessionStart, session: Session) -> None:
    if event.source == "clear":
        from kernel_tools_web.search_tool import forget_searches

        forget_searches(session)
