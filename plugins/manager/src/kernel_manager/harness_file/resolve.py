"""From requirements to archives.

Most questions have no choice in them: every package's highest version fits everything that is asked of it. Over a folder of
wheels without an index that is found here, in milliseconds; any resolver would come to the same. Wherever a choice would
have to be taken back, or an index, a source archive or a URL takes part, uv or pip answer.
"""

from __future__ import annotations

import hashlib
import os
import sys
import tempfile
from collections.abc import Iterable
from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

import msgspec

from kernel import __version__
from kernel_manager.errors import ManagerError
from kernel_manager.harness_file import tools, wheels
from kernel_manager.harness_file.tools import Ways
from kernel_manager.harness_file.wheels import Facts
from kernel_manager.names import canonical

if TYPE_CHECKING:
    from packaging.requirements import Requirement

KERNEL = "kernel-harness"


class Archive:
    """One distribution of the answer. ``origin`` is the file of the index or folder; a wheel that was built here has none.
    ``url`` is where it comes from, where a requirement said so itself (``NAME @ URL``)."""

    def __init__(self, facts: Facts, origin: Path | None, url: str | None = None) -> None:
        self.facts, self.origin, self.url = facts, origin, url


def resolve(roots: list[str], given: list[Facts], prefer: dict[str, str], ways: Ways, work: Path) -> list[Archive]:
    """Archives for the requirements and all that they need; the kernel itself is never among them.

    :param given: wheels that are decided already (built from folders of the harness).
    :param prefer: name -> version to take where it fits.
    :param work: a scratch folder.
    :raises ManagerError: ``resolver``: no set of versions fits, or something cannot be fetched.
    """
    kernel = running_kernel()
    roots = [*roots, *kernel.requires]
    if ways.no_index:
        ways.say("resolving")
        found = _Walk(ways, [*given, kernel], prefer).run(roots)
        if found is not None:
            return [Archive(f, None if f in given else f.path) for f in found if f.name != KERNEL]
    return _by_program(roots, given, kernel, prefer, ways, work)


def running_kernel() -> Facts:
    """The kernel that runs, as something that is already chosen: a harness is locked for the kernel that locks it."""
    from importlib.metadata import PackageNotFoundError, distribution

    try:
        found = distribution(KERNEL)
    except PackageNotFoundError:
        raise ManagerError("no-kernel", f"the distribution {KERNEL} is not installed, so what it needs is not known",
                           hint="pip install kernel-harness") from None
    requires = [text for text in found.requires or [] if canonical(requirement(text).name) != "editables"]  # of the checkout
    return Facts(path=Path(), name=KERNEL, version=__version__, requires=requires, pure=True)


# -- without a choice ---------------------------------------------------------------------------------------------------
@lru_cache(maxsize=20_000)
def requirement(text: str) -> Requirement:
    from packaging.requirements import InvalidRequirement, Requirement

    try:
        return Requirement(text)
    except InvalidRequirement as error:
        raise ManagerError("resolver", f"{text[:200]!r} is no requirement: {str(error).splitlines()[0]}") from None


def applies(needed: Requirement, extras: Iterable[str]) -> bool:
    """Whether a requirement counts here, for any of the extras that were asked for."""
    if needed.marker is None:
        return True
    return any(needed.marker.evaluate({"extra": extra}) for extra in (*extras, ""))


class _Walk:
    """Take the best candidate of each name; give up when a later requirement does not fit an earlier choice."""

    def __init__(self, ways: Ways, given: list[Facts], prefer: dict[str, str]) -> None:
        self.given = {f.name: f for f in given}
        self.prefer = prefer
        self.files, self.sources = _offers(ways.find_links)
        self.asked: dict[str, list[Requirement]] = {}
        self.chosen: dict[str, Facts] = {}

    def run(self, roots: list[str]) -> list[Facts] | None:
        waiting: list[tuple[str, tuple[str, ...]]] = [(text, ()) for text in roots]
        done: set[tuple[str, str]] = set()
        while waiting:
            # all that is known is heard before anything is chosen: fewer choices turn out wrong
            names: dict[str, set[str]] = {}
            for text, extras in waiting:
                needed = requirement(text)
                if not applies(needed, extras):
                    continue
                name = canonical(needed.name)
                if needed.url is not None or name in self.sources:
                    return None
                self.asked.setdefault(name, []).append(needed)
                names.setdefault(name, set()).update(("", *needed.extras))
            waiting = []
            for name in names:
                facts = self.chosen.get(name) or self._best(name)
                if facts is None or not self._fits(facts):
                    return None
                self.chosen[name] = facts
                for extra in sorted(names[name]):
                    if (name, extra) not in done:
                        done.add((name, extra))
                        waiting += [(text, (extra,)) for text in facts.requires]
        return [self.chosen[name] for name in sorted(self.chosen)]

    def _fits(self, facts: Facts) -> bool:
        mine = facts.name in self.given
        return all(r.specifier.contains(facts.version, prereleases=True if mine else None) for r in self.asked[facts.name])

    def _best(self, name: str) -> Facts | None:
        if name in self.given:
            return self.given[name]
        fitting = [(version, rank, path) for version, rank, path in self.files.get(name, ())
                   if all(r.specifier.contains(version) for r in self.asked[name])]
        if not fitting:
            return None
        liked = [f for f in fitting if str(f[0]) == self.prefer.get(name)]
        facts = wheels.facts(max(liked or fitting, key=lambda f: f[:2])[2])
        return facts if facts.name == name and _python_fits(facts.requires_python) else None


def _offers(folders: list[Path]) -> tuple[dict[str, list[tuple[Any, int, Path]]], set[str]]:
    """Name -> (version, how well the wheel fits, file) of the wheels that fit here; and the names that have source archives."""
    from packaging.tags import sys_tags
    from packaging.utils import InvalidWheelFilename, parse_wheel_filename

    ranks = {tag: -n for n, tag in enumerate(sys_tags())}
    found: dict[str, list[tuple[Any, int, Path]]] = {}
    sources: set[str] = set()
    for folder in folders:
        try:
            files = sorted(folder.iterdir())
        except OSError as error:
            raise ManagerError("resolver", f"cannot be read: {error.strerror}", context=f"--find-links {folder}") from None
        for path in files:
            if path.name.endswith((".tar.gz", ".zip", ".tgz", ".tar.bz2")):
                sources.add(canonical(path.name.rsplit("-", 1)[0]))
            if path.suffix != ".whl":
                continue
            try:
                name, version, _, tags = parse_wheel_filename(path.name)
            except InvalidWheelFilename:
                continue
            rank = max((ranks[t] for t in tags if t in ranks), default=None)
            if rank is not None:
                found.setdefault(name, []).append((version, rank, path))
    return found, sources


def _python_fits(requires: str | None) -> bool:
    from packaging.specifiers import InvalidSpecifier, SpecifierSet

    try:
        return requires is None or SpecifierSet(requires).contains(".".join(map(str, sys.version_info[:3])))
    except InvalidSpecifier:
        return False


# -- with a resolver ------------------------------------------------------------------------------------------------------
def _by_program(roots: list[str], given: list[Facts], kernel: Facts, prefer: dict[str, str], ways: Ways,
                work: Path) -> list[Archive]:
    offered = Path(tempfile.mkdtemp(prefix="offered-", dir=work))
    _kernel_wheel(kernel, offered)
    for facts in given:
        (offered / facts.path.name).write_bytes(facts.path.read_bytes())
    decided = [f"{f.name}=={f.version}" for f in [*given, kernel]]
    ways = msgspec.structs.replace(ways, find_links=[offered, *ways.find_links])
    liked = [f"{name}=={version}" for name, version in prefer.items() if name not in {f.name for f in [*given, kernel]}]
    try:
        pins = _pins(roots, [*decided, *liked], ways, work)
    except ManagerError:
        if not liked:
            raise
        pins = _pins(roots, decided, ways, work)  # what was locked before does not fit any more
    mine = {f.name: f for f in given}
    rest = {name: pin for name, pin in pins.items() if name not in mine and name != KERNEL}
    found = [*(Archive(f, None) for f in given), *fetch(rest, ways, work)]
    return sorted(found, key=lambda a: a.facts.name)


def _pins(roots: list[str], constraints: list[str], ways: Ways, work: Path) -> dict[str, str]:
    """Name -> pinned requirement of everything that is needed."""
    asked, limits = work / "asked.txt", work / "limits.txt"
    asked.write_text("\n".join(roots) + "\n", "utf-8")
    limits.write_text("\n".join(constraints) + "\n", "utf-8")
    program = tools.uv()
    if program:
        ways.say("resolving with uv")
        said = tools.run([program, "pip", "compile", "--quiet", "--no-header", "--no-annotate", "--python", sys.executable,
                          *ways.arguments(), "--constraint", str(limits), str(asked)], cwd=work, what="resolving with uv")
        lines = [line for line in said.splitlines() if line.strip() and not line.lstrip().startswith(("#", "-"))]
        return {canonical(requirement(line).name): line for line in lines}
    import json

    ways.say("resolving with pip")
    report = work / "report.json"
    tools.run_pip("install", ["--dry-run", "--ignore-installed", "--report", str(report), *_isolation(ways), *ways.arguments(),
                              "-c", str(limits), "-r", str(asked)], cwd=work, what="resolving with pip")
    found: dict[str, str] = {}
    for item in json.loads(report.read_bytes())["install"]:
        name, version = item["metadata"]["name"], item["metadata"]["version"]
        direct = item.get("is_direct") and item["download_info"]["url"]
        found[canonical(name)] = f"{name} @ {_with_commit(item['download_info'])}" if direct else f"{name}=={version}"
    return found


def _with_commit(info: dict[str, Any]) -> str:
    """A direct URL with the commit that it came to."""
    url, vcs = str(info["url"]), info.get("vcs_info")
    if vcs:
        folder = f"#subdirectory={info['subdirectory']}" if info.get("subdirectory") else ""
        return f"{vcs['vcs']}+{url}@{vcs['commit_id']}{folder}"
    return url


def fetch(pins: dict[str, str], ways: Ways, work: Path) -> list[Archive]:
    """Download what the pins name; source archives become wheels.

    :raises ManagerError: ``resolver``.
    """
    if not pins:
        return []
    ways.say(f"fetching {len(pins)} distributions")
    folder, built = Path(tempfile.mkdtemp(prefix="fetched-", dir=work)), Path(tempfile.mkdtemp(prefix="built-", dir=work))
    asked = work / "pins.txt"
    asked.write_text("\n".join(pins.values()) + "\n", "utf-8")
    tools.run_pip("download", ["--no-deps", "--dest", str(folder), *_isolation(ways), *ways.arguments(), "-r", str(asked)],
                  cwd=work, what="downloading")
    found: list[Archive] = []
    for path in sorted(folder.iterdir()):
        facts = wheels.facts(path if path.suffix == ".whl" else build(path, built, ways))
        url = pins.get(facts.name, "").partition(" @ ")[2].strip() or None
        found.append(Archive(facts, None if url else path, url))
    return found


def build(source: Path, folder: Path, ways: Ways) -> Path:
    """A wheel of a project folder or a source archive. This runs the project's build backend, once for each scratch folder: what
    was built to be compared with a lock is what a new lock is made of.

    :raises ManagerError: ``resolver``.
    """
    into = folder / f"wheel-{hashlib.sha256(os.fsencode(source)).hexdigest()[:16]}"
    if not any(into.glob("*.whl")):
        ways.say(f"building {source.name}")
        into.mkdir(exist_ok=True)
        tools.run_pip("wheel", ["--no-deps", "--wheel-dir", str(into), *_isolation(ways), *ways.arguments(), str(source)],
                      cwd=folder, what=f"building {source}")
    return next(into.glob("*.whl"))


def _isolation(ways: Ways) -> list[str]:
    return [] if ways.build_isolation else ["--no-build-isolation"]


def _kernel_wheel(kernel: Facts, folder: Path) -> None:
    """A wheel of the running kernel's metadata, so that a resolver finds it without an index."""
    import zipfile

    info = f"kernel_harness-{kernel.version}.dist-info"
    needs = "".join(f"Requires-Dist: {text}\n" for text in kernel.requires)
    files = {"METADATA": f"Metadata-Version: 2.1\nName: {KERNEL}\nVersion: {kernel.version}\n{needs}",
             "WHEEL": "Wheel-Version: 1.0\nGenerator: kernel\nRoot-Is-Purelib: true\nTag: py3-none-any\n"}
    files["RECORD"] = "".join(f"{info}/{name},,\n" for name in [*files, "RECORD"])
    with zipfile.ZipFile(folder / f"kernel_harness-{kernel.version}-py3-none-any.whl", "w") as wheel:
        for name, text in files.items():
            wheel.writestr(f"{info}/{name}", text)
