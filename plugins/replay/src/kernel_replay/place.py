"""Where a run is recorded to, if it is. Read at the start of every run, so it imports next to nothing."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from kernel import Options, Settings


def wanted(options: Options | None, settings: Settings | None) -> str:
    """``--record``, else the setting ``kernel.replay.record``; empty: this run is not recorded."""
    if options is not None and options.extra.get("replaying"):
        return ""
    given: Any = options.extra.get("record") if options is not None else None
    if not given and settings is not None:
        given = settings.own("kernel.replay.record")
    return str(given) if given else ""
