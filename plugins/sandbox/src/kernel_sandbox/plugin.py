"""Hook implementations."""

from __future__ import annotations

from typing import Any

from kernel import DirectoryAdded, Middleware, PromptPart, Registry, SandboxFactory, Session, hookimpl


@hookimpl
def register_sandboxes(register: Registry[SandboxFactory]) -> None:
    from kernel_sandbox.factory import Bubblewrap

    register(Bubblewrap())


@hookimpl
def register_middleware(register: Registry[Middleware]) -> None:
    if _asked_for(register):
        from kernel_sandbox.notes import Notes

        register(Notes())


@hookimpl
def register_prompt_parts(register: Registry[PromptPart]) -> None:
    if _asked_for(register):
        from kernel_sandbox.prompt import SandboxPart

        register(SandboxPart())


@hookimpl
def directory_added(event: DirectoryAdded, session: Session) -> None:
    add = getattr(session.sandbox, "add_directory", None)
    if add is not None:
        add(event.directory)


def _asked_for(register: Registry[Any]) -> bool:
    """Whether any scope asks for a sandbox; a run without one does not pay for this plugin."""
    return register.settings is None or any(value is True for _, value in register.settings.by_layer("sandbox.enabled"))
