"""Changes of the plugin set. Each resolves, fetches and checks everything first, and then switches once."""

from __future__ import annotations

import errno
import tempfile
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any

from msgspec import Struct, field

from kernel_manager import health, policy
from kernel_manager.candidates import Candidate, environment_plugins
from kernel_manager.changes import Edits
from kernel_manager.errors import ManagerError
from kernel_manager.markets import Markets
from kernel_manager.resolve import Resolver, Wanted
from kernel_manager.scopes import Scopes
from kernel_manager.sources import parse
from kernel_manager.state import Home, Record, State
from kernel_manager.storing import store

Approve = Callable[[list[Candidate]], None]
"""Shows what plugins will do and raises ``not-approved`` where the person says no."""


class Answer(Struct, kw_only=True, omit_defaults=True):
    """What a change did, in the form of the contract (section 13)."""

    ok: bool
    action: str
    id: str
    scope: str
    version: str
    changed: bool
    dependencies: list[str] = field(default_factory=list)
    warnings: list[str] = field(default_factory=list)
    before: str | None = None
    dry_run: bool = False


class Work(Struct):
    """One change under way: the lock is held and a staging folder is there."""

    home: Home
    scopes: Scopes
    state: State
    staging: Path
    markets: Markets

    def resolver(self, wanted: Wanted) -> Resolver:
        return Resolver(self.markets, self.staging, wanted)

    def switch(self, edits: dict[str, Edits], did: str, *, settings_first: bool = False) -> None:
        self.state.marketplaces |= self.markets.fetched
        self.home.switch(self.state, edits, did, settings_first=settings_first)


@contextmanager
def working(home: Home | None = None, scopes: Scopes | None = None, *, damaged: bool = False,
            looking: bool = False) -> Iterator[Work]:
    """Everything that a change needs, under the lock.

    :param damaged: go on with a state file that cannot be read (for the way back).
    :param looking: nothing will be changed, so a folder that cannot be written to is no reason to stop.
    """
    home = home or Home()
    try:
        with ExitStack() as stack:
            try:
                stack.enter_context(home.locked())
                staging = stack.enter_context(home.staging())
            except OSError as error:
                if not looking or error.errno not in (errno.EROFS, errno.EACCES, errno.EPERM):
                    raise
                staging = Path(stack.enter_context(tempfile.TemporaryDirectory()))
            scopes = scopes or Scopes.here()  # only now: taking the lock may have carried a change to its end
            try:
                state = home.read()
            except ManagerError:
                if not damaged:
                    raise
                state = State(generation=home.earlier()[0][0] + 1 if home.earlier() else 0, did="what cannot be read")
            yield Work(home, scopes, state, staging, Markets(home, scopes, state, staging))
    except OSError as error:
        raise disk_error(error) from error


def disk_error(error: OSError) -> ManagerError:
    return ManagerError("disk", f"{error.strerror or error}; nothing was changed",
                        context=str(error.filename or "plugins folder"))


def install(work: Work, spec: str, wanted: Wanted, approve: Approve, *, config: dict[str, str] | None = None,
            dry_run: bool = False) -> Answer:
    """Install a plugin and what it needs in one scope, and enable them there.

    :raises ManagerError: nothing has changed then.
    """
    source = parse(spec, work.scopes.cwd)
    if source.kind == "catalogue" and source.marketplace:
        policy.check_plugin(work.scopes.settings, f"{source.name}@{source.marketplace}")
    stale = work.markets.refresh(source.marketplace) if source.marketplace else None
    resolver = work.resolver(wanted)
    root = resolver.add(source)
    policy.check_plugin(work.scopes.settings, root.id)
    candidates = list(resolver.chosen.values())
    check_clashes(work, candidates, wanted.scope)
    new = [c for c in candidates if not _same(work, c, wanted.scope)]
    edits = _enabling(work, candidates, resolver.kept, wanted.scope, root)
    if config:
        edits.setdefault(work.scopes.file("user"), {}).update(_options(work, root, config))
    if new:
        approve(new)
    answer = Answer(ok=True, action="install", id=root.id, scope=wanted.scope, version=root.version,
                    changed=bool(new) or any(edits.values()), dependencies=[c.id for c in candidates if c is not root],
                    warnings=[f"{c.id}: {w}" for c in candidates for w in c.warnings], dry_run=dry_run)
    answer.warnings += [stale] if stale else []
    answer.warnings += not_counting(work, root.id, wanted.scope)
    if dry_run or not answer.changed:
        return answer
    for candidate in new:
        put(work, candidate, wanted.scope)
    work.switch(edits, f"install {root.id} {root.version}")
    return answer


def not_counting(work: Work, id: str, scope: str) -> list[str]:
    """Why switching a plugin on in a scope has no effect here."""
    if scope in ("project", "local") and not work.scopes.settings.trusted:
        return ["this folder has not been trusted, so what it switches on does not count yet"]
    on, where = work.scopes.enabled(id)
    order = ("managed", "cli", "local", "project", "user")
    if on is False and where in order and order.index(where) < order.index(scope):
        return [f"the {where} settings switch {id} off, and come before those of the scope {scope}"]
    return []


def put(work: Work, candidate: Candidate, scope: str) -> None:
    project = work.scopes.project(scope)
    before = work.state.find(candidate.id, work.scopes.projects, scope)
    work.state.put(candidate.id, store(work.home, candidate, scope, project, before))


def _same(work: Work, candidate: Candidate, scope: str) -> bool:
    record = work.state.find(candidate.id, work.scopes.projects, scope)
    if record is None or record.digest != candidate.description.digest or not (work.home.root / record.base).is_dir():
        return False
    if record.auto and not candidate.auto:  # now asked for by a person
        return False
    return {d.name: d.version for d in record.distributions} == {d.key: d.version for d in candidate.distributions}


def _enabling(work: Work, candidates: list[Candidate], kept: dict[str, Record], scope: str, root: Candidate) -> dict[str, Edits]:
    """Settings edits that switch on what is new; ``defaultEnabled: false`` leaves one off that a person asked for."""
    edits: Edits = {}
    data = work.scopes.settings
    here = next((v for layer, v in data.by_layer("enabledPlugins") if layer.scope == scope and isinstance(v, dict)), {})
    for candidate in candidates:
        on = candidate.description.default_enabled or candidate is not root
        if here.get(candidate.id) is not on and (here.get(candidate.id) is None or on):
            edits[f"enabledPlugins/{candidate.id}"] = on
    for id in kept:
        if work.scopes.enabled(id)[0] is not True:
            edits[f"enabledPlugins/{id}"] = True
    return {work.scopes.file(scope): edits}


def _options(work: Work, candidate: Candidate, config: dict[str, str]) -> Edits:
    """Answers to the plugin's options, for user settings (contract, 4.8).

    :raises ManagerError: ``bad-option``: unknown, of another type, or a secret.
    """
    current = work.scopes.settings.get("pluginConfigs")
    mine = dict(current.get(candidate.id) or {}) if isinstance(current, dict) else {}
    options = dict(mine.get("options") or {})
    for key, text in config.items():
        described = candidate.description.user_config.get(key)
        if not isinstance(described, dict):
            known = ", ".join(candidate.description.user_config) or "it has none"
            raise ManagerError("bad-option", f"there is no option {key!r}", context=f"plugin {candidate.id}", hint=known)
        if described.get("sensitive"):
            raise ManagerError("bad-option", f"the option {key!r} is a secret and never stands in settings",
                               context=f"plugin {candidate.id}",
                               hint=f"set CLAUDE_PLUGIN_OPTION_{key.upper()} in the environment")
        options[key] = _value(candidate.id, key, str(described.get("type")), text)
    return {f"pluginConfigs/{candidate.id}": {**mine, "options": options}}


def _value(id: str, key: str, kind: str, text: str) -> Any:
    try:
        if kind == "number":
            return float(text) if "." in text or "e" in text.lower() else int(text)
        if kind == "boolean":
            return {"true": True, "false": False}[text.lower()]
    except (ValueError, KeyError):
        raise ManagerError("bad-option", f"the option {key!r} must be a {kind}, not {text[:100]!r}",
                           context=f"plugin {id}") from None
    return text


def check_clashes(work: Work, candidates: list[Candidate], scope: str) -> None:
    """One name, one plugin: against the environment, against what is enabled, and among the candidates.

    :raises ManagerError: ``name-clash``.
    """
    here = {name.lower(): distribution for name, distribution in environment_plugins().items()}
    taken = {name: f"the distribution {distribution} of this environment" for name, distribution in here.items()}
    ours = {c.id.lower() for c in candidates}
    for id in work.state.plugins:
        record = work.state.find(id, work.scopes.projects)
        if record is not None and id.lower() not in ours and work.scopes.enabled(id)[0] is True:
            taken[record.name.lower()] = f"the plugin {id}"
    for candidate in candidates:
        name = candidate.name.lower()
        other = taken.get(name)
        if other is not None:
            hint = f"pip uninstall {here[name]} first" if name in here else "disable or uninstall the other one first"
            raise ManagerError("name-clash", f"its name {candidate.name!r} belongs to {other} already",
                               context=f"plugin {candidate.id}", hint=hint)
        taken[name] = f"the plugin {candidate.id}"


def update(work: Work, id: str, wanted: Wanted, approve: Approve, *, dry_run: bool = False, check: bool = True) -> Answer:
    """Fetch a plugin again from where it came, check that the new version loads, and switch to it.

    :raises ManagerError: the version before stays in use.
    """
    record = work.state.find(id, work.scopes.projects, wanted.scope)
    if record is None or record.asked is None:
        raise ManagerError("not-found", f"{id} is not installed in the scope {wanted.scope}", hint="kernel plugins list")
    policy.check_plugin(work.scopes.settings, id)
    resolver = work.resolver(wanted)
    root = resolver.add(record.asked, id=id)
    candidates = [c for c in resolver.chosen.values() if not _same(work, c, wanted.scope)]
    warnings = [f"{c.id}: {w}" for c in candidates for w in c.warnings]
    if root in candidates and _says_the_same(record, root):
        candidates.remove(root)
        warnings.append(f"{id}: its content has changed, but its version is still {record.version}; nothing is updated")
    version = root.version if root in candidates else record.version
    answer = Answer(ok=True, action="update", id=id, scope=wanted.scope, version=version,
                    changed=bool(candidates), before=record.version, warnings=warnings, dry_run=dry_run,
                    dependencies=[c.id for c in candidates if c is not root])
    if not candidates or dry_run:
        return answer
    root.auto = record.auto
    check_clashes(work, list(resolver.chosen.values()), wanted.scope)
    approve(candidates)
    for candidate in candidates:
        if check and work.scopes.enabled(candidate.id)[0] is True:
            wanted.say(f"checking {candidate.id} {candidate.version}")
            health.check(candidate, work.staging)
    for candidate in candidates:
        put(work, candidate, wanted.scope)
    edits = _enabling(work, [c for c in candidates if c is not root], resolver.kept, wanted.scope, root)
    work.switch(edits, f"update {id} {record.version} -> {root.version}")
    return answer


def _says_the_same(record: Record, candidate: Candidate) -> bool:
    """A marketplace's plugin with the version that is there is up to date, whatever its files say (contract, 7)."""
    return (candidate.asked.kind == "catalogue" and candidate.version == record.version and record.version != "unknown"
            and bool(candidate.description.version))


def asked_id(state: State, projects: tuple[str, ...], name: str) -> str:
    """The id that a person means: in full, or the name where only one has it (contract, 1).

    :raises ManagerError: ``not-found`` or ``ambiguous``.
    """
    here = {id: record for id in state.plugins if (record := state.find(id, projects)) is not None}
    folded = [id for id in here if id.lower() == name.lower()]
    found = folded or [id for id, record in here.items() if name.lower() in (id.rpartition("@")[0].lower(), record.name.lower())]
    if len(found) == 1:
        return found[0]
    if found:
        raise ManagerError("ambiguous", f"{name!r} can be any of {', '.join(found)}", hint="give the full id")
    if name in environment_plugins():
        raise ManagerError("not-found", f"the plugin {name!r} is a distribution of this environment, which only pip changes",
                           hint=f"leave it out of one run with --block {name}, of all with "
                                f'{{"kernel": {{"blocked": ["{name}"]}}}} in settings; pip uninstall takes it away')
    raise ManagerError("not-found", f"the plugin {name!r} is not installed here", hint="kernel plugins list")


def scope_of(work: Work, id: str, scope: str | None) -> str:
    """The scope that is meant: the given one, or where the plugin is installed."""
    record = work.state.find(id, work.scopes.projects, scope)
    if record is None:
        raise ManagerError("not-found", f"{id} is not installed in the scope {scope}",
                           hint="kernel plugins list shows its scopes")
    return record.scope

