"""Who and what a record comes from: the resource, and the random id of the person's installation."""

from __future__ import annotations

import json
import os
import platform
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

from kernel import __version__, config_dir

if TYPE_CHECKING:
    from kernel_telemetry.switches import Switches

FIELD = "userID"


def resource(switches: Switches) -> dict[str, Any]:
    """The resource's attributes; custom ones never take the place of a standard one."""
    found: dict[str, Any] = {**switches.custom, "service.name": switches.service, "service.version": __version__,
                             "os.type": platform.system().lower(), "os.version": platform.release(), "host.arch": _arch()}
    if os.environ.get("WSL_DISTRO_NAME"):
        found["wsl.version"] = "2" if "microsoft-standard" in platform.release().lower() else "1"
    return found


def _arch() -> str:
    return {"x86_64": "amd64", "aarch64": "arm64"}.get(platform.machine().lower(), platform.machine().lower())


def global_config() -> Path:
    """``~/.claude.json``, which follows ``CLAUDE_CONFIG_DIR``."""
    return config_dir() / ".claude.json" if os.environ.get("CLAUDE_CONFIG_DIR") else Path.home() / ".claude.json"


def user_id(log: Callable[[str], None]) -> str:
    """The id of ``~/.claude.json``, made where there is none. One that lasts for this process where the file cannot be used."""
    path = global_config()
    fresh = os.urandom(32).hex()
    try:
        found = _read(path).get(FIELD)
        return found if isinstance(found, str) and found else _keep(path, fresh)
    except (OSError, ValueError, RecursionError) as error:
        log(f"telemetry: user.id is new for this process: {path}: {error}")
        return fresh


def _read(path: Path) -> dict[str, Any]:
    try:
        data = json.loads(path.read_bytes().decode("utf-8-sig", "replace"))
    except FileNotFoundError:
        return {}
    if not isinstance(data, dict):
        raise ValueError("it holds no JSON object")
    return data


def _keep(path: Path, fresh: str) -> str:
    """Write the id beside what is there; writers wait for each other, and one that came first wins."""
    path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
    lock = os.open(path.with_name(f"{path.name}.lock"), os.O_WRONLY | os.O_CREAT | os.O_CLOEXEC, 0o600)
    try:
        try:
            import fcntl

            fcntl.flock(lock, fcntl.LOCK_EX)
        except ImportError:  # no such locks on this system
            pass
        data = _read(path)
        if isinstance(data.get(FIELD), str) and data[FIELD]:
            return str(data[FIELD])
        target = path.resolve()
        mode = target.stat().st_mode & 0o777 if target.exists() else 0o600
        draft = target.with_name(f".{target.name}.{os.urandom(6).hex()}.tmp")
        number = os.open(draft, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, mode)
        try:
            with os.fdopen(number, "w", encoding="utf-8", errors="replace") as out:
                json.dump({**data, FIELD: fresh}, out, indent=2, ensure_ascii=False)
                out.write("\n")
                out.flush()
                os.fsync(out.fileno())
            os.replace(draft, target)
        finally:
            draft.unlink(missing_ok=True)
        return fresh
    finally:
        os.close(lock)
