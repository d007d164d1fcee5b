"""Hook implementations."""

from __future__ import annotations

from typing import TYPE_CHECKING

from kernel import hookimpl

if TYPE_CHECKING:
    from kernel import Extension, Middleware, OutputValidator, Registry


@hookimpl
def register_extensions(register: Registry[Extension]) -> None:
    from kernel_structured_output.extension import StructuredOutputs

    register(StructuredOutputs())


@hookimpl
def register_middleware(register: Registry[Middleware]) -> None:
    from kernel_structured_output.extension import Done

    register(Done())


@hookimpl
def register_validators(register: Registry[OutputValidator]) -> None:
    from kernel_structured_output.validators import Completion, Exact, Format, SideEffect

    for validator in (Completion(), Exact(), Format(), SideEffect()):
        register(validator)
