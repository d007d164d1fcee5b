"""The marketplaces that are known: added ones, those that settings declare, and those of the public layout (read only)."""

from __future__ import annotations

import hashlib
import json
import os
import re
import shutil
from pathlib import Path
from typing import Any

from kernel_manager import catalogue, downloads, gits, policy
from kernel_manager.catalogue import Marketplace
from kernel_manager.errors import ManagerError
from kernel_manager.names import shown
from kernel_manager.scopes import Scopes
from kernel_manager.sources import Source, git, parse
from kernel_manager.state import Catalogue, Home, State, now


def source_of(spec: str, base: Path) -> dict[str, Any]:
    """The public source object of what a person typed (plugins contract, 6.6).

    :raises ManagerError: ``bad-spec``.
    """
    if spec.startswith("https://") and spec.partition("?")[0].endswith(".json"):
        return {"source": "url", "url": spec}
    local = spec.startswith(("./", "../", "/", "~")) or spec in (".", "..")
    if local or spec.endswith(".json"):
        path = Path(os.path.expanduser(spec))
        path = Path(os.path.abspath(path if path.is_absolute() else base / path))
        return {"source": "file" if path.suffix == ".json" else "directory", "path": str(path)}
    found = parse(spec, base)
    if found.kind != "git":
        raise ManagerError("bad-spec", "is no marketplace", context=f"source {spec[:200]!r}",
                           hint="owner/repo[@ref], a git URL, a URL of a marketplace.json, a folder or a file")
    ref = {"ref": found.ref or found.sha} if found.ref or found.sha else {}
    if "#" in spec and not ref and found.subdir:  # a git URL's fragment is a ref here
        found, ref = git(str(found.url), ref=found.subdir), {"ref": found.subdir}
    repository = re.fullmatch(r"https://github\.com/([^/]+/[^/]+?)(?:\.git)?", str(found.url))
    if repository and "://" not in spec:
        return {"source": "github", "repo": repository[1], **ref}
    return {"source": "git", "url": found.url, **ref}


class Markets:
    """All known marketplaces, seen from one start folder."""

    def __init__(self, home: Home, scopes: Scopes, state: State, staging: Path | None = None) -> None:
        self.home, self.scopes, self.state, self.staging = home, scopes, state, staging
        self._opened: dict[str, Marketplace] = {}
        self.fetched: dict[str, Catalogue] = {}
        """Marketplaces that were only declared and have been fetched now; the next switch keeps them."""

    def declared(self) -> dict[str, dict[str, Any]]:
        """Marketplaces that settings name. A project's count only when it is trusted."""
        found: dict[str, dict[str, Any]] = {}
        for key in ("additionalMarketplaces", "extraKnownMarketplaces"):
            for layer, value in reversed(self.scopes.settings.by_layer(key)):
                if isinstance(value, dict) and (self.scopes.settings.trusted or layer.scope not in ("project", "local")):
                    found |= {str(n): e for n, e in value.items() if isinstance(e, dict) and isinstance(e.get("source"), dict)}
        return found

    def public(self) -> dict[str, Catalogue]:
        """What ``known_marketplaces.json`` of the public layout says; a damaged file counts as none."""
        given = os.environ.get("CLAUDE_CODE_PLUGIN_CACHE_DIR")
        file = (Path(given) if given else self.home.config / "plugins") / "known_marketplaces.json"
        try:
            data = json.loads(file.read_bytes())
            return {str(n): Catalogue(source=e["source"], install_location=str(e["installLocation"]),
                                      last_updated=str(e.get("lastUpdated", ""))) for n, e in data.items()}
        except (OSError, ValueError, LookupError, TypeError, AttributeError):
            return {}

    def known(self) -> dict[str, Catalogue | None]:
        """Name -> catalogue; ``None``: declared, and not fetched yet."""
        return {**self.public(), **dict.fromkeys(self.declared()), **self.state.marketplaces, **self.fetched}

    def source(self, name: str) -> dict[str, Any]:
        found = self.known().get(name)
        if found is not None:
            return found.source
        declared = self.declared().get(name)
        if declared is None:
            raise ManagerError("not-found", f"the marketplace {shown(name)} is not known",
                               hint="kernel plugins marketplace add SOURCE")
        source: dict[str, Any] = declared["source"]
        return source

    def open(self, name: str) -> Marketplace:
        """The catalogue of that name; fetched when it is only declared.

        :raises ManagerError: ``not-found``, ``blocked-by-policy``, or what fetching and reading raise.
        """
        if name not in self._opened:
            source = self.source(name)
            policy.check_marketplace(self.scopes.settings, source)
            known = self.known()[name]
            if known is None:
                known, opened = self.fetch(source)
                self._named(opened, name)
                self.fetched[name] = known
            else:
                opened = self._read(self.home.root / known.install_location, source)
            self._opened[name] = opened
        return self._opened[name]

    def _read(self, place: Path, source: dict[str, Any]) -> Marketplace:
        opened = catalogue.read(place, owner=policy.owner(source) if source.get("source") in ("github", "git", "url") else None)
        if source.get("source") in ("url", "settings"):
            opened.root = None
        return opened

    @staticmethod
    def _named(opened: Marketplace, name: str) -> None:
        if opened.name != name:
            raise ManagerError("bad-marketplace", f"its catalogue is named {opened.name!r}", context=f"marketplace {name}")

    def fetch(self, source: dict[str, Any]) -> tuple[Catalogue, Marketplace]:
        """Fetch a catalogue and put it among the others; a catalogue folder never changes afterwards.

        :raises ManagerError: policy, fetching, or a catalogue that cannot be used.
        """
        policy.check_marketplace(self.scopes.settings, source)
        kind = source.get("source")
        if kind in ("directory", "file"):
            place = Path(os.path.expanduser(str(source.get("path"))))
            return Catalogue(source=source, install_location=str(place), last_updated=now()), self._read(place, source)
        assert self.staging is not None, "fetching needs the lock"
        staging = self.staging / f"catalogue-{len(self.fetched)}-{len(list(self.staging.iterdir()))}"
        if kind in ("github", "git") or (kind == "url" and str(source.get("url")).endswith(".git")):
            wanted = git(str(source.get("repo") or source.get("url")), ref=source.get("ref"), spec=source)
            commit = gits.fetch(wanted, staging)
            opened = self._read(staging, source)
            return self._kept(staging, source, opened, commit, commit), opened
        staging.mkdir()
        (staging / ".claude-plugin").mkdir()
        file = staging / catalogue.PLACE
        if kind == "url":
            digest = downloads.download(str(source.get("url")), file, limit=catalogue.MAX_BYTES, headers=_headers(source))
        elif kind == "settings":
            content = {"owner": {"name": "settings"}, **{k: v for k, v in source.items() if k != "source"}}
            raw = json.dumps(content).encode()
            file.write_bytes(raw)
            digest = hashlib.sha256(raw).hexdigest()
        else:
            raise ManagerError("bad-spec", f"the marketplace source kind {kind!r} is not known")
        opened = self._read(staging, source)
        return self._kept(staging, source, opened, digest, None), opened

    def _kept(self, staging: Path, source: dict[str, Any], opened: Marketplace, digest: str, commit: str | None) -> Catalogue:
        place = self.home.catalogues / f"{opened.name}-{digest[:16]}"
        place.parent.mkdir(parents=True, exist_ok=True)
        if place.exists():
            shutil.rmtree(staging)
        else:
            staging.rename(place)
        if opened.root is not None:
            opened.root = place
        location = str(place.relative_to(self.home.root))
        return Catalogue(source=source, install_location=location, last_updated=now(), commit=commit)

    def refresh(self, name: str) -> str | None:
        """Fetch a catalogue again that lies elsewhere, for the change that is under way; why that did not work, else ``None``."""
        if name not in self.known() or self.source(name).get("source") in ("directory", "file"):
            return None
        try:
            known, opened = self.fetch(self.source(name))
            self._named(opened, name)
        except ManagerError as error:
            if error.type == "blocked-by-policy":
                raise
            return f"the marketplace {name} cannot be fetched, so its last catalogue counts: {error.message}"
        before = self.state.marketplaces.get(name)
        known.auto_update = before.auto_update if before else False
        self.fetched[name], self._opened[name] = known, opened
        return None

    def git_source(self, name: str) -> Source | None:
        """The repository of a marketplace, for versions of its own plugins; ``None`` for other kinds."""
        source = self.source(name)
        if source.get("source") in ("github", "git"):
            return git(str(source.get("repo") or source.get("url")), ref=source.get("ref"), spec=source)
        if source.get("source") == "directory" and (Path(str(source.get("path"))) / ".git").exists():
            return git(f"file://{os.path.expanduser(str(source['path']))}", spec=source)
        return None

    def holding(self, plugin: str) -> list[str]:
        """The known marketplaces that have a plugin of that name. One that cannot be opened has none."""
        found: list[str] = []
        for name in self.known():
            try:
                self.open(name).entry(plugin)
            except (ManagerError, OSError, AssertionError):
                continue
            found.append(name)
        return found


def _headers(source: dict[str, Any]) -> dict[str, str]:
    value = source.get("headers")
    return {str(k): str(v) for k, v in value.items() if "\n" not in f"{k}{v}"} if isinstance(value, dict) else {}
