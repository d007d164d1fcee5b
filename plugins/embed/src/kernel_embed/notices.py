"""What a person must hear of: guards that do not work, settings that cannot be read, a model that is asked again."""

from __future__ import annotations

import logging
from collections.abc import Callable
from typing import Any

from msgspec import Struct

from kernel import Output, SystemMessage

LOG = logging.getLogger("kernel_embed")
_LEVELS = {"info": logging.INFO, "suggestion": logging.INFO, "error": logging.ERROR}


class Notice(Struct, frozen=True):
    """``guard``: something that protects does not work. ``level``: ``info``, ``warning`` or ``error``."""

    text: str
    level: str = "warning"
    guard: bool = False


class Notices:
    """Passes each on once: to the program's function, or to the log ``kernel_embed``.

    Without any logging set up, Python writes warnings and errors to stderr.
    """

    def __init__(self, function: Callable[[Notice], Any] | None) -> None:
        self._function = function
        self._guards: set[str] = set()

    def announce(self, text: str) -> None:
        """A listener of the harness: never silent."""
        if text not in self._guards:
            self._guards.add(text)
            self._pass_on(Notice(text, guard=True))

    def hear(self, message: Output) -> None:
        """What of the stream is a notice."""
        if not isinstance(message, SystemMessage):
            return
        data = message.data
        if message.subtype == "informational" and data.get("content") not in self._guards:
            self._pass_on(Notice(str(data.get("content", "")), str(data.get("level") or "info")))
        elif message.subtype == "api_retry":
            self._pass_on(Notice(f"the model could not be asked ({data.get('error_status') or data.get('error')}); try "
                                 f"{data.get('attempt')} of {data.get('max_retries')} follows", "info"))

    def _pass_on(self, notice: Notice) -> None:
        if self._function is None:
            LOG.log(_LEVELS.get(notice.level, logging.WARNING), "%s", notice.text)
            return
        try:
            self._function(notice)
        except Exception:
            LOG.exception("on_notice failed; the notice was: %s", notice.text)
