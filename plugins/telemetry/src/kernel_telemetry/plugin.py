"""Hook implementations. Where the switch is off nothing else of this package is imported, and nothing is registered."""

from __future__ import annotations

from typing import TYPE_CHECKING

from kernel import env_switch, hookimpl

if TYPE_CHECKING:
    from kernel import Extension, Middleware, Registry

SWITCH = "CLAUDE_CODE_ENABLE_TELEMETRY"


@hookimpl
def register_middleware(register: Registry[Middleware]) -> None:
    if env_switch(SWITCH) and register.settings is not None:
        from kernel_telemetry.watch import telemetry

        if found := telemetry(register.settings, register.options):
            register(found)


@hookimpl
def register_extensions(register: Registry[Extension]) -> None:
    if env_switch(SWITCH) and register.settings is not None:
        from kernel_telemetry.life import Life

        register(Life())
