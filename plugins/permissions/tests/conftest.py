"""What holds for all tests of this plugin."""

from __future__ import annotations

import pytest
from kernel_permissions.scripts import PROVED


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Before Python 3.11.5 sed and awk programs are asked about, so what expects them to be read does not hold there."""
    if not PROVED:
        for item in items:
            if "permissions" in item.nodeid and ("sed" in item.name or "awk" in item.name):
                item.add_marker(pytest.mark.skip(reason="sed and awk programs are judged from Python 3.11.5 on"))
