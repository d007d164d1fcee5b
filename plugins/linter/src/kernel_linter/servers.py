"""MCP servers, language servers, monitors: one object each, wherever it is written."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

from kernel_linter.rule import Diagnostic
from kernel_linter.source import JsonFile, Pointer

if TYPE_CHECKING:
    from kernel_linter.bundle import Plugin


class Configured:
    """A named configuration object at a place of a JSON file."""

    def __init__(self, name: str, data: Any, file: JsonFile, path: tuple[Pointer, ...], plugin: Plugin | None) -> None:
        self.name, self.raw, self.file, self.path, self.plugin = name, data, file, path, plugin
        self.data: dict[str, Any] = data if isinstance(data, dict) else {}

    def at(self, message: str, *pointer: Pointer, **more: Any) -> Diagnostic:
        return self.file.at(message, *self.path, *pointer, **more)

    def text(self, key: str) -> str:
        value = self.data.get(key)
        return value if isinstance(value, str) else ""

    def texts(self) -> Iterator[tuple[tuple[Pointer, ...], str]]:
        """Every text of the configuration with its path."""
        pending: list[tuple[tuple[Pointer, ...], Any]] = [((), self.data)]
        while pending:
            path, value = pending.pop()
            if isinstance(value, str):
                yield path, value
            elif isinstance(value, dict):
                pending += [((*path, k), v) for k, v in value.items()]
            elif isinstance(value, list):
                pending += [((*path, i), v) for i, v in enumerate(value)]


class McpServer(Configured):
    @property
    def command(self) -> str:
        return self.text("command")

    @property
    def args(self) -> list[str]:
        args = self.data.get("args")
        return [a for a in args if isinstance(a, str)] if isinstance(args, list) else []

    @property
    def remote(self) -> bool:
        return bool(self.data.get("url") is not None and not self.command)


class LspServer(Configured):
    pass


class Monitor(Configured):
    @property
    def command(self) -> str:
        return self.text("command")


def mcp_map(file: JsonFile) -> tuple[dict[str, Any], tuple[Pointer, ...]]:
    """The servers of an MCP file, in either form, and where they stand."""
    data = file.object
    if isinstance(data.get("mcpServers"), dict):
        return data["mcpServers"], ("mcpServers",)
    if "mcpServers" in data:
        return {}, ()
    return {k: v for k, v in data.items() if isinstance(v, dict) and not k.startswith("$")}, ()
