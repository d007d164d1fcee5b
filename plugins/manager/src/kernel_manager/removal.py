"""Changes that fetch nothing: enable, disable, uninstall, prune, rollback, and the marketplaces."""

from __future__ import annotations

import re
import shutil

from kernel_manager import policy
from kernel_manager.changes import Edits
from kernel_manager.errors import ManagerError
from kernel_manager.markets import source_of
from kernel_manager.operations import Answer, Work, not_counting, scope_of
from kernel_manager.resolve import needs_of
from kernel_manager.scopes import SCOPES
from kernel_manager.state import Record, State
from kernel_manager.storing import sweep

SWEEP_DAYS = 14.0
"""How long a version that nobody needs any more stays: a running session may still use it (contract, 7)."""


def enable(work: Work, id: str, scope: str | None) -> Answer:
    """Switch a plugin on where it is installed, with what it depends on.

    :raises ManagerError: ``name-clash``, ``dependency-unsatisfied``, ``blocked-by-policy``.
    """
    policy.check_plugin(work.scopes.settings, id)
    scope = scope_of(work, id, scope)
    wanted = _closure(work, id)
    for other in work.state.plugins:
        record = work.state.find(other, work.scopes.projects)
        clash = next((i for i, r in wanted.items() if record is not None and r.name.lower() == record.name.lower()), None)
        if clash is not None and other not in wanted and work.scopes.enabled(other)[0] is True:
            raise ManagerError("name-clash", f"its name {wanted[clash].name!r} belongs to the plugin {other} already",
                               context=f"plugin {clash}", hint=f"kernel plugins disable {other}")
    edits: Edits = {f"enabledPlugins/{i}": True for i in wanted if work.scopes.enabled(i) != (True, scope)}
    if edits:
        work.switch({work.scopes.file(scope): edits}, f"enable {id}")
    return Answer(ok=True, action="enable", id=id, scope=scope, version=wanted[id].version, changed=bool(edits),
                  warnings=not_counting(work, id, scope),
                  dependencies=[i for i in wanted if i != id])


def _closure(work: Work, id: str) -> dict[str, Record]:
    found: dict[str, Record] = {}
    pending = [id]
    while pending:
        current = pending.pop()
        record = work.state.find(current, work.scopes.projects)
        if record is None:
            raise ManagerError("dependency-unsatisfied", f"needs {current}, which is not installed", context=f"plugin {id}",
                               hint=f"kernel plugins install {id} installs what is missing")
        found[current] = record
        pending += [n.id for n in needs_of(current, record.dependencies) if n.id not in found]
    return found


def dependents(work: Work, id: str, *, enabled_only: bool = True) -> list[str]:
    """Plugins that need this one here."""
    found: list[str] = []
    for other in work.state.plugins:
        record = work.state.find(other, work.scopes.projects)
        if record is None or other == id or (enabled_only and work.scopes.enabled(other)[0] is not True):
            continue
        if any(n.id.lower() == id.lower() for n in needs_of(other, record.dependencies)):
            found.append(other)
    return found


def _round(work: Work, id: str) -> list[str]:
    """Plugins that need this one and that it needs itself: of such a round none can go alone."""
    needers, pending = set[str](), [id]
    while pending:
        more = set(dependents(work, pending.pop())) - needers - {id}
        needers |= more
        pending += more
    needed, pending = set[str](), [id]
    while pending:
        current = pending.pop()
        record = work.state.find(current, work.scopes.projects)
        names = {n.id.lower() for n in needs_of(current, record.dependencies)} if record else set()
        new = {i for i in needers - needed if i.lower() in names}
        needed |= new
        pending += new
    return sorted(needed)


def _refuse_while_needed(work: Work, id: str, action: str, together: list[str]) -> None:
    needed = sorted({other for each in (id, *together) for other in dependents(work, each)} - {id, *together})
    if needed:
        chain = " && ".join(f"kernel plugins {action} {i}" for i in [*needed, id])
        raise ManagerError("needed", f"{', '.join(needed)} needs it", context=f"plugin {id}", hint=chain)


def disable(work: Work, id: str, scope: str | None) -> Answer:
    """Switch a plugin off; its files stay.

    :raises ManagerError: ``needed``: an enabled plugin depends on it.
    """
    if work.scopes.managed(id) is True:
        raise ManagerError("blocked-by-policy", f"the plugin {id} is switched on by managed settings")
    scope = scope_of(work, id, scope)
    record = work.state.find(id, work.scopes.projects, scope)
    assert record is not None
    on = work.scopes.enabled(id)[0] is True
    together: list[str] = []
    if on:
        together = _round(work, id)
        _refuse_while_needed(work, id, "disable", together)
        edits: dict[str, Edits] = {work.scopes.file(scope): {f"enabledPlugins/{id}": False}}
        for other in together:
            edits.setdefault(work.scopes.file(scope_of(work, other, None)), {})[f"enabledPlugins/{other}"] = False
        work.switch(edits, f"disable {id}", settings_first=True)
    return Answer(ok=True, action="disable", id=id, scope=scope, version=record.version, changed=on, dependencies=together)


def uninstall(work: Work, id: str, scope: str | None, *, keep_data: bool = False, prune_after: bool = False) -> Answer:
    """Take a plugin out of one scope. Its files stay in the store for a way back; its data go with its last scope."""
    scope = scope_of(work, id, scope)
    record = work.state.find(id, work.scopes.projects, scope)
    assert record is not None
    last = len(work.state.plugins[id]) == 1
    edits: dict[str, Edits] = {work.scopes.file(scope): {f"enabledPlugins/{id}": None}}
    if last:
        together = _round(work, id)
        _refuse_while_needed(work, id, "uninstall", together)
        for other in together:  # what came with it goes with it; what a person asked for stays, switched off
            edits.setdefault(work.scopes.file(scope_of(work, other, None)), {})[f"enabledPlugins/{other}"] = False
    work.state.drop(id, record)
    gone = _drop_unneeded(work, edits) if prune_after else []
    work.switch(edits, f"uninstall {id} {record.version}", settings_first=True)
    if last and not keep_data:
        remove_data(work, id)
    return Answer(ok=True, action="uninstall", id=id, scope=scope, version=record.version, changed=True, dependencies=gone)


def remove_data(work: Work, id: str) -> None:
    folder = work.home.config / "plugins" / "data" / re.sub(r"[^A-Za-z0-9_-]", "-", id)
    if folder.is_dir() and not folder.is_symlink():
        shutil.rmtree(folder, ignore_errors=True)


def unneeded(state: State) -> list[tuple[str, Record]]:
    """Plugins that came for others and that nobody needs any more, in any scope."""
    gone: list[tuple[str, Record]] = []
    while True:
        left = {(id, r.place()): r for id, rs in state.plugins.items() for r in rs if (id, r) not in gone}
        needed = {n.id.lower() for (id, _), r in left.items() for n in needs_of(id, r.dependencies)}
        more = [(id, r) for (id, _), r in left.items() if r.auto and id.lower() not in needed]
        if not more:
            return gone
        gone += more


def _drop_unneeded(work: Work, edits: dict[str, Edits], scope: str | None = None) -> list[str]:
    dropped: list[str] = []
    for id, record in unneeded(work.state):
        if scope in (None, record.scope) and (record.scope == "user" or record.project_path in work.scopes.projects):
            work.state.drop(id, record)
            edits.setdefault(work.scopes.file(record.scope), {})[f"enabledPlugins/{id}"] = None
            dropped.append(id)
    return dropped


def prune(work: Work, scope: str | None, *, dry_run: bool) -> dict[str, object]:
    """Remove plugins that came as dependencies and are needed no more, and versions that nothing refers to."""
    edits: dict[str, Edits] = {}
    gone = _drop_unneeded(work, edits, scope)
    swept: list[str] = []
    if not dry_run:
        if gone:
            work.switch(edits, f"prune {', '.join(gone)}", settings_first=True)
        swept = sweep(work.home, work.home.read(), SWEEP_DAYS)
    return {"ok": True, "action": "prune", "changed": bool(not dry_run and (gone or swept)), "removed": gone, "swept": swept,
            "dryRun": dry_run}


def rollback(work: Work, to: int | None = None, *, dry_run: bool = False) -> dict[str, object]:
    """Go back to an earlier state: plugins, versions, marketplaces, and what settings switched on or off with them.

    :raises ManagerError: there is none, or a version of it was swept.
    """
    earlier = work.home.earlier()
    if not earlier:
        raise ManagerError("not-found", "there is no earlier state to go back to")
    target = to if to is not None else earlier[0][0]
    file = next((f for n, f in earlier if n == target), None)
    if file is None:
        raise ManagerError("not-found", f"there is no state {target}", hint=f"one of {', '.join(str(n) for n, _ in earlier)}")
    state = work.home.read(file)
    missing = [p for p in sorted(state.stored()) if not (work.home.root / p).is_dir() and p.startswith("store/")]
    if missing:
        raise ManagerError("not-found", f"{missing[0]} is no longer in the store", hint="install that version again")
    edits: dict[str, Edits] = {}
    for later in (work.state, *(work.home.read(f) for n, f in earlier if n > target)):
        for path, edit in later.undo.items():
            edits.setdefault(path, {}).update(edit)
    answer: dict[str, object] = {"ok": True, "action": "rollback", "changed": not dry_run, "from": work.state.generation,
                                 "to": target, "undone": work.state.did, "dryRun": dry_run,
                                 "plugins": {i: [r.version for r in rs] for i, rs in state.plugins.items()}}
    if not dry_run:
        state.generation = work.state.generation
        work.state = state
        work.home.switch(state, edits, f"rollback to {target}", settings_first=True)
    return answer


# -- marketplaces ----------------------------------------------------------------------------------------------------------
def add_marketplace(work: Work, spec: str, scope: str = "user") -> dict[str, object]:
    """Fetch a catalogue, check it, and remember it. A second one of the same name replaces the first."""
    source = source_of(spec, work.scopes.cwd)
    known, opened = work.markets.fetch(source)
    before = work.state.marketplaces.get(opened.name)
    changed = before is None or before.source != known.source or before.install_location != known.install_location
    work.state.marketplaces[opened.name] = known
    if changed:
        work.switch({work.scopes.file(scope): {f"extraKnownMarketplaces/{opened.name}": {"source": source}}},
                    f"marketplace add {opened.name}")
    return {"ok": True, "action": "marketplace-add", "name": opened.name, "source": source, "scope": scope, "changed": changed,
            "plugins": len(opened.entries), "warnings": opened.warnings}


def update_marketplaces(work: Work, name: str | None) -> dict[str, object]:
    """Fetch one catalogue, or all, again. One that cannot be fetched keeps its last one and is named."""
    names = [name] if name else list(work.markets.known())
    changed: list[str] = []
    failed: dict[str, str] = {}
    for each in names:
        try:
            known, opened = work.markets.fetch(work.markets.source(each))
            if opened.name != each:
                raise ManagerError("bad-marketplace", f"its catalogue is now named {opened.name!r}",
                                   context=f"marketplace {each}")
        except ManagerError as error:
            if name:
                raise
            failed[each] = str(error)
            continue
        before = work.state.marketplaces.get(each)
        known.auto_update = before.auto_update if before else False
        if before is None or before.install_location != known.install_location:
            changed.append(each)
        work.state.marketplaces[each] = known
    if changed:
        work.switch({}, f"marketplace update {', '.join(changed)}")
    return {"ok": not failed, "action": "marketplace-update", "updated": names, "changed": changed, "failed": failed}


def remove_marketplace(work: Work, name: str, scope: str | None, *, keep_data: bool = False) -> dict[str, object]:
    """Forget a marketplace in one scope, or in all; from the last one its plugins go, too."""
    if name not in work.markets.known():
        raise ManagerError("not-found", f"the marketplace {name!r} is not known", hint="kernel plugins marketplace list")
    edits: dict[str, Edits] = {}
    declaring = [layer.scope for layer, value in work.scopes.settings.by_layer("extraKnownMarketplaces")
                 if isinstance(value, dict) and name in value and layer.scope in SCOPES]
    for each in [scope] if scope else declaring:
        edits.setdefault(work.scopes.file(each), {})[f"extraKnownMarketplaces/{name}"] = None
    gone: list[str] = []
    if scope is None or set(declaring) <= {scope}:
        work.state.marketplaces.pop(name, None)
        for id in [i for i in work.state.plugins if i.rpartition("@")[2] == name]:
            for record in work.state.plugins.pop(id):
                if record.scope == "user" or record.project_path in work.scopes.projects:
                    edits.setdefault(work.scopes.file(record.scope), {})[f"enabledPlugins/{id}"] = None
            gone.append(id)
    work.switch(edits, f"marketplace remove {name}", settings_first=True)
    for id in gone if not keep_data else ():
        remove_data(work, id)
    return {"ok": True, "action": "marketplace-remove", "name": name, "changed": True, "uninstalled": gone}
