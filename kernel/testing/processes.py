"""Eyes on real processes, and a real handler of a command hook."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

from msgspec import Struct

from kernel.answers import Answer
from kernel.events import ANSWERS, Event
from kernel.testing.builders import wire
from kernel.testing.event_coverage import COMMANDS, note

PATIENCE_S = 20.0
"""How long ``until`` waits: long enough for a busy machine, short enough for a person."""


def alive(pid: int) -> bool:
    """Whether the process runs; a zombie that nobody has reaped does not."""
    try:
        os.kill(pid, 0)
        stat = Path(f"/proc/{pid}/stat")
        return not stat.exists() or stat.read_text().rpartition(")")[2].split()[0] not in "ZX"
    except (ProcessLookupError, FileNotFoundError):
        return False


def alive_with(word: str) -> list[int]:
    """Ids of running processes, this one left out, whose command line holds the word (Linux)."""
    found = []
    for entry in Path("/proc").iterdir():
        try:
            if entry.name.isdigit() and int(entry.name) != os.getpid() \
                    and word in (entry / "cmdline").read_text(errors="replace") and alive(int(entry.name)):
                found.append(int(entry.name))
        except OSError:  # it ended meanwhile, or is another person's
            continue
    return found


async def until(condition: Callable[[], bool], seconds: float = PATIENCE_S) -> None:
    """Wait for something that another process does.

    :raises TimeoutError: it did not happen in time.
    """
    import anyio

    with anyio.fail_after(seconds):
        while not condition():  # noqa: ASYNC110  (no event comes out of another process)
            await anyio.sleep(0.01)


class HookRun(Struct):
    """What a handler did: exit code, output, and its answer where it gave one that fits the event."""

    event: str
    exit: int
    stdout: str
    stderr: str
    answer: Answer | None = None
    problem: str = ""

    @property
    def decision(self) -> str | None:
        """``deny``, ``defer``, ``ask``, ``allow``, ``block`` or ``None`` (hooks contract: exit code 2 refuses)."""
        if self.exit == 2:
            return "deny" if self.event in ("PreToolUse", "PermissionRequest") else "block"
        return of_answer(self.answer)[0] if self.exit == 0 else None

    @property
    def reason(self) -> str:
        """Why: stderr of an exit code 2, else the reason of the answer."""
        if self.exit == 2:
            return self.stderr.strip()
        return of_answer(self.answer)[1]


def of_answer(answer: Answer | None) -> tuple[str | None, str]:
    """Decision and reason of one hook's answer, wherever its event keeps them."""
    if answer is None:
        return None, ""
    permission = getattr(answer, "permission", None)
    decision = getattr(answer, "permission_decision", None) or getattr(permission, "behavior", None) or answer.decision
    why = getattr(answer, "permission_decision_reason", None) or getattr(permission, "message", None) or answer.reason
    return decision, why or ""


def run_hook(command: str | Sequence[str], event: Event | str, /, *, cwd: Path | None = None, plugin_root: Path | None = None,
             env: Mapping[str, str] | None = None, timeout: float = 60.0, **fields: Any) -> HookRun:
    """Run one handler as a command hook is run: the event as JSON on stdin, the answer on stdout, the exit code.

    :param command: a text is run by ``sh -c``, a list as it stands.
    :param event: an event, or its name with ``fields`` as ``event()`` takes them.
    :param cwd: the working directory; the event's ``cwd`` and ``CLAUDE_PROJECT_DIR`` too. The current one by default.
    :param plugin_root: ``CLAUDE_PLUGIN_ROOT``; also replaced in a command that is a text.
    """
    import json
    import subprocess

    where = str(cwd or Path.cwd())
    payload = wire(event, **({"cwd": where} | fields)) if isinstance(event, str) else wire(event)
    variables = {**os.environ, "CLAUDE_PROJECT_DIR": where, **(env or {})}
    if plugin_root is not None:
        variables["CLAUDE_PLUGIN_ROOT"] = str(plugin_root)
        if isinstance(command, str):
            command = command.replace("${CLAUDE_PLUGIN_ROOT}", str(plugin_root))
    argv = ["/bin/sh", "-c", command] if isinstance(command, str) else [*command]
    done = subprocess.run(argv, input=json.dumps(payload).encode(), cwd=where, env=variables, capture_output=True,  # noqa: S603
                          timeout=timeout, check=False)
    name = str(payload["hook_event_name"])
    note(COMMANDS, name)
    run = HookRun(name, done.returncode, done.stdout.decode("utf-8", "replace"), done.stderr.decode("utf-8", "replace"))
    if run.exit == 0 and run.stdout.lstrip().startswith("{"):
        try:
            run.answer = ANSWERS[name].from_wire(json.loads(run.stdout))
        except ValueError as error:
            run.problem = str(error)
    return run
