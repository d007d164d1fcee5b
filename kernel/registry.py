"""Named tables that plugins fill. A duplicate name is an error that names both plugins."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Generic, TypeVar

from kernel.errors import DuplicateError

if TYPE_CHECKING:
    from kernel.options import Options
    from kernel.settings import Settings

T = TypeVar("T")


class Registry(Generic[T]):
    """Objects of one kind by name, with the plugin that registered each.

    Called like a function by a registration hook: ``register(thing)`` uses ``thing.name``.

    ``register.settings`` and ``register.options`` are those of the run, for a plugin that brings other things, or none, for
    other settings. They are ``None`` where no harness asks: subcommands of ``kernel``, lint rules. What is needed only later is
    read later, from the session: settings may change while it runs.
    """

    def __init__(self, kind: str, settings: Settings | None = None, options: Options | None = None) -> None:
        self.kind = kind
        self.settings = settings
        self.options = options
        self._items: dict[str, tuple[T, str]] = {}
        self.plugin = "kernel"  # who is registering now; set by the loader around each hook

    def __call__(self, item: T, name: str | None = None) -> None:
        name = name or getattr(item, "name", None)
        if not isinstance(name, str) or not name:
            raise DuplicateError(self.plugin, f"registers a {self.kind} without a name",
                                 hint="give the object a 'name' attribute")
        if name in self._items:
            raise DuplicateError(self.plugin, f"registers the {self.kind} {name!r}, which the plugin "
                                 f"{self._items[name][1]!r} already has", hint="block one of the two with --block NAME")
        self._items[name] = (item, self.plugin)

    def get(self, name: str) -> T | None:
        return self._items.get(name, (None, None))[0]

    def owner(self, name: str) -> str | None:
        """The plugin that registered the name."""
        return self._items.get(name, (None, None))[1]

    def __iter__(self) -> Iterator[T]:
        return (item for item, _ in self._items.values())

    def __len__(self) -> int:
        return len(self._items)

    def names(self) -> list[str]:
        return list(self._items)
