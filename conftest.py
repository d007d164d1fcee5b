"""What the tests of the kernel and of all plugins share."""

from __future__ import annotations

import pytest
from hypothesis import settings

# A busy machine is no failure, so examples have no deadline; a failing one prints what reproduces it.
settings.register_profile("kernel", deadline=None, print_blob=True)
settings.load_profile("kernel")


@pytest.fixture
def anyio_backend() -> str:
    return "asyncio"
