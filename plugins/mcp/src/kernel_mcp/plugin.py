"""Hook implementations."""

from __future__ import annotations

from typing import TYPE_CHECKING

from kernel import hookimpl

if TYPE_CHECKING:
    from kernel import Extension, Registry


@hookimpl
def register_extensions(register: Registry[Extension]) -> None:
    from kernel_mcp.extension import McpExtension

    register(McpExtension())
