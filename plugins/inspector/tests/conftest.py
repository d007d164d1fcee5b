"""A home of its own for each test, and one played session for all that only read it."""

from __future__ import annotations

import importlib.util
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

from kernel.testing import installed, provides


def beside(name: str) -> ModuleType:
    """A module of this folder."""
    full = f"inspector_{name}"
    if full not in sys.modules:
        spec = importlib.util.spec_from_file_location(full, Path(__file__).parent / f"{name}.py")
        assert spec and spec.loader
        sys.modules[full] = importlib.util.module_from_spec(spec)
        spec.loader.exec_module(sys.modules[full])
    return sys.modules[full]


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    for name in [n for n in os.environ if n.startswith(("CLAUDE", "ANTHROPIC", "KERNEL_"))]:
        monkeypatch.delenv(name)
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    monkeypatch.setenv("CLAUDE_CONFIG_DIR", str(tmp_path / "config"))
    return tmp_path


@pytest.fixture(scope="session")
def played(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The transcript of the showcase. Not to be changed."""
    for kind, name in (
        ("models", "script"),
        ("stores", "files"),
        ("tools", "Bash"),
        ("tools", "Agent"),
        ("tools", "Edit"),
        ("policies", "rules"),
        ("compactors", "summary"),
    ):
        if not provides(kind, name):
            pytest.skip(f"needs what brings {name!r} ({kind})")
    if not installed("command-hooks"):
        pytest.skip("needs what runs command hooks")
    folder = tmp_path_factory.mktemp("showcase")
    done = subprocess.run(
        [sys.executable, str(Path(__file__).parent / "showcase.py"), str(folder), "--pace", "0"],
        env={"HOME": str(folder / "home"), "PATH": os.environ["PATH"], "LANG": "C.UTF-8"},
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return Path(done.stdout.strip())


@pytest.fixture(scope="session")
def browser(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Any]:
    """One Chromium for all tests of the page."""
    driver = beside("driver")
    if not (driver.CHROMIUM and driver.CHROMEDRIVER):
        pytest.skip("chromium and chromedriver are not here (Debian: chromium, chromium-driver)")
    made = driver.Browser(tmp_path_factory.mktemp("chromium"))
    yield made
    made.close()
