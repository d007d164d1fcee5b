"""Hook implementations."""

from __future__ import annotations

from kernel import Command, Registry, TyperCommand, hookimpl

WORDS = {
    "serve": "keep sessions in one process, for kernel -p --attach and for programs over HTTP",
    "serve sessions": "the sessions of the server",
    "serve status": "whether a server runs, where, and how full it is",
    "serve stop": "close all sessions and end the server",
}


@hookimpl
def register_commands(register: Registry[Command]) -> None:
    for name, summary in WORDS.items():
        register(TyperCommand(name, summary, f"kernel_serve.command:{name.split()[-1]}_"))
