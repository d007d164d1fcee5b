"""How far a fleet is: one line that is written over on a terminal, now and then a line elsewhere."""

from __future__ import annotations

import shutil
import sys
import threading
import time
from collections import Counter
from collections.abc import Iterable
from typing import TextIO

from kernel_fleet.journal import Over, Record

EVERY_S = 10.0
BAD = ("failed", "rejected", "timeout", "crashed")


def counts(records: Iterable[Record]) -> Counter[str]:
    return Counter(record.status for record in records)


def told_of(found: Counter[str]) -> str:
    """``7 done, 1 failed, 2 waiting``."""
    order = ("done", *BAD, "unfinished", "waiting")
    return ", ".join(f"{found[status]} {status}" for status in order if found[status]) or "no tasks"


class Progress:
    """On stderr. Failures and retries are told as they come, with the task's name."""

    def __init__(self, records: list[Record], out: TextIO = sys.stderr) -> None:
        self._records, self._out = records, out
        self._terminal = out.isatty()
        self._began = self._said = time.monotonic()
        self._before = sum(r.final is not None for r in records)
        self._finished = 0
        self._lines: list[str] = []
        self._lock = threading.Lock()

    def told(self, what: Over | str) -> None:
        with self._lock:
            if isinstance(what, str):
                self._lines.append(f"fleet: {what}")
                return
            self._finished += what.status in ("done", *BAD)
            if what.status != "done":
                name = {"again": "will be tried again", "stopped": "stopped, can be taken up"}.get(what.status, what.status)
                self._lines.append(f"fleet: {what.task}: {name}" + (f": {one_line(what.why)}" if what.why else ""))

    def tick(self, running: int, spent: float) -> None:
        with self._lock:
            lines, self._lines = self._lines, []
        if self._terminal and lines:
            self._out.write("\r\033[K")
        for line in lines:
            print(line, file=self._out)
        now = time.monotonic()
        if self._terminal or now - self._said >= EVERY_S:
            self._said = now
            line = self.line(running, spent, now)
            if self._terminal:
                width = shutil.get_terminal_size().columns - 1
                self._out.write(f"\r\033[K{line[:width]}")
                self._out.flush()
            else:
                print(line, file=self._out, flush=True)

    def line(self, running: int, spent: float, now: float) -> str:
        """``fleet: 120 of 1000, 3 not well, 2 running, 4.1/s, $0.12, 3 min left``."""
        total, done = len(self._records), self._before + self._finished
        bad = sum(r.status in BAD for r in self._records)
        rate = self._finished / max(now - self._began, 1e-6)
        left = (total - done) / rate if self._finished else None
        parts = [f"{done} of {total}", f"{bad} not well" if bad else "", f"{running} running",
                 f"{rate:.1f}/s" if rate >= 1 else f"{rate * 60:.1f}/min" if rate else "",
                 f"${spent:.2f}" if spent else "", f"{_span(left)} left" if left else ""]
        return "fleet: " + ", ".join(p for p in parts if p)

    def end(self, running: int, spent: float) -> None:
        self.tick(running, spent)
        if self._terminal:
            self._out.write("\r\033[K")
            self._out.flush()


def _span(seconds: float) -> str:
    return f"{seconds:.0f} s" if seconds < 90 else f"{seconds / 60:.0f} min" if seconds < 5400 else f"{seconds / 3600:.1f} h"


def one_line(text: str) -> str:
    """For a terminal: what a stranger wrote moves no cursor and sets no colour."""
    return "".join(c if c.isprintable() else " " for c in text)[:200]
