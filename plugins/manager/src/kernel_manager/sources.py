"""Where a plugin comes from: what a person types, or what a marketplace entry says, as one typed value.

======================================== ========== ==========================================================
typed                                    kind       notes
======================================== ========== ==========================================================
``name@marketplace``, ``name``           catalogue  looked up in the marketplaces that are known
``./folder``, ``/folder``, ``~/folder``  folder     a folder with a plugin, copied
``x.zip``, ``x.tar.gz``, ``https://…``   archive    the plugin at its root or one folder deep
``x.whl``, ``https://….whl``             python     one wheel, unpacked
``python:REQ``, ``name>=1``              python     from the index that pip or uv is configured for
``owner/repo[@ref][#folder]``            git        GitHub; ``github:owner/repo`` says the same
``git+URL[@ref][#folder]``, ``….git``    git        ``ref`` is a branch, a tag or a commit
``npm:package[@version]``                npm        without lifecycle scripts
======================================== ========== ==========================================================
"""

from __future__ import annotations

import os
import re
from pathlib import Path
from typing import Any, Literal

from msgspec import Struct

from kernel_manager.errors import ManagerError

Kind = Literal["catalogue", "folder", "archive", "git", "npm", "python", "command"]

_SHORT = re.compile(r"^([A-Za-z0-9][A-Za-z0-9-]{0,38})/([A-Za-z0-9_.-]{1,100})$")
_CATALOGUE = re.compile(r"^[^\s/\\:@#<>=~!\[\]]+(?:@[^\s/\\:@#<>=~!\[\]]+)?$")
_SHA = re.compile(r"^[0-9a-f]{40}$")
_SHA256 = re.compile(r"^[0-9a-fA-F]{64}$")
_ARCHIVES = (".zip", ".tar.gz", ".tgz", ".tar", ".tar.xz", ".tar.bz2")
_GIT_SCHEMES = ("https://", "http://", "ssh://", "git://", "file://")


class Source(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """One plugin source. Which fields are set depends on ``kind``.

    catalogue: name, marketplace. folder: path. archive: path or url, sha256. git: url, ref, sha, subdir.
    npm: package, version, registry. python: requirement or path. command: command, timeout, mode.
    """

    kind: Kind
    name: str | None = None
    marketplace: str | None = None
    path: str | None = None
    url: str | None = None
    ref: str | None = None
    sha: str | None = None
    subdir: str | None = None
    sha256: str | None = None
    package: str | None = None
    version: str | None = None
    registry: str | None = None
    requirement: str | None = None
    command: str | None = None
    timeout: float | None = None
    mode: str | None = None

    def __str__(self) -> str:
        pin = f"@{self.sha or self.ref}" if self.sha or self.ref else ""
        where = f"#{self.subdir}" if self.subdir else ""
        if self.kind == "catalogue":
            return f"{self.name}@{self.marketplace}" if self.marketplace else str(self.name)
        if self.kind == "npm":
            return f"npm:{self.package}" + (f"@{self.version}" if self.version else "")
        if self.kind == "python":
            return f"python:{self.requirement}" if self.requirement else str(self.path)
        return f"{'git+' if self.kind == 'git' else ''}{without_secrets(self.url or self.path or self.command or '')}{pin}{where}"


def without_secrets(url: str) -> str:
    """The URL without a user's name and password, for messages and files."""
    return re.sub(r"^([a-z+]+://)[^/@]*@", r"\1", url)


def _bad(spec: object, why: str, hint: str = "") -> ManagerError:
    return ManagerError("bad-spec", why, context=f"source {str(spec)[:200]!r}", hint=hint)


def parse(spec: str, base: Path) -> Source:
    """What a person typed.

    :param base: what relative paths are relative to.
    :raises ManagerError: ``bad-spec``.
    """
    spec = spec.strip()
    if not spec or any(ord(c) < 32 or ord(c) == 127 for c in spec):
        raise _bad(spec, "is empty or holds control characters")
    if spec.startswith("-"):
        raise _bad(spec, "starts with '-'")
    for prefix, reader in _PREFIXES.items():
        if spec.startswith(prefix):
            return reader(spec.removeprefix(prefix), base)
    if spec.startswith(("./", "../", "/", "~")) or spec in (".", ".."):
        return _local(spec, base)
    if re.match(r"^[\w.-]+@[\w.-]+:", spec) or spec.startswith(("ssh://", "git://")):
        return _git(spec, base)
    if "://" in spec:
        return _url(spec, base)
    repository, _, _ = spec.partition("#")
    if _SHORT.match(repository.partition("@")[0]):
        return _github(spec, base)
    if spec.lower().endswith((".whl", *_ARCHIVES)):
        return _local(spec, base)
    if _CATALOGUE.match(spec):
        name, _, marketplace = spec.partition("@")
        return Source(kind="catalogue", name=name, marketplace=marketplace or None)
    if re.match(r"^[A-Za-z0-9][A-Za-z0-9._-]*\s*(\[[^\]]*\]|@\s|[<>=!~])", spec):
        return _python(spec, base)
    raise _bad(spec, "is no source that is known",
               "a name, name@marketplace, ./folder, owner/repo, git+URL, npm:NAME or python:NAME")


def _local(spec: str, base: Path) -> Source:
    path = Path(os.path.expanduser(spec.removeprefix("file://")))
    path = Path(os.path.abspath(path if path.is_absolute() else base / path))
    lower = path.name.lower()
    if lower.endswith(".whl"):
        return Source(kind="python", path=str(path))
    if lower.endswith(_ARCHIVES) and not path.is_dir():
        return Source(kind="archive", path=str(path))
    return Source(kind="folder", path=str(path))


def _url(spec: str, base: Path) -> Source:
    plain = spec.partition("#")[0].partition("?")[0].lower()
    if spec.startswith("file://"):
        return _git(spec, base) if plain.endswith(".git") else _local(spec, base)
    if plain.endswith(".whl"):
        return Source(kind="python", requirement=f"{_wheel_name(spec)} @ {spec}")
    if plain.endswith(_ARCHIVES):
        url, _, fragment = spec.partition("#")
        digest = fragment.removeprefix("sha256=") if fragment.startswith("sha256=") else None
        return _archive(url, digest, spec)
    host = re.match(r"^https?://(?:[^/@]*@)?([^/:]+)", spec)
    if plain.endswith(".git") or "/_git/" in spec or (host and host[1].lower() in ("github.com", "gitlab.com")):
        return _git(spec, base)
    raise _bad(spec, "is neither an archive nor a git URL", "write git+URL, or end the URL with .git, .zip or .tar.gz")


def _wheel_name(url: str) -> str:
    return url.rpartition("/")[2].partition("-")[0]


def _archive(url: str, digest: str | None, spec: object) -> Source:
    if not url.startswith("https://"):
        raise _bad(spec, "an archive is fetched by https only")
    if digest is not None and not _SHA256.match(digest):
        raise _bad(spec, "sha256 must be 64 hex digits")
    return Source(kind="archive", url=url, sha256=digest.lower() if digest else None)


def _git(spec: str, base: Path) -> Source:
    url, _, fragment = spec.partition("#")
    ref = None
    at = url.rfind("@")
    # a user's name stands before the host: only what comes after the path's first '/' or ':' is a ref
    if at > max(url.rfind("/"), url.rfind(":")) and at > url.find("://") + 3:
        url, ref = url[:at], url[at + 1:]
    subdir: str | None = fragment.removeprefix("subdirectory=") or None
    if fragment and ref is None and not fragment.startswith("subdirectory=") and ":" in fragment:
        ref, _, subdir = fragment.partition(":")
    if url.startswith(("./", "../", "/", "~")):
        path = Path(os.path.expanduser(url))
        url = "file://" + os.path.abspath(path if path.is_absolute() else base / path)
    return git(url, ref=ref, subdir=subdir or None, spec=spec)


def git(url: str, *, ref: str | None = None, sha: str | None = None, subdir: str | None = None, spec: object = None) -> Source:
    """A checked git source. GitHub's ``owner/repo`` is taken as a URL, too.

    :raises ManagerError: a transport that could run programs, a ref that looks like an option, a path that leaves.
    """
    spec = spec or url
    if _SHORT.match(url):
        url = f"https://github.com/{url.removesuffix('.git')}.git"
    if not (url.startswith(_GIT_SCHEMES) or re.match(r"^[A-Za-z0-9_][\w.-]*@[\w.-]+:(?!:)", url)) or url.startswith("-"):
        raise _bad(spec, "is no git URL that is allowed", "https, ssh, git and file URLs are")
    if re.match(r"^[a-z+]+://(?:[^/@]*@)?-", url) or "::" in url.partition("://")[0]:
        raise _bad(spec, "names a host that looks like an option")
    if ref is not None and (not ref or ref.startswith("-") or re.search(r"[\s~^:?*\[\\\x00-\x1f]|\.\.|@\{", ref)):
        raise _bad(spec, f"{ref!r} is no branch, tag or commit")
    if sha is not None and not _SHA.match(sha):
        raise _bad(spec, "sha must be 40 lower-case hex digits")
    if ref is not None and _SHA.match(ref):
        ref, sha = None, sha or ref
    return Source(kind="git", url=url, ref=ref, sha=sha, subdir=inside(subdir, spec) if subdir else None)


def _github(spec: str, base: Path) -> Source:
    rest, _, fragment = spec.partition("#")
    repo, _, ref = rest.partition("@")
    match = _SHORT.match(repo)
    if not match or match[2] in (".", ".."):
        raise _bad(spec, "must be owner/repo[@ref][#folder]")
    return git(repo, ref=ref or None, subdir=fragment or None, spec=spec)


def _npm(spec: str, base: Path) -> Source:
    at = spec.rfind("@")
    package, version = (spec[:at], spec[at + 1:]) if at > 0 else (spec, None)
    return npm(package, version, None, spec)


def npm(package: object, version: object, registry: object, spec: object) -> Source:
    if not isinstance(package, str) or not re.match(r"^(@[a-z0-9~-][a-z0-9._~-]*/)?[a-z0-9~][a-zA-Z0-9._~-]*$", package):
        raise _bad(spec, "is no npm package name")
    if version is not None and (not isinstance(version, str) or not re.match(r"^[0-9A-Za-z^~<>=|*.+ -]{1,64}$", version)
                                or version.startswith("-")):
        raise _bad(spec, "is no npm version")
    if registry is not None and (not isinstance(registry, str) or not re.match(r"^https?://[^\s]+$", registry)):
        raise _bad(spec, "registry must be a URL")
    return Source(kind="npm", package=package, version=version, registry=registry)


def _python(spec: str, base: Path) -> Source:
    spec = spec.strip()
    if spec.startswith(("./", "../", "/", "~")):
        return Source(kind="python", path=_local(spec, base).path)
    from packaging.requirements import InvalidRequirement, Requirement

    try:
        Requirement(spec)
    except InvalidRequirement as error:
        raise _bad(spec, f"is no Python requirement: {str(error).splitlines()[0]}") from None
    return Source(kind="python", requirement=spec)


_PREFIXES = {"python:": _python, "pip:": _python, "npm:": _npm, "github:": _github, "git+": _git}


def inside(path: object, spec: object) -> str:
    """A relative path of a source, checked: it stays below its root (plugins contract, 16.2)."""
    if not isinstance(path, str) or not path:
        raise _bad(spec, "the folder must be a relative path")
    parts = [p for p in path.split("/") if p not in ("", ".")]
    if path.startswith("/") or "\\" in path or ".." in parts or "\0" in path or re.match(r"^[A-Za-z]:", path):
        raise ManagerError("unsafe-path", f"the folder {path!r} leaves its source", context=f"source {str(spec)[:200]!r}")
    return "/".join(parts)


def from_entry(value: Any, *, plugin_root: str | None = None) -> Source:
    """The ``source`` of a marketplace entry (plugins contract, 6.3). A relative path stays relative in ``path``.

    :raises ManagerError: ``bad-spec``, ``unsafe-path``, or ``unknown-source`` for a kind that is not known.
    """
    if isinstance(value, str):
        if value != "." and not value.startswith("./"):
            if plugin_root is None or "/" in value:
                raise _bad(value, "a path in a marketplace must start with './'")
            value = f"{plugin_root}/{value}"
        return Source(kind="folder", path=inside(value, value) or ".")
    if not isinstance(value, dict):
        raise _bad(value, "must be a path or an object")
    kind, get = value.get("source"), value.get
    for key in ("ref", "sha", "path", "url", "repo"):
        if get(key) is not None and not isinstance(get(key), str):
            raise _bad(value, f"{key} must be a string")
    if kind in ("github", "url", "git-subdir", "git"):
        url = get("repo" if kind == "github" else "url")
        if not url or (kind == "github" and not _SHORT.match(str(url))):
            raise _bad(value, "repo must be owner/repo" if kind == "github" else "url is required")
        if kind == "git-subdir" and not get("path"):
            raise _bad(value, "path is required")
        return git(str(url), ref=get("ref"), sha=get("sha"), subdir=get("path") if kind == "git-subdir" else None, spec=value)
    if kind == "npm":
        return npm(get("package"), get("version"), get("registry"), value)
    if kind == "archive":
        return _archive(str(get("url")), get("sha256"), value)
    if kind == "command":
        return _command(value)
    if kind == "pip" and isinstance(get("package"), str):
        version = get("version")
        return _python(f"{get('package')}{f'=={version}' if version else ''}", Path())
    raise ManagerError("unknown-source", f"the source kind {kind!r} is not known", context=f"source {str(value)[:200]}")


def _command(value: dict[str, Any]) -> Source:
    command, timeout, mode = value.get("command"), value.get("timeout", 60), value.get("mode", "copy")
    if not isinstance(command, str) or not re.match(r"^[\x20-\x7e]{1,500}$", command) or "    " in command:
        raise _bad(value, "command must be up to 500 printable ASCII characters without runs of spaces")
    if isinstance(timeout, bool) or not isinstance(timeout, int | float) or not 0 < timeout <= 600:
        raise _bad(value, "timeout must be 1 to 600 seconds")
    if mode not in ("copy", "link"):
        raise _bad(value, "mode must be copy or link")
    return Source(kind="command", command=command, timeout=float(timeout), mode=mode)
