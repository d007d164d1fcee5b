"""Settings from every scope, with where each value comes from (settings contract, sections 1 to 3).

Highest first: managed, cli (``--settings``), local, project, user. A source that cannot be used is set aside and
listed in ``problems``; only one that was named on the command line ends the run.
"""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any, Literal

import msgspec
from msgspec import Struct

from kernel.errors import SettingsError

Scope = Literal["managed", "cli", "local", "project", "user"]
SCOPES: tuple[Scope, ...] = ("managed", "cli", "local", "project", "user")
MANAGED_DIR = "/etc/claude-code"
MAX_CLI_BYTES = 2 * 1024 * 1024

MANAGED_ONLY = frozenset((
    "allowAllClaudeAiMcps allowedChannelPlugins allowManagedHooksOnly allowManagedMcpServersOnly "
    "allowManagedPermissionRulesOnly blockedMarketplaces browserExternalPageTools channelsEnabled claudeMd "
    "disableBrowserExternalNavigation disableCommandPluginSources disableMobileSimulatorTools disableSideloadFlags "
    "forceLoginGatewayUrl forceRemoteSettingsRefresh parentSettingsBehavior pluginSuggestionMarketplaces "
    "pluginTrustMessage policyHelper requiredMaximumVersion requiredMinimumVersion sshHostAllowlist "
    "strictKnownMarketplaces strictPluginOnlyCustomization wslInheritsWindowsSettings").split())
"""Keys that have no effect outside managed settings (settings contract, 6.4)."""

PERMISSION_KEYS = ("allow", "ask", "deny", "additionalDirectories", "defaultMode", "disableBypassPermissionsMode",
                   "disableAutoMode")

FAIL_CLOSED = ("allowManagedHooksOnly", "allowManagedMcpServersOnly", "allowManagedPermissionRulesOnly",
               "disableCommandPluginSources")
"""Managed switches whose value counts as true when it is no Boolean (6.3)."""

NOT_FROM_PROJECT_ENV = frozenset((
    "CLAUDE_CODE_PROCESS_WRAPPER CLAUDE_CODE_SYNC_SKILLS CLAUDE_CODE_SYNC_PLUGINS CLAUDE_CODE_PLUGIN_CACHE_DIR "
    "CLAUDE_CODE_PLUGIN_SEED_DIR CLAUDE_CONFIG_DIR PATH LD_PRELOAD LD_LIBRARY_PATH LD_AUDIT PYTHONPATH PYTHONHOME "
    "PYTHONSTARTUP NODE_OPTIONS BASH_ENV ENV DYLD_INSERT_LIBRARIES DYLD_LIBRARY_PATH").split())
STEERING_PREFIXES = tuple("ANTHROPIC_ AWS_ GOOGLE_ KERNEL_ OTEL_ SSL_ REQUESTS_ CURL_ GIT_ CLAUDE_CODE_SHELL".split())
STEERING = frozenset("CLAUDE_CODE_ENABLE_TELEMETRY CLAUDE_ENV_FILE SHELL HOME IS_SANDBOX TMPDIR".split())
"""Not taken from a project that is not trusted: a clone must not lead keys or telemetry to its own server (decision D8)."""
NEVER_FROM_FILES = frozenset(["CLAUDE_CODE_REMOTE", "CLAUDE_CODE_ACCOUNT_UUID", "CLAUDE_CODE_PROJECT_DIR_NAME"])


class Problem(Struct, frozen=True):
    """Something that was set aside: which file, which field (may be empty), what was expected."""

    path: str
    field: str
    message: str

    def __str__(self) -> str:
        return f"{self.path}{f', {self.field}' if self.field else ''}: {self.message}"


class Layer(Struct, frozen=True):
    """One settings source. ``directory`` is what ``/x`` in its path rules is relative to (permissions contract, 6.2)."""

    scope: Scope
    path: str
    data: dict[str, Any]
    directory: str


class Settings:
    """All layers of one run, highest first."""

    def __init__(self, layers: list[Layer], problems: list[Problem], *, config_dir: Path, project_root: Path,
                 trusted: bool, managed_dir: str = MANAGED_DIR) -> None:
        self.layers = layers
        self.problems = problems
        self.config_dir = config_dir
        self.project_root = project_root
        self.managed_dir = managed_dir
        self.trusted = trusted
        """Whether what widens rights in project files counts (permissions contract, 11)."""

    @classmethod
    def load(cls, cwd: Path, *, cli: str | None = None, sources: tuple[str, ...] = ("user", "project", "local"),
             managed_dir: str = MANAGED_DIR, harness: tuple[Path, dict[str, Any]] | None = None) -> Settings:
        """Read every source.

        :param cli: the value of ``--settings``: a path, or JSON text.
        :param sources: which of user, project and local to read; managed and cli always are.
        :param harness: a harness file that was named for this run, and its settings: a layer right below ``--settings``.
        :raises SettingsError: the cli source cannot be read.
        """
        config = config_dir()
        problems: list[Problem] = []
        layers: list[Layer] = []
        managed = _managed(Path(managed_dir), problems)
        if managed:
            layers.append(managed)
        if cli is not None:
            layers.append(_cli(cli, cwd, problems))
        if harness is not None:
            path, data = str(harness[0]), _checked("cli", str(harness[0]), harness[1], problems)
            layers += [Layer("cli", path, data, str(harness[0].parent))] if data else []
        if "local" in sources:
            layers += [layer for base in _local_places(cwd)
                       if (layer := _file("local", base / ".claude" / "settings.local.json", problems, str(cwd)))]
        if "project" in sources and (cwd / ".claude").resolve() != config.resolve():
            layer = _file("project", cwd / ".claude" / "settings.json", problems, str(cwd))
            layers += [layer] if layer else []
        if "user" in sources:
            layer = _file("user", config / "settings.json", problems, str(config))
            layers += [layer] if layer else []
        return cls(layers, problems, config_dir=config, project_root=cwd, trusted=_trusted(cwd, config),
                   managed_dir=managed_dir)

    def get(self, key: str, default: Any = None) -> Any:
        """The value of a dotted key. Scalars: the highest scope; objects: merged; arrays: joined, highest first.

        Three keys differ (section 3): ``fallbackModel`` and each entry of ``extraKnownMarketplaces`` are taken whole, and
        a managed ``availableModels`` counts alone.
        """
        found = [value for _, value in self.by_layer(key)]
        if not found:
            return default
        if key == "fallbackModel" or (key == "availableModels" and self.managed(key) is not None):
            return found[0]
        if key == "extraKnownMarketplaces":
            return {name: entry for value in reversed(found) if isinstance(value, dict) for name, entry in value.items()}
        return _join(found)

    def by_layer(self, key: str) -> list[tuple[Layer, Any]]:
        """Every layer that sets the key, highest first, for what must know its source."""
        return [(layer, value) for layer in self.layers if (value := _dig(layer.data, key)) is not None]

    def managed(self, key: str) -> Any:
        """The managed value of a key; switches that fail closed count as true when they are no Boolean."""
        for layer in self.layers:
            if layer.scope == "managed":
                value = _dig(layer.data, key)
                return True if key in FAIL_CLOSED and value is not None and not isinstance(value, bool) else value
        return None

    def own(self, key: str) -> Any:
        """The value that the highest scope gives a dotted key, as it stands there; ``None`` where nobody sets it.

        For keys of the kernel and of plugins (``kernel.my-plugin.mood``) that guard something, cost money or say where data
        goes: the project's own files (scopes ``project`` and ``local``) count only where the person trusts the folder. Unlike
        ``get``, nothing is merged: an object of a higher scope hides the whole one below.
        """
        return next((v for layer, v in self.by_layer(key) if self.trusted or layer.scope not in ("project", "local")), None)

    def blocked(self) -> list[str]:
        """Names of plugins to leave out (``kernel.blocked``). An untrusted project cannot switch off a person's guards."""
        names: list[str] = []
        for layer, value in self.by_layer("kernel.blocked"):
            if not isinstance(value, list) or any(not isinstance(name, str) for name in value):
                self.problems.append(Problem(layer.path, "kernel.blocked", "must be a list of plugin names; it blocks nothing"))
            elif layer.scope in ("project", "local") and not self.trusted:
                self.problems.append(Problem(layer.path, "kernel.blocked", "ignored: this workspace has not been trusted"))
            else:
                names += value
        return names

    def environment(self) -> dict[str, str]:
        """What the ``env`` keys add to the process, by precedence (settings contract, 5.11)."""
        merged: dict[str, str] = {}
        for layer, value in reversed(self.by_layer("env")):
            if not isinstance(value, dict):
                continue
            theirs = layer.scope in ("project", "local")
            for name, text in value.items():
                if name in NEVER_FROM_FILES or (theirs and name in NOT_FROM_PROJECT_ENV):
                    continue
                if theirs and not self.trusted and _steers(name):
                    self.problems.append(Problem(layer.path, f"env.{name}", "ignored: this workspace has not been trusted"))
                    continue
                if isinstance(text, str | int | float) and name and "=" not in name and "\0" not in f"{name}{text}":
                    merged[name] = str(text)
        return merged


def _steers(name: str) -> bool:
    """Whether a variable decides where keys are sent, which programs run, or what guards there are."""
    return name.upper().startswith(STEERING_PREFIXES) or name.upper().endswith("_PROXY") or name in STEERING


def config_dir() -> Path:
    """``$CLAUDE_CONFIG_DIR``, else ``~/.claude``."""
    given = os.environ.get("CLAUDE_CONFIG_DIR")
    return Path(given) if given else Path.home() / ".claude"


def git_root(directory: Path) -> Path | None:
    """The root of the repository that holds the directory; looks at names only, runs no git."""
    for place in (directory, *directory.parents):
        if (place / ".git").exists():
            return place
    return None


def _local_places(cwd: Path) -> list[Path]:
    """Where ``settings.local.json`` is looked for: the repository's root first, then the start directory."""
    root = git_root(cwd)
    if root is None or root == cwd or root == Path.home() or os.environ.get("CLAUDE_CODE_ENTRYPOINT", "").startswith("sdk-"):
        return [cwd]
    mine = os.getuid() if hasattr(os, "getuid") else None
    foreign = mine is not None and any(p.exists() and p.stat().st_uid != mine for p in (root, root / ".git", root / ".claude"))
    return [cwd] if foreign else [root, cwd]


def _managed(directory: Path, problems: list[Problem]) -> Layer | None:
    files = [directory / "managed-settings.json", *sorted((directory / "managed-settings.d").glob("*.json"))]
    found = [layer.data for f in files if (layer := _file("managed", f, problems, "/"))]
    if not found:
        return None
    return Layer("managed", str(files[0]), _join(found[::-1]), "/")


def _cli(value: str, cwd: Path, problems: list[Problem]) -> Layer:
    if value.lstrip().startswith("{"):
        data = _parse("--settings", value.encode("utf-8", "surrogateescape"))
        if isinstance(data, Problem):
            raise SettingsError(data.message, context="--settings", hint="give a path or one JSON object")
        return Layer("cli", "--settings", _checked("cli", "--settings", data, problems) or {}, str(cwd))
    path = Path(value).expanduser()
    path = path if path.is_absolute() else cwd / path
    try:
        is_file = path.is_file()
    except OSError:  # for example a text that is too long for a name
        is_file = False
    if not is_file:
        raise SettingsError("is no regular file", context=f"--settings {value[:200]}", hint="give a path or one JSON object")
    if path.stat().st_size > MAX_CLI_BYTES:
        raise SettingsError(f"is over {MAX_CLI_BYTES} bytes", context=f"--settings {value}")
    parsed = _parse(str(path), path.read_bytes())
    if isinstance(parsed, Problem):
        raise SettingsError(parsed.message, context=f"settings file {path}", hint="it must be one strict JSON object")
    return Layer("cli", str(path), _checked("cli", str(path), parsed, problems) or {}, str(path.parent))


def _file(scope: Scope, path: Path, problems: list[Problem], directory: str) -> Layer | None:
    try:
        raw = path.read_bytes()
    except (FileNotFoundError, NotADirectoryError):
        return None
    except OSError as error:
        problems.append(Problem(str(path), "", f"cannot be read: {error.strerror}"))
        return None
    parsed = _parse(str(path), raw)
    if isinstance(parsed, Problem):
        problems.append(parsed)
        return None
    problems += _twice(str(path), raw)
    data = _checked(scope, str(path), parsed, problems)
    return None if data is None else Layer(scope, str(path), data, directory)


def _parse(path: str, raw: bytes) -> dict[str, Any] | Problem:
    try:
        data = msgspec.json.decode(raw.removeprefix(b"\xef\xbb\xbf"))
    except (msgspec.DecodeError, UnicodeError, RecursionError) as error:
        return Problem(path, "", f"is not valid JSON: {error}{_where(str(error), raw)}")
    return data if isinstance(data, dict) else Problem(path, "", f"must hold one JSON object, found {type(data).__name__}")


def _where(error: str, raw: bytes) -> str:
    """The line and column of the byte that a decoder names."""
    import re

    found = re.search(r"byte (\d+)", error)
    if found is None:
        return ""
    before = raw.removeprefix(b"\xef\xbb\xbf")[:int(found[1])].decode("utf-8", "replace")
    return f", line {before.count(chr(10)) + 1}, column {len(before) - before.rfind(chr(10))}"


def _twice(path: str, raw: bytes) -> list[Problem]:
    """Keys that stand twice in one object: JSON readers take the last and lose the first without a word."""
    import json

    problems: list[Problem] = []

    def pairs(items: list[tuple[str, Any]]) -> None:
        names = [name for name, _ in items]
        problems.extend(Problem(path, name, "stands twice in one object; only the last one counts")
                        for name in dict.fromkeys(n for n in names if names.count(n) > 1))

    json.loads(raw.removeprefix(b"\xef\xbb\xbf"), object_pairs_hook=pairs)
    return problems


def _checked(scope: Scope, path: str, data: dict[str, Any], problems: list[Problem]) -> dict[str, Any] | None:
    """The usable part of a file: wrong shapes are dropped and named. ``None`` drops the file (hooks contract, 2.1)."""
    data = dict(data)
    fault = _hooks_fault(data.get("hooks"))
    if fault:
        problems.append(Problem(path, fault[0], fault[1] + ("" if scope == "managed" else "; the whole file is set aside")))
        if scope != "managed":
            return None
        del data["hooks"]
    permissions = data.get("permissions")
    if permissions is not None and not isinstance(permissions, dict):
        problems.append(Problem(path, "permissions", "must be an object"))
        del data["permissions"]
    elif permissions:
        data["permissions"] = permissions = dict(permissions)
        for name in permissions:
            meant = next((known for known in PERMISSION_KEYS if known.lower() == name.lower() and known != name), None)
            if meant:
                problems.append(Problem(path, f"permissions.{name}", f"has no effect; did you mean {meant!r}?"))
        for name in ("allow", "ask", "deny", "additionalDirectories"):
            value = permissions.get(name)
            if value is None:
                continue
            good = [item for item in value if isinstance(item, str)] if isinstance(value, list) else []
            if not isinstance(value, list) or len(good) != len(value):
                problems.append(Problem(path, f"permissions.{name}", "must be a list of strings; the other entries are dropped"))
            permissions[name] = good
    if scope != "managed":
        for key in MANAGED_ONLY & data.keys():
            del data[key]
    return data


def _hooks_fault(hooks: Any) -> tuple[str, str] | None:
    """The first place where ``hooks`` does not fit the documented shape, as (field, expectation)."""
    if hooks is None:
        return None
    if not isinstance(hooks, dict):
        return "hooks", "must be an object of event names"
    for event, groups in hooks.items():
        if not isinstance(groups, list):
            return f"hooks.{event}", "must be a list of groups"
        for n, group in enumerate(groups):
            where = f"hooks.{event}[{n}]"
            if not isinstance(group, dict) or not isinstance(group.get("hooks"), list):
                return where, "must be an object with a list 'hooks'"
            if not isinstance(group.get("matcher", ""), str):
                return f"{where}.matcher", "must be a string"
            for m, handler in enumerate(group["hooks"]):
                fault = _handler_fault(handler)
                if fault:
                    return f"{where}.hooks[{m}]{fault[0]}", fault[1]
    return None


_REQUIRED = {"command": ("command",), "http": ("url",), "mcp_tool": ("server", "tool"), "prompt": ("prompt",),
             "agent": ("prompt",)}


def _handler_fault(handler: Any) -> tuple[str, str] | None:
    if not isinstance(handler, dict):
        return "", "must be an object with a 'type'"
    required = _REQUIRED.get(str(handler.get("type")))
    if required is None:
        return ".type", f"must be one of {', '.join(_REQUIRED)}"
    for name in required:
        if not isinstance(handler.get(name), str):
            return f".{name}", "must be a string"
    timeout = handler.get("timeout")
    if timeout is not None and (isinstance(timeout, bool) or not isinstance(timeout, int | float) or timeout <= 0):
        return ".timeout", "must be a positive number of seconds"
    return None


def _trusted(cwd: Path, config: Path) -> bool:
    path = config / ".claude.json" if os.environ.get("CLAUDE_CONFIG_DIR") else Path.home() / ".claude.json"
    try:
        data = _parse(str(path), path.read_bytes())
    except OSError:
        return False
    if isinstance(data, Problem):  # it holds who is trusted: nothing is guessed, and it is never overwritten
        raise SettingsError(data.message, context=f"global config {path}", hint="mend or move the file")
    projects = data.get("projects")
    entry = projects.get(str(git_root(cwd) or cwd)) if isinstance(projects, dict) else None
    return isinstance(entry, dict) and entry.get("hasTrustDialogAccepted") is True


def _dig(data: Any, key: str) -> Any:
    for part in key.split("."):
        if not isinstance(data, dict):
            return None
        data = data.get(part)
    return data


def _join(values: list[Any]) -> Any:
    """Values of one key, highest first, as one (settings contract, 3)."""
    first = values[0]
    if isinstance(first, dict):
        objects = [v for v in values if isinstance(v, dict)]
        return {k: _join([o[k] for o in objects if o.get(k) is not None])
                for k in dict.fromkeys(k for o in objects for k, v in o.items() if v is not None)}
    if isinstance(first, list):
        joined: list[Any] = []
        for value in values:
            for item in value if isinstance(value, list) else ():
                if item not in joined:
                    joined.append(item)
        return joined
    return first
