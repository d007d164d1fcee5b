"""Hook implementations."""

from __future__ import annotations

from typing import TYPE_CHECKING

from kernel import hookimpl

if TYPE_CHECKING:
    from kernel import Extension, Middleware, Registry


@hookimpl
def register_extensions(register: Registry[Extension]) -> None:
    from kernel_guards.limits import Limits
    from kernel_guards.repeats import FinalAnswer

    register(Limits())
    register(FinalAnswer())


@hookimpl
def register_middleware(register: Registry[Middleware]) -> None:
    from kernel_guards.limits import CallLimit
    from kernel_guards.repeats import Repeats

    register(Repeats())
    register(CallLimit())
