"""Whether a plugin can be used, found out by loading it: for people and tests that want to know before a hook fires."""

from __future__ import annotations

import contextlib
import sys
from importlib.util import find_spec
from typing import TYPE_CHECKING

from kernel.errors import LoadError

if TYPE_CHECKING:
    from kernel.plugins import Plugin


def ensure_usable(plugin: Plugin) -> None:
    """Import the plugin's module and compare it with its manifest. What it prints meanwhile goes to stderr.

    A module that is not there is no fault of a plugin without hooks in Python: nothing would ever import it.

    :raises LoadError: it is broken or blocked, its module cannot be imported, or the hooks do not fit.
    """
    if plugin.state == "ready" and plugin.module and (plugin.implements or _is_there(plugin)):
        with contextlib.redirect_stdout(sys.stderr):
            plugin.load()
    if plugin.state != "ready":
        raise plugin.failure or LoadError(plugin.name, "; ".join(plugin.errors))


def _is_there(plugin: Plugin) -> bool:
    try:
        return find_spec(plugin.module or "") is not None
    except (ImportError, ValueError):
        return False
    except Exception:  # a package that fails while it is imported is there; loading it says how it fails
        return True
