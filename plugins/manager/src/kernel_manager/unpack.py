"""Unpack an archive that a stranger made. Everything is checked before the first byte is written; nothing is trusted
that the archive says about itself: sizes are counted while reading."""

from __future__ import annotations

import os
import stat
from collections.abc import Iterator
from pathlib import Path
from typing import IO, Any

from msgspec import Struct

from kernel_manager.errors import ManagerError
from kernel_manager.names import check_member, fold, shown

_CHUNK = 1 << 16


class Limits(Struct, frozen=True):
    """What one archive or folder may hold. ``ratio`` counts from ``ratio_from`` bytes on: small texts compress well."""

    archive_bytes: int = 256 << 20
    total_bytes: int = 512 << 20
    files: int = 20_000
    ratio: int = 200
    ratio_from: int = 4 << 20


LIMITS = Limits()


class _Member(Struct):
    parts: tuple[str, ...]
    is_dir: bool
    executable: bool
    size: int
    packed: int
    handle: Any


def unpack(archive: Path, target: Path, limits: Limits = LIMITS) -> None:
    """Unpack a zip, wheel or tar file into a folder that does not exist yet.

    :raises ManagerError: ``unsafe-archive`` or ``bad-archive``; the folder is then not there.
    """
    import shutil

    where = f"archive {archive.name}"
    if archive.stat().st_size > limits.archive_bytes:
        raise ManagerError("unsafe-archive", f"is over {limits.archive_bytes >> 20} MiB", context=where)
    target.mkdir(parents=True)
    try:
        with open(archive, "rb") as file:
            magic = file.read(4)
        if magic[:2] == b"PK":
            _unzip(archive, target, limits, where)
        else:
            _untar(archive, target, limits, where)
    except BaseException as error:
        shutil.rmtree(target, ignore_errors=True)
        if isinstance(error, ManagerError | OSError | KeyboardInterrupt):
            raise
        raise ManagerError("bad-archive", f"cannot be read: {type(error).__name__}: {str(error)[:200]}", context=where) from None


def _unzip(archive: Path, target: Path, limits: Limits, where: str) -> None:
    import zipfile

    _check_directory(archive, limits, where)
    try:
        opened = zipfile.ZipFile(archive)
    except (zipfile.BadZipFile, OSError, ValueError, NotImplementedError, EOFError) as error:
        raise ManagerError("bad-archive", f"is no zip file that can be read: {error}", context=where) from None
    with opened as file:
        infos = file.infolist()
        if len(infos) > limits.files:
            raise ManagerError("unsafe-archive", f"holds {len(infos)} files; {limits.files} are allowed", context=where)
        _no_overlap(infos, where)
        members = [_zip_member(info, where) for info in infos]
        _write_all(members, target, limits, where, lambda m: file.open(m.handle))


def _check_directory(archive: Path, limits: Limits, where: str) -> None:
    """The size of the list of members, before it is read into memory."""
    size = archive.stat().st_size
    with open(archive, "rb") as file:
        file.seek(max(0, size - 66_000))
        tail = file.read()
    end = tail.rfind(b"PK\x05\x06")
    if end < 0 or len(tail) < end + 22:
        raise ManagerError("bad-archive", "is no zip file that can be read: its end is missing", context=where)
    listed = int.from_bytes(tail[end + 12:end + 16], "little")
    if listed > limits.files * 400:  # also what a zip64 directory says here; nothing that is allowed needs one
        raise ManagerError("unsafe-archive", f"lists too many files; {limits.files} are allowed", context=where)


def _zip_member(info: Any, where: str) -> _Member:
    mode = info.external_attr >> 16
    name = info.orig_filename if "\0" in info.orig_filename or "\\" in info.orig_filename else info.filename
    parts = check_member(name, where)
    is_dir = name.endswith("/")
    kind = stat.S_IFMT(mode)
    if kind not in (0, stat.S_IFREG, stat.S_IFDIR):
        what = "a link" if kind == stat.S_IFLNK else "a device, pipe or socket"
        raise ManagerError("unsafe-archive", f"{shown(name)} is {what}", context=where)
    if (kind == stat.S_IFDIR) != is_dir and kind:
        raise ManagerError("unsafe-archive", f"{shown(name)} is a file and a folder at once", context=where)
    _no_special_bits(mode, name, where)
    if info.flag_bits & 1:
        raise ManagerError("bad-archive", f"{shown(name)} is encrypted", context=where)
    return _Member(parts, is_dir, bool(mode & 0o111) and not is_dir, info.file_size, info.compress_size, info)


def _no_overlap(infos: list[Any], where: str) -> None:
    """A zip whose members share bytes says the same content many times over."""
    end = 0
    for info in sorted(infos, key=lambda i: i.header_offset):
        if info.header_offset < end:
            raise ManagerError("unsafe-archive", f"{shown(info.filename)} shares bytes with another member", context=where)
        end = info.header_offset + 30 + info.compress_size


def _untar(archive: Path, target: Path, limits: Limits, where: str) -> None:
    import tarfile
    import tempfile

    with tempfile.TemporaryFile(dir=target.parent) as plain:
        _decompress(archive, plain, limits, where)
        plain.seek(0)
        try:
            opened = tarfile.open(fileobj=plain, mode="r:", errorlevel=2)  # noqa: SIM115  # closed by the with below
        except (tarfile.TarError, OSError, EOFError, ValueError) as error:
            raise ManagerError("bad-archive", f"is no archive that can be read: {str(error)[:200]}", context=where) from None
        with opened as file:
            members: list[_Member] = []
            for info in file:
                if len(members) >= limits.files:
                    raise ManagerError("unsafe-archive", f"holds over {limits.files} files", context=where)
                members.append(_tar_member(info, where))
            _write_all(members, target, limits, where, lambda m: file.extractfile(m.handle))


def _decompress(archive: Path, plain: IO[bytes], limits: Limits, where: str) -> None:
    """The bare tar file, counted while it grows: a header in a compressed tar may itself be a bomb."""
    with open(archive, "rb") as file:
        magic = file.read(6)
    opener: Any = open
    if magic[:2] == b"\x1f\x8b":
        from gzip import open as opener
    elif magic[:3] == b"BZh":
        from bz2 import open as opener
    elif magic == b"\xfd7zXZ\0":
        from lzma import open as opener
    packed, total = archive.stat().st_size, 0
    try:
        with opener(archive, "rb") as stream:
            while chunk := stream.read(_CHUNK):
                total += len(chunk)
                _hold(total, packed, limits, where)
                plain.write(chunk)
    except (EOFError, ValueError, OSError) as error:
        if isinstance(error, OSError) and error.errno:  # the disk's fault, not the archive's
            raise
        raise ManagerError("bad-archive", f"cannot be read: {str(error)[:200]}", context=where) from None


def _tar_member(info: Any, where: str) -> _Member:
    if info.issym() or info.islnk():
        raise ManagerError("unsafe-archive", f"{shown(info.name)} is a link", context=where)
    if not (info.isreg() or info.isdir()) or info.issparse():
        raise ManagerError("unsafe-archive", f"{shown(info.name)} is a device, a pipe or another thing that is no file",
                           context=where)
    _no_special_bits(info.mode, info.name, where)
    if info.size < 0:
        raise ManagerError("bad-archive", f"{shown(info.name)} has a negative size", context=where)
    executable = bool(info.mode & 0o111) and info.isreg()
    return _Member(check_member(info.name, where), info.isdir(), executable, info.size, info.size, info)


def _no_special_bits(mode: int, name: str, where: str) -> None:
    if mode & (stat.S_ISUID | stat.S_ISGID):
        raise ManagerError("unsafe-archive", f"{shown(name)} would run as another user (setuid or setgid)", context=where)


def _hold(total: int, packed: int, limits: Limits, where: str) -> None:
    if total > limits.total_bytes:
        raise ManagerError("unsafe-archive", f"unpacks to over {limits.total_bytes >> 20} MiB", context=where)
    if total > limits.ratio_from and total > packed * limits.ratio:
        raise ManagerError("unsafe-archive", f"unpacks to over {limits.ratio} times its size", context=where)


def check_clashes(paths: Iterator[tuple[tuple[str, ...], bool]], where: str) -> None:
    """No two names that are one file on some disk, and no file that is also a folder.

    :param paths: (parts, is a folder) of every member.
    :raises ManagerError: ``unsafe-archive``.
    """
    files: dict[str, str] = {}
    folders: dict[str, str] = {}
    for parts, is_dir in paths:
        for depth in range(1, len(parts) + (1 if is_dir else 0)):
            name, plain = fold(parts[:depth]), "/".join(parts[:depth])
            if folders.setdefault(name, plain) != plain or name in files:
                raise _clash(plain, folders[name] if name not in files else files[name], where)
        if parts and not is_dir:
            name, plain = fold(parts), "/".join(parts)
            if name in files or name in folders:
                raise _clash(plain, files.get(name) or folders[name], where)
            files[name] = plain


def _clash(one: str, other: str, where: str) -> ManagerError:
    same = "stands twice" if one == other else f"and {shown(other)} are one file on some disks"
    return ManagerError("unsafe-archive", f"the name {shown(one)} {same}", context=where)


def _write_all(members: list[_Member], target: Path, limits: Limits, where: str, open_member: Any) -> None:
    check_clashes(((m.parts, m.is_dir) for m in members), where)
    _hold(sum(m.size for m in members), max(1, sum(m.packed for m in members)), limits, where)
    written = 0
    for member in members:
        path = target.joinpath(*member.parts)
        if member.is_dir:
            path.mkdir(parents=True, exist_ok=True)
            continue
        if not member.parts:
            raise ManagerError("bad-archive", "a member has no name", context=where)
        path.parent.mkdir(parents=True, exist_ok=True)
        source: IO[bytes] | None = open_member(member)
        if source is None:
            raise ManagerError("bad-archive", f"{shown('/'.join(member.parts))} cannot be read", context=where)
        flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | getattr(os, "O_NOFOLLOW", 0)
        with source, os.fdopen(os.open(path, flags, 0o755 if member.executable else 0o644), "wb") as out:
            own = 0
            while chunk := source.read(_CHUNK):
                own += len(chunk)
                written += len(chunk)
                if own > member.size:
                    raise ManagerError("unsafe-archive", f"{shown('/'.join(member.parts))} holds more than it says",
                                       context=where)
                if written > limits.total_bytes:
                    raise ManagerError("unsafe-archive", f"unpacks to over {limits.total_bytes >> 20} MiB", context=where)
                out.write(chunk)
            if own < member.size:
                raise ManagerError("bad-archive", f"{shown('/'.join(member.parts))} ends too early", context=where)
