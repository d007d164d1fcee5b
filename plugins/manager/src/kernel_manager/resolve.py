"""Which plugins a change needs: what was asked for, and what those depend on, in versions that fit all (contract, 8)."""

from __future__ import annotations

import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

from msgspec import Struct, field

from kernel_manager import gits, policy
from kernel_manager.candidates import Candidate, environment_plugins, make
from kernel_manager.errors import ManagerError
from kernel_manager.fetch import Options
from kernel_manager.markets import Markets
from kernel_manager.names import check_plugin_name, shown
from kernel_manager.pythons import Index
from kernel_manager.sources import Source
from kernel_manager.state import Record
from kernel_manager.steps import step
from kernel_manager.versions import Range, highest

MAX_PLUGINS = 500


class Need(Struct, frozen=True):
    """One dependency: on an id, in a range, asked for by an id."""

    id: str
    range: str
    by: str


class Wanted(Struct, kw_only=True):
    """What a change asks for, and under which conditions."""

    scope: str
    index: Index = field(default_factory=Index)
    accept_commands: bool = False
    say: Callable[[str], None] = lambda text: None


def needs_of(id: str, dependencies: list[Any]) -> list[Need]:
    """The ``dependencies`` of a manifest as needs.

    :raises ManagerError: ``bad-manifest``.
    """
    marketplace = id.rpartition("@")[2]
    found: list[Need] = []
    for item in dependencies:
        item = {"name": item} if isinstance(item, str) else item
        if not isinstance(item, dict) or not isinstance(item.get("name"), str):
            raise ManagerError("bad-manifest", f"dependencies: {shown(item)} is no dependency", context=f"plugin {id}")
        name, at, market = item["name"].partition("@")
        if "@" in market or any(c.isspace() for c in item["name"]):
            raise ManagerError("bad-manifest", f"dependencies: {shown(item['name'])} is no name", context=f"plugin {id}")
        version = item.get("version", "")
        try:
            Range(version if isinstance(version, str) else "?")
        except ManagerError as error:
            raise ManagerError(error.type, error.message, context=f"plugin {id}, dependencies, {shown(name)}") from None
        place = market if at else item.get("marketplace") or marketplace
        found.append(Need(f"{check_plugin_name(name)}@{place}", version, id))
    return found


class Resolver:
    """Collects candidates until everything that is needed is there."""

    def __init__(self, markets: Markets, staging: Path, wanted: Wanted) -> None:
        self.markets, self.staging, self.wanted = markets, staging, wanted
        self.state = markets.state
        self.chosen: dict[str, Candidate] = {}
        self.kept: dict[str, Record] = {}
        self.needs: dict[str, list[Need]] = {}

    # -- the roots -------------------------------------------------------------------------------------------------------
    def add(self, source: Source, *, id: str | None = None) -> Candidate:
        """A plugin that was asked for.

        :param id: of what is installed already and is fetched again.
        :raises ManagerError: whatever speaks against it or one of its dependencies.
        """
        step("resolve")
        self._installed_needs(id or "")
        if source.kind == "catalogue":
            market = self._market_of(source)
            candidate = self._from_market(f"{source.name}@{market}", market, auto=False)
        else:
            policy.check_direct(self.markets.scopes.settings, source)
            candidate = self._make(id or "@installed", source, source)
            candidate.id = id or f"{candidate.name}@installed"
            self._put(candidate)
        self._close(candidate)
        return candidate

    def _market_of(self, source: Source) -> str:
        if source.marketplace:
            return source.marketplace
        holding = self.markets.holding(str(source.name))
        if len(holding) == 1:
            return holding[0]
        if holding:
            raise ManagerError("ambiguous", f"the plugin {shown(source.name)} is in several marketplaces",
                               hint=f"one of {', '.join(f'{source.name}@{m}' for m in holding)}")
        raise ManagerError("not-found", f"no marketplace that is known has the plugin {shown(source.name)}",
                           hint=f"kernel plugins marketplace add SOURCE; a folder is ./{source.name}, a Python distribution "
                                f"python:{source.name}")

    def _installed_needs(self, root: str) -> None:
        """What installed plugins ask of others stays true; those of a plugin that is replaced are read again."""
        for id in self.state.plugins:
            record = self.state.find(id, self.markets.scopes.projects)
            if record is not None and id != root:
                for need in needs_of(id, record.dependencies):
                    if need not in self.needs.setdefault(need.id.lower(), []):
                        self.needs[need.id.lower()].append(need)

    # -- dependencies ------------------------------------------------------------------------------------------------------
    def _close(self, root: Candidate) -> None:
        pending = [root]
        while pending:
            candidate = pending.pop()
            for name in candidate.description.kernel_dependencies:
                self._kernel_dependency(candidate, name)
            for need in needs_of(candidate.id, candidate.description.dependencies):
                new = self._meet(need, root.id)
                if new is not None:
                    pending.append(new)
                if len(self.chosen) > MAX_PLUGINS:
                    raise ManagerError("dependency-unsatisfied", f"needs over {MAX_PLUGINS} plugins", context=f"plugin {root.id}")

    def _kernel_dependency(self, candidate: Candidate, name: str) -> None:
        here = {c.name for c in self.chosen.values()} | {r.name for records in self.state.plugins.values() for r in records}
        here |= {need.id.partition("@")[0] for need in needs_of(candidate.id, candidate.description.dependencies)}
        if name not in here and name not in environment_plugins():
            raise ManagerError("dependency-unsatisfied", f"needs the plugin {name!r}, which is not there",
                               context=f"plugin {candidate.id}", hint="install it first")

    def _meet(self, need: Need, root: str) -> Candidate | None:
        """Make sure that a dependency is there in a version that fits; returns it where it is new."""
        key = need.id.lower()
        if need.id == need.by:
            return None
        name, _, market = need.id.rpartition("@")
        needs = self.needs.setdefault(key, [])
        if need not in needs:
            needs.append(need)
        there = self.chosen.get(key)
        if there is not None:
            if self._fits(there.version, needs):
                return None
            if there.id == root:
                raise self._conflict(need.id, there.version, needs)
            del self.chosen[key]
        record = self.state.find(need.id, self.markets.scopes.projects)
        if there is None and record is not None and self._fits(record.version, needs):
            self.kept[need.id] = record
            return None
        self._may_cross(need, market, root)
        if market == "installed":
            if name in environment_plugins() and not need.range:
                return None
            raise ManagerError("dependency-unsatisfied", f"needs the plugin {name!r}"
                               f"{' in ' + need.range if need.range else ''}, which is not there",
                               context=f"plugin {need.by}", hint=f"install {name} first; then install this again")
        return self._from_market(need.id, market, auto=record is None or record.auto)

    def _may_cross(self, need: Need, market: str, root: str) -> None:
        """Only the root's marketplace says from which others dependencies may come; trust does not chain."""
        own = root.rpartition("@")[2]
        if market == own:
            return
        if own == "installed" or market not in self.markets.open(own).cross:
            raise ManagerError("cross-marketplace", f"needs {need.id}, which is in another marketplace",
                               context=f"plugin {need.by}", hint=f"install it yourself first: kernel plugins install {need.id}")

    @staticmethod
    def _fits(version: str, needs: list[Need]) -> bool:
        return all(not n.range or Range(n.range).allows(version) for n in needs)

    @staticmethod
    def _conflict(id: str, version: str | None, needs: list[Need]) -> ManagerError:
        asked = ", ".join(f"{n.range or 'any'} (by {n.by})" for n in needs)
        kind = "range-conflict" if len({n.range for n in needs if n.range}) > 1 else "dependency-version-unsatisfied"
        have = f"; there is {version}" if version else ""
        return ManagerError(kind, f"no version of {id} fits {asked}{have}")

    # -- candidates --------------------------------------------------------------------------------------------------------
    def _from_market(self, id: str, market: str, *, auto: bool) -> Candidate:
        name = id.rpartition("@")[0]
        opened = self.markets.open(market)
        try:
            entry = opened.entry(name)
        except ManagerError as error:
            if auto:
                raise ManagerError("dependency-unsatisfied", error.message, context=error.context, hint=error.hint) from None
            raise
        id = f"{check_plugin_name(entry['name'])}@{market}"
        policy.check_plugin(self.markets.scopes.settings, id)
        source = opened.source(entry)
        if source.kind == "command":
            policy.check_command(self.markets.scopes.settings)
            if auto:
                raise ManagerError("dependency-unsatisfied", f"{id} comes from a command, which is never run for a dependency",
                                   hint=f"install it yourself first: kernel plugins install {id}")
        needs = self.needs.get(id.lower(), [])
        tagged = self._tagged(name, market, source, needs)
        asked = Source(kind="catalogue", name=str(entry["name"]), marketplace=market)
        candidate = self._make(id, asked, tagged or source, entry=entry, auto=auto, within=opened.root,
                               tag=tagged.ref if tagged else None)
        if not self._fits(candidate.version, needs):
            raise self._conflict(id, candidate.version, needs)
        self._put(candidate)
        return candidate

    def _tagged(self, name: str, market: str, source: Source, needs: list[Need]) -> Source | None:
        """For a range: the highest tag ``name--vVERSION`` that fits, in the repository that holds the plugin."""
        ranges = [Range(n.range) for n in needs if n.range]
        if not ranges or source.sha:
            return None
        if source.kind == "git":
            place, subdir = source, source.subdir
        elif source.kind == "folder" and (found := self.markets.git_source(market)) is not None:
            place, subdir = found, None if source.path == "." else source.path
        else:
            return None
        tags = gits.tags(str(place.url), f"{name}--v", self.staging)
        versions = [t.removeprefix(f"{name}--v") for t in tags]
        best = highest(versions, ranges)
        if best is None:
            if source.kind == "folder" or not versions:
                return None  # the current copy is taken and checked
            asked = ", ".join(n.range for n in needs if n.range)
            raise ManagerError("no-matching-tag", f"no tag {name}--v… fits {asked}; there are {', '.join(sorted(versions))}",
                               context=f"plugin {name}@{market}")
        return Source(kind="git", url=place.url, ref=f"{name}--v{best}", subdir=subdir)

    def _make(self, id: str, asked: Source, source: Source, *, entry: dict[str, Any] | None = None, auto: bool = False,
              within: Path | None = None, tag: str | None = None) -> Candidate:
        accept = frozenset([source.command]) if source.command and self.wanted.accept_commands else frozenset[str]()
        options = Options(index=self.wanted.index, within=within if source.kind == "folder" else None, accept=accept,
                          pinned=self._pinned(id))
        place = Path(tempfile.mkdtemp(dir=self.staging)) / "it"  # one change may ask many resolvers
        return make(id, asked, source, place, options, entry=entry, auto=auto, tag=tag,
                    say=self.wanted.say)

    def _pinned(self, id: str) -> dict[str, str]:
        """Python distributions that other plugins brought or will bring."""
        pinned = {d.name: d.version for other, records in self.state.plugins.items() if other != id
                  for r in records for d in r.distributions}
        return pinned | {d.key: d.version for c in self.chosen.values() if c.id != id for d in c.distributions}

    def _put(self, candidate: Candidate) -> None:
        self.chosen[candidate.id.lower()] = candidate
