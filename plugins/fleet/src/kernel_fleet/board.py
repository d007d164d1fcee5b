"""What runs next, and when: order, pace, retries and money. No processes and no clock in here; the engine asks and tells."""

from __future__ import annotations

import heapq
from collections.abc import Iterable

from msgspec import Struct

from kernel_fleet.journal import Begun, Over, Record
from kernel_fleet.outcome import Outcome
from kernel_fleet.worker import Ended

FIRST_PAUSE_S = 2.0
LONGEST_PAUSE_S = 120.0
SMALLEST_SHARE_USD = 0.0001
DEAD_AT_START = 5
"""So many tasks that could not even begin, and none that could: the fleet stops, for the rest would not do better."""


class Limits(Struct, kw_only=True):
    """``retries``: further attempts of a task whose worker died, or whose request failed for a reason that passes."""

    seats: int
    retries: int = 2
    starts_per_minute: float | None = None
    budget_usd: float | None = None


class Start(Struct):
    """Begin this attempt now. ``previous``: the attempt whose session and workspace it takes up, if it can."""

    record: Record
    attempt: int
    previous: int | None
    allotted: float | None


class Board:
    """The tasks that are not finished, and the rules.

    Money: with a budget, each attempt may spend its share of what is left, divided by the seats that are free. A share is
    reserved while the attempt runs; an attempt that died without a word counts with its whole share.
    """

    def __init__(self, records: Iterable[Record], limits: Limits) -> None:
        self.limits = limits
        self._waiting: list[tuple[float, int, Record]] = []
        self._running: dict[str, float] = {}
        """Task -> what is reserved for it."""
        self._spent = 0.0
        self._next_start = 0.0
        self._began_well = False
        self._dead: list[str] = []
        self.closed = ""
        """Why nothing more is started."""
        for number, record in enumerate(records):
            self._spent += record.cost_usd
            if record.final is None:
                heapq.heappush(self._waiting, (0.0, number, record))

    @property
    def running(self) -> int:
        return len(self._running)

    @property
    def waiting(self) -> int:
        return len(self._waiting)

    @property
    def spent(self) -> float:
        return self._spent

    def close(self, why: str) -> None:
        self.closed = self.closed or why

    # -- asked by a free seat ----------------------------------------------------------------------------------------------
    def next(self, now: float) -> Start | float | None:
        """A start; seconds after which to ask again; ``None``: nothing will be started any more."""
        if self.closed or not (self._waiting or self._running):
            return None
        if not self._waiting:
            return 3600.0  # one that runs may have to be tried again: its end wakes whoever asks
        ready, _, record = self._waiting[0]
        at = max(ready, self._next_start)
        if at > now:
            return at - now
        share = self._share(record)
        if share is not None and share < SMALLEST_SHARE_USD:
            if self._running:
                return 3600.0  # what is reserved and not spent comes back
            self.close(f"the budget of ${self.limits.budget_usd:g} is used up")
            return None
        heapq.heappop(self._waiting)
        if self.limits.starts_per_minute:
            self._next_start = now + 60.0 / self.limits.starts_per_minute
        self._running[record.task.id] = share or 0.0
        last = record.over[-1] if record.over else None
        tried = max((b.attempt for b in record.begun), default=0)
        return Start(record, tried + 1, None if last is not None and last.fresh else tried or None, share)

    def _share(self, record: Record) -> float | None:
        own = record.task.options.max_budget_usd
        if self.limits.budget_usd is None:
            return own
        left = self.limits.budget_usd - self._spent - sum(self._running.values())
        share = left / max(1, self.limits.seats - len(self._running))
        return min(share, own) if own is not None else share

    # -- told ------------------------------------------------------------------------------------------------------------------
    def ended(self, record: Record, over: Over, now: float) -> None:
        """An attempt is over and stands in the record."""
        self._running.pop(record.task.id, None)
        self._spent += over.cost_usd
        if over.turns or over.answered:
            self._began_well = True
        elif over.status in ("failed", "crashed") and not self._began_well:
            self._dead.append(over.why)
            if len(self._dead) == DEAD_AT_START:
                self.close(f"the first {DEAD_AT_START} tasks could not begin: {self._dead[-1]}")
        if over.status == "again":
            pause = min(LONGEST_PAUSE_S, FIRST_PAUSE_S * 2 ** (_tries(record) - 1))
            heapq.heappush(self._waiting, (now + pause, -1, record))

    def judge(self, begun: Begun, record: Record, ended: Ended | None, died: str, out: Outcome, now: float) -> Over:
        """What an attempt comes to.

        :param ended: what the worker said; ``None`` where it died, and ``died`` says how.
        """
        over = Over(task=begun.task, attempt=begun.attempt, status="failed", at=now, session=out.session or begun.session,
                    text=out.text, subtype=out.subtype, terminal_reason=out.terminal_reason, turns=out.turns, run_ms=out.run_ms,
                    tool_calls=out.tool_calls, refused=out.refused, cost_usd=out.cost_usd, input_tokens=out.input_tokens,
                    output_tokens=out.output_tokens, answered=out.answered, structured=out.structured, seat=begun.seat)
        if ended is not None:
            over.wall_ms, over.around_ms = ended.run_wall_ms, ended.around_ms
            over.patch_bytes, over.notes = ended.patch_bytes, ended.notes
        if not out.result and (ended is None or ended.stopped or (ended.exit_code or 0) < 0):
            over.cost_usd = begun.allotted or 0.0  # nobody knows what it had spent
        over.status, over.why = self._status(begun, record, ended, died, out)
        if over.status == "again":
            over.fresh = not out.answered and not begun.resumes
            if _tries(record) >= self.limits.retries:
                over.status = "crashed" if died or not out.result else "failed"
        if begun.resumes and not out.result and ended is not None and (ended.exit_code or 0) > 0 and not ended.stopped:
            over.status, over.fresh, over.why = "again", True, f"the session could not be taken up: {over.why}"
        return over

    def _status(self, begun: Begun, record: Record, ended: Ended | None, died: str, out: Outcome) -> tuple[str, str]:
        if out.result:
            if out.ok and ended is not None and ended.accepted is False:
                return "rejected", "the check failed: check.txt says why"
            if out.ok:
                return "done", ""
            if out.transient:
                return "again", out.text[:300]
            if ended is not None and ended.stopped:
                return "stopped", "interrupted"
            own = record.task.options.max_budget_usd or float("inf")
            if out.subtype == "error_max_budget_usd" and (begun.allotted or 0.0) < own:
                return "stopped", "its share of the fleet's budget is spent"
            return "failed", out.text[:300] or out.subtype
        if died:
            return "again", died
        assert ended is not None
        if ended.refused:
            return "failed", ended.refused
        if ended.stopped:
            return "stopped", "interrupted"
        if ended.timed_out:
            return "timeout", "its time was over"
        if ended.exit_code is not None and ended.exit_code < 0:
            return "again", f"the run was ended by signal {-ended.exit_code}"
        return "failed", f"no result, exit code {ended.exit_code}"


def _tries(record: Record) -> int:
    """Attempts that failed by no fault of the task; those that a stop of the fleet cut off do not count."""
    return sum(over.status == "again" for over in record.over)
