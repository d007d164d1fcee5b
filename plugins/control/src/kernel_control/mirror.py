"""``--session-mirror``: what is written to a transcript goes to the program as well (SDK contract, section 9.1)."""

from __future__ import annotations

from typing import Any

import msgspec

from kernel import Session, Transcript, Wire
from kernel_control.frames import escaped

MOST = 900 * 1024
"""Bytes of one frame; readers take lines of 1 MiB. An entry that is longer alone goes alone."""
NOT_MIRRORED = "--session-mirror: this transcript store tells nobody what it writes, so nothing is mirrored"


class Mirror:
    def __init__(self, session: Session, wire: Wire) -> None:
        self._session = session
        self._wire = wire
        self._followed: Transcript | None = None
        self.follow(session.transcript)

    def follow(self, transcript: Transcript) -> None:
        """Mirror that transcript and those of its subagents; once."""
        if transcript is self._followed:
            return
        self._followed = transcript
        observers: Any = getattr(transcript, "observers", None)
        if not isinstance(observers, list):
            self._session.notice(NOT_MIRRORED, guard=True)
        else:
            observers.append(self._write)

    def _write(self, path: str, lines: list[bytes]) -> None:
        """Called behind the write to the file."""
        head = b'{"type":"transcript_mirror","filePath":' + msgspec.json.encode(path) + b',"entries":['
        group: list[bytes] = []
        size = 0
        for line in filter(None, map(bytes.strip, lines)):
            if group and size + len(line) > MOST:
                self._wire.write(escaped(head + b",".join(group) + b"]}"))
                group, size = [], 0
            group.append(line)
            size += len(line) + 1
        if group:
            self._wire.write(escaped(head + b",".join(group) + b"]}"))
