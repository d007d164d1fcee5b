"""Templates and a name -> the files of a plugin -> a folder, whole or not at all.

A template is a working plugin with a name that is easy to find; what is made is a copy with that name replaced (decision 20).
"""

from __future__ import annotations

import json
import os
import re
import shutil
import tempfile
from pathlib import Path
from typing import NamedTuple

from kernel import Plugin, UsageError
from kernel_scaffold.kinds import KINDS

NAME = re.compile(r"[a-z][a-z0-9]*(?:-[a-z0-9]+)*")
LONGEST = 64
TAKEN = {"harness": "its distribution would be kernel-harness, which is the kernel itself"}
DEVICES = frozenset({"con", "prn", "aux", "nul", *(f"{port}{n}" for port in ("com", "lpt") for n in range(1, 10))})
LONGEST_AUTHOR = 200


class Made(NamedTuple):
    """What was made. ``notes`` are for the person: what to know before the next step."""

    name: str
    kind: str
    path: Path
    package: str
    distribution: str
    files: list[str]
    notes: list[str]


def make(name: str, kind: str, folder: Path, author: str | None = None) -> Made:
    """Make the plugin ``folder/name``.

    :raises UsageError: the name, the kind, the author or the place does not do; nothing was written.
    :raises OSError: it cannot be written; nothing is left behind.
    """
    check_name(name)
    if kind not in KINDS:
        raise UsageError(f"--kind {kind}: there is no such kind", hint=f"kinds are {', '.join(KINDS)}")
    target = folder / name
    _check_place(target)
    files = render(name, kind, author or _git_user() or f"The authors of {name}")
    installed = _installed()
    _check_clashes(name, files, installed)
    write(target, files)
    package = f"kernel_{name.replace('-', '_')}"
    return Made(name, kind, target, package, f"kernel-{name}", sorted(files), _notes(name, installed))


# -- what is asked for ------------------------------------------------------------------------------------------------
def check_name(name: str) -> None:
    """
    :raises UsageError: it cannot be the name of a plugin, a distribution, a package and a folder at once.
    """
    if not NAME.fullmatch(name):
        better = re.sub(r"[^a-z0-9]+", "-", re.sub(r"(?<=[a-z0-9])(?=[A-Z])", "-", name).lower()).strip("-0123456789")
        raise UsageError(f"{name!r} cannot be a plugin's name: lower-case letters, digits and single hyphens, a letter first",
                         hint=f"did you mean {better!r}?" if NAME.fullmatch(better) else "for example word-count")
    if len(name) > LONGEST:
        raise UsageError(f"{name!r} is too long for a plugin's name: {len(name)} characters, at most {LONGEST}")
    if name in TAKEN:
        raise UsageError(f"{name!r} cannot be a plugin's name: {TAKEN[name]}", hint="choose another name")
    if name in DEVICES:
        raise UsageError(f"{name!r} cannot be a plugin's name: it names a device on some systems, so no folder can have it")


def _check_place(target: Path) -> None:
    if target.is_symlink() or (target.exists() and not target.is_dir()):
        raise UsageError(f"{target} exists and is no folder", hint="choose another name, or another place with --dir")
    if target.is_dir() and any(target.iterdir()):
        raise UsageError(f"{target} exists and is not empty; nothing in it was changed",
                         hint="choose another name, or another place with --dir")


def _check_clashes(name: str, files: dict[str, bytes], installed: list[Plugin]) -> None:
    """What the new plugin registers must not be there already."""
    provides = json.loads(files[".claude-plugin/plugin.json"]).get("metadata", {}).get("kernel", {}).get("provides", {})
    for plugin in installed:
        theirs = plugin.manifest.kernel.provides if plugin.manifest and plugin.name != name else {}
        for kind, names in provides.items():
            both = sorted(set(names) & set(theirs.get(kind, ())))
            if both:
                raise UsageError(f"the plugin would bring {both[0]!r} ({kind}), as the installed plugin {plugin.name!r} does; "
                                 "two of one name cannot be loaded together", hint="choose another name")


def _notes(name: str, installed: list[Plugin]) -> list[str]:
    other = next((p for p in installed if p.name == name), None)
    if other is None:
        return []
    return [f"a plugin named {name!r} is installed already (distribution {other.distribution}); pip install puts the new one in "
            "its place"]


def _installed() -> list[Plugin]:
    from kernel import Harness, Options

    return [p for p in Harness(Options()).plugins if p.source == "distribution"]


def _git_user() -> str | None:
    import subprocess

    try:
        done = subprocess.run(["git", "config", "user.name"], capture_output=True, timeout=10, check=False)  # noqa: S607
    except (OSError, subprocess.TimeoutExpired):
        return None
    found = done.stdout.decode("utf-8", "replace").strip()
    return found if found and found.isprintable() and len(found) <= LONGEST_AUTHOR else None


# -- files --------------------------------------------------------------------------------------------------------------
def templates() -> Path:
    """The folder of templates: in the package when it is installed, beside ``src`` in a checkout."""
    package = Path(__file__).parent
    inside = package / "templates"
    return inside if inside.is_dir() else package.parents[1] / "templates"


def render(name: str, kind: str, author: str) -> dict[str, bytes]:
    """The files of the new plugin by path, ``/`` between folders.

    Replaced is the name in its three spellings, the author and the description, in texts and in paths. Nothing else is, and
    nothing of the sample may be left: a template that says "sample" in another way is a fault of ours.

    :raises UsageError: the author's name cannot be written down.
    """
    if not author.isprintable() or len(author) > LONGEST_AUTHOR:
        raise UsageError(f"--author: must be one line of at most {LONGEST_AUTHOR} printable characters")
    camel = "".join(part.capitalize() for part in name.split("-"))
    twice = [suffix for suffix in ("Tool", "Provider", "Compactor") if camel.endswith(suffix) and camel != suffix]
    words = {"sample-plugin": name, "sample_plugin": name.replace("-", "_"),
             **{f"SamplePlugin{suffix}": camel for suffix in twice},  # no EchoProviderProvider
             "SamplePlugin": camel,
             '"sample author"': json.dumps(author, ensure_ascii=False), "sample description": KINDS[kind].description}
    pattern = re.compile("|".join(map(re.escape, words)))
    files: dict[str, bytes] = {}
    for layer in KINDS[kind].layers:
        for path in sorted(p for p in (templates() / layer).rglob("*") if p.is_file() and "__pycache__" not in p.parts):
            place, text = path.relative_to(templates() / layer).as_posix(), path.read_text("utf-8")
            rest = pattern.sub("", place + text)
            if "sample" in rest.lower():
                raise AssertionError(f"{path}: holds a placeholder that nothing replaces")
            files[pattern.sub(lambda m: words[m[0]], place)] = pattern.sub(lambda m: words[m[0]], text).encode()
    return files


def write(target: Path, files: dict[str, bytes]) -> None:
    """Write into a folder beside the target, then put it in its place.

    :raises OSError: nothing is left behind, and what was at the target is as it was.
    """
    target.parent.mkdir(parents=True, exist_ok=True)
    stage = Path(tempfile.mkdtemp(prefix=f".{target.name}-", dir=target.parent))
    try:
        for place, content in files.items():
            path = stage / place
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(content)
            if content.startswith(b"#!"):
                path.chmod(0o755)
        stage.chmod(0o777 & ~_umask())
        os.rename(stage, target)  # over an empty folder too; refused by the system where somebody filled it meanwhile
    except BaseException:
        shutil.rmtree(stage, ignore_errors=True)
        raise


def _umask() -> int:
    mask = os.umask(0o077)
    os.umask(mask)
    return mask
