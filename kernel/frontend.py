"""The protocols of what stands around the loop: front ends, controls and commands."""

from __future__ import annotations

from collections.abc import Callable, Coroutine
from typing import TYPE_CHECKING, Any, Protocol

if TYPE_CHECKING:
    from kernel.harness import Harness
    from kernel.session import Session


class FrontEnd(Protocol):
    """Reads prompts, opens sessions, shows their output. Registered by ``register_front_ends`` under ``name``."""

    name: str

    async def run(self, harness: Harness) -> int:
        """Run to the end and return the exit code. ``harness.options`` holds what the command line said."""


class Wire(Protocol):
    """What a front end whose prompts come from a program lends to a ``Dialogue``. All from the session's own thread."""

    def write(self, line: bytes) -> None:
        """One line of JSON for the program, without the line end; in order with the session's messages."""

    def spawn(self, work: Callable[..., Coroutine[Any, Any, None]], *args: Any) -> None:
        """Run something beside the turns, until the conversation is over. It must not raise."""

    async def started(self) -> None:
        """Until ``session.start()`` is done: commands, tools and servers are known."""

    @property
    def busy(self) -> bool:
        """Whether a turn runs or is about to begin."""

    def interrupt(self) -> bool:
        """End the turn that runs or is about to begin; false where there is none."""

    def queued(self, *, drop: bool = False) -> list[str]:
        """The uuids of prompts that wait behind the running turn, as far as they have one; dropped ones never run."""


class Dialogue(Protocol):
    """One conversation's side of a control. Opened before the session starts."""

    def take(self, frame: dict[str, Any]) -> bool:
        """An object that came and is no prompt; false where it is none of the control's. Does not block.

        The session starts behind the first object that comes, so what has to be known by then is set before this returns.
        """

    def ended(self) -> None:
        """Nothing comes any more: whoever waits for an answer of the program gets an error."""

    async def close(self) -> None:
        """The last turn is over; answer what is still open. Bounded in time."""


class Control(Protocol):
    """How a program drives a session beside its prompts. Registered by ``register_controls`` under ``name``."""

    name: str

    def open(self, session: Session, wire: Wire) -> Dialogue:
        """For one conversation, before it starts."""


class Command(Protocol):
    """A subcommand of ``kernel``. Registered by ``register_commands`` under ``name``."""

    name: str
    summary: str

    def run(self, args: list[str]) -> int:
        """Run with the arguments behind the command's name and return the exit code. ``TyperCommand`` is one for a function."""


class TyperCommand:
    """A command that is one function: typer reads the arguments for its parameters. Imported when the command is run.

    :param action: ``package.module:function``. The command's help is the function's docstring, or else the summary.
    """

    def __init__(self, name: str, summary: str, action: str) -> None:
        self.name, self.summary, self._action = name, summary, action

    def run(self, args: list[str]) -> int:
        from pkgutil import resolve_name

        import typer

        action = resolve_name(self._action)
        app = typer.Typer(add_completion=False)
        app.command(help=action.__doc__ or f"{self.summary[0].upper()}{self.summary[1:]}.")(action)
        return run_app(app, args, f"kernel {self.name}")


def run_app(app: Callable[..., Any], args: list[str], name: str) -> int:
    """Run a typer application and return its exit code. A mistake in the arguments is said as typer says it.

    :param name: how it was called, for its help: ``kernel things``.
    """
    try:
        return int(app(args, prog_name=name, standalone_mode=False) or 0)
    except Exception as error:
        show = getattr(error, "show", None)
        if show is None:
            raise
        show()
        return int(getattr(error, "exit_code", 2))
