"""The manifest: what a plugin is and contributes, read without running it (decision D7; plugins contract, section 3).

``.claude-plugin/plugin.json`` holds the public fields. What only the kernel needs stands under ``metadata.kernel``,
which other readers ignore::

    "metadata": {"kernel": {
        "requires": ">=0.1",                       range of kernel versions
        "implements": ["pre_tool_use"],            hooks of its Python module
        "provides": {"tools": ["Read", "Write"]},  names it registers, by kind
        "capabilities": {"files": "read", "processes": false, "network": [], "environment": []},
        "dependencies": ["permissions"]            plugins it cannot work without
    }}
"""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import msgspec
from msgspec import Struct, field

PLACE = Path(".claude-plugin") / "plugin.json"

KINDS = ("tools", "models", "policies", "sandboxes", "search_backends", "stores", "front_ends", "controls", "prompt_parts",
         "extensions", "compactors", "validators", "middleware", "lint_rules", "commands")
"""Kinds of things that a plugin provides by name; each has a hook ``register_<kind>``."""


class Author(Struct):
    name: str
    email: str | None = None
    url: str | None = None


class KernelPart(Struct):
    """``metadata.kernel``: what the kernel needs to know before it runs any of the plugin's code.

    ``requires``: a range of kernel versions. ``implements``: names of hooks; ``"*"`` stands for the hook of every event.
    ``provides``: kind -> names. ``enforces``: settings keys that mean nothing without the plugin; where one is set and no plugin
    that enforces it is ready, that is announced. ``dependencies``: plugins it cannot work without.
    """

    requires: str | None = None
    implements: list[str] = field(default_factory=list)
    provides: dict[str, list[str]] = field(default_factory=dict)
    capabilities: dict[str, Any] = field(default_factory=dict)
    enforces: list[str] = field(default_factory=list)
    dependencies: list[str] = field(default_factory=list)


class Manifest(Struct, rename="camel"):
    """The public fields. Component fields keep their form; the plugin that loads a component checks it."""

    name: str
    display_name: str | None = None
    version: str | None = None
    description: str | None = None
    author: Author | None = None
    homepage: str | None = None
    repository: str | None = None
    license: str | None = None
    keywords: list[str] = field(default_factory=list)
    default_enabled: bool = True
    skills: str | list[str] | None = None
    commands: str | list[str] | dict[str, Any] | None = None
    agents: str | list[str] | None = None
    workflows: str | list[str] | None = None
    output_styles: str | list[str] | None = None
    hooks: str | list[str | dict[str, Any]] | dict[str, Any] | None = None
    mcp_servers: str | list[str | dict[str, Any]] | dict[str, Any] | None = None
    lsp_servers: str | list[str | dict[str, Any]] | dict[str, Any] | None = None
    themes: str | list[str] | None = None
    monitors: str | list[Any] | None = None
    settings: dict[str, Any] | None = None
    user_config: dict[str, Any] | None = None
    channels: list[Any] = field(default_factory=list)
    dependencies: list[Any] = field(default_factory=list)
    kernel: KernelPart = field(default_factory=KernelPart, name="$kernel")


_KNOWN = {f.encode_name for f in msgspec.structs.fields(Manifest)} | {"metadata", "experimental", "$schema"}
_BAD_NAME = re.compile(r"[/\\:@\s\x00-\x1f]|\.\.|^-|^$")


class Read(Struct):
    """What reading a folder's manifest gave: the manifest or ``None``, and what is wrong, in words."""

    manifest: Manifest | None
    errors: list[str] = field(default_factory=list)
    warnings: list[str] = field(default_factory=list)


def read(root: Path) -> Read:
    """The manifest of a plugin folder. Never raises and never runs code. Without a manifest the folder's name counts."""
    path = root / PLACE
    try:
        raw = path.read_bytes()
    except FileNotFoundError:
        if not root.is_dir():
            return Read(None, [f"{root} is no folder"])
        return _named(Manifest(name=root.name), Read(None), path)
    except OSError as error:
        return Read(None, [f"{path}: cannot be read: {error.strerror}"])
    try:
        data = msgspec.json.decode(raw)
    except (msgspec.DecodeError, UnicodeError, RecursionError) as error:
        return Read(None, [f"{path}: is not valid JSON: {error}"])
    if not isinstance(data, dict):
        return Read(None, [f"{path}: must hold one JSON object, found {type(data).__name__}"])
    return _model(data, path)


def _model(data: dict[str, Any], path: Path) -> Read:
    out = Read(None)
    if not isinstance(data.get("name", ""), str) or "name" not in data:
        out.errors.append(f"{path}, name: a non-empty string is required")
        return out
    for key in data.keys() - _KNOWN:
        out.warnings.append(f"{path}, {key}: unknown field, ignored")
    known = {k: v for k, v in data.items() if k in _KNOWN and k not in ("metadata", "experimental", "$schema")}
    for key in ("metadata", "experimental"):
        if key in data and not isinstance(data[key], dict):
            out.warnings.append(f"{path}, {key}: must be an object, ignored")
    metadata = data.get("metadata")
    part = metadata.get("kernel") if isinstance(metadata, dict) else None
    try:
        manifest = msgspec.convert(known, Manifest)
        if part is not None:
            unknown = sorted(set(part) - set(KernelPart.__struct_fields__)) if isinstance(part, dict) else []
            if unknown:  # a guard under a misspelt key would be no guard, without a word
                out.errors.append(f"{path}, metadata.kernel.{unknown[0]}: unknown field; known: "
                                  f"{', '.join(KernelPart.__struct_fields__)}")
                return out
            manifest.kernel = msgspec.convert(part, KernelPart)
    except msgspec.ValidationError as error:
        out.errors.append(f"{path}: {error}")
        return out
    for kind in manifest.kernel.provides.keys() - set(KINDS):
        out.warnings.append(f"{path}, metadata.kernel.provides.{kind}: unknown kind, ignored; known: {', '.join(KINDS)}")
    return _named(manifest, out, path)


def _named(manifest: Manifest, out: Read, path: Path) -> Read:
    if _BAD_NAME.search(manifest.name):
        out.errors.append(f"{path}, name: {manifest.name!r} must not be empty or hold spaces, '/', '\\', ':', '@', '..', "
                          "control characters or a leading '-'")
    else:
        out.manifest = manifest
    return out


_CLAUSE = re.compile(r"^\s*(>=|<=|==|!=|>|<)\s*(\d+(?:\.\d+)*)\s*$")


def in_range(version: str, requires: str | None) -> bool:
    """Whether the version fits a range such as ``>=0.1,<1``. A range that cannot be read fits nothing."""
    have = [int(n) for n in re.findall(r"\d+", version)[:3]]
    for clause in (requires or "").split(","):
        if not clause.strip():
            continue
        match = _CLAUSE.match(clause)
        if not match:
            return False
        want = [int(n) for n in match[2].split(".")]
        width = max(len(have), len(want))
        a, b = have + [0] * (width - len(have)), want + [0] * (width - len(want))
        if not {">=": a >= b, "<=": a <= b, "==": a == b, "!=": a != b, ">": a > b, "<": a < b}[match[1]]:
            return False
    return True
