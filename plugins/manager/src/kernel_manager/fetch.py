"""Fetch one plugin source into a staging folder. Nothing of it runs (a ``command`` source excepted, when it is accepted)."""

from __future__ import annotations

import hashlib
import json
import os
import shlex
from pathlib import Path

from msgspec import Struct, field

from kernel_manager import downloads, gits, tree
from kernel_manager.errors import ManagerError
from kernel_manager.names import canonical, shown
from kernel_manager.programs import run
from kernel_manager.pythons import Distribution, Index, resolve
from kernel_manager.sources import Source, inside
from kernel_manager.unpack import unpack
from kernel_manager.wheels import MANIFEST, Code, code_of_folder, code_of_wheel


class Fetched(Struct, kw_only=True):
    """One fetched source. ``base`` is the folder to store, ``root`` the plugin root in it (often the same).

    ``version`` is what the source itself tells (a commit, a digest), used where neither manifest nor entry has one.
    ``source`` is pinned: it fetches the same again. ``distributions`` are wheels that a Python source brought along.
    """

    base: Path
    root: Path
    source: Source
    version: str | None = None
    commit: str | None = None
    sha256: str | None = None
    code: Code | None = None
    distributions: list[Distribution] = field(default_factory=list)
    warnings: list[str] = field(default_factory=list)


class Options(Struct, kw_only=True):
    """``within``: the marketplace folder that relative sources and their links lie in; ``accept``: command sources that
    the person has accepted; ``pinned``: Python distributions that other plugins brought."""

    index: Index = field(default_factory=Index)
    within: Path | None = None
    accept: frozenset[str] = frozenset()
    pinned: dict[str, str] = field(default_factory=dict)


def fetch(source: Source, staging: Path, options: Options | None = None) -> Fetched:
    """Fetch into ``staging``, a folder that must not exist.

    :raises ManagerError: whatever stops it; the staging folder is for the caller to remove.
    """
    options = options or Options()
    staging.mkdir(parents=True)
    readers = {"folder": _folder, "archive": _archive, "git": _git, "npm": _npm, "python": _python, "command": _command}
    if source.kind not in readers:
        raise ManagerError("bad-spec", "is looked up in a marketplace first", context=f"source {source}")
    return readers[source.kind](source, staging, options)


def _folder(source: Source, staging: Path, options: Options) -> Fetched:
    path = Path(str(source.path))
    if options.within is not None and not path.is_absolute():
        path = options.within / inside(str(path) if str(path) != "." else "./", source)
        if not Path(os.path.realpath(path)).is_relative_to(os.path.realpath(options.within)):
            raise ManagerError("unsafe-path", f"the folder {shown(str(source.path))} leads out of its marketplace")
    if not path.is_dir():
        raise ManagerError("not-found", f"there is no folder {path}")
    if options.index.allow_build and _needs_build(path):
        return _python(Source(kind="python", path=str(path)), staging / "built", options)
    warnings = tree.copy(path, staging / "plugin", within=options.within)
    return Fetched(base=staging / "plugin", root=staging / "plugin", source=source, warnings=warnings)


def _needs_build(path: Path) -> bool:
    try:
        code_of_folder(path)
    except ManagerError as error:
        return error.type == "needs-build"
    return False


def _archive(source: Source, staging: Path, options: Options) -> Fetched:
    if source.url:
        archive = staging / ("plugin" + (".zip" if source.url.lower().partition("?")[0].endswith(".zip") else ".tar"))
        got = downloads.download(source.url, archive)
    else:
        archive = Path(str(source.path))
        if not archive.is_file():
            raise ManagerError("not-found", f"there is no file {archive}")
        with open(archive, "rb") as file:
            got = hashlib.file_digest(file, "sha256").hexdigest()
    if source.sha256 and got != source.sha256:
        raise ManagerError("pin-mismatch", f"has the sha256 {got}, not {source.sha256}", context=f"archive {archive.name}")
    unpack(archive, staging / "unpacked")
    tree.strip(staging / "unpacked")
    root = _root_of(staging / "unpacked")
    pinned = Source(kind="archive", url=source.url, path=source.path, sha256=got if source.url else None)
    return Fetched(base=root, root=root, source=pinned, version=got[:12], sha256=got)


def _root_of(folder: Path) -> Path:
    """The plugin root: the folder itself, or the only folder in it (plugins contract, 6.3)."""
    if (folder / MANIFEST).is_file():
        return folder
    inner = [p for p in folder.iterdir() if p.is_dir()]
    if len(inner) == 1 and (inner[0] / MANIFEST).is_file() and not (folder / "SKILL.md").exists():
        return inner[0]
    return folder if len(inner) != 1 or len(list(folder.iterdir())) > 1 else inner[0]


def _git(source: Source, staging: Path, options: Options) -> Fetched:
    commit = gits.fetch(source, staging / "checkout")
    top = staging / "checkout"
    wanted = top / source.subdir if source.subdir else top
    if not Path(os.path.realpath(wanted)).is_relative_to(os.path.realpath(top)) or not wanted.is_dir():
        raise ManagerError("not-found", f"holds no folder {shown(source.subdir or '.')}", context=f"source {source}")
    if options.index.allow_build and _needs_build(wanted):
        return _python(Source(kind="python", path=str(wanted)), staging / "built", options)
    warnings = tree.copy(wanted, staging / "plugin", within=top)
    return Fetched(base=staging / "plugin", root=staging / "plugin", source=source, version=commit, commit=commit,
                   warnings=warnings)


def _npm(source: Source, staging: Path, options: Options) -> Fetched:
    """``npm pack`` fetches the published archive; its lifecycle scripts do not run, unlike with ``npm install``."""
    spec = f"{source.package}@{source.version}" if source.version else str(source.package)
    registry = ["--registry", source.registry] if source.registry else []
    said = run(["npm", "pack", spec, "--json", "--ignore-scripts", "--pack-destination", str(staging), *registry], cwd=staging,
               timeout=300, type="npm-failed", what=f"npm {spec}")
    try:
        packed = json.loads(said)[0]
        archive, version = staging / Path(str(packed["filename"])).name, str(packed["version"])
    except (ValueError, LookupError, TypeError):
        raise ManagerError("npm-failed", "npm pack gave no answer that can be read", context=f"npm {spec}") from None
    if not archive.is_file():
        archive = next(iter(staging.glob("*.tgz")), archive)
    unpack(archive, staging / "unpacked")
    tree.strip(staging / "unpacked")
    root = _root_of(staging / "unpacked")
    pinned = Source(kind="npm", package=source.package, version=version, registry=source.registry)
    return Fetched(base=root, root=root, source=pinned, version=version)


def _python(source: Source, staging: Path, options: Options) -> Fetched:
    requirements, wheels = ([source.requirement], []) if source.requirement else ([], [Path(str(source.path))])
    if wheels:
        if not wheels[0].exists():
            raise ManagerError("not-found", f"there is no {wheels[0]}")
        if wheels[0].is_dir() and not options.index.allow_build:
            return _folder(Source(kind="folder", path=source.path), staging / "folder", options)
    found = resolve([r for r in requirements if r], wheels, options.pinned, staging / "python", options.index)
    plugins = [(d, code) for d in found if d.folder is not None and (code := code_of_wheel(d.folder)) is not None]
    if len(plugins) > 1:
        wanted = _wanted_name(source)
        plugins = [(d, code) for d, code in plugins if d.key == wanted]
    if len(plugins) != 1:
        why = "brings no plugin" if found else "is already installed in this environment, where the kernel finds it"
        raise ManagerError("not-a-plugin" if found else "already-there", f"the distribution {why}", context=f"source {source}")
    distribution, code = plugins[0]
    assert distribution.folder is not None
    package = distribution.folder / code.module.split(".")[0]
    if not (package / MANIFEST).is_file():
        raise ManagerError("bad-plugin", f"its wheel carries no {MANIFEST} in the package {package.name}",
                           context=f"distribution {distribution.name}")
    return Fetched(base=distribution.folder, root=package, source=_pinned(source, distribution), version=distribution.version,
                   sha256=distribution.sha256, code=code, distributions=[d for d in found if d is not distribution],
                   warnings=[w for d in found for w in d.warnings])


def _pinned(source: Source, distribution: Distribution) -> Source:
    # what was asked for stays: an update resolves it again
    return source if source.path or source.requirement else Source(kind="python", requirement=distribution.name)


def _wanted_name(source: Source) -> str:
    from packaging.requirements import Requirement

    return canonical(Requirement(source.requirement).name if source.requirement else Path(str(source.path)).name.split("-")[0])


def _command(source: Source, staging: Path, options: Options) -> Fetched:
    """A program that prints where the plugin lies (plugins contract, 6.3 and 16.9)."""
    command = str(source.command)
    if command not in options.accept:
        raise ManagerError("command-not-accepted", f"its source runs the command {command!r}", hint="accept it with --yes")
    said = run(shlex.split(command), cwd=staging, timeout=source.timeout or 60, type="command-failed", what=f"command {command}")
    lines = said.strip().splitlines()
    path = Path(lines[0]) if len(lines) == 1 else Path()
    if not path.is_absolute() or not path.is_dir():
        raise ManagerError("command-failed", "must print one absolute path of a folder", context=f"command {command}")
    here = Path.cwd().resolve()
    if here.is_relative_to(path.resolve()):
        raise ManagerError("unsafe-path", "the command's folder holds the folder that kernel was started in",
                           context=f"command {command}")
    warnings = tree.copy(path, staging / "plugin")
    content = tree.digest(staging / "plugin").removeprefix("sha256:")[:12]
    return Fetched(base=staging / "plugin", root=staging / "plugin", source=source, version=content, warnings=warnings)
