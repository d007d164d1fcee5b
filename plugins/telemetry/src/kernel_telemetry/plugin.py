"""Hook implementations. Where the switch is off nothing else of this package is imported, and nothing is registered."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

from kernel import hookimpl

if TYPE_CHECKING:
    from kernel import Extension, Middleware, Registry

ON = frozenset({"1", "true", "yes", "on"})


def _is_on() -> bool:
    return os.environ.get("CLAUDE_CODE_ENABLE_TELEMETRY", "").strip().lower() in ON


@hookimpl
def register_middleware(register: Registry[Middleware]) -> None:
    if _is_on() and register.settings is not None:
        from kernel_telemetry.watch import telemetry

        if found := telemetry(register.settings, register.options):
            register(found)


@hookimpl
def register_extensions(register: Registry[Extension]) -> None:
    if _is_on() and register.settings is not None:
        from kernel_telemetry.life import Life

        register(Life())
