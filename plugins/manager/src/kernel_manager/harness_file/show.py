"""What a harness is, read from its lock: plugins, versions, what each brings, settings, where from."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from kernel import Manifest
from kernel_manager.errors import ManagerError
from kernel_manager.harness_file import folders, lockfile, sync, verify
from kernel_manager.harness_file.lockfile import Lock
from kernel_manager.harness_file.model import Parsed


def facts(parsed: Parsed) -> dict[str, Any]:
    """The harness as plain data.

    :raises ManagerError: there is no lock, or it cannot be read.
    """
    path = lockfile.path_of(parsed.path)
    raw, lock = lockfile.read(path)
    folder = sync.home(parsed.path) / "sets" / lockfile.set_id(raw)
    in_place = folder.is_dir() and not verify.problems(lock, folder)
    return {"harness": str(parsed.path), "lock": str(path), "name": lock.name, "description": parsed.file.description,
            "current": lock.harness == lockfile.digest_of_harness(parsed.raw), "in_place": in_place, "folder": str(folder),
            "kernel": lock.kernel, "python": lock.python, "platform": lock.platform,
            "plugins": [_plugin(lock, name, folder if in_place else None) for name in _in_order(lock)],
            "distributions": [{"name": name, "version": d.version, "from": _origin(d.source), "files": len(d.files),
                               "sha256": d.sha256, "needed_by": _needed_by(lock, name)}
                              for name, d in lock.distributions.items()],
            "settings": lock.settings, "order": lock.order, "block": lock.block}


def _in_order(lock: Lock) -> list[str]:
    rank = {name: n for n, name in enumerate(lock.order)}
    return sorted(lock.plugins, key=lambda name: (rank.get(name, len(rank)), name))


def _plugin(lock: Lock, name: str, folder: Path | None) -> dict[str, Any]:
    plugin = lock.plugins[name]
    owner = lock.distributions.get(plugin.distribution or "")
    manifest = _manifest(plugin, name, folder) if folder else None
    return {"name": name, "version": plugin.version, "distribution": plugin.distribution,
            "from": _origin(plugin.source or (owner.source if owner else None)), "blocked": name in lock.block,
            "needed_by": _needed_by(lock, plugin.distribution) if plugin.distribution else [],
            "description": manifest.description if manifest else None,
            "hooks": manifest.kernel.implements if manifest else None,
            "provides": manifest.kernel.provides if manifest else None,
            "capabilities": manifest.kernel.capabilities if manifest else None,
            "files": len(plugin.files if plugin.files is not None else owner.files if owner else ())}


def _manifest(plugin: lockfile.Locked, name: str, folder: Path) -> Manifest | None:
    root = folder / "plugins" / name if plugin.files is not None else folder / "site" / str(plugin.package)
    try:
        return folders.manifest_of_folder(root, None)
    except ManagerError:
        return None


def _origin(source: lockfile.From | None) -> str:
    if source is None or source.kind == "index":
        return "index"
    return f"{source.kind} {source.spec}" + (f" ({source.pin[:12]})" if source.pin else "")


def _needed_by(lock: Lock, name: str) -> list[str]:
    return [other for other, d in lock.distributions.items() if name in d.requires]


def text(data: dict[str, Any]) -> str:
    """The same for people."""
    state = "in place" if data["in_place"] else "not in place (kernel harness sync)"
    stale = "" if data["current"] else "; the file has changed since it was locked"
    lines = [f"{data['name'] or 'harness'}: {data['harness']}, locked for kernel {data['kernel']}, {data['python']}, "
             f"{data['platform']}; {state}{stale}"]
    lines += [data["description"].strip()] if data["description"] else []
    width = max((len(p["name"]) for p in data["plugins"]), default=0)
    lines += ["", f"plugins ({len(data['plugins'])}):"]
    for plugin in data["plugins"]:
        brings = "; ".join(f"{kind}: {' '.join(names)}" for kind, names in (plugin["provides"] or {}).items())
        brings = brings or ("hooks: " + " ".join(plugin["hooks"]) if plugin["hooks"] else "")
        blocked = " (blocked)" if plugin["blocked"] else ""
        lines.append(f"  {plugin['name']:<{width}}  {plugin['version']:<9} {plugin['from']}{blocked}  {brings}".rstrip())
    others = [d for d in data["distributions"] if d["name"] not in {p["distribution"] for p in data["plugins"]}]
    lines += ["", f"Python dependencies ({len(others)}):"]
    lines += [f"  {d['name']} {d['version']}  (for {', '.join(d['needed_by']) or 'the kernel'})" for d in others]
    if data["settings"]:
        lines += ["", f"settings: {', '.join(sorted(data['settings']))}"]
    for key in ("order", "block"):
        lines += [f"{key}: {', '.join(data[key])}"] if data[key] else []
    return "\n".join(lines)
