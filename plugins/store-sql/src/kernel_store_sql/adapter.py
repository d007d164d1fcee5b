"""The store as a program with the public SDK wants it: asynchronous, keys as dictionaries (sessions contract, section 8)."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from kernel import EntryKey, EntryStore


class SessionStoreAdapter:
    """Any entry store for ``ClaudeAgentOptions(session_store=...)``; each call runs in a thread."""

    def __init__(self, store: EntryStore) -> None:
        self.store = store

    async def append(self, key: dict[str, Any], entries: list[dict[str, Any]]) -> None:
        await _in_thread(self.store.append, _key(key), entries)

    async def load(self, key: dict[str, Any]) -> list[dict[str, Any]] | None:
        found: list[dict[str, Any]] | None = await _in_thread(self.store.load, _key(key))
        return found

    async def list_sessions(self, project_key: str) -> list[dict[str, Any]]:
        return list(await _in_thread(self.store.list_sessions, project_key))

    async def list_session_summaries(self, project_key: str) -> list[dict[str, Any]]:
        return list(await _in_thread(self.store.list_session_summaries, project_key))

    async def delete(self, key: dict[str, Any]) -> None:
        await _in_thread(self.store.delete, _key(key))

    async def list_subkeys(self, key: dict[str, Any]) -> list[str]:
        return list(await _in_thread(self.store.list_subkeys, _key(key)))


async def _in_thread(call: Callable[..., Any], *args: Any) -> Any:
    import anyio

    return await anyio.to_thread.run_sync(call, *args)


def _key(key: dict[str, Any]) -> EntryKey:
    return EntryKey(key["project_key"], key["session_id"], key.get("subpath") or "")
