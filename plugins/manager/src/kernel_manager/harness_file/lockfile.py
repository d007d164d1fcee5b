"""``kernel.lock``: exact versions and the digest of every file. JSON, one file a line, in one fixed order."""

from __future__ import annotations

import hashlib
import json
import re
from pathlib import Path
from typing import Any

import msgspec
from msgspec import Struct, field

from kernel_manager.errors import ManagerError

FORMAT = 1
_HEX = re.compile(r"^[0-9a-f]{64}$")


class From(Struct, omit_defaults=True, kw_only=True, forbid_unknown_fields=True):
    """Where something comes from. ``kind``: ``index`` (a package index or a folder of wheels), ``url`` (``NAME @ URL``),
    ``folder``, ``git``, ``entry``, ``source``; ``spec`` is how the harness named it, ``pin`` what fetches just the same again."""

    kind: str
    spec: str | None = None
    pin: str | None = None


class Distribution(Struct, kw_only=True, forbid_unknown_fields=True):
    """One Python distribution. ``archive`` is the file that an index serves, with its own digest; ``None`` where it is
    built here.

    ``requires``: names of the distributions it needs here. ``files``: path below the packages' folder -> SHA-256.
    """

    version: str
    source: From
    archive: str | None
    sha256: str | None
    requires: list[str]
    files: dict[str, str]


class Locked(Struct, omit_defaults=True, kw_only=True, forbid_unknown_fields=True):
    """One plugin: either part of a distribution (``distribution``, ``package``), or a folder with its own ``files``."""

    version: str
    distribution: str | None = None
    package: str | None = None
    source: From | None = None
    files: dict[str, str] | None = None


class Lock(Struct, kw_only=True, forbid_unknown_fields=True):
    """The whole lock. ``harness`` is the digest of the harness file; ``python`` and ``platform`` say where it can be used."""

    lock: int = FORMAT
    harness: str
    kernel: str
    python: str
    platform: str
    name: str | None = None
    settings: dict[str, Any] = field(default_factory=dict)
    order: list[str] = field(default_factory=list)
    block: list[str] = field(default_factory=list)
    plugins: dict[str, Locked] = field(default_factory=dict)
    distributions: dict[str, Distribution] = field(default_factory=dict)


def path_of(harness: Path) -> Path:
    """Where the lock of a harness file lies; the kernel looks in the same place."""
    return harness.with_name("kernel.lock") if harness.stem == "harness" else harness.with_suffix(".lock")


def digest_of_harness(raw: bytes) -> str:
    """Line endings do not count: git may change them on its way to another system."""
    return hashlib.sha256(raw.replace(b"\r\n", b"\n")).hexdigest()


def dumps(lock: Lock) -> bytes:
    """The lock as bytes: the same lock is always the same bytes."""
    data = msgspec.to_builtins(lock)
    for key in ("plugins", "distributions"):
        data[key] = {name: data[key][name] for name in sorted(data[key])}
        for item in data[key].values():
            if item.get("files") is not None:
                item["files"] = dict(sorted(item["files"].items()))
    data["settings"] = json.loads(json.dumps(data["settings"], sort_keys=True))
    return (json.dumps(data, indent=1, ensure_ascii=False) + "\n").encode()


def loads(raw: bytes, path: Path) -> Lock:
    """:raises ManagerError: ``bad-lock``, with what is wrong and what to do."""
    try:
        lock = msgspec.convert(json.loads(raw), Lock)
    except (ValueError, msgspec.ValidationError, RecursionError) as error:
        raise _bad(path, f"is no lock: {error}") from None
    if lock.lock != FORMAT:
        raise _bad(path, f"has format {lock.lock}, this version reads {FORMAT}")
    files = [(name, item.files) for name, item in lock.distributions.items()]
    for name, content in files + [(name, plugin.files or {}) for name, plugin in lock.plugins.items()]:
        for file, digest in content.items():
            if not is_inside(file) or not _HEX.match(digest):
                raise _bad(path, f"{name}, files, {file[:100]!r}: must be a relative path with a SHA-256")
    for name, plugin in lock.plugins.items():
        if not is_inside(name) or "/" in name:
            raise _bad(path, f"plugins: {name[:100]!r} is no plugin name")
        installed = plugin.distribution in lock.distributions and (plugin.package or "").isidentifier()
        if installed == (plugin.files is not None):
            raise _bad(path, f"plugins, {name}: must have files, or a distribution that is locked, too")
    return lock


def read(path: Path) -> tuple[bytes, Lock]:
    """:raises ManagerError: ``no-lock`` or ``bad-lock``."""
    try:
        raw = path.read_bytes()
    except OSError as error:
        raise ManagerError("no-lock", f"cannot be read: {error.strerror}", context=str(path),
                           hint="kernel harness lock writes it") from None
    return raw, loads(raw, path)


def set_id(raw: bytes) -> str:
    """The name of the folder that holds what this lock describes."""
    return hashlib.sha256(raw).hexdigest()[:16]


def is_inside(path: str) -> bool:
    """Whether a stored path stays below its folder on every system."""
    parts = path.split("/")
    return not (path.startswith("/") or "\\" in path or "\0" in path or re.match(r"^[A-Za-z]:", path)
                or any(part in ("", ".", "..") for part in parts))


def _bad(path: Path, message: str) -> ManagerError:
    return ManagerError("bad-lock", message, context=str(path), hint="kernel harness lock writes it anew")
