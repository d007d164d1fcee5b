"""What one session knows of its shell: which one it is, where its files lie, what it has running."""

from __future__ import annotations

import os
import shutil
import weakref
from collections.abc import Mapping
from functools import cached_property
from pathlib import Path
from tempfile import mkdtemp
from typing import TYPE_CHECKING, Any

from kernel import env_number
from kernel_tools_shell import script
from kernel_tools_shell.command import Command
from kernel_tools_shell.processes import end
from kernel_tools_shell.sink import Sink
from kernel_tools_shell.tasks import ShellTask, end_commands, table

if TYPE_CHECKING:
    from kernel import Session

STATE = "tools-shell"
GRACE_S = 5.0
"""Seconds that background commands have after the last result (headless contract, section 9)."""
SUBAGENT_MS = 3_600_000
"""Seconds that a background command of a subagent may last; ``CLAUDE_SUBAGENT_BG_SHELL_MAX_MS``."""
_LONGEST_PATH = 8192  # bytes; the system's own limit is 4096


class Shell:
    """One per session, made by the first command. ``running`` holds what may have to be ended."""

    def __init__(self, session: Session) -> None:
        import anyio

        self.session = session
        self.path = script.find_shell()
        self.running: set[Command] = set()
        self.mine: weakref.WeakSet[Command] = weakref.WeakSet()
        """All that this context started; the table of tasks is the conversation's."""
        self.mark = f"{os.urandom(8).hex()}."
        self._count = 0
        self._snapshot: Path | None = None
        self._snapshot_tried = False
        self._preparing = anyio.Lock()
        self._folders: list[Path] = []
        # Where nobody closes the session, it ends with the process or with this object.
        self._last_resort = weakref.finalize(self, _end_all, self.running, self.mark, self._folders)

    @classmethod
    def of(cls, session: Session) -> Shell:
        shell = session.plugin_state.get(STATE)
        if shell is None:
            shell = session.plugin_state[STATE] = cls(session)
        assert isinstance(shell, Shell)
        return shell

    @cached_property
    def scratch(self) -> Path:
        """A folder of our own, removed at the end of the session."""
        given = os.environ.get("CLAUDE_CODE_TMPDIR")
        folder = Path(mkdtemp(prefix="kernel-shell-", dir=given if given and os.path.isdir(given) else None))
        self._folders.append(folder)
        return folder

    @cached_property
    def folder(self) -> Path:
        """Where output files lie: beside the transcript, or in a temporary place where nothing is kept."""
        if self.session.transcript.path and self.session.options.persist:
            return Path(self.session.transcript.path).with_suffix("") / "tasks"
        return self.scratch / "tasks"

    async def prepare(self) -> None:
        """Capture the user's start-up file, once."""
        if self._snapshot_tried:
            return
        async with self._preparing:
            if self._snapshot_tried:
                return
            from kernel_tools_shell import snapshot

            target = self.scratch / "snapshot.sh"
            problem = await snapshot.take(self.path, self._environment(), target, f"{self.mark}snapshot")
            self._snapshot_tried = True
            if problem:
                self.session.debug(f"tools-shell: {problem}")
            elif target.exists():
                self._snapshot = target

    def start(self, text: str, cwd: str, input: dict[str, Any] | None = None, more: Mapping[str, str] | None = None) -> Started:
        """Start a command, confined where the session has a sandbox that says so.

        :param input: the call's whole input, for the sandbox.
        :param more: variables for this command alone.
        :raises OSError: it cannot be started.
        :raises ToolError: it cannot be confined.
        """
        self._count += 1
        id = f"b{self.session.clock.new_id().replace('-', '')[-8:]}"
        cwd_file = self.scratch / f"cwd-{self._count}"
        sources: list[str | Path] = [self._snapshot] if self._snapshot else []
        argv = script.build(self.path, text, cwd_file=cwd_file,
                            sources=[*sources, *script.env_file(self.session.environment)])
        plain = argv
        if self.session.sandbox is not None:
            cwd_file.touch(0o600)  # a confined command cannot make it, only write it
            argv = self.session.sandbox.wrap(argv, cwd=cwd, purpose="tool", input=input or {"command": text},
                                             writable=[str(cwd_file)])
        command = Command(argv, cwd=cwd, env={**self._environment(), **(more or {})}, sink=Sink(self.folder / f"{id}.output"),
                          mark=f"{self.mark}{self._count}", seconds=self._life(), confined=argv is not plain)
        self.running.add(command)
        self.mine.add(command)
        return Started(self, id, command, text, cwd_file)

    def _environment(self) -> dict[str, str]:
        return script.environment(self.session.environment, self.session.id, self.session.effort)

    def _life(self) -> float | None:
        """Seconds that a command may last, whoever waits for it."""
        if not self.session.agent_id:
            return None
        return env_number("CLAUDE_SUBAGENT_BG_SHELL_MAX_MS", SUBAGENT_MS) / 1000

    async def close(self, grace_s: float) -> None:
        """The session ends: background commands get a last chance, then all that is left is ended."""
        import anyio

        try:
            with anyio.move_on_after(grace_s):
                for task in self.tasks():
                    await task.wait()
        finally:
            await self._end()

    async def _end(self) -> None:
        for task in self.tasks():
            task.let_go()
        await end_commands([*self.running], self.mark)
        for task in self.tasks():
            task.announce()
            task.command.sink.close()
        self._last_resort.detach()
        _remove(self._folders)

    def tasks(self) -> list[ShellTask]:
        return [task for task in table(self.session).values() if isinstance(task, ShellTask) and task.command in self.mine]


class Started:
    """A command that was started, with what its call needs to know at its end."""

    def __init__(self, shell: Shell, id: str, command: Command, text: str, cwd_file: Path) -> None:
        self.id = id
        self.command = command
        self._shell = shell
        self._text = text
        self._cwd_file = cwd_file

    def ended_in(self) -> str | None:
        """The resolved directory in which it ended, if it told."""
        try:
            with self._cwd_file.open("rb") as file:  # what a command wrote may be of any size
                return os.fsdecode(file.read(_LONGEST_PATH)).rstrip("\n") or None
        except OSError:
            return None

    def to_background(self, description: str, call_id: str) -> ShellTask:
        """Go on without the call."""
        self.command.when_ended(lambda: self._shell.running.discard(self.command))
        task = ShellTask(self._shell.session, self.id, self.command, self._text, description, call_id)
        task.begin()
        return task

    def done(self) -> None:
        """The call is over: let go of its files."""
        self._shell.running.discard(self.command)
        self.command.sink.close(remove=True)
        self._cwd_file.unlink(missing_ok=True)
        self._cwd_file.with_suffix(".sh").unlink(missing_ok=True)


async def end_session(session: Session) -> None:
    """All commands end with the session; background ones get ``GRACE_S`` first, unless it was cut short."""
    shell = session.plugin_state.pop(STATE, None)
    if isinstance(shell, Shell):
        cut_short = session.interrupted or session.scope is not None
        await shell.close(0 if cut_short else GRACE_S)


def _end_all(running: set[Command], mark: str, folders: list[Path]) -> None:
    end([*running], mark)
    _remove(folders)


def _remove(folders: list[Path]) -> None:
    for folder in folders:
        shutil.rmtree(folder, ignore_errors=True)
