"""Put what was fetched and checked into the store, and write the records of the new state."""

from __future__ import annotations

import re
from pathlib import Path

from kernel_manager.candidates import Candidate
from kernel_manager.errors import ManagerError
from kernel_manager.state import Home, Record, State, StoredDistribution, now
from kernel_manager.steps import step
from kernel_manager.tree import digest


def keep(home: Home, folder: Path, name: str, version: str, known: str) -> str:
    """Move a folder into the store by rename; returns its name relative to the plugins folder. One that is there already
    with the same content is used.

    :raises ManagerError: ``damaged-store``: what is there is not what it should be, and cannot be replaced.
    """
    safe = re.sub(r"[^A-Za-z0-9._+-]", "-", version)[:40] or "unknown"
    place = home.store / f"{name}-{safe}-{known.removeprefix('sha256:')[:16]}"
    place.parent.mkdir(parents=True, exist_ok=True)
    if place.is_dir() and digest(place) != known:
        damaged = place.with_name(f"{place.name}.damaged")
        if damaged.exists():
            raise ManagerError("damaged-store", "was changed after it was installed", context=str(place),
                               hint="remove the folder")
        place.rename(damaged)
    if not place.is_dir():
        folder.rename(place)
    return str(place.relative_to(home.root))


def store(home: Home, candidate: Candidate, scope: str, project: str | None, before: Record | None) -> Record:
    """The record of a candidate whose folders now lie in the store."""
    step("store")
    known = candidate.description.digest
    distributions = [StoredDistribution(
        name=d.key, version=d.version, digest=d.digest, sha256=d.sha256,
        folder=keep(home, d.folder, f"py-{d.key}", d.version, d.digest)) for d in candidate.distributions if d.folder is not None]
    inner = candidate.fetched.root.relative_to(candidate.fetched.base)
    base = keep(home, candidate.fetched.base, candidate.name, candidate.version, known)
    code = candidate.description.code if candidate.description.implements else None
    path = [str(Path(base, code.path)) if code.path else base] if code is not None else []
    return Record(
        scope=scope, project_path=project, name=candidate.name, version=candidate.version, base=base, digest=known,
        install_path=str(Path(base, inner)), installed_at=before.installed_at if before else now(), last_updated=now(),
        git_commit_sha=candidate.fetched.commit, module=code.module if code else None,
        path=[*path, *(d.folder for d in distributions)], asked=candidate.asked, source=candidate.fetched.source,
        auto=candidate.auto and (before is None or before.auto), dependencies=candidate.description.dependencies,
        distributions=distributions)


def sweep(home: Home, state: State, days: float) -> list[str]:
    """Remove folders of the store that neither this state nor one of the last days needs; returns their names."""
    import shutil
    import time

    needed = state.stored()
    limit = time.time() - days * 86400
    for _, file in home.earlier():
        if file.stat().st_mtime >= limit:
            try:
                needed |= home.read(file).stored()
            except ManagerError:
                continue
        else:
            file.unlink(missing_ok=True)
    removed: list[str] = []
    for parent in (home.store, home.catalogues):
        for folder in sorted(parent.iterdir()) if parent.is_dir() else []:
            name = str(folder.relative_to(home.root))
            if name not in needed and folder.stat().st_mtime < limit:
                shutil.rmtree(folder, ignore_errors=True)
                removed.append(name)
    return removed
