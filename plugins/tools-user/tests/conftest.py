"""An empty home."""

from __future__ import annotations

from pathlib import Path

import pytest


@pytest.fixture(autouse=True)
def own_home(kernel_home: Path) -> Path:
    return kernel_home
