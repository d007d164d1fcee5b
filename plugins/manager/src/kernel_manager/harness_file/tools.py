"""pip and uv as programs. pip builds and downloads; uv, where it is on PATH, resolves."""

from __future__ import annotations

import os
import shutil
import sys
from collections.abc import Callable, Sequence
from pathlib import Path

from msgspec import Struct, field

from kernel_manager import programs
from kernel_manager.errors import ManagerError

TIMEOUT = 1800.0


class Ways(Struct, kw_only=True):
    """How packages are found, and who is told what goes on. ``find_links`` are folders of archives."""

    find_links: list[Path] = field(default_factory=list)
    no_index: bool = False
    build_isolation: bool = True
    say: Callable[[str], None] = lambda text: None

    def arguments(self) -> list[str]:
        found = [a for folder in self.find_links for a in ("--find-links", str(folder))]
        return [*found, *(["--no-index"] if self.no_index else [])]


def uv() -> str | None:
    return shutil.which("uv")


def pip() -> list[str]:
    """How pip is called: the environment's, else the one that Python itself ships."""
    import importlib.util

    if importlib.util.find_spec("pip") is not None:
        return [sys.executable, "-m", "pip"]
    try:
        import ensurepip
    except ImportError:
        wheels: list[Path] = []
    else:
        wheels = sorted((Path(ensurepip.__file__).parent / "_bundled").glob("pip-*.whl"))
    if not wheels:
        raise ManagerError("no-pip", "there is no pip in this environment and none comes with this Python",
                           hint="python -m ensurepip, or install pip")
    return [sys.executable, str(wheels[-1] / "pip")]


def run_pip(command: str, arguments: Sequence[str], *, cwd: Path, what: str) -> None:
    """Run one pip command.

    :raises ManagerError: ``resolver``, with the last of what pip said.
    """
    run([*pip(), command, "--quiet", *arguments], cwd=cwd, what=what)


def run(command: list[str], *, cwd: Path, what: str) -> str:
    """The program's stdout; it ends with us.

    :raises ManagerError: ``resolver``: it failed or took too long; ``missing-program``.
    """
    epoch = os.environ.get("SOURCE_DATE_EPOCH", "315532800")  # archives that are built here hold no time of day
    return programs.run(command, cwd=cwd, timeout=TIMEOUT, type="resolver", what=what,
                        env={"SOURCE_DATE_EPOCH": epoch, "PYTHONNOUSERSITE": "1"})

