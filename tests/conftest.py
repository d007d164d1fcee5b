"""What all tests of the kernel share: one async backend, the public contract's data, and a home of their own."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import settings

SHARED = Path(os.environ.get("KERNEL_SHARED") or Path(__file__).resolve().parents[2] / "shared")

# A busy machine is no failure, so examples have no deadline; a failing one prints what reproduces it.
settings.register_profile("kernel", deadline=None, print_blob=True)
settings.load_profile("kernel")


@pytest.fixture
def anyio_backend() -> str:
    return "asyncio"


@pytest.fixture(scope="session")
def shared() -> Path:
    """The folder with the contract's data and the corpus of published plugins."""
    if not (SHARED / "contract" / "hook-events.json").is_file():
        pytest.skip(f"the contract's data is not here ({SHARED}; KERNEL_SHARED names another place)")
    return SHARED


@pytest.fixture(autouse=True)
def own_home(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """No test sees the settings, keys or variables of the person who runs it, nor those that another test set."""
    before = dict(os.environ)
    for name in [n for n in os.environ if n.startswith(("CLAUDE", "ANTHROPIC", "KERNEL_"))]:
        del os.environ[name]
    home = tmp_path_factory.mktemp("home")
    os.environ["HOME"] = str(home)
    yield home
    os.environ.clear()
    os.environ.update(before)
