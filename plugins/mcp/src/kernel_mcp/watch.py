"""What stands between a transport and the package's client: it sees both directions and hands on what is usable.

Servers send lists with one odd tool, content of unknown kinds, notices by the thousand, lines that never end. The package
refuses a whole message for one bad part, and starts a task for each notice. Here the bad part is mended or left out, and a
storm becomes one note. Messages keep their ids and their order.
"""

from __future__ import annotations

import json
from collections import deque
from collections.abc import Callable
from typing import Any

from kernel_mcp.schemas import clean_text, encodable
from kernel_mcp.stdio import Noise, TooLong

LISTS = {"notifications/tools/list_changed": "tools", "notifications/prompts/list_changed": "prompts",
         "notifications/resources/list_changed": "resources"}
_CONTENT = frozenset({"text", "image", "audio", "resource_link", "resource"})
_VERSION = "io.modelcontextprotocol/protocolVersion"
_MOST_SAID = 20


class Watched:
    """A transport around a transport.

    :param changed: a list of the server changed; called at once, may be called often.
    :param ended: the server sends nothing more.
    :param log: a line for the debug log.
    """

    def __init__(self, inner: Any, *, changed: Callable[[str], None], ended: Callable[[], None],
                 log: Callable[[str], None]) -> None:
        self._inner = inner
        self._changed = changed
        self.ended = ended
        self._log = log
        self._said = 0
        self._open: dict[str, tuple[Any, str]] = {}
        self._stateless = False
        """Whether requests carry the revision themselves, as they do from 2026-07-28 on."""
        self.output_schemas: dict[str, Any] = {}
        """By the server's own name of the tool; kept here, so that a result that does not fit does not fail a call."""

    async def __aenter__(self) -> tuple[Any, Any]:
        read, write = await self._inner.__aenter__()
        return _Read(read, self), _Write(write, self)

    async def __aexit__(self, *error: Any) -> bool | None:
        result: bool | None = await self._inner.__aexit__(*error)
        return result

    # -- what passes ---------------------------------------------------------------------------------------------------
    def sent(self, item: Any) -> None:
        message = item.message
        request = getattr(message, "id", None)
        method = getattr(message, "method", None)
        if request is not None and method:
            self._open[str(request)] = (request, method)
            params = getattr(message, "params", None)
            self._stateless = isinstance(params, dict) and _VERSION in (params.get("_meta") or ())
        elif method == "notifications/cancelled" and isinstance(message.params, dict):
            self._open.pop(str(message.params.get("requestId")), None)

    def received(self, item: Any) -> list[Any]:
        """What the client is to see of an item: usually the item."""
        if isinstance(item, TooLong):
            self.log(str(item))
            return self._failed(item)
        if isinstance(item, Exception):
            if isinstance(item, Noise):
                self.log(f"stdout: {item}")
                return []
            return [item]
        message = item.message
        method = getattr(message, "method", None)
        if method in LISTS:
            self._changed(LISTS[method])
            return []
        if method is None and getattr(message, "id", None) is not None:
            _, asked = self._open.pop(str(message.id), (None, ""))
            result = getattr(message, "result", None)
            if isinstance(result, dict):
                self._mend(asked, result)
        return [item]

    def _failed(self, fault: TooLong) -> list[Any]:
        """An answer that is too long fails the request that waits for it; where that is not known, all that wait."""
        from mcp.shared.message import SessionMessage
        from mcp_types import INTERNAL_ERROR, ErrorData, JSONRPCError

        asked = [self._open[i] for i in fault.ids if i in self._open] or list(self._open.values())
        for request, _ in asked:
            self._open.pop(str(request), None)
        return [SessionMessage(JSONRPCError(jsonrpc="2.0", id=request, error=ErrorData(code=INTERNAL_ERROR, message=str(fault))))
                for request, _ in asked]

    def _mend(self, asked: str, result: dict[str, Any]) -> None:
        if self._stateless:
            result.setdefault("resultType", "complete")  # what a result is that does not say it
        if asked == "tools/list" and isinstance(result.get("tools"), list):
            result["tools"] = [tool for raw in result["tools"] if (tool := self._tool(raw)) is not None]
        elif asked == "tools/call" and isinstance(result.get("content"), list):
            result["content"] = [_content(block) for block in result["content"]]
        elif asked == "tools/call" and "content" not in result and result.get("resultType", "complete") == "complete":
            result["content"] = []

    def _tool(self, raw: Any) -> dict[str, Any] | None:
        """A tool that the client can take; ``None``: it cannot be used. Only what is broken is changed."""
        name = raw.get("name") if isinstance(raw, dict) else None
        if not isinstance(name, str) or not name:
            self.log(f"a tool without a name is left out: {str(raw)[:200]}")
            return None
        tool = dict(raw)
        schema = tool.get("inputSchema")
        if not isinstance(schema, dict):
            self.log(f"the tool {name!r} has no input schema; it is taken to have no arguments")
            tool["inputSchema"] = {"type": "object"}
        elif schema.get("type") != "object":
            tool["inputSchema"] = {**schema, "type": "object"}
        if not encodable(tool["inputSchema"]):
            self.log(f"the tool {name!r} is left out: its input schema cannot be sent")
            return None
        declared = tool.pop("outputSchema", None)
        self.output_schemas[name] = declared if encodable(declared) else None
        for key in ("description", "title"):
            if key in tool and not isinstance(tool[key], str):
                del tool[key]
            elif key in tool:
                tool[key] = clean_text(tool[key])
        for key in ("annotations", "_meta", "execution"):
            if key in tool and not isinstance(tool[key], dict):
                del tool[key]
        hints = tool.get("annotations")
        if hints:
            tool["annotations"] = {k: v for k, v in hints.items() if isinstance(v, str if k == "title" else bool)}
        tool.pop("icons", None)
        return tool

    def log(self, text: str) -> None:
        """A line for the log, as long as the server has not used up its share."""
        self._said += 1
        if self._said <= _MOST_SAID:
            self._log(text)
        elif self._said == _MOST_SAID + 1:
            self._log("more of that kind is not logged")


def _content(block: Any) -> Any:
    if isinstance(block, dict) and block.get("type") in _CONTENT:
        return block
    return {"type": "text", "text": json.dumps(block, ensure_ascii=True, default=str)}


class _Read:
    def __init__(self, inner: Any, watched: Watched) -> None:
        self._inner = inner
        self._watched = watched
        self._ready: deque[Any] = deque()

    @property
    def last_context(self) -> Any:
        return getattr(self._inner, "last_context", None)

    async def receive(self) -> Any:
        while not self._ready:
            self._ready += self._watched.received(await self._inner.receive())
        return self._ready.popleft()

    def __aiter__(self) -> _Read:
        return self

    async def __anext__(self) -> Any:
        try:
            while not self._ready:
                self._ready += self._watched.received(await self._inner.__anext__())
        except StopAsyncIteration:
            self._watched.ended()
            raise
        return self._ready.popleft()

    async def aclose(self) -> None:
        await self._inner.aclose()

    async def __aenter__(self) -> _Read:
        return self

    async def __aexit__(self, *error: Any) -> None:
        await self.aclose()


class _Write:
    def __init__(self, inner: Any, watched: Watched) -> None:
        self._inner = inner
        self._watched = watched

    async def send(self, item: Any, /) -> None:
        self._watched.sent(item)
        await self._inner.send(item)

    async def aclose(self) -> None:
        await self._inner.aclose()

    async def __aenter__(self) -> _Write:
        return self

    async def __aexit__(self, *error: Any) -> None:
        await self.aclose()
