"""The same harness for those who do not use it as a file: a ``pyproject.toml`` and a ``Dockerfile``."""

from __future__ import annotations

import json
import shlex
from pathlib import Path

from kernel_manager.errors import ManagerError
from kernel_manager.harness_file import lockfile
from kernel_manager.harness_file.lockfile import Distribution, Lock
from kernel_manager.harness_file.model import Parsed
from kernel_manager.harness_file.resolve import KERNEL
from kernel_manager.names import canonical


def pyproject(parsed: Parsed, lock: Lock) -> str:
    """A project without code of its own, whose dependencies are exactly what is locked. What the harness builds from folders is
    named by version, too: an index or a folder of wheels must have it.

    :raises ManagerError: the lock holds what no package index serves.
    """
    _only_packages(lock)
    name = _slug(parsed, lock)
    pins = sorted([_pin(n, d) for n, d in lock.distributions.items()] + [f"{KERNEL}=={lock.kernel}"])
    direct = ["", "[tool.hatch.metadata]", "allow-direct-references = true"] if any(" @ " in pin for pin in pins) else []
    lines = [f"# Written by kernel harness export from {lockfile.path_of(parsed.path).name}; do not edit.",
             "[build-system]", 'requires = ["hatchling>=1.25"]', 'build-backend = "hatchling.build"', "",
             "[project]", f"name = {json.dumps(f'{name}-harness')}", 'version = "0"',
             f"description = {json.dumps(' '.join((parsed.file.description or 'A locked harness').split()))}",
             f'requires-python = "{_python(lock)}"', "dependencies = [",
             *(f"    {json.dumps(pin)}," for pin in pins), "]", "",
             "[tool.hatch.build.targets.wheel]", "bypass-selection = true", *direct, ""]
    return "\n".join(lines)


def _pin(name: str, item: Distribution) -> str:
    pin = item.source.pin or ""
    if item.source.kind == "url":
        return f"{name} @ {pin}"
    if item.archive is None and pin.startswith("git+"):
        url, _, folder = pin.partition("#")
        return f"{name} @ {url}" + (f"#subdirectory={folder}" if folder else "")
    return f"{name}=={item.version}"


def requirements(lock: Lock) -> str:
    """The same as a file for ``pip install --require-hashes``, where a digest of every archive is known.

    The kernel itself has none, so it is installed apart from it."""
    lines = [f"{name}=={d.version} \\\n    --hash=sha256:{d.sha256}" for name, d in lock.distributions.items()]
    return "\n".join(lines) + "\n"


def dockerfile(parsed: Parsed, lock: Lock, image: str) -> str:
    """An image that holds the locked set and runs it.

    :param image: the Python image; give it with its digest (``python:3.11-slim@sha256:...``) to pin that, too.
    """
    from importlib.metadata import version

    path, harness, typed = lockfile.path_of(parsed.path), parsed.path.name, shlex.quote(parsed.path.name)
    folders = sorted(set(_local_folders(lock)))
    outside = next((f for f in folders if f.startswith(("..", "/", "~"))), None)
    if outside is not None:
        raise ManagerError("outside", f"the folder {outside} lies outside of the harness's folder, so a build cannot copy it",
                           context=str(parsed.path), hint="move it below, name it as a git source, or --only pyproject")
    digest = f"sha256:{lockfile.set_id(path.read_bytes())}" if path.is_file() else ""
    lines = [f"# Written by kernel harness export from {path.name} ({digest}); do not edit.",
             f"# docker build -t {_slug(parsed, lock)} .     (wheels that no index has: put them into ./wheels)",
             f"FROM {image}",
             "ENV PIP_NO_CACHE_DIR=1 PIP_DISABLE_PIP_VERSION_CHECK=1 PYTHONDONTWRITEBYTECODE=1",
             "WORKDIR /harness",
             f"COPY {json.dumps([harness, path.name, './'])}",
             "# the harness file stands here because one source has to be there; ./wheels may be missing",
             f"COPY {json.dumps([harness, 'wheel[s]', './wheels/'])}",
             f"RUN pip install --find-links wheels {KERNEL}=={lock.kernel} kernel-manager=={version('kernel-manager')}",
             *(f"COPY {json.dumps([folder, folder])}" for folder in folders),
             f"RUN kernel harness sync --frozen --find-links wheels {typed} && kernel harness verify {typed}",
             "RUN useradd --create-home harness",
             "USER harness",
             "WORKDIR /work",
             f"ENV KERNEL_HARNESS={json.dumps(f'/harness/{harness}')}",
             'ENTRYPOINT ["kernel"]',
             'CMD ["--help"]', ""]
    return "\n".join(lines)


def write(parsed: Parsed, lock: Lock, folder: Path, image: str | None, only: str | None = None) -> list[Path]:
    """Write both files (and ``requirements.txt`` where every digest is known) into a folder.

    :param only: ``pyproject`` or ``dockerfile``: not the other.

    :raises ManagerError: a part of the harness cannot be said in them.
    """
    files = {"Dockerfile": dockerfile(parsed, lock, image or f"python:{_version(lock)}-slim")} if only != "pyproject" else {}
    if only != "dockerfile":
        files["pyproject.toml"] = pyproject(parsed, lock)
        if all(d.sha256 for d in lock.distributions.values()):
            files["requirements.txt"] = requirements(lock)
    folder.mkdir(parents=True, exist_ok=True)
    for name, text in files.items():
        (folder / name).write_text(text, "utf-8")
    return [folder / name for name in files]


def _only_packages(lock: Lock) -> None:
    folder = next((name for name, p in lock.plugins.items() if p.files is not None), None)
    if folder is not None:
        raise ManagerError("no-package", "is a folder without a Python project, which a pyproject cannot name",
                           context=f"plugin {folder}", hint="export the Dockerfile alone: --only dockerfile")


def _slug(parsed: Parsed, lock: Lock) -> str:
    """A name that distributions and images may have."""
    letters = "".join(c if c.isascii() and c.isalnum() else "-" for c in lock.name or parsed.base.name)
    return canonical(letters).strip("-") or "harness"


def _version(lock: Lock) -> str:
    """``3.11`` of ``cpython-311``."""
    digits = lock.python.rpartition("-")[2]
    return f"{digits[0]}.{digits[1:]}" if digits.isdigit() and len(digits) > 1 else "3.11"


def _python(lock: Lock) -> str:
    return f"=={_version(lock)}.*" if lock.platform != "any" else ">=3.11"


def _local_folders(lock: Lock) -> list[str]:
    sources = [d.source for d in lock.distributions.values()] + [p.source for p in lock.plugins.values() if p.source]
    return [s.spec for s in sources if s.kind == "folder" and s.spec]
