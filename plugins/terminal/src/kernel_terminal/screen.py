"""What a conversation needs of a terminal, whichever it is."""

from __future__ import annotations

from collections.abc import Callable
from typing import Protocol

from msgspec import Struct

from kernel_terminal.completion import Found
from kernel_terminal.lines import Line
from kernel_terminal.questions import Given, Question


class Handlers(Struct):
    """What a screen calls when a person does something, and what it shows. All from the event loop's thread."""

    line: Callable[[str], None] = lambda text: None
    interrupt: Callable[[], bool] = lambda: False
    """Escape or ctrl-c: false where there was nothing to interrupt."""
    leave: Callable[[], None] = lambda: None
    mode: Callable[[], None] = lambda: None
    whole: Callable[[], None] = lambda: None
    take_back: Callable[[], str] = lambda: ""
    """The last message that still waits, which does not wait any more."""
    live: Callable[[int], list[Line]] = lambda height: []
    status: Callable[[], Line] = list
    waiting: Callable[[], list[str]] = list
    complete: Callable[[str], list[Found]] = lambda before: []
    """May block; called in a thread."""


class Screen(Protocol):
    handlers: Handlers
    plain: bool

    @property
    def columns(self) -> int: ...

    def show(self, lines: list[Line]) -> None:
        """Print what is over, in order. Nothing happens where the terminal is gone."""

    def changed(self) -> None:
        """What is live or in the status bar may look different."""

    async def ask(self, question: Question) -> Given:
        """Ask; questions wait for each other. Cancelled, it is taken off the screen."""

    def write(self, sequence: str) -> None:
        """A sequence for the terminal that was checked (a title, a bell)."""

    def ready(self) -> None:
        """Nothing runs: a prompt may be typed."""

    async def started(self) -> None:
        """Until keys are listened to."""

    async def run(self) -> None:
        """Read until ``stop``, or until the terminal is gone, which is ``handlers.leave``."""

    def stop(self) -> None:
        """Take off what is live. What is shown from now on is printed at once."""
