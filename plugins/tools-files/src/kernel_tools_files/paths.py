"""Paths: what the model wrote, what rules are applied to, and what is opened (tools contract, 3.1; permissions contract, 6.2)."""

from __future__ import annotations

import errno
import os
import stat
from typing import Any, BinaryIO, ClassVar, NamedTuple

from kernel import Tool, ToolContext, ToolError

NEAR = 5
"""Names that a ``not_found`` error proposes at most."""


class Target(NamedTuple):
    """``path`` as the caller gave it (absolute), ``real`` with links resolved: the file that permission was given for."""

    path: str
    real: str

    @property
    def shown(self) -> str:
        """The given path as it is told."""
        return printable(self.path)


class PathInput(dict[str, Any]):
    """An input that remembers which file its path named when the rules were last applied to it.

    Between the decision and the opening a link may be swapped. The decision asks ``permission_paths``, which keeps the
    resolved path here; only that file is opened. Elsewhere it is an ordinary dictionary.
    """

    __slots__ = ("resolved",)
    resolved: str


class ListedPath(dict[str, Any]):
    """The input of a question about a file that a search came upon; where it leads is known from its folder."""

    __slots__ = ("resolved",)
    resolved: str


def absolute(path: str, cwd: str, field: str) -> str:
    """The path with ``~`` expanded, absolute, with ``.`` and ``..`` resolved as text, as the rules read it.

    :raises ToolError: ``invalid_arguments`` for an empty path, a NUL byte or a character that no file name can hold.
    """
    if not path.strip():
        raise ToolError("invalid_arguments", f"{field}: expected a path, received an empty text")
    if "\0" in path:
        raise ToolError("invalid_arguments", f"{field}: expected a path, received a text with a NUL byte")
    try:
        os.fsencode(path)
    except UnicodeEncodeError:
        raise ToolError("invalid_arguments", f"{field}: holds a character that no file name can hold") from None
    made = os.path.normpath(os.path.join(cwd, os.path.expanduser(path)))
    return made[1:] if made.startswith("//") else made  # POSIX keeps two leading slashes; rules know one


class FileTool(Tool):
    """Base of the tools that work on one path, the input field ``rule_field``."""

    permission = "path"
    rule_field: ClassVar[str]

    def repair_input(self, input: dict[str, Any]) -> dict[str, Any]:
        if self.rule_field not in input and "path" in input:
            return {self.rule_field if key == "path" else key: value for key, value in input.items()}
        return input

    def prepare_input(self, input: dict[str, Any], context: ToolContext) -> dict[str, Any]:
        return PathInput(input, **{self.rule_field: absolute(input[self.rule_field], context.cwd, self.rule_field)})

    def permission_paths(self, input: dict[str, Any]) -> list[str]:
        path = input.get(self.rule_field)
        if not isinstance(path, str) or not os.path.isabs(path) or "\0" in path:
            return [path] if isinstance(path, str) else []  # not prepared: a question about a call that somebody made up
        real = input.resolved if isinstance(input, ListedPath) else os.path.realpath(path)
        if isinstance(input, PathInput):
            input.resolved = real
        return [path] if real == path else [path, real]

    def target(self, input: dict[str, Any]) -> Target:
        """What to open. A policy that never asked for paths made no decision about them: then the link counts as it is."""
        path = input[self.rule_field]
        return Target(path, getattr(input, "resolved", None) or os.path.realpath(path))


# -- opening --------------------------------------------------------------------------------------------------------------
_FLAGS = os.O_RDONLY
for _name in ("O_NOFOLLOW", "O_NONBLOCK", "O_NOCTTY", "O_BINARY"):  # not every system has all of them
    _FLAGS |= getattr(os, _name, 0)


def open_file(target: Target) -> tuple[BinaryIO, os.stat_result]:
    """Open the regular file that permission was given for.

    :raises FileNotFoundError: it does not exist.
    :raises ToolError: ``is_directory``, ``not_a_file`` (device, pipe, socket), ``path_changed``, ``io_error``.
    """
    try:
        before = os.stat(target.real)
        check_regular(target.shown, before)  # before the opening: opening a device can do things
        fd = os.open(target.real, _FLAGS)
    except NotADirectoryError:
        raise FileNotFoundError(target.path) from None
    except FileNotFoundError:
        raise
    except OSError as error:
        if os.path.islink(target.real) and error.errno == errno.ELOOP and _leads_somewhere(target.real):
            raise path_changed(target.shown) from None
        raise io_error(f"{target.shown} cannot be opened", error) from None
    try:
        found = os.fstat(fd)
        check_regular(target.shown, found)
        check_same(target, found)
    except BaseException:
        os.close(fd)
        raise
    return os.fdopen(fd, "rb"), found


def _leads_somewhere(link: str) -> bool:
    """False for a link that leads in a circle."""
    try:
        os.stat(link)
    except OSError:
        return False
    return True


def check_regular(path: str, found: os.stat_result) -> None:
    """:raises ToolError: it is not a regular file."""
    if stat.S_ISDIR(found.st_mode):
        raise ToolError("is_directory", f"{path} is a directory. List it with `ls {path}` in Bash, or with Glob.")
    if not stat.S_ISREG(found.st_mode):
        raise ToolError("not_a_file", f"{path} is a device, pipe or socket, not a regular file. It is not opened.")


def check_folder(target: Target) -> None:
    """:raises ToolError: ``not_found``, ``not_a_directory``, ``path_changed``, ``io_error``."""
    try:
        found = os.stat(target.path)
    except (FileNotFoundError, NotADirectoryError):
        raise ToolError("not_found", f"{target.shown} does not exist.") from None
    except OSError as error:
        raise io_error(f"{target.shown} cannot be opened", error) from None
    if not stat.S_ISDIR(found.st_mode):
        raise ToolError("not_a_directory", f"{target.shown} is not a folder.")
    check_same(target, found)


def check_same(target: Target, opened: os.stat_result) -> None:
    """The opened object must be the file at the resolved path, with no link on the way to it.

    :raises ToolError: ``path_changed``: a file or link was swapped after permission was given.
    """
    try:
        same = os.path.realpath(target.real) == target.real and os.path.samestat(opened, os.lstat(target.real))
    except OSError:
        same = False
    if not same:
        raise path_changed(target.shown)


def path_changed(path: str) -> ToolError:
    return ToolError("path_changed", f"{path} was exchanged for another file while the call was being decided, so nothing was "
                     "done. Look at what it is now, then call again.")


def io_error(what: str, error: OSError) -> ToolError:
    return ToolError("io_error", f"{what}: {error.strerror or type(error).__name__}.")


# -- errors that help ---------------------------------------------------------------------------------------------------
def near_paths(path: str, cwd: str) -> list[str]:
    """What may have been meant by a path that does not exist: the same path below the working directory, or files of the same
    folder whose names are like it, the nearest first."""
    guess = os.path.normpath(os.path.join(cwd, path.lstrip("/")))
    if guess != path and os.path.isfile(guess):
        return [guess]
    return near_names(path)


def near_names(path: str) -> list[str]:
    """Files of the same folder whose name is like the one that is missing, the nearest first."""
    from difflib import get_close_matches

    folder, name = os.path.split(path)
    try:
        entries = sorted(os.listdir(folder))[:5000]
    except OSError:
        return []
    by_stem = [e for e in entries if os.path.splitext(e)[0].lower() == os.path.splitext(name)[0].lower()]
    near = get_close_matches(name, entries, n=NEAR, cutoff=0.6)
    return [os.path.join(folder, e) for e in dict.fromkeys([*by_stem, *near])]


def printable(path: str) -> str:
    """A path as text that any JSON reader accepts; bytes that are no UTF-8 are replaced."""
    return path if path.isascii() else os.fsencode(path).decode("utf-8", "replace")
