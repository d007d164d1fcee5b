"""Where a run took place: what of its surroundings belongs into the header of a recording."""

from __future__ import annotations

import os
import re
from hashlib import blake2b
from pathlib import Path
from typing import TYPE_CHECKING, Any

import msgspec

if TYPE_CHECKING:
    from kernel import Harness, Options, Plugin

PREFIXES = ("CLAUDE", "ANTHROPIC", "KERNEL_")
ALSO = ("TZ", "USER", "IS_SANDBOX", "API_TIMEOUT_MS", "DISABLE_PROMPT_CACHING", "ENABLE_TOOL_SEARCH",
        "MAX_MCP_OUTPUT_TOKENS", "MCP_TIMEOUT", "MCP_TOOL_TIMEOUT", "SLASH_COMMAND_TOOL_CHAR_BUDGET")
_SECRET = re.compile(r"(KEY|TOKEN|SECRET|PASSWORD|PASSWD|CREDENTIAL|AUTH|COOKIE|HEADERS)", re.IGNORECASE)
_NOT_SECRET = re.compile(r"(MAX|LIMIT|CHAR|BUDGET|OUTPUT)_?\w*TOKENS?|TOKENS?_?(MAX|LIMIT)|HOOKS|AUTHOR", re.IGNORECASE)
_OWN = re.compile(r"(^|_)(SHELL|SHELL_PREFIX|HOME|PATH|CERT|SERVE|DATABASE|TMPDIR|TELEMETRY|PROXY|COMMAND|HELPER)$"
                  r"|_(FILE|DIR|URL)$|PLUGIN|HARNESS|TELEMETRY|OTEL|PYTHON|NODE_")
_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
SHORTEST = 8
"""Characters of a value that is taken for a credential."""


def is_secret(name: str) -> bool:
    return bool(_SECRET.search(name)) and not _NOT_SECRET.search(name)


def is_name(name: str) -> bool:
    return bool(_NAME.fullmatch(name))


def steers(name: str) -> bool:
    """Whether a recording holds that variable, and a replay takes it from there: what steers the harness, and neither a
    credential nor anything that names code, folders or addresses. Those are of whoever replays."""
    return (name.startswith(PREFIXES) or name in ALSO) and not is_secret(name) and not _OWN.search(name)


def environment() -> dict[str, str]:
    """Variables that steer the harness, without credentials."""
    return {name: value for name, value in sorted(os.environ.items())
            if steers(name)}


def keys() -> list[str]:
    """Credentials of the harness that were set; their values are nowhere in a recording."""
    return [name for name in sorted(os.environ) if name.startswith(PREFIXES) and is_secret(name) and os.environ[name]]


def secrets() -> dict[bytes, bytes]:
    """Value, as JSON writes it -> what stands in its place, the longest first. All credentials of the environment count."""
    found = {}
    for name, value in os.environ.items():
        if is_secret(name) and len(value) >= SHORTEST:
            found[msgspec.json.encode(value.encode("utf-8", "replace").decode())[1:-1]] = f"[{name}]".encode()
    return dict(sorted(found.items(), key=lambda item: -len(item[0])))


def options(given: Options) -> dict[str, Any]:
    told: dict[str, Any] = msgspec.to_builtins(given, enc_hook=str)
    told["extra"] = {k: v for k, v in told["extra"].items() if k != "record"}
    return told


def settings(harness: Harness) -> str:
    layers = [[layer.scope, getattr(layer, "data", None)] for layer in harness.settings.layers]
    return blake2b(msgspec.json.encode(layers, enc_hook=str), digest_size=16).hexdigest()


def plugins(harness: Harness) -> dict[str, dict[str, str]]:
    ready = [p for p in harness.plugins if p.state == "ready"]
    return {p.name: {"version": str(p.version or (p.manifest and p.manifest.version) or ""), "digest": identity(harness, p)}
            for p in ready}


def identity(harness: Harness, plugin: Plugin) -> str:
    """A digest of the plugin's files and of the settings that it enforces: what it does may differ where this does."""
    total = blake2b(digest_size=16)
    for path in sorted(_files(plugin.root)):
        total.update(f"{path.relative_to(plugin.root)}\0".encode())
        try:
            total.update(path.read_bytes())
        except OSError:
            total.update(b"unreadable")
    part = plugin.manifest.kernel if plugin.manifest else None
    policy = ["permissions"] if part and part.provides.get("policies") else []
    for key in (f"kernel.{plugin.name}", *(part.enforces if part else ()), *policy):
        total.update(msgspec.json.encode([[layer.scope, value] for layer, value in harness.settings.by_layer(key)], enc_hook=str))
    return total.hexdigest()


def _files(root: Path) -> list[Path]:
    found = []
    for folder, names, files in os.walk(root):
        names[:] = [n for n in names if not n.startswith((".git", ".venv")) and n not in ("__pycache__", "tests", "node_modules")]
        found += [Path(folder, name) for name in files if not name.endswith(".pyc")]
    return found
