"""What the tests of the kernel and of all plugins share."""

from __future__ import annotations

import os
import signal

import pytest
from hypothesis import settings

# A busy machine is no failure, so examples have no deadline; a failing one prints what reproduces it. What decides whether
# a change lands looks at the same examples each time; everybody's own runs look at new ones.
settings.register_profile("kernel", deadline=None, print_blob=True, derandomize="KERNEL_SAME_EXAMPLES" in os.environ)
settings.load_profile("kernel")

# A shell that starts the tests in the background has its children ignore these; the tests send them to what they start.
_USUAL = {signal.SIGINT: signal.default_int_handler, signal.SIGHUP: signal.SIG_DFL, signal.SIGTERM: signal.SIG_DFL}
for _number, _before in _USUAL.items():
    if signal.getsignal(_number) is signal.SIG_IGN:
        signal.signal(_number, _before)


@pytest.fixture
def anyio_backend() -> str:
    return "asyncio"
