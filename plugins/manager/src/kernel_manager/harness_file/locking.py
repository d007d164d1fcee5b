"""From a harness file to its lock: resolve, read every byte, say what is wrong. Nothing is put in place."""

from __future__ import annotations

import hashlib
import re
import sys
import sysconfig
from pathlib import Path
from typing import Any

from msgspec import Struct, field

from kernel import Manifest, __version__
from kernel_manager.errors import ManagerError
from kernel_manager.harness_file import folders, lockfile, wheels
from kernel_manager.harness_file.folders import Brought
from kernel_manager.harness_file.lockfile import Distribution, From, Lock, Locked
from kernel_manager.harness_file.model import Parsed
from kernel_manager.harness_file.resolve import Archive, applies, requirement, resolve
from kernel_manager.harness_file.tools import Ways
from kernel_manager.names import canonical
from kernel_manager.sources import without_secrets


class Made(Struct, kw_only=True):
    """A lock, and where the bytes that it describes lie now: wheels by distribution, folders by plugin."""

    lock: Lock
    archives: dict[str, Path]
    folders: dict[str, Path]
    notes: list[str] = field(default_factory=list)


def make(parsed: Parsed, ways: Ways, previous: Lock | None, work: Path) -> Made:
    """Lock a harness.

    :param previous: the lock so far; its versions are kept where they still fit. ``None`` takes the newest.
    :param work: a scratch folder; what ``archives`` and ``folders`` name may lie in it.
    :raises ManagerError: nothing fits, a source cannot be had, or what it holds is no usable plugin.
    """
    brought = [folders.bring(parsed, n, wanted, ways, work) for n, (wanted, _) in enumerate(parsed.wanted)]
    given = [b.wheel for b in brought if b.wheel is not None]
    roots = [b.requirement for b in brought if b.requirement is not None]
    prefer = {name: d.version for name, d in previous.distributions.items() if d.source.kind == "index"} if previous else {}
    archives = resolve(roots, given, prefer, ways, work)
    lock = Lock(harness=lockfile.digest_of_harness(parsed.raw), kernel=__version__, python=python_tag(), platform="any",
                name=parsed.file.name, settings=parsed.file.settings, order=parsed.file.order, block=parsed.file.block)
    ways.say(f"reading {len(archives)} distributions")
    sources = {b.wheel.name: b.source for b in brought if b.wheel is not None}
    for archive in archives:
        lock.distributions[archive.facts.name] = _distribution(archive, sources, archives)
    if any(not a.facts.pure for a in archives):
        lock.platform = sysconfig.get_platform()
    made = Made(lock=lock, archives={a.facts.name: a.facts.path for a in archives},
                folders={b.plugin: b.folder for b in brought if b.plugin and b.folder})
    _plugins(made, parsed, archives, brought)
    return made


def python_tag() -> str:
    """Which interpreter the compiled parts fit."""
    return sys.implementation.cache_tag or sys.implementation.name


def _distribution(archive: Archive, sources: dict[str, From], archives: list[Archive]) -> Distribution:
    facts, locked = archive.facts, {a.facts.name for a in archives}
    url = without_secrets(archive.url) if archive.url else None
    source = From(kind="url" if url else "index", pin=url)
    needs = {canonical(r.name) for text in facts.requires if applies(r := requirement(text), ())}
    return Distribution(
        version=facts.version, source=sources.get(facts.name, source),
        archive=archive.origin.name if archive.origin else None,
        sha256=wheels.sha256(archive.origin) if archive.origin else None,
        requires=sorted(needs & locked), files=wheels.digests(facts.path))


def _plugins(made: Made, parsed: Parsed, archives: list[Archive], brought: list[Brought]) -> None:
    lock, manifests = made.lock, dict[str, Manifest]()
    for archive in archives:
        for name, module in archive.facts.entry_points.items():
            package = module.split(".")[0]
            if name in lock.plugins:
                raise _clash(name, lock.plugins[name].distribution, archive.facts.name)
            lock.plugins[name] = Locked(version=archive.facts.version, distribution=archive.facts.name, package=package)
            where = f"{package}/{wheels.MANIFEST} of {archive.facts.name} {archive.facts.version}"
            manifests[name] = folders.manifest_of(archive.facts.manifests[name], where, name)
    for item in brought:
        if item.plugin is None or item.folder is None:
            continue
        if item.plugin in lock.plugins:
            raise _clash(item.plugin, lock.plugins[item.plugin].distribution, str(item.source.spec))
        manifests[item.plugin] = folders.manifest_of_folder(item.folder, item.plugin)
        lock.plugins[item.plugin] = Locked(version=manifests[item.plugin].version or "", source=item.source,
                                           files=folder_digests(item.folder))
    _check(made, parsed, manifests)
    have = {canonical(p.distribution) for p in lock.plugins.values() if p.distribution}
    for n, item in enumerate(brought):
        if item.requirement is not None and item.wheel is None:
            name = canonical(requirement(item.requirement).name)
            if name not in have:
                made.notes.append(f"{parsed.path}, line {parsed.wanted[n][1]}: {name} brings no plugin")


def _clash(name: str, first: str | None, second: str) -> ManagerError:
    return ManagerError("name-clash", f"the plugin {name!r} comes from {first or 'a folder'} and from {second}",
                        hint="leave one of the two out")


def _check(made: Made, parsed: Parsed, manifests: dict[str, Manifest]) -> None:
    """What only the whole set can tell: unknown names, dependencies that are not there, a kernel that does not fit."""
    for key in ("order", "block"):
        for n, name in enumerate(getattr(parsed.file, key)):
            if name not in manifests:
                raise parsed.refuse(f"$.{key}[{n}]", f"there is no plugin {name!r} in this harness", _near(name, manifests))
    out = set(parsed.file.block)
    for name, manifest in manifests.items():
        if not kernel_fits(manifest.kernel.requires, made.lock.kernel):
            raise ManagerError("kernel-range", f"needs kernel {manifest.kernel.requires}, this is {made.lock.kernel}",
                               context=f"plugin {name}")
        missing = [d for d in manifest.kernel.dependencies if d not in manifests or d in out]
        if missing and name not in out:
            raise ManagerError("missing-dependency", f"needs the plugin {missing[0]!r}, which is "
                               f"{'blocked' if missing[0] in out else 'not part of this harness'}",
                               context=f"plugin {name}", hint=f"add it to plugins, or block {name}, too")


def _near(name: str, known: Any) -> str:
    from difflib import get_close_matches

    near = get_close_matches(name, known, n=1)
    return f"did you mean {near[0]!r}?" if near else f"there are {', '.join(sorted(known)) or 'none'}"


def kernel_fits(requires: str | None, version: str) -> bool:
    from packaging.specifiers import InvalidSpecifier, SpecifierSet

    try:
        return SpecifierSet(requires or "").contains(re.sub(r"[^0-9.].*", "", version))
    except InvalidSpecifier:
        return False


def folder_digests(folder: Path) -> dict[str, str]:
    """Digest of every file below a plugin folder.

    :raises ManagerError: a link, or a name that cannot be stored.
    """
    found: dict[str, str] = {}
    for path in sorted(folder.rglob("*")):
        name = path.relative_to(folder).as_posix()
        if path.is_symlink():
            raise ManagerError("bad-plugin", f"{name[:200]!r} is a link; a lock holds files only", context=str(folder))
        if path.is_file() and "__pycache__" not in path.parts:
            if not lockfile.is_inside(name) or not name.isprintable():
                raise ManagerError("bad-plugin", f"the file name {name[:200]!r} does not work on every system",
                                   context=str(folder))
            found[name] = hashlib.sha256(path.read_bytes()).hexdigest()
    return found
