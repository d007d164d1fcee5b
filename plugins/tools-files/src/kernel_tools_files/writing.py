"""Replace a file whole or not at all (tools contract, sections 3.2 and 5; decision D9)."""

from __future__ import annotations

import errno
import os
import stat
from contextlib import suppress

from kernel import ToolError
from kernel_tools_files.paths import Target, check_regular, io_error, path_changed

_AT = os.open in os.supports_dir_fd  # False on Windows: then full paths are used, and a swapped folder is not noticed
_FOLDER = os.O_RDONLY | getattr(os, "O_DIRECTORY", 0) | getattr(os, "O_NOFOLLOW", 0)


def replace_file(target: Target, data: bytes, old: os.stat_result | None) -> os.stat_result:
    """Write ``data`` to a temporary file beside the target and rename it onto it.

    The target is ``target.real``: a link that leads to it stays a link. Mode and owner of an existing file are kept; a
    new file and missing folders follow the umask.

    :param old: the file as it was when its content was read; ``None`` where there was none.
    :raises ToolError: ``stale_file``: it is another file now; ``path_changed``; ``not_a_directory``; ``io_error``. The old
        content is whole in each case.
    """
    folder, name = os.path.split(target.real)
    try:
        fd = _open_folder(folder, target)
        try:
            return _replace(fd, folder, name, target, data, old)
        finally:
            if fd is not None:
                os.close(fd)
    except NotADirectoryError:
        raise ToolError("not_a_directory", f"{target.shown} cannot be written: a part of the path is no folder.") from None
    except OSError as error:
        if error.errno == errno.ELOOP:
            raise path_changed(target.shown) from None
        raise io_error(f"{target.shown} could not be written, its old content is unchanged", error) from None


def _replace(fd: int | None, folder: str, name: str, target: Target, data: bytes, old: os.stat_result | None) -> os.stat_result:
    def at(entry: str) -> str:
        return entry if fd is not None else os.path.join(folder, entry)

    temporary = at(f".kernel-{os.urandom(8).hex()}.tmp")
    out = os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_EXCL | getattr(os, "O_BINARY", 0), 0o666, dir_fd=fd)
    try:
        with os.fdopen(out, "wb") as file:
            file.write(data)
            file.flush()
            if old is not None:
                _keep_mode(file.fileno(), old)
            found = os.fstat(file.fileno())
        _check_unchanged(at(name), fd, target, old)
        os.replace(temporary, at(name), src_dir_fd=fd, dst_dir_fd=fd)
    except BaseException:
        with suppress(OSError):
            os.unlink(temporary, dir_fd=fd)
        raise
    return found


def _keep_mode(fd: int, old: os.stat_result) -> None:
    if hasattr(os, "fchown"):
        made = os.fstat(fd)
        if (made.st_uid, made.st_gid) != (old.st_uid, old.st_gid):
            with suppress(OSError):  # only root may give a file away; the mode is kept all the same
                os.fchown(fd, old.st_uid, old.st_gid)
        os.fchmod(fd, stat.S_IMODE(old.st_mode))  # behind fchown, which clears the set-id bits


def _check_unchanged(name: str, fd: int | None, target: Target, old: os.stat_result | None) -> None:
    """The last look before the rename: what would be lost must be what was read."""
    try:
        now = os.stat(name, dir_fd=fd, follow_symlinks=False)
    except FileNotFoundError:
        return  # removed in the meantime: nothing is lost
    if stat.S_ISLNK(now.st_mode):
        raise path_changed(target.shown)
    check_regular(target.shown, now)
    if old is None or (now.st_ino, now.st_size, now.st_mtime_ns) != (old.st_ino, old.st_size, old.st_mtime_ns):
        raise ToolError("stale_file", f"{target.shown} was changed by somebody else at this moment. Read it again.")


def _open_folder(folder: str, target: Target) -> int | None:
    """The folder of the target, opened so that no swapped link leads elsewhere; missing folders are made."""
    if not _AT:
        os.makedirs(folder, exist_ok=True)
        return None
    missing: list[str] = []
    while True:
        try:
            fd = os.open(folder, _FOLDER)
            break
        except FileNotFoundError:
            folder, name = os.path.split(folder)
            missing.append(name)
    try:
        if os.path.realpath(folder) != folder or not os.path.samestat(os.fstat(fd), os.stat(folder)):
            raise path_changed(target.shown)
        for name in reversed(missing):
            with suppress(FileExistsError):
                os.mkdir(name, dir_fd=fd)
            inner = os.open(name, _FOLDER, dir_fd=fd)
            os.close(fd)
            fd = inner
    except BaseException:
        os.close(fd)
        raise
    return fd
