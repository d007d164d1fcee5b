"""Write what a model streams as a script, turn by turn (``KERNEL_RECORD=PATH``)."""

from __future__ import annotations

import json
import os
from collections.abc import AsyncGenerator
from contextlib import aclosing
from pathlib import Path
from typing import Any
from weakref import WeakSet

from kernel import History, Middleware, ModelCaller, ModelError, ModelRequest, StreamEvent
from kernel_model_script.play import first_prompt

HEADER = "# Recorded by kernel. It holds the conversation as it was, file contents included."
GUARD = 120
"""Characters of a subagent's first prompt that tell its turns from those of others."""


class Recorder(Middleware):
    """Keeps the events as they are. A turn is on disk before the answer's end is passed on.

    The turns of the first conversation play in their order; those of others, of subagents, wait for their own first prompt.
    """

    name = "record"

    def __init__(self, path: str) -> None:
        self.path = Path(path).expanduser().absolute()
        self._first: WeakSet[History] = WeakSet()
        self._began = False

    async def around_model(self, request: ModelRequest, next: ModelCaller) -> AsyncGenerator[StreamEvent]:
        """Pass events on and keep them.

        :raises ModelError: the file cannot be written, or is no recording.
        """
        self._begin(request)
        kept: list[StreamEvent] = []
        fail: dict[str, Any] | None = {"kind": "connection_error", "message": "interrupted while it was recorded"}
        written = False
        try:
            async with aclosing(next(request)) as stream:  # type: ignore[type-var]
                async for event in stream:
                    kept.append(event)
                    if event.get("type") == "message_stop":
                        self._write(request, kept, None)
                        written = True
                    yield event
            fail = None
        except ModelError as error:
            fail = {"kind": error.kind, "message": error.message, **{
                name: value for name in ("status", "retry_after", "should_retry") if (value := getattr(error, name)) is not None}}
            raise
        finally:
            if not written and (kept or fail):
                self._write(request, kept, fail)

    def _begin(self, request: ModelRequest) -> None:
        if not self._began:
            self._first.add(request.history)
            try:
                head = self.path.read_bytes()[:len(HEADER)] if self.path.exists() else b""
                if head not in (b"", HEADER.encode()):
                    raise _refusal(f"{self.path} is there and is no recording", "choose another file")
                if not head:
                    self._append(f"{HEADER}\n{_yaml({'name': self.path.stem})[1:-1]}\nturns:\n")
            except OSError as error:
                raise _refusal(f"{self.path} cannot be written: {error.strerror}", "choose another file") from None
            self._began = True

    def _write(self, request: ModelRequest, events: list[StreamEvent], fail: dict[str, Any] | None) -> None:
        lines = []
        if request.history not in self._first:
            lines.append(f"when: {_yaml({'first_contains': first_prompt(request.history)[:GUARD]})}")
        if events:
            lines += ["events: |", *(f"  {_ascii(event)}" for event in events)]
        if fail:
            lines.append(f"fail: {_yaml(fail)}")
        try:
            self._append("- " + "\n  ".join(lines) + "\n")
        except OSError as error:
            raise _refusal(f"{self.path} cannot be written: {error.strerror}", "free some space, or record elsewhere") from None

    def _append(self, text: str) -> None:
        descriptor = os.open(self.path, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)
        with os.fdopen(descriptor, "ab") as file:
            file.write(text.encode())


def _ascii(value: Any) -> str:
    """JSON that is YAML too: ASCII alone, and no character that YAML does not allow."""
    return json.dumps(value).replace("\x7f", "\\u007f")


def _yaml(value: dict[str, Any]) -> str:
    """A mapping in one line. (JSON would not do: YAML reads escaped pairs of surrogates as two characters.)"""
    import yaml

    return str(yaml.safe_dump(value, default_flow_style=True, width=float("inf"))).strip()


def _refusal(what: str, hint: str) -> ModelError:
    return ModelError(f"KERNEL_RECORD: {what}", kind="recording_error", should_retry=False, context="plugin model-script",
                      hint=hint)
