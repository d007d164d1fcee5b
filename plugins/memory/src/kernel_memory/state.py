"""What one context knows of its instructions: kept in ``session.plugin_state["memory"]``."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from kernel import InstructionsLoaded, side_by_side
from kernel_memory import auto, files, texts
from kernel_memory.files import Instruction
from kernel_memory.loader import Loader

if TYPE_CHECKING:
    from collections.abc import Sequence

    from kernel import Session

KEY = "memory"
_TOLD = re.compile(r"^Contents of (/[^\n]*?) \([^()\n]*\):$", re.MULTILINE)


class Memory:
    def __init__(self, session: Session) -> None:
        self.session = session
        self.loader = Loader(session)
        self.first: list[Instruction] = []
        """What the context began with."""
        above: Memory | None = session.root.plugin_state.get(KEY) if session.parent else None
        self.auto: auto.AutoMemory | None = above.auto if above is not None else auto.of_session(session)
        self.git = ""
        """How the repository stood at the start."""
        self.asked: set[str] = set()
        """Parts of the prompt that were told; one that is asked again begins another conversation (``/clear``)."""
        self.fork, self.off = _spec(session)
        self._met: dict[str, bool] = {}
        self._said: set[str] = set()

    # -- the start -------------------------------------------------------------------------------------------------------
    def load(self) -> None:
        """Read what the context begins with; of a subagent in the same project what the conversation began with."""
        if self.off:
            return
        above: Memory | None = self.session.root.plugin_state.get(KEY)
        if above is not None and above is not self and above.session.project_root == self.session.project_root:
            self._take_over(above)
        else:
            self.first = self.loader.start()
        self._remember()

    def again_from_disk(self) -> None:
        """Another conversation begins in this session: what is on disk now counts, and nothing has been told."""
        self._met = {}
        self.first = self.loader.start()

    def _take_over(self, above: Memory) -> None:
        parent: Memory | None = self.session.parent.plugin_state.get(KEY) if self.session.parent else None
        if self.fork and parent is not None:
            self.first = parent.first  # a fork has the parent's history
            self.loader.take_over(parent.loader, everything=True)
        else:
            self.first = above.first
            self.loader.take_over(above.loader, everything=False)

    def _remember(self) -> None:
        """Files that were told before the session was resumed."""
        for text in self._told():
            self.loader.note(_TOLD.findall(text))

    def _told(self) -> list[str]:
        """What the history says of instruction files."""
        return [text for role, blocks in self.session.history.messages if role == "user" for block in blocks
                if isinstance(text := block.get("text"), str) and "Contents of /" in text]

    async def tell_news(self) -> None:
        """In a resumed conversation: files of the start that it was not told, or not as they are now."""
        told = self._told()
        news = [i for i in self.first if not any(i.shown() in text for text in told)]
        if news:
            self.session.add_context("\n\n".join([files.SINCE, *(i.shown() for i in news)]))
            await self.announce(news)

    def opening(self) -> str:
        """The reminder in the first user message."""
        return self._framed(self.first)

    def _framed(self, told: Sequence[Instruction]) -> str:
        shown = [i.shown() for i in told]
        if self.auto is not None and self.session.parent is None:
            try:
                shown += [text] if (text := self.auto.beginning()) else []
            except texts.Unusable as error:
                self.loader.problem(self.auto.index, str(error))
        return "\n\n".join([files.OPENING, *shown, files.CLOSING]) if shown else ""

    # -- while it runs ---------------------------------------------------------------------------------------------------
    def meet(self, path: str, *, read: bool) -> None:
        """A file was read, or written; what comes with it is looked for before the next request."""
        if not self.off:
            self._met[path] = self._met.get(path, False) or read

    async def tell(self) -> None:
        """Tell what comes with the files that were met, in the order of their paths."""
        if not self._met:
            return
        met, self._met = self._met, {}
        told = [i for path in sorted(met) for i in self.loader.met(path, read=met[path])]
        if told:
            self.session.add_context("\n\n".join([files.NESTED, *(i.shown() for i in told)]))
            await self.announce(told)
        self.tell_problems()

    def again(self) -> tuple[str, list[Instruction]]:
        """After a compaction: what the context begins with, read from disk again. The rest comes when it is met again."""
        self.first = [] if self.off else self.loader.start("compact")
        return self._framed(self.first), self.first

    # -- who is told -------------------------------------------------------------------------------------------------------
    async def announce(self, told: Sequence[Instruction]) -> None:
        session = self.session
        if not told or not session.harness.dispatcher.listens(InstructionsLoaded):
            return
        await side_by_side([session.fire(session.make(
            InstructionsLoaded, file_path=i.path, memory_type=i.kind, load_reason=i.reason, globs=list(i.globs) or None,
            trigger_file_path=i.trigger or None, parent_file_path=i.parent or None)) for i in told])

    def tell_problems(self) -> None:
        """What was skipped and why, once, with its file."""
        for problem in [*self.loader.problems, *self.loader.remarks]:
            if problem in self._said or self.session.parent is not None:
                continue
            self._said.add(problem)
            if self.session.options.output_format == "text" and problem in self.loader.problems:
                self.session.harness.announce(f"memory: {problem}")
            else:
                self.session.debug(f"memory: {problem}")


def _spec(session: Session) -> tuple[bool, bool]:
    """Whether this is a fork of another context, and whether it is an agent that gets no instructions (Explore, Plan)."""
    spec = getattr(session, "spec", None)
    return (False, False) if spec is None else (spec.prompt is None, spec.prompt is not None and not spec.instructions)


def of(session: Session) -> Memory:
    """The context's state; made at its first use."""
    found: Memory | None = session.plugin_state.get(KEY)
    if found is None:
        found = session.plugin_state[KEY] = Memory(session)
    return found
