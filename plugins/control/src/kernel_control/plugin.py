"""Hook implementations."""

from __future__ import annotations

from kernel import Control, Extension, Registry, hookimpl


@hookimpl
def register_controls(register: Registry[Control]) -> None:
    from kernel_control.talk import Stdio

    register(Stdio())


@hookimpl
def register_extensions(register: Registry[Extension]) -> None:
    if register.options is None or register.options.input_format == "stream-json":
        from kernel_control.extension import ControlExtension

        register(ControlExtension())
