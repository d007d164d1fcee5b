"""Hook implementations: the recorder, where a run is to be recorded, and ``kernel replay``."""

from __future__ import annotations

from typing import TYPE_CHECKING

from kernel import hookimpl

if TYPE_CHECKING:
    from kernel import Command, Extension, Registry


@hookimpl
def register_extensions(register: Registry[Extension]) -> None:
    from kernel_replay.place import wanted

    if path := wanted(register.options, register.settings):
        from kernel_replay.extension import Recording

        register(Recording(path))


@hookimpl
def register_commands(register: Registry[Command]) -> None:
    from kernel import TyperCommand

    register(TyperCommand("replay", "replay a recorded run without a model, and name the first event that differs",
                          "kernel_replay.running:replay_"))
