"""One prompt on its way to the answer."""

from __future__ import annotations

from collections import deque
from collections.abc import AsyncIterator
from types import TracebackType
from typing import TYPE_CHECKING, Any, Generic, TypeVar

import anyio
from msgspec import UNSET, Struct

from kernel import (
    AssistantMessage,
    Block,
    ConversationReset,
    ResultMessage,
    StreamMessage,
    SystemMessage,
    ToolProgress,
    Usage,
    UserMessage,
)
from kernel_embed.errors import Interrupted, TurnFailed
from kernel_embed.signatures import convert

if TYPE_CHECKING:
    from kernel_embed.agent import Agent

T = TypeVar("T")
T_co = TypeVar("T_co", covariant=True)

Message = AssistantMessage | UserMessage | SystemMessage | ResultMessage | StreamMessage | ToolProgress | ConversationReset
"""What a turn streams, in order; the last one is a ``ResultMessage``."""

INTERRUPTED = ("aborted_streaming", "aborted_tools")


class Reply(Struct, Generic[T], frozen=True):
    """What a turn came to.

    ``text``: the final answer. ``structured``: the value that ``output=`` asked for, ``None`` without. ``cost_usd``: of this
    turn; ``total_cost_usd``: of the conversation so far. ``messages``: all that was streamed, without parts of messages.
    """

    text: str
    structured: T
    cost_usd: float
    total_cost_usd: float
    usage: Usage
    session_id: str
    result: ResultMessage
    messages: list[Message]

    @property
    def reason(self) -> str:
        """Why it ended: ``completed``, ``hook_stopped``, ``tool_deferred`` ..."""
        return self.result.terminal_reason


class Turn(Generic[T]):
    """Made by ``agent.stream()``. Iterate it for its messages, or wait for ``reply()``.

    A turn that fails raises ``TurnFailed`` behind its last message. The cancellation of who waits for it ends it, and so does
    leaving an ``async with`` around it; leaving a loop early does not. The conversation can go on.
    """

    def __init__(self, agent: Agent, prompt: str | list[Block] | None, *, output: Any, schema: dict[str, Any] | None,
                 partial: bool = False, streams: bool = True) -> None:
        self.messages: list[Message] = []
        self._agent = agent
        self._prompt = prompt
        self._output = output
        self._schema = schema
        self._partial = partial
        self._streams = streams
        self._waiting: deque[Message] = deque()
        self._wake = anyio.Event()
        self._ended = False
        self._told = False
        self._reply: Reply[T] | None = None
        self._failure: Exception | None = None
        self._scope = anyio.CancelScope()

    # -- for the program -----------------------------------------------------------------------------------------------------
    def __aiter__(self) -> AsyncIterator[Message]:
        return self

    async def __anext__(self) -> Message:
        while (message := await self._next()) is not None:
            if self._partial or not isinstance(message, StreamMessage):
                return message
        raise StopAsyncIteration

    async def _next(self) -> Message | None:
        """The next message, parts of messages included; ``None`` behind the last. A failure is raised there, once."""
        while not self._waiting:
            if self._ended:
                if self._failure is not None and not self._told:
                    self._told = True
                    raise self._failure
                return None
            await self._news()
        return self._waiting.popleft()

    async def reply(self) -> Reply[T]:
        """Wait for the end.

        :raises TurnFailed: there is no answer.
        """
        while not self._ended:
            await self._news()
        if self._failure is not None:
            raise self._failure
        assert self._reply is not None
        return self._reply

    @property
    def text_stream(self) -> AsyncIterator[str]:
        """The text as the model writes it, piece by piece, with a blank line between two blocks. Takes the place of iterating."""
        return self._texts()

    async def _texts(self) -> AsyncIterator[str]:
        said = False
        while (message := await self._next()) is not None:
            if not isinstance(message, StreamMessage) or message.parent_tool_use_id is not None:
                continue
            event = message.event
            if event.get("type") == "content_block_start" and event.get("content_block", {}).get("type") == "text" and said:
                yield "\n\n"
            elif event.get("type") == "content_block_delta" and (text := event.get("delta", {}).get("text")):
                said = True
                yield text

    def interrupt(self) -> None:
        """End it, or drop it where it has not begun. It raises ``Interrupted``."""
        self._agent._interrupt(self)

    async def __aenter__(self) -> Turn[T]:
        return self

    async def __aexit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        if not self._ended:
            await self._abort()

    async def _news(self) -> None:
        wake = self._wake
        try:
            await wake.wait()
        except anyio.get_cancelled_exc_class():
            await self._abort()
            raise

    async def _abort(self) -> None:
        """Interrupt it and wait until the conversation can go on."""
        with anyio.CancelScope(shield=True):
            self.interrupt()
            await self._agent._over(self)

    # -- for the agent -------------------------------------------------------------------------------------------------------
    def _take(self, message: Message) -> None:
        if not isinstance(message, StreamMessage):
            self.messages.append(message)
        if self._streams:
            self._waiting.append(message)
            self._ring()

    def _end(self, result: ResultMessage | None, cost: float, failure: Exception | None = None) -> None:
        """The turn is over.

        :param cost: what it cost, in dollars.
        :param failure: it broke off without a result.
        """
        if self._ended:
            return
        self._failure = failure or (self._judged(result, cost) if result is not None else
                                    Interrupted("the turn was dropped before it began", reason="dropped"))
        self._ended = True
        self._ring()

    def _judged(self, result: ResultMessage, cost: float) -> TurnFailed | None:
        value: Any = None
        missing = ""
        if self._schema is not None and not result.is_error:
            value, missing = self._value(result)
        text = result.result if isinstance(result.result, str) else ""
        self._reply = Reply(text=text, structured=value, cost_usd=cost, total_cost_usd=result.total_cost_usd, usage=result.usage,
                            session_id=result.session_id, result=result, messages=self.messages)
        if missing:
            return TurnFailed(missing, reason="structured_output", reply=self._reply)
        if not result.is_error:
            return None
        said = "; ".join(result.errors) if isinstance(result.errors, list) else text
        kind = Interrupted if result.terminal_reason in INTERRUPTED else TurnFailed
        return kind(said or result.subtype, reason=result.terminal_reason, reply=self._reply)

    def _value(self, result: ResultMessage) -> tuple[Any, str]:
        """The value that was asked for, or why it cannot be had."""
        if result.structured_output is UNSET:
            return None, f"the turn ended ({result.terminal_reason}) without the value that was asked for"
        if isinstance(self._output, dict):
            return result.structured_output, ""
        try:
            return convert(result.structured_output, self._output), ""
        except ValueError as error:
            return None, f"the value fits the schema, and not the type: {error}"

    def _ring(self) -> None:
        self._wake.set()
        self._wake = anyio.Event()
