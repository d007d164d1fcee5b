"""One plugin version that could be installed: fetched, completed with its marketplace entry, described and checked."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable
from importlib import metadata
from pathlib import Path
from typing import Any

from msgspec import Struct, field

from kernel import __version__ as kernel_version
from kernel_manager import pythons
from kernel_manager.describe import COMPONENTS, Description, describe, merged_manifest
from kernel_manager.errors import ManagerError
from kernel_manager.fetch import Fetched, Options, fetch
from kernel_manager.sources import Source
from kernel_manager.steps import step
from kernel_manager.wheels import MANIFEST


class Candidate(Struct, kw_only=True):
    """``asked`` is what an update fetches again, ``auto`` is true for one that only another plugin asked for."""

    id: str
    asked: Source
    fetched: Fetched
    description: Description
    version: str
    auto: bool = False
    distributions: list[pythons.Distribution] = field(default_factory=list)

    @property
    def name(self) -> str:
        return self.description.name

    @property
    def warnings(self) -> list[str]:
        return [*self.fetched.warnings, *self.description.warnings, *self.description.errors]


def make(id: str, asked: Source, source: Source, staging: Path, options: Options, *, entry: dict[str, Any] | None = None,
         auto: bool = False, tag: str | None = None, say: Callable[[str], None] = lambda text: None) -> Candidate:
    """Fetch and check one plugin.

    :param source: what to fetch; ``asked`` is what stands in the state.
    :param tag: the version that its git tag says.
    :raises ManagerError: whatever speaks against it.
    """
    step("fetch")
    say(f"fetching {source}")
    fetched = fetch(source, staging, options)
    if entry is not None:
        _complete(fetched, source, entry)
    step("check")
    rest = {k: v for k, v in entry.items() if k not in COMPONENTS and k != "strict"} if entry is not None else None
    found = describe(fetched.root, base=fetched.base, code=fetched.code, entry=rest, fallback_name=id.partition("@")[0])
    if found.requires_kernel and not _kernel_fits(found.requires_kernel):
        raise ManagerError("needs-kernel", f"needs kernel {found.requires_kernel}, this is {kernel_version}",
                           context=f"plugin {id}")
    version = found.version or (entry or {}).get("version") or (tag and tag.rpartition("--v")[2]) or fetched.version or "unknown"
    candidate = Candidate(id=id, asked=asked, fetched=fetched, description=found, version=str(version), auto=auto,
                          distributions=fetched.distributions)
    if found.code is not None and fetched.code is None:
        missing = pythons.missing(found.code.requires)
        if missing:
            step("python")
            say(f"resolving {', '.join(missing)}")
            candidate.distributions = pythons.resolve(missing, [], options.pinned, staging / "requirements", options.index)
    return candidate


def _kernel_fits(requires: str) -> bool:
    from packaging.specifiers import InvalidSpecifier, SpecifierSet

    try:
        return SpecifierSet(requires).contains(kernel_version, prereleases=True)
    except InvalidSpecifier:
        return False


def _complete(fetched: Fetched, source: Source, entry: dict[str, Any]) -> None:
    """Write what the entry adds into the copy's manifest, so that whoever loads the folder sees one definition (6.4, 6.5)."""
    own = {k: entry[k] for k in COMPONENTS if k in entry}
    file = fetched.root / MANIFEST
    if source.kind == "folder" and source.path == "." and isinstance(entry.get("skills"), list):
        _only_listed_skills(fetched.root, entry["skills"])
    data = merged_manifest(fetched.root, entry)
    if not own and file.is_file():
        return
    file.parent.mkdir(exist_ok=True)
    file.write_text(json.dumps(data, indent=2, ensure_ascii=False) + "\n", "utf-8")


def _only_listed_skills(root: Path, listed: list[Any]) -> None:
    """With the marketplace's root as the source, a list of skill folders is the whole list (6.5)."""
    names = {str(p).removeprefix("./").rstrip("/") for p in listed}
    if names & {"", ".", "skills"} or not any((root / n).is_dir() for n in names):
        return
    for folder in (root / "skills").glob("*"):
        relative = folder.relative_to(root).as_posix()
        if folder.is_dir() and not folder.is_symlink() and not any(n == relative or n.startswith(f"{relative}/") for n in names):
            shutil.rmtree(folder)


def environment_plugins() -> dict[str, str]:
    """Plugins that are installed as distributions of this environment: name -> distribution."""
    return {point.name: point.dist.name if point.dist else point.name for point in metadata.entry_points(group="kernel.plugins")}
