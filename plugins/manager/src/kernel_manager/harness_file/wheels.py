"""Wheels, read and unpacked without running anything. What a wheel holds is what an installer leaves behind, file by file,
besides what installers write themselves (``RECORD``, ``INSTALLER`` ...), which is never locked."""

from __future__ import annotations

import hashlib
import os
import zipfile
from collections.abc import Iterator
from pathlib import Path

from msgspec import Struct, field

from kernel_manager.errors import ManagerError
from kernel_manager.harness_file.lockfile import is_inside
from kernel_manager.names import canonical
from kernel_manager.wheels import plugin_entries

MAX_FILES = 50_000
MAX_TOTAL = 2 * 1024**3
NOT_LOCKED = ("RECORD", "RECORD.jws", "RECORD.p7s", "INSTALLER", "REQUESTED", "direct_url.json", "uv_cache.json")
MANIFEST = ".claude-plugin/plugin.json"


class Facts(Struct, kw_only=True):
    """What a wheel says of itself. ``pure``: it fits every Python 3 on every platform. ``manifests``: the bytes of the manifest
    of every plugin in it, ``None`` where it carries none."""

    path: Path
    name: str
    version: str
    pure: bool
    requires: list[str] = field(default_factory=list)
    requires_python: str | None = None
    entry_points: dict[str, str] = field(default_factory=dict)
    manifests: dict[str, bytes | None] = field(default_factory=dict)


def facts(path: Path) -> Facts:
    """Metadata, entry points and manifests of a wheel; nothing else is read.

    :raises ManagerError: ``bad-wheel``.
    """
    try:
        with zipfile.ZipFile(path) as archive:
            info = _info_folder(archive, path)
            headers = _headers(archive.read(f"{info}/METADATA"))
            text = (_optional(archive, f"{info}/entry_points.txt") or b"").decode("utf-8", "replace")
            entries = dict(plugin_entries(text))
            manifests = {name: _optional(archive, f"{module.split('.')[0]}/{MANIFEST}") for name, module in entries.items()}
    except (OSError, zipfile.BadZipFile, KeyError, NotImplementedError, RuntimeError) as error:
        raise _bad(path, f"cannot be read: {error}") from None
    one = {key: values[0] for key, values in headers.items()}
    if "name" not in one or "version" not in one:
        raise _bad(path, "its METADATA has no Name or no Version")
    return Facts(path=path, name=canonical(one["name"]), version=one["version"], requires=headers.get("requires-dist", []),
                 requires_python=one.get("requires-python"), entry_points=entries, manifests=manifests,
                 pure=path.name.endswith("-none-any.whl"))


def members(path: Path) -> Iterator[tuple[str, bytes, bool]]:
    """(path below the packages' folder, bytes, whether it can be executed) of every file that is locked.

    ``NAME.data/purelib`` and ``platlib`` go where the packages are; scripts and data keep their place inside ``NAME.data``.

    :raises ManagerError: ``bad-wheel``: unreadable, too large, or a path that would leave.
    """
    total, seen = 0, set[str]()
    try:
        with zipfile.ZipFile(path) as archive:
            info = _info_folder(archive, path)
            if len(archive.filelist) > MAX_FILES:
                raise _bad(path, f"holds more than {MAX_FILES} files")
            for item in archive.filelist:
                if item.is_dir():
                    continue
                total += item.file_size
                name = _placed(item.filename)
                if total > MAX_TOTAL or not is_inside(item.filename) or (name != item.filename and not is_inside(name)):
                    raise _bad(path, f"the file {item.filename[:100]!r} leaves its folder, or all are over {MAX_TOTAL} bytes")
                if name.startswith(f"{info}/") and name.removeprefix(f"{info}/") in NOT_LOCKED:
                    continue
                if name in seen:
                    raise _bad(path, f"the file {name[:100]!r} is in it twice")
                seen.add(name)
                yield name, archive.read(item), bool(item.external_attr >> 16 & 0o111)
    except (OSError, zipfile.BadZipFile, EOFError, NotImplementedError, RuntimeError, UnicodeError) as error:
        raise _bad(path, f"cannot be read: {error}") from None


def digests(path: Path) -> dict[str, str]:
    return {name: hashlib.sha256(data).hexdigest() for name, data, _ in members(path)}


def unpack(path: Path, site: Path) -> None:
    """Write a wheel's files below ``site``. An existing file belongs to another wheel and is an error."""
    for name, data, executable in members(path):
        target = site / name
        target.parent.mkdir(parents=True, exist_ok=True)
        try:
            with open(target, "xb") as file:
                file.write(data)
            if executable:
                target.chmod(0o755)
        except FileExistsError:
            raise _bad(path, f"the file {name[:100]!r} is in another distribution, too") from None


def sha256(path: Path) -> str:
    with open(path, "rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def _optional(archive: zipfile.ZipFile, name: str) -> bytes | None:
    return archive.read(name) if name in archive.NameToInfo else None


def _info_folder(archive: zipfile.ZipFile, path: Path) -> str:
    found = {name.split("/")[0] for name in archive.NameToInfo if name.split("/")[0].endswith(".dist-info")}
    if len(found) != 1:
        raise _bad(path, f"must hold one .dist-info folder, has {len(found)}")
    return found.pop()


def _placed(name: str) -> str:
    first, _, rest = name.partition("/")
    if first.endswith(".data") and rest.startswith(("purelib/", "platlib/")):
        return rest.partition("/")[2]
    return name


def _headers(raw: bytes) -> dict[str, list[str]]:
    """The head of a METADATA file: header (lower case) -> values. The body is not looked at."""
    found: dict[str, list[str]] = {}
    for line in raw.replace(b"\r\n", b"\n").partition(b"\n\n")[0].decode("utf-8", "replace").split("\n"):
        key, colon, value = line.partition(":")
        if colon and not line[0].isspace():
            found.setdefault(key.lower(), []).append(value.strip())
    return found


def _bad(path: Path, message: str) -> ManagerError:
    return ManagerError("bad-wheel", message, context=f"wheel {os.path.basename(path)}")
