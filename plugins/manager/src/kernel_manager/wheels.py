"""Wheels and project folders as plugins: unpacked and read, never run."""

from __future__ import annotations

import base64
import csv
import hashlib
import re
import shutil
from pathlib import Path
from typing import Any

from msgspec import Struct, field

from kernel_manager.errors import ManagerError
from kernel_manager.names import shown
from kernel_manager.tree import strip
from kernel_manager.unpack import unpack

GROUP = "kernel.plugins"
MANIFEST = Path(".claude-plugin") / "plugin.json"


class Code(Struct, kw_only=True, omit_defaults=True):
    """The Python part of a plugin, found without running it.

    ``module`` is the entry point's value; ``path`` what must be on the import path, relative to the stored folder;
    ``requires`` its Python requirements as they are written.
    """

    name: str
    module: str
    path: str = ""
    requires: list[str] = field(default_factory=list)
    distribution: str | None = None
    version: str | None = None


def unpack_wheel(wheel: Path, target: Path) -> list[str]:
    """Unpack a wheel so that the folder can stand on the import path; returns warnings.

    :raises ManagerError: it is unsafe, or a file is not the one that its RECORD names.
    """
    unpack(wheel, target)
    where = f"wheel {wheel.name}"
    infos = list(target.glob("*.dist-info"))
    if len(infos) != 1:
        raise ManagerError("bad-archive", f"holds {len(infos)} .dist-info folders; one is needed", context=where)
    _check_record(target, infos[0], where)
    warnings: list[str] = []
    for data in target.glob("*.data"):
        for part in sorted(data.iterdir()):
            if part.name in ("purelib", "platlib"):
                _spread(part, target, where)
            else:
                warnings.append(f"{wheel.name}: its {part.name} are left out")
        shutil.rmtree(data)
    strip(target)
    if any(target.glob("*.pth")):
        warnings.append(f"{wheel.name}: its .pth files have no effect")
    return warnings


def _spread(part: Path, target: Path, where: str) -> None:
    for path in sorted(part.rglob("*")):
        if path.is_file():
            to = target / path.relative_to(part)
            if to.exists():
                raise ManagerError("bad-archive", f"{shown(path.name)} stands in it twice", context=where)
            to.parent.mkdir(parents=True, exist_ok=True)
            path.rename(to)


def _check_record(target: Path, info: Path, where: str) -> None:
    try:
        rows = list(csv.reader((info / "RECORD").read_text("utf-8", "replace").splitlines()))
    except OSError:
        raise ManagerError("bad-archive", "has no RECORD", context=where) from None
    listed: set[str] = set()
    for row in rows:
        if len(row) < 2:
            continue
        listed.add(row[0])
        kind, _, value = row[1].partition("=")
        if kind in ("sha256", "sha384", "sha512"):
            path = target / row[0]
            if ".." in row[0].split("/") or row[0].startswith("/") or not path.is_file():
                raise ManagerError("bad-archive", f"lacks {shown(row[0])}, which its RECORD names", context=where)
            got = base64.urlsafe_b64encode(hashlib.new(kind, path.read_bytes()).digest()).rstrip(b"=").decode()
            if got != value.rstrip("="):
                raise ManagerError("bad-archive", f"{shown(row[0])} is not the file that its RECORD names", context=where)
    for path in target.rglob("*"):
        name = path.relative_to(target).as_posix()
        if path.is_file() and name not in listed and not name.startswith(f"{info.name}/RECORD"):
            raise ManagerError("bad-archive", f"{shown(name)} is not named by its RECORD", context=where)


def code_of_wheel(target: Path) -> Code | None:
    """The plugin that an unpacked wheel brings; ``None`` for one that is no plugin."""
    info = next(target.glob("*.dist-info"))
    metadata = _metadata(info)
    try:
        text = (info / "entry_points.txt").read_text("utf-8", "replace")
    except OSError:
        return None
    if f"[{GROUP}]" not in text:
        return None
    points = plugin_entries(text)
    if len(points) != 1:
        raise ManagerError("bad-plugin", f"brings {len(points)} plugins; one is needed", context=f"distribution {info.stem}",
                           hint="install it with pip; the kernel finds all of them")
    return Code(name=points[0][0], module=points[0][1], **metadata)


def plugin_entries(text: str) -> list[tuple[str, str]]:
    """Name and module of the plugins that an ``entry_points.txt`` names, read as the kernel reads it."""
    if f"[{GROUP}]" not in text:
        return []
    section = text.split(f"[{GROUP}]", 1)[1].split("\n[", 1)[0]
    return [(name, module.split(":")[0]) for name, module in re.findall(r"^\s*([^=#\s]+)\s*=\s*(\S+)", section, re.MULTILINE)]


def _metadata(info: Path) -> dict[str, Any]:
    from email.parser import HeaderParser

    message = HeaderParser().parsestr((info / "METADATA").read_text("utf-8", "replace"))
    return {"requires": [str(r) for r in message.get_all("Requires-Dist", [])], "distribution": str(message.get("Name", "")),
            "version": str(message.get("Version", ""))}


def code_of_folder(root: Path) -> Code | None:
    """The plugin that a project folder brings, read from its ``pyproject.toml`` alone; nothing is built.

    :raises ManagerError: ``needs-build``: what it needs or where it lies is only known to its build tool.
    """
    import tomllib

    try:
        data = tomllib.loads((root / "pyproject.toml").read_text("utf-8", "replace"))
    except (OSError, tomllib.TOMLDecodeError):
        return None
    project = data.get("project")
    points = _dig(project, "entry-points", GROUP)
    if not isinstance(project, dict) or not isinstance(points, dict) or len(points) != 1:
        return None
    (name, value), = points.items()
    module = str(value).split(":")[0]
    top = module.split(".")[0]
    place = next((p for p in ("src", "") if (root / p / top).is_dir() or (root / p / f"{top}.py").is_file()), None)
    requires = project.get("dependencies", [])
    if place is None or "dependencies" in project.get("dynamic", []) or not isinstance(requires, list):
        raise ManagerError("needs-build", f"the module {module} or its requirements are only known after building",
                           context=f"plugin {name}", hint="install its wheel, or allow the build with --allow-build")
    return Code(name=str(name), module=module, path=place, requires=[str(r) for r in requires],
                distribution=str(project.get("name", name)), version=str(project.get("version", "")) or None)


def _dig(data: Any, *keys: str) -> Any:
    for key in keys:
        data = data.get(key) if isinstance(data, dict) else None
    return data
