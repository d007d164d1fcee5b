"""Hook implementations: the three front ends of print mode."""

from __future__ import annotations

from kernel import FrontEnd, Registry, hookimpl


@hookimpl
def register_front_ends(register: Registry[FrontEnd]) -> None:
    from kernel_headless.front_end import Headless
    from kernel_headless.writers import JsonWriter, StreamWriter, TextWriter

    for writer in (TextWriter, JsonWriter, StreamWriter):
        register(Headless(writer))
