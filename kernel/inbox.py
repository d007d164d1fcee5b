"""What happened beside the conversation and the model must know: a background agent or command ended, a hook wants attention.

Nobody typed it, and the text says so. A letter goes behind the results of the batch that runs, or with the next request. Where
no run is on, the front end starts one: ``await session.submit(None, origin=session.inbox.origin)``.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from msgspec import Struct

from kernel.messages import Block, reminder
from kernel.output import UserMessage

if TYPE_CHECKING:
    from kernel.session import Session


class Letter(Struct, frozen=True):
    """``origin`` is an object of the headless contract, 5.12."""

    text: str
    origin: dict[str, Any]


class Inbox:
    """Of one context: the main conversation and each subagent have their own.

    ``awaited``: ids of what will post here and is worth waiting for before a program ends. Whoever puts one in takes it out.
    """

    def __init__(self, session: Session) -> None:
        self._session = session
        self._letters: list[Letter] = []
        self._listeners: list[Callable[[], None]] = []
        self.awaited: set[str] = set()

    def post(self, text: str, origin: dict[str, Any] | None = None) -> None:
        """Tell the model, as soon as it can be told. From the session's own thread."""
        self._letters.append(Letter(text, origin or {"kind": "task-notification"}))
        self._changed()

    def settle(self, id: str) -> None:
        """Nothing is awaited from that side any more."""
        self.awaited.discard(id)
        self._changed()

    def clear(self) -> None:
        """Nobody reads what lies here: the conversation that it was for is over."""
        self._letters = []

    def _changed(self) -> None:
        for listener in [*self._listeners]:
            listener()

    def listen(self, listener: Callable[[], None]) -> Callable[[], None]:
        """Be called when a letter came or something is awaited no more. What comes back ends it; call that once."""
        self._listeners.append(listener)
        return lambda: self._listeners.remove(listener)

    def __len__(self) -> int:
        """Letters that the model has not been told of."""
        return len(self._letters)

    @property
    def origin(self) -> dict[str, Any] | None:
        """Of the first letter that waits: the origin of the run that it starts."""
        return self._letters[0].origin if self._letters else None

    def take(self) -> list[Block]:
        """The letters as blocks of a user message; clients see them as synthetic messages."""
        letters, self._letters = self._letters, []
        session = self._session
        for letter in letters:
            session.emit(UserMessage(uuid=session.clock.new_id(), session_id=session.id, is_synthetic=True, origin=letter.origin,
                                     message={"role": "user", "content": letter.text}, parent_tool_use_id=None,
                                     timestamp=session.clock.timestamp()))
        return [reminder(letter.text) for letter in letters]

    async def arrival(self) -> None:
        """Until there is a letter."""
        import anyio

        came = anyio.Event()
        stop = self.listen(lambda: came.set() if self._letters else None)
        try:
            if not self._letters:
                await came.wait()
        finally:
            stop()

    async def wait(self, seconds: float | None) -> bool:
        """Until there is a letter or nothing is awaited; false where it took longer than so many seconds."""
        import anyio

        if self._letters or not self.awaited:
            return True
        came = anyio.Event()
        stop = self.listen(lambda: came.set() if self._letters or not self.awaited else None)
        try:
            with anyio.move_on_after(seconds):
                await came.wait()
        finally:
            stop()
        return came.is_set()
