"""One environment per session in one process (decision 35).

A program for one session has its variables in ``os.environ``: settings add theirs to it, plugins and libraries look there, and
children inherit it. In a server, ``os.environ`` is a window: within a session it shows, and changes, that session's own
variables; elsewhere the process's. The session is known by a context variable, which tasks and threads inherit.
"""

from __future__ import annotations

import os
import subprocess
import threading
from collections.abc import Iterator
from contextvars import ContextVar, copy_context
from typing import Any, NamedTuple


class Surroundings(NamedTuple):
    """Of one session. ``cwd``: where a child begins that is not told where."""

    variables: dict[str, str]
    cwd: str


_current: ContextVar[Surroundings | None] = ContextVar("kernel_serve.surroundings", default=None)


def enter(variables: dict[str, str], cwd: str) -> None:
    """From now on, the running thread and what it begins belong to a session with these variables."""
    _current.set(Surroundings({name: text for name, text in variables.items() if _fits(name, text)}, cwd))


def _fits(name: str, text: str) -> bool:
    return bool(name) and "=" not in name and "\0" not in name and "\0" not in text


class Window(os._Environ[str]):
    """The class that ``os.environ`` gets. The object stays the same one: others hold on to it."""

    def __getitem__(self, name: str) -> str:
        now = _current.get()
        return super().__getitem__(name) if now is None else now.variables[_name(name)]

    def __setitem__(self, name: str, text: str) -> None:
        now = _current.get()
        if now is None:
            super().__setitem__(name, text)
        elif not isinstance(text, str):
            raise TypeError(f"str expected, not {type(text).__name__}")
        elif not _fits(_name(name), text):
            raise ValueError("illegal environment variable name or a null byte in it")
        else:
            now.variables[name] = text

    def __delitem__(self, name: str) -> None:
        now = _current.get()
        if now is None:
            super().__delitem__(name)
        else:
            del now.variables[_name(name)]

    def __iter__(self) -> Iterator[str]:
        now = _current.get()
        return super().__iter__() if now is None else iter([*now.variables])

    def __len__(self) -> int:
        now = _current.get()
        return super().__len__() if now is None else len(now.variables)

    def __repr__(self) -> str:
        return f"environ({dict(self)!r})"


class BytesWindow(os._Environ[bytes]):
    """The same for ``os.environb``."""

    def __getitem__(self, name: bytes) -> bytes:
        return super().__getitem__(name) if _current.get() is None else os.fsencode(os.environ[os.fsdecode(name)])

    def __setitem__(self, name: bytes, text: bytes) -> None:
        if _current.get() is None:
            super().__setitem__(name, text)
        else:
            os.environ[os.fsdecode(name)] = os.fsdecode(text)

    def __delitem__(self, name: bytes) -> None:
        if _current.get() is None:
            super().__delitem__(name)
        else:
            del os.environ[os.fsdecode(name)]

    def __iter__(self) -> Iterator[bytes]:
        return super().__iter__() if _current.get() is None else iter([os.fsencode(name) for name in os.environ])

    def __len__(self) -> int:
        return super().__len__() if _current.get() is None else len(os.environ)


def _name(name: Any) -> str:
    if not isinstance(name, str):
        raise TypeError(f"str expected, not {type(name).__name__}")
    return name


def install() -> None:
    """Open the window in this process. Nothing changes outside of sessions."""
    import tempfile

    tempfile.gettempdir()  # is found once for the process: not by the first session's variables
    os.environ.__class__ = Window
    os.environb.__class__ = BytesWindow
    _children_of_a_session()
    _threads_of_a_session()


def _children_of_a_session() -> None:
    """A child that is given no environment would get the process's, not what ``os.environ`` shows; so with the directory."""
    begin = subprocess.Popen.__init__

    def init(self: Any, *args: Any, **named: Any) -> None:
        now = _current.get()
        if now is not None:
            if named.get("env") is None:
                named["env"] = dict(now.variables)
            if named.get("cwd") is None:
                named["cwd"] = now.cwd
        begin(self, *args, **named)

    subprocess.Popen.__init__ = init  # type: ignore[method-assign]


def _threads_of_a_session() -> None:
    """Threads inherit the context of who starts them, as Python 3.14 can do by itself."""
    begin = threading.Thread.start

    def start(self: threading.Thread) -> None:
        context, run = copy_context(), self.run
        self.run = lambda: context.run(run)  # type: ignore[method-assign]
        begin(self)

    threading.Thread.start = start  # type: ignore[method-assign]
