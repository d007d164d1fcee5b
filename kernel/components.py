"""Where people and plugins keep what they write in Markdown: skills, commands, agents, output styles, rules.

One finder for every kind (plugins contract, sections 2 and 3; skills contract, section 2). It lists files and reads none of
them. Nothing it meets ends it: what cannot be used is listed under ``faults`` with its place. A plugin's component must lie
in the plugin's folder after links are followed; so must a project's commands, agents and output styles, whose folders hold
any Markdown. A project's skill may be a linked folder, and its rules may be links. Loops end, depth and number are limited.
"""

from __future__ import annotations

import os
import stat
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from msgspec import Struct, field

from kernel.settings import Problem, git_root

if TYPE_CHECKING:
    from kernel.plugins import Plugin
    from kernel.session import Session

Kind = Literal["skills", "commands", "agents", "output-styles", "rules"]
From = Literal["managed", "user", "project", "added", "plugin"]

MAX_ENTRIES = 5_000
"""Entries of one component folder, with what lies below it."""
MAX_DEPTH = 10
_KEYS = {"skills": "skills", "commands": "commands", "agents": "agents", "output-styles": "output_styles"}


class Component(Struct, kw_only=True):
    """One file that was found, or one command that stands in a manifest.

    ``name`` is what its place says: the folder of a ``SKILL.md``, else the path below the component folder without ``.md``,
    joined with ``:``. ``folder`` is the component folder or, for a file that a manifest names, its folder. ``stamp`` changes
    when the file does (modification time in ns, size, inode). ``content`` is set for a command inside a manifest, whose
    ``path`` is the manifest's.
    """

    kind: Kind
    scope: From
    name: str
    path: str
    folder: str
    plugin: Plugin | None = None
    stamp: tuple[int, int, int] = (0, 0, 0)
    content: str | None = None

    @property
    def is_skill(self) -> bool:
        """Whether it has a folder of its own with supporting files."""
        return self.content is None and os.path.basename(self.path) == "SKILL.md"


class Fault(Problem, frozen=True):
    """What could not be used. ``plugin``: its name, empty where no plugin brought it."""

    plugin: str = ""


class Components(Struct):
    """By scope in the order that was asked for, then nearest directory, then path."""

    items: list[Component] = field(default_factory=list)
    faults: list[Fault] = field(default_factory=list)


def find_components(session: Session, kind: Kind, scopes: tuple[From, ...] = ("managed", "user", "project", "added", "plugin"),
                    ) -> Components:
    """All components of one kind that this session may use, before any precedence among equal names.

    ``--setting-sources``, ``--bare``, ``--safe-mode`` and the managed ``strictPluginOnlyCustomization`` are respected; so is
    that ``--bare`` keeps what was given explicitly (``--add-dir``, ``--plugin-dir``).
    """
    search = _Search(kind)
    for scope in scopes:
        if not _open(session, kind, scope):
            continue
        if scope == "plugin":
            for plugin in session.plugins.ready:
                if plugin.source == "inline" or not _flag(session, "bare", "CLAUDE_CODE_SIMPLE"):
                    search.plugin(plugin)
        else:
            for folder, root in _places(session, scope):
                search.scope, search.owner, search.root = scope, None, root
                search.folder(os.path.join(folder, kind))
    return Components(search.items, search.faults)


def components_in(folder: Path, kind: Kind, scope: From = "project", root: Path | None = None) -> Components:
    """What one component folder holds, for example ``.claude/skills`` of a directory that a session came across.

    :param root: the directory that a linked file must not lead out of.
    """
    search = _Search(kind)
    search.scope, search.root = scope, str(root) if root else None
    search.folder(str(folder))
    return Components(search.items, search.faults)


def _open(session: Session, kind: Kind, scope: From) -> bool:
    options = session.options
    if scope == "managed":
        return kind != "skills" or not os.environ.get("CLAUDE_CODE_DISABLE_POLICY_SKILLS")
    if _flag(session, "safe_mode", "CLAUDE_CODE_SAFE_MODE"):
        return False
    if scope == "plugin":
        return True
    strict = session.settings.managed("strictPluginOnlyCustomization")
    closed = "skills" if kind == "commands" else kind
    if strict is True or (isinstance(strict, list) and closed in strict):
        return False
    if scope == "added":
        return True
    return scope in options.setting_sources and not _flag(session, "bare", "CLAUDE_CODE_SIMPLE")


def _flag(session: Session, name: str, variable: str) -> bool:
    return bool(session.options.extra.get(name)) or os.environ.get(variable, "") not in ("", "0", "false")


def _places(session: Session, scope: From) -> Iterator[tuple[str, str | None]]:
    """``.claude`` folders of a scope, nearest first, and the directory that links of files must not leave."""
    settings = session.settings
    start = Path(session.project_root)
    if scope == "managed":
        yield os.path.join(settings.managed_dir, ".claude"), None
    elif scope == "user":
        yield str(settings.config_dir), None
    elif scope == "added":
        for added in session.options.add_dirs:
            if added != start:
                yield os.path.join(added, ".claude"), str(added)
    else:
        top = git_root(start)
        own = os.path.realpath(settings.config_dir)
        for place in (start, *start.parents):
            if (top is None and place != start) or (top is not None and not place.is_relative_to(top)):
                break
            folder = os.path.join(place, ".claude")
            if os.path.realpath(folder) != own:  # the home directory is no project
                yield folder, str(top or start)


class _Search:
    """One walk; ``scope``, ``owner`` and ``root`` say for whom it looks and what must not be left."""

    def __init__(self, kind: Kind) -> None:
        self.kind = kind
        self.items: list[Component] = []
        self.faults: list[Fault] = []
        self.scope: From = "project"
        self.owner: Plugin | None = None
        self.root: str | None = None
        self._seen: set[tuple[int, int]] = set()
        self._paths: set[str] = set()
        self._left = MAX_ENTRIES

    def fault(self, path: str, message: str, field: str = "") -> None:
        self.faults.append(Fault(path, field, message, self.owner.name if self.owner else ""))

    # -- a plugin ------------------------------------------------------------------------------------------------------
    def plugin(self, plugin: Plugin) -> None:
        """The default folder and what the manifest names; ``skills`` adds to its folder, the others replace it."""
        self.scope, self.owner, self.root = "plugin", plugin, os.path.realpath(plugin.root)
        self._seen, self._paths = set(), set()  # two plugins may share a folder
        key = _KEYS.get(self.kind)
        if key is None:
            return
        named = getattr(plugin.manifest, key, None) if plugin.manifest else None
        default = os.path.join(self.root, self.kind)
        if self.kind == "skills":
            if named is None and not os.path.isdir(default) and os.path.lexists(os.path.join(self.root, "SKILL.md")):
                self._skill(self.root, plugin.root.name, self.root)
            else:
                self.folder(default)
        elif named is None:
            self.folder(default)
        if isinstance(named, dict):
            self._inline(named)
            return
        for given in [named] if isinstance(named, str) else named or ():
            path = self._inside(given)
            if path is not None:
                self._named(path, given)

    @property
    def _manifest(self) -> str:
        assert self.root is not None
        return os.path.join(self.root, ".claude-plugin", "plugin.json")

    @property
    def _field(self) -> str:
        return "outputStyles" if self.kind == "output-styles" else self.kind

    def _inside(self, given: Any, field: str = "") -> str | None:
        """The path that a manifest names, if it may: relative, without ``..``, there, and in the plugin's folder."""
        assert self.root is not None
        field = field or self._field
        plain = isinstance(given, str) and (given.startswith("./") or given == ".")
        if not plain or ".." in given.replace("\\", "/").split("/"):
            self.fault(self._manifest, f"{given!r}: a path must start with './' and hold no '..'", field)
            return None
        path = os.path.normpath(os.path.join(self.root, given))
        if not os.path.exists(path):
            self.fault(self._manifest, f"{given!r}: there is no such file or folder", field)
        elif not self._contained(path):
            self.fault(self._manifest, f"{given!r}: leads out of the plugin's folder", field)
        else:
            return path
        return None

    def _named(self, path: str, given: str) -> None:
        if os.path.isdir(path):
            if self.kind == "agents":
                self.fault(self._manifest, f"{given!r} is a folder; name the .md files", "agents")
            elif self.kind == "skills" and os.path.lexists(os.path.join(path, "SKILL.md")):
                self._skill(path, os.path.basename(path), os.path.dirname(path))
            else:
                self.folder(path)
        elif self.kind == "skills":
            self.fault(self._manifest, f"{given!r} is a file; name its folder ({os.path.dirname(given) or '.'!r})", "skills")
        elif not path.endswith(".md"):
            self.fault(self._manifest, f"{given!r} is no .md file", self._field)
        else:
            self._file(path, os.path.basename(path)[:-3], os.path.dirname(path))

    def _inline(self, named: dict[str, Any]) -> None:
        for name, entry in named.items():
            field = f"commands.{name}"
            source = entry.get("source") if isinstance(entry, dict) else None
            content = entry.get("content") if isinstance(entry, dict) else None
            if isinstance(content, str):
                self.items.append(Component(kind=self.kind, scope=self.scope, name=name, path=self._manifest,
                                            folder=self.root or "", plugin=self.owner, content=content))
            elif isinstance(source, str):
                path = self._inside(source, field)
                if path is not None:
                    self._file(path, name, os.path.dirname(path))
            else:
                self.fault(self._manifest, "must be an object with 'source' (a path) or 'content' (text)", field)

    # -- folders ---------------------------------------------------------------------------------------------------------
    def folder(self, path: str) -> None:
        """Everything in a component folder. One that is not there is fine."""
        self._left = MAX_ENTRIES
        if self._closed and os.path.isdir(path) and not self._contained(path):
            self._leads_out(path)
        elif self._first(path):
            self._walk(path, path, "", 0)

    def _walk(self, path: str, top: str, prefix: str, depth: int) -> None:
        for entry in self._entries(path):
            self._left -= 1
            if self._left < 0:
                self.fault(top, f"holds more than {MAX_ENTRIES:,} entries; the rest is left out")
                return
            try:
                is_folder = entry.is_dir()
            except OSError as error:  # a link to itself
                if self.kind == "skills" or entry.name.endswith(".md"):
                    self.fault(entry.path, f"cannot be read: {error.strerror}")
                continue
            if self.kind == "skills":
                if is_folder and not (entry.name.lower() == "synced" and self.owner is None):
                    self._skill_entry(entry, top)
            elif is_folder:
                if self._enter(entry, depth, top):
                    self._below(entry, top, prefix, depth)
            elif entry.name.endswith(".md") and len(entry.name) > 3:
                self._file(entry.path, prefix + entry.name[:-3], top, entry)

    def _below(self, entry: os.DirEntry[str], top: str, prefix: str, depth: int) -> None:
        if self.kind == "commands" and os.path.lexists(os.path.join(entry.path, "SKILL.md")):
            self._skill(entry.path, prefix + entry.name, top)
        elif self.kind != "output-styles":
            self._walk(entry.path, top, f"{prefix}{entry.name}:", depth + 1)

    def _entries(self, path: str) -> list[os.DirEntry[str]]:
        try:
            with os.scandir(path) as entries:
                return sorted(entries, key=lambda entry: entry.name)
        except (FileNotFoundError, NotADirectoryError):
            return []
        except (OSError, ValueError) as error:
            self.fault(path, f"cannot be listed: {getattr(error, 'strerror', None) or error}")
            return []

    def _skill_entry(self, entry: os.DirEntry[str], top: str) -> None:
        if self.owner is None and os.path.exists(os.path.join(entry.path, ".claude-plugin", "plugin.json")):
            return  # a plugin, no skill
        try:
            os.lstat(os.path.join(entry.path, "SKILL.md"))
        except (FileNotFoundError, NotADirectoryError):
            return
        except OSError as error:
            self.fault(entry.path, f"cannot be read: {error.strerror}")
            return
        if self._closed and entry.is_symlink() and not self._contained(entry.path):
            self._leads_out(entry.path)
        elif self._first(entry.path):
            self._skill(entry.path, entry.name, top)

    def _enter(self, entry: os.DirEntry[str], depth: int, top: str) -> bool:
        if self._closed and entry.is_symlink() and not self._contained(entry.path):
            self._leads_out(entry.path)
            return False
        if depth + 1 >= MAX_DEPTH:
            self.fault(entry.path, f"lies deeper than {MAX_DEPTH} folders below {top}")
            return False
        return self._first(entry.path)

    def _first(self, path: str) -> bool:
        """Whether this real directory is there and was not met before: ends loops, and one reached twice loads once."""
        try:
            status = os.stat(path)
        except (OSError, ValueError):
            return False
        key = status.st_dev, status.st_ino
        fresh = key not in self._seen
        self._seen.add(key)
        return fresh

    # -- files -----------------------------------------------------------------------------------------------------------
    def _skill(self, folder: str, name: str, top: str) -> None:
        self._file(os.path.join(folder, "SKILL.md"), name, top)

    def _file(self, path: str, name: str, top: str, entry: os.DirEntry[str] | None = None) -> None:
        if path in self._paths:
            return
        self._paths.add(path)
        try:
            linked = entry.is_symlink() if entry else os.path.islink(path)
            status = os.stat(path)
        except OSError as error:
            self.fault(path, f"cannot be read: {error.strerror}")
            return
        if not stat.S_ISREG(status.st_mode):
            self.fault(path, "is no regular file")
        elif linked and self.root is not None and not self._contained(path):
            self._leads_out(path)
        else:
            self.items.append(Component(kind=self.kind, scope=self.scope, name=name, path=path, folder=top, plugin=self.owner,
                                        stamp=(status.st_mtime_ns, status.st_size, status.st_ino)))

    @property
    def _closed(self) -> bool:
        """Whether linked folders, too, must lie inside."""
        return self.owner is not None or (self.root is not None and self.kind not in ("skills", "rules"))

    def _leads_out(self, path: str) -> None:
        self.fault(path, f"leads out of {'the plugin' if self.owner else 'the project'}'s folder")

    def _contained(self, path: str) -> bool:
        real = os.path.realpath(path)
        root = os.path.realpath(self.root or "/")
        return real == root or real.startswith(root.rstrip("/") + "/")
