"""What this plugin adds to what the model is told at the start (context contract, section 1)."""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal

from kernel_memory import state, switches

if TYPE_CHECKING:
    from kernel import Session

GIT = """\
# Git
Commit only when you are asked to, and push only when you are asked to. Look at status, diff and recent commits first, and
follow the way in which commit messages are written there. Add the files that belong to the change by name; leave out what
may hold secrets, and say so. Never change git's configuration, never rewrite or discard what others may build on (push
--force, reset --hard, clean, checkout of changed files) unless that very thing was asked for, and do not skip hooks: where
one fails, mend the cause and make a new commit. No command that waits for an editor or for keys.

For a pull request, read all commits since the branch left the main one, not only the last; then give it a short title, what
changes and why, and how it was tested. Return its address."""


class GitManual:
    """The same for everybody: it does not look at the folder."""

    name = "git"
    layer: Literal["rules"] = "rules"

    async def text(self, session: Session) -> str:
        return GIT if switches.git(session) else ""


class GitSnapshot:
    name = "git-snapshot"
    layer: Literal["snapshot"] = "snapshot"

    async def text(self, session: Session) -> str:
        """The conversation's; agents get the same."""
        memory = state.of(session.root)
        if session.parent is None and self.name in memory.asked and switches.git(session):
            import anyio

            from kernel_memory import git_state

            memory.git = await anyio.to_thread.run_sync(git_state.of_session, session, abandon_on_cancel=True)
        memory.asked.add(self.name)
        return memory.git


class MemoryManual:
    name = "memory"
    layer: Literal["environment"] = "environment"

    async def text(self, session: Session) -> str:
        memory = state.of(session).auto
        return memory.manual() if memory is not None and session.parent is None else ""


class Instructions:
    name = "instructions"
    layer: Literal["instructions"] = "instructions"

    async def text(self, session: Session) -> str:
        memory = state.of(session)
        if self.name in memory.asked:
            memory.again_from_disk()
        memory.asked.add(self.name)
        text = memory.opening()
        memory.tell_problems()
        if len(session.history):
            await memory.tell_news()
        else:
            await memory.announce(memory.first)
        return text
