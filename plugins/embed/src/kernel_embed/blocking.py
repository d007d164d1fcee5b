"""The same agent for programs without an event loop."""

from __future__ import annotations

import threading
from collections.abc import Callable, Coroutine, Iterator
from concurrent.futures import Future
from types import TracebackType
from typing import TYPE_CHECKING, Any, Generic, TypeVar, overload

import anyio
from anyio.from_thread import BlockingPortal

from kernel import Block, Session, UsageError
from kernel_embed.turn import Message, Reply, Turn

if TYPE_CHECKING:
    from kernel_embed.agent import Agent, Mode

T = TypeVar("T")
R = TypeVar("R")
LOOKS_EVERY_S = 0.5


class SyncAgent:
    """Made by ``Agent(...).sync()``, opened. Close it, or use it with ``with``.

    Its event loop runs in a thread of its own, and functions of the program that it calls in others. A program that ends without
    closing it closes it.
    """

    def __init__(self, agent: Agent) -> None:
        self._agent = agent
        self._ready: Future[BlockingPortal] = Future()
        self._thread = threading.Thread(target=self._loop, name="kernel agent")
        self._thread.start()
        self._portal = self._ready.result()
        try:
            self._call(agent.open)
        except BaseException:
            self._stop()
            raise

    def __enter__(self) -> SyncAgent:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        self.close()

    def close(self) -> None:
        """As ``Agent.close``. May be called twice."""
        if self._thread.is_alive():
            try:
                self._call(self._agent.close)
            finally:
                self._stop()

    # -- turns ---------------------------------------------------------------------------------------------------------------
    @overload
    def ask(self, prompt: str | list[Block]) -> Reply[None]: ...
    @overload
    def ask(self, prompt: str | list[Block], *, output: type[T]) -> Reply[T]: ...
    @overload
    def ask(self, prompt: str | list[Block], *, output: Any) -> Reply[Any]: ...

    def ask(self, prompt: str | list[Block], *, output: Any = None) -> Reply[Any]:
        """As ``Agent.ask``. Ctrl-C interrupts the turn."""
        return self._call(lambda: self._agent.ask(prompt, output=output))

    @overload
    def stream(self, prompt: str | list[Block], *, partial: bool = False) -> SyncTurn[None]: ...
    @overload
    def stream(self, prompt: str | list[Block], *, output: type[T], partial: bool = False) -> SyncTurn[T]: ...
    @overload
    def stream(self, prompt: str | list[Block], *, output: Any, partial: bool = False) -> SyncTurn[Any]: ...

    def stream(self, prompt: str | list[Block], *, output: Any = None, partial: bool = False) -> SyncTurn[Any]:
        """As ``Agent.stream``."""
        return SyncTurn(self, lambda: self._agent.stream(prompt, output=output, partial=partial))

    def settle(self, timeout: float | None = None) -> list[Reply[None]]:
        """As ``Agent.settle``."""
        return self._call(lambda: self._agent.settle(timeout))

    def interrupt(self) -> bool:
        """As ``Agent.interrupt``, from any thread."""
        return self._run(self._agent.interrupt)

    def set_model(self, model: str) -> None:
        """As ``Agent.set_model``."""
        self._run(lambda: self._agent.set_model(model))

    def set_permission_mode(self, mode: Mode) -> None:
        """As ``Agent.set_permission_mode``."""
        self._run(lambda: self._agent.set_permission_mode(mode))

    @property
    def session(self) -> Session:
        """The kernel's session. Its methods belong to the loop's thread; what it holds can be read."""
        return self._agent.session

    @property
    def session_id(self) -> str:
        return self._agent.session_id

    # -- the loop in its thread ------------------------------------------------------------------------------------------------
    def _loop(self) -> None:
        async def main() -> None:
            async with BlockingPortal() as portal, anyio.create_task_group() as tasks:
                tasks.start_soon(self._close_behind_the_program, portal)
                self._ready.set_result(portal)
                await portal.sleep_until_stopped()
                tasks.cancel_scope.cancel()

        anyio.run(main)

    async def _close_behind_the_program(self, portal: BlockingPortal) -> None:
        """The interpreter waits for this thread when it ends, so it must not wait for the interpreter."""
        main = threading.main_thread()
        while main.is_alive():  # noqa: ASYNC110  (nothing wakes a thread when another one ends)
            await anyio.sleep(LOOKS_EVERY_S)
        await self._agent.close()
        await portal.stop()

    def _stop(self) -> None:
        self._portal.start_task_soon(self._portal.stop)
        self._thread.join()

    def _call(self, work: Callable[[], Coroutine[Any, Any, R]]) -> R:
        """Run it in the loop and wait. Whatever ends the waiting ends the work."""
        if not self._thread.is_alive():
            raise UsageError("the agent is closed", context="Agent", hint="another one with resume= goes on with it")
        future: Future[R] = self._portal.start_task_soon(work)
        try:
            return future.result()
        except BaseException:
            future.cancel()
            raise

    def _run(self, work: Callable[[], R]) -> R:
        async def run() -> R:
            return work()

        return self._call(run)


class SyncTurn(Generic[T]):
    """As ``Turn``: iterate it for its messages, or wait for ``reply()``; ``with`` ends it when it is left early."""

    def __init__(self, agent: SyncAgent, submit: Callable[[], Turn[T]]) -> None:
        self._agent = agent
        self._turn = agent._run(submit)

    def __iter__(self) -> Iterator[Message]:
        return self

    def __next__(self) -> Message:
        try:
            return self._agent._call(self._turn.__anext__)
        except StopAsyncIteration:
            raise StopIteration from None

    def reply(self) -> Reply[T]:
        """As ``Turn.reply``."""
        return self._agent._call(self._turn.reply)

    @property
    def text_stream(self) -> Iterator[str]:
        """As ``Turn.text_stream``."""
        stream = self._turn.text_stream

        async def piece() -> str | None:
            return await anext(stream, None)

        while (text := self._agent._call(piece)) is not None:
            yield text

    @property
    def messages(self) -> list[Message]:
        return self._turn.messages

    def interrupt(self) -> None:
        """As ``Turn.interrupt``, from any thread."""
        self._agent._run(self._turn.interrupt)

    def __enter__(self) -> SyncTurn[T]:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        self._agent._call(lambda: self._turn.__aexit__(kind, error, trace))
