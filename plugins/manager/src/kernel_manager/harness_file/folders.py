"""What one line of ``plugins`` brings: a requirement, a wheel that is built from a project, or a folder as it is."""

from __future__ import annotations

import json
import os
import re
import tempfile
from pathlib import Path

import msgspec
from msgspec import Struct

from kernel import Manifest, Settings
from kernel_manager import policy, tree
from kernel_manager.errors import ManagerError
from kernel_manager.harness_file import wheels
from kernel_manager.harness_file.lockfile import From
from kernel_manager.harness_file.model import Parsed, Wanted
from kernel_manager.harness_file.resolve import build
from kernel_manager.harness_file.tools import Ways
from kernel_manager.harness_file.wheels import MANIFEST, Facts
from kernel_manager.sources import Source
from kernel_manager.wheels import GROUP

_BAD_NAME = re.compile(r"[/\\:@\s\x00-\x1f]|\.\.|^-|^$|^\.$")


class Brought(Struct, kw_only=True):
    """``requirement`` is resolved with all others; ``wheel`` is decided already; ``folder`` is a plugin without Python."""

    source: From
    requirement: str | None = None
    wheel: Facts | None = None
    plugin: str | None = None
    folder: Path | None = None


def bring(parsed: Parsed, n: int, wanted: Wanted, ways: Ways, work: Path) -> Brought:
    """:raises ManagerError: with the line of the harness file where the plugin is named."""
    try:
        return _bring(parsed, wanted, ways, work)
    except ManagerError as error:
        line = parsed.wanted[n][1]
        context = f"{parsed.path}, line {line}" + (f": {error.context}" if error.context else "")
        raise ManagerError(error.type, error.message, context=context, hint=error.hint) from None


def _bring(parsed: Parsed, wanted: Wanted, ways: Ways, work: Path) -> Brought:
    if wanted.requirement is not None:
        return Brought(source=From(kind="index"), requirement=wanted.requirement)
    if wanted.path is not None:
        folder = (parsed.base / Path(wanted.path).expanduser()).absolute()
        return from_folder(folder, From(kind="folder", spec=wanted.path), ways, work)
    return from_source(parsed, wanted, ways, work)


def from_source(parsed: Parsed, wanted: Wanted, ways: Ways, work: Path) -> Brought:
    """A git repository, a marketplace entry, or another source that ``kernel plugins install`` takes."""
    from kernel_manager import sources

    if wanted.git is not None:
        pin, where = f"@{wanted.ref}" if wanted.ref else "", f"#{wanted.folder}" if wanted.folder else ""
        source = sources.git(wanted.git, ref=wanted.ref, subdir=wanted.folder)
        name = (wanted.folder or wanted.git).rstrip("/").rpartition("/")[2].removesuffix(".git")
        return fetched(source, "git", f"{wanted.git}{pin}{where}", name, ways, work)
    if wanted.entry is not None:
        return _entry(parsed, wanted.entry, ways, work)
    source = sources.parse(str(wanted.source), parsed.base)
    if source.kind == "python" and source.requirement:
        return Brought(source=From(kind="index"), requirement=source.requirement)
    if source.kind in ("folder", "python"):
        return from_folder(Path(str(source.path)), From(kind="folder", spec=wanted.source), ways, work)
    name = (source.subdir or source.package or source.url or str(source)).rstrip("/").rpartition("/")[2].partition(".")[0]
    return fetched(source, "source", str(wanted.source), name, ways, work)


def fetched(source: Source, kind: str, spec: str, name: str, ways: Ways, work: Path, within: Path | None = None) -> Brought:
    """Fetch a source; the lock gets what fetches just the same again.

    :param name: the plugin's name where it has no manifest.
    :param within: the marketplace folder that the source is relative to.
    """
    from kernel_manager.fetch import Options, fetch

    if source.kind == "catalogue":
        raise ManagerError("bad-spec", "is the name of a marketplace entry", context=f"source {spec}",
                           hint="write entry: name@marketplace, or requirement: NAME for a Python distribution")
    if kind != "entry":
        policy.check_direct(Settings.load(Path.cwd()), source)
    ways.say(f"fetching {spec}")
    got = fetch(source, Path(tempfile.mkdtemp(prefix="source-", dir=work)) / "got", Options(within=within))
    return from_folder(got.root, From(kind=kind, spec=spec, pin=_pin(got.source, got.commit)), ways, work, name)


def from_pin(source: From, name: str, parsed: Parsed, ways: Ways, work: Path) -> Brought:
    """What a lock names, fetched again. ``name`` is its name in the lock."""
    from kernel_manager import sources

    base = parsed.base
    if source.kind == "entry":
        _check_entry(parsed, str(source.spec))
    if source.kind == "folder":
        return from_folder((base / Path(str(source.spec)).expanduser()).absolute(), source, ways, work, name)
    found = sources.parse(str(source.pin), base)
    if found.kind == "folder":
        return from_folder(Path(str(found.path)), source, ways, work, name)
    return fetched(found, source.kind, str(source.spec), name, ways, work)


def _pin(source: Source, commit: str | None) -> str:
    if source.kind == "git":
        return f"git+{source.url}@{commit or source.sha}" + (f"#{source.subdir}" if source.subdir else "")
    if source.kind == "archive" and source.url:
        return f"{source.url}#sha256={source.sha256}"
    return str(source)


def _check_entry(parsed: Parsed, entry: str) -> None:
    """:raises ManagerError: managed settings do not allow the marketplace, or switch the plugin off."""
    from kernel_manager.markets import source_of

    where = parsed.file.marketplaces.get(entry.rpartition("@")[2])
    if where is None:
        raise ManagerError("bad-lock", f"the marketplace of {entry!r} is not in the harness file", hint="kernel harness lock")
    settings = Settings.load(Path.cwd())
    policy.check_marketplace(settings, source_of(where, parsed.base))
    policy.check_plugin(settings, entry)


def _entry(parsed: Parsed, entry: str, ways: Ways, work: Path) -> Brought:
    """A marketplace entry. The lock names where the plugin itself lies, so the marketplace is asked when locking only."""
    from kernel_manager import catalogue, gits, sources

    _check_entry(parsed, entry)
    name, _, market = entry.rpartition("@")
    place = sources.parse(parsed.file.marketplaces[market], parsed.base)
    commit = None
    if place.kind == "git" and place.subdir and not (place.ref or place.sha):
        place = sources.git(str(place.url), ref=place.subdir)  # a marketplace's fragment is a ref, as for kernel plugins
    if place.kind == "git":
        ways.say(f"fetching the marketplace {market}")
        root = Path(tempfile.mkdtemp(prefix="market-", dir=work)) / "got"
        commit = gits.fetch(place, root)
        root = root / place.subdir if place.subdir else root
    elif place.kind == "folder":
        root = Path(str(place.path))
    else:
        raise ManagerError("bad-spec", "must be a folder or a git repository", context=f"marketplace {market}")
    found = catalogue.read(root, owner=None)
    source = found.source(found.entry(name))
    if source.kind != "folder":
        return fetched(source, "entry", entry, name, ways, work)
    folder = sources.inside(source.path, entry) if source.path != "." else ""
    if commit is None:
        pin = "./" + os.path.relpath(root / folder, parsed.base).replace(os.sep, "/")
    else:
        below = "/".join(p for p in (place.subdir, folder) if p)
        pin = f"git+{place.url}@{commit}" + (f"#{below}" if below else "")
    brought = fetched(source, "entry", entry, name, ways, work, within=found.root)
    brought.source.pin = pin
    return brought


def from_folder(folder: Path, source: From, ways: Ways, work: Path, name: str | None = None) -> Brought:
    """A project with an entry point of ours becomes a wheel; any other folder is taken as it is.

    :param name: the plugin's name where it has no manifest; the folder's otherwise.
    """
    if folder.suffix == ".whl" and folder.is_file():
        facts = wheels.facts(folder)
        return Brought(source=source, requirement=f"{facts.name}=={facts.version}", wheel=facts)
    if not folder.is_dir():
        raise ManagerError("not-found", f"{folder} is no folder")
    if _is_project(folder):
        facts = wheels.facts(build(folder, work, ways))
        if not facts.entry_points:
            raise ManagerError("not-a-plugin", f"its wheel has no entry point in the group {GROUP}", context=str(folder))
        return Brought(source=source, requirement=f"{facts.name}=={facts.version}", wheel=facts)
    manifest = manifest_of_folder(folder, None)
    name = manifest.name if (folder / MANIFEST).exists() or name is None else checked_name(name, str(folder))
    copied = Path(tempfile.mkdtemp(prefix="folder-", dir=work)) / name  # what is digested is what will be put in place
    for warning in tree.copy(folder, copied):
        ways.say(f"{folder}: {warning}")
    return Brought(source=source, plugin=name, folder=copied)


def _is_project(folder: Path) -> bool:
    import tomllib

    try:
        data = tomllib.loads((folder / "pyproject.toml").read_text("utf-8"))
    except (OSError, UnicodeDecodeError):
        return False
    except tomllib.TOMLDecodeError as error:
        raise ManagerError("bad-plugin", f"is not valid TOML: {error}", context=str(folder / "pyproject.toml")) from None
    return "build-system" in data or "project" in data


def manifest_of_folder(folder: Path, name: str | None) -> Manifest:
    path = folder / MANIFEST
    try:
        raw = path.read_bytes() if path.exists() else json.dumps({"name": folder.name}).encode()
    except OSError as error:
        raise ManagerError("bad-plugin", f"cannot be read: {error.strerror}", context=str(path)) from None
    return manifest_of(raw, str(path), name)


def manifest_of(raw: bytes | None, where: str, name: str | None) -> Manifest:
    """The manifest's public fields and ``metadata.kernel``, read as the kernel reads it.

    :raises ManagerError: ``bad-plugin``: the kernel would not load this plugin.
    """
    if raw is None:
        raise ManagerError("bad-plugin", "the wheel does not carry the manifest in the package folder", context=where)
    try:
        data = msgspec.json.decode(raw)
        if not isinstance(data, dict):
            raise msgspec.ValidationError("must hold one JSON object")
        metadata = data.get("metadata")
        part = metadata.get("kernel") if isinstance(metadata, dict) else None
        keep = {k: v for k, v in data.items() if k not in ("metadata", "experimental", "$kernel")}
        manifest = msgspec.convert(keep | ({"$kernel": part} if part is not None else {}), Manifest)
    except (msgspec.DecodeError, UnicodeError, RecursionError) as error:
        raise ManagerError("bad-plugin", f"is no usable manifest: {error}", context=where) from None
    checked_name(manifest.name, where)
    if name is not None and manifest.name != name:
        raise ManagerError("bad-plugin", f"the manifest names {manifest.name[:100]!r}, the entry point {name!r}: they must agree",
                           context=where)
    return manifest


def checked_name(name: str, where: str) -> str:
    if _BAD_NAME.search(name):
        raise ManagerError("bad-plugin", f"{name[:100]!r} is no plugin name", context=where)
    return name
