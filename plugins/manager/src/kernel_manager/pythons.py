"""Python requirements of plugins: the real resolver says which wheels are missing, and they are unpacked, never run.

What the environment already has is kept as it is and is a constraint: one process cannot hold two versions of one
package. Nothing is installed into the environment; each distribution gets a folder of its own (``Distribution``).
"""

from __future__ import annotations

import importlib.util
import json
import re
import shutil
import sys
from pathlib import Path
from typing import Any
from urllib.parse import unquote, urlsplit

from msgspec import Struct, field

from kernel_manager.errors import ManagerError
from kernel_manager.names import canonical
from kernel_manager.programs import run
from kernel_manager.tree import digest
from kernel_manager.wheels import unpack_wheel

TIMEOUT = 600.0
_NO_PROGRAMS = """
import os, sys, runpy
def refuse(event, args):
    if event not in ("subprocess.Popen", "os.system", "os.exec", "os.posix_spawn", "os.fork", "os.forkpty"):
        return
    if event == "subprocess.Popen" and os.path.basename(str(args[0])) in ("lsb_release", "uname", "rustc", "sw_vers"):
        raise FileNotFoundError(2, "not now")  # pip asks them what it runs on, and goes on without an answer
    print("ERROR: it has no wheel, and building it would run its code", file=sys.stderr, flush=True)
    os._exit(97)
sys.addaudithook(refuse)
sys.argv[0] = "pip"
runpy.run_module("pip", run_name="__main__")
"""
"""pip builds what has no wheel, and with a direct URL it does so whatever its options say. Building is a process; so none
may be started."""


class Index(Struct, frozen=True):
    """Where distributions come from, besides what pip or uv is configured for."""

    find_links: tuple[str, ...] = ()
    no_index: bool = False
    allow_build: bool = False

    def flags(self) -> list[str]:
        return [*(["--no-index"] if self.no_index else []), *(f for d in self.find_links for f in ("--find-links", d))]


class Distribution(Struct, kw_only=True):
    """One distribution beside the environment. ``folder`` is where it is unpacked now; ``digest`` is over its files."""

    name: str
    version: str
    digest: str = ""
    wheel: str | None = None
    sha256: str | None = None
    folder: Path | None = None
    warnings: list[str] = field(default_factory=list)

    @property
    def key(self) -> str:
        return canonical(self.name)


def missing(requirements: list[str]) -> list[str]:
    """The requirements that the environment does not satisfy. Markers count; extras of what is there are not followed."""
    from importlib import metadata

    from packaging.requirements import InvalidRequirement, Requirement

    found: list[str] = []
    for text in requirements:
        try:
            requirement = Requirement(text)
        except InvalidRequirement as error:
            raise ManagerError("bad-requirement", f"{text[:200]!r} is no Python requirement: {error}") from None
        if requirement.marker is not None and not requirement.marker.evaluate({"extra": ""}):
            continue
        try:
            have = metadata.version(requirement.name)
        except metadata.PackageNotFoundError:
            found.append(text)
            continue
        if requirement.extras or requirement.url or not requirement.specifier.contains(have, prereleases=True):
            found.append(text)
    return found


def resolve(requirements: list[str], wheels: list[Path], pinned: dict[str, str], staging: Path,
            index: Index) -> list[Distribution]:
    """Resolve, fetch and unpack what is missing, the given wheels included.

    :param pinned: name -> version of what other plugins already brought; it is a constraint.
    :param staging: a new folder; each distribution is unpacked below it.
    :raises ManagerError: ``resolve-failed``, ``needs-build``, ``unsafe-archive``, ``bad-archive``.
    """
    _no_builds(requirements, index)
    staging.mkdir(parents=True, exist_ok=True)
    constraints = staging / "constraints.txt"
    constraints.write_text("".join(f"{n}=={v}\n" for n, v in sorted({**pinned, **_environment()}.items())
                                   if n not in {canonical(w.name.split("-")[0]) for w in wheels}))
    asked = [*requirements, *(str(w) for w in wheels)]
    found = (_by_uv if shutil.which("uv") else _by_pip)(asked, constraints, staging, index)
    for distribution in found:
        assert distribution.folder is not None
        distribution.digest = digest(distribution.folder)
    return found


def _no_builds(requirements: list[str], index: Index) -> None:
    for text in requirements:
        url = text.partition(" @ ")[2].partition(";")[0].strip()
        if url and not index.allow_build and not urlsplit(url).path.endswith(".whl"):
            raise ManagerError("needs-build", f"{text[:200]!r} is no wheel, and building it runs its code",
                               hint="allow it with --allow-build")


def _environment() -> dict[str, str]:
    """What is installed here, as constraints. Versions that are no exact pin for pip are left out."""
    from importlib import metadata

    found = ((d.name, d.version) for d in metadata.distributions())
    return {canonical(name): version for name, version in found if name and re.fullmatch(r"[0-9][\w.!+-]*", version or "")}


def has_pip() -> bool:
    return importlib.util.find_spec("pip") is not None


def _pip(command: str, *args: str, cwd: Path, index: Index) -> str:
    if not has_pip():
        raise ManagerError("missing-program", "neither uv nor pip is there to resolve Python requirements",
                           hint="python -m ensurepip, or install uv")
    start = ["-m", "pip"] if index.allow_build else ["-c", _NO_PROGRAMS]
    only = [] if index.allow_build else ["--only-binary", ":all:"]
    try:
        return run([sys.executable, "-P", *start, command, *only, *index.flags(), *args], cwd=cwd, timeout=TIMEOUT,
                   type="resolve-failed", what="pip")
    except ManagerError as error:
        if "building it would run its code" not in error.message:
            raise
        raise ManagerError("needs-build", "something that is needed has no wheel, and building it runs its code", context="pip",
                           hint="allow it with --allow-build") from None


def _by_pip(asked: list[str], constraints: Path, staging: Path, index: Index) -> list[Distribution]:
    report = staging / "report.json"
    _pip("install", "--quiet", "--dry-run", "--report", str(report), "--constraint", str(constraints), "--", *asked,
         cwd=staging, index=index)
    found: list[Distribution] = []
    fetch: list[str] = []
    for item in json.loads(report.read_text("utf-8"))["install"]:
        found.append(_distribution(item))
        url = str(item["download_info"]["url"])
        local = Path(unquote(urlsplit(url).path)) if url.startswith("file:") else None
        if local is not None and local.suffix == ".whl" and local.is_file():
            found[-1].wheel = str(local)
        elif found[-1].sha256 and not item.get("is_direct"):
            fetch.append(f"{found[-1].name}=={found[-1].version} --hash=sha256:{found[-1].sha256}\n")
        else:
            fetch.append(f"{found[-1].name} @ {url}\n" if "dir_info" not in item["download_info"] else f"{url}\n")
    if fetch:
        (staging / "fetch.txt").write_text("".join(fetch))
        command = ("wheel", "--wheel-dir") if index.allow_build else ("download", "--dest")
        _pip(command[0], command[1], str(staging / "wheels"), "--quiet", "--no-deps", "-r", str(staging / "fetch.txt"),
             cwd=staging, index=index)
    return [_unpacked(d, staging, built=index.allow_build) for d in found]


def _distribution(item: dict[str, Any]) -> Distribution:
    metadata, info = item["metadata"], item["download_info"].get("archive_info", {})
    hashes = info.get("hashes") or dict([str(info.get("hash", "=")).split("=", 1)])
    return Distribution(name=str(metadata["name"]), version=str(metadata["version"]), sha256=hashes.get("sha256"))


def _unpacked(distribution: Distribution, staging: Path, built: bool) -> Distribution:
    """The distribution's wheel, found among the fetched ones, checked against its digest and unpacked.

    :param built: the wheel may have been made here, from a source whose digest the resolver told.
    """
    import hashlib

    if distribution.wheel is None:
        wheels = [w for w in (staging / "wheels").glob("*.whl") if canonical(w.name.split("-")[0]) == distribution.key]
        if len(wheels) != 1:
            raise ManagerError("resolve-failed", f"no wheel came for {distribution.name} {distribution.version}")
        distribution.wheel = str(wheels[0])
    wheel = Path(distribution.wheel)
    got = hashlib.sha256(wheel.read_bytes()).hexdigest()
    if distribution.sha256 not in (None, got) and not built:
        raise ManagerError("pin-mismatch", f"is not the file that was resolved (sha256 {got})", context=wheel.name)
    distribution.sha256 = got
    distribution.folder = staging / "unpacked" / distribution.key
    distribution.warnings = unpack_wheel(wheel, distribution.folder)
    distribution.wheel = wheel.name
    return distribution


_WOULD = re.compile(r"^ \+ ([A-Za-z0-9._-]+)(?:==(\S+)| @ (\S+))", re.MULTILINE)


def _by_uv(asked: list[str], constraints: Path, staging: Path, index: Index) -> list[Distribution]:
    """uv has no report, but says the exact set; each distribution is then installed alone into its folder."""
    base = ["--python", sys.executable, *([] if index.allow_build else ["--no-build"]), *index.flags()]
    (staging / "asked.txt").write_text("\n".join(asked) + "\n")
    said = run(["uv", "pip", "install", "--dry-run", "--color", "never", *base, "--constraint", str(constraints), "-r",
                str(staging / "asked.txt")], cwd=staging, timeout=TIMEOUT, type="resolve-failed", what="uv", stderr=True)
    found: list[Distribution] = []
    for name, version, url in _WOULD.findall(said):
        folder = staging / "unpacked" / canonical(name)
        local = Path(unquote(urlsplit(url).path)) if url.startswith("file:") and url.endswith(".whl") else None
        if local is not None:
            known = Distribution(name=name, version=local.name.split("-")[1], wheel=str(local))
            found.append(_unpacked(known, staging, built=False))
            continue
        run(["uv", "pip", "install", "--quiet", "--no-deps", "--target", str(folder), *base, "--",
             f"{name} @ {url}" if url else f"{name}=={version}"], cwd=staging, timeout=TIMEOUT, type="resolve-failed", what="uv")
        for left in ("bin", ".lock"):
            path = folder / left
            shutil.rmtree(path, ignore_errors=True) if path.is_dir() else path.unlink(missing_ok=True)
        version = version or next((p.stem.rpartition("-")[2] for p in folder.glob("*.dist-info")), "unknown")
        found.append(Distribution(name=name, version=version, folder=folder))
    return found
