"""Hook implementations: one function per lifecycle event, all of them the same, and the command."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import TYPE_CHECKING, Any

from kernel import EVENTS, hookimpl
from kernel_command_hooks.hooks import answer, snake

if TYPE_CHECKING:
    from kernel import Answer, Command, Event, Registry, Session


@hookimpl
def register_commands(register: Registry[Command]) -> None:
    from kernel_command_hooks.command import HooksCommand

    register(HooksCommand())


def _implementation(name: str) -> Callable[[Event, Session], Awaitable[list[Answer] | None] | list[Answer] | None]:
    def run_handlers(event: Event, session: Session) -> Awaitable[list[Answer] | None] | list[Answer] | None:
        return answer(event, session)

    run_handlers.__name__ = run_handlers.__qualname__ = name
    return run_handlers


def _hooks() -> dict[str, Any]:
    return {name: hookimpl(_implementation(name)) for name in map(snake, EVENTS)}


globals().update(_hooks())
