"""How a session speaks: to the front end, to the person, to the log, and into files that hold what is too long to say."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from kernel.events import Event
from kernel.merge import Merged
from kernel.output import Output, SystemMessage

if TYPE_CHECKING:
    from kernel.clock import Clock
    from kernel.harness import Harness
    from kernel.transcript import Transcript

CONTEXT_CAP = 10_000
"""Characters of one text that a hook adds; longer ones go to a file (hooks contract, 11.4)."""
PREVIEW = 2_000

Emit = Callable[[Output], None]


class Voice:
    """What a session says. ``Session`` is one; nothing else is."""

    harness: Harness
    clock: Clock
    id: str
    transcript: Transcript
    plugin_state: dict[str, Any]
    background_tasks: dict[str, dict[str, Any]]
    _emit: Emit
    hearers: list[Emit]
    """Plugins that listen to every message; a subagent's are its own, and what is forwarded is heard above as well."""

    def emit(self, message: Output) -> None:
        self.tell_hearers(message)
        self._emit(message)

    def tell_hearers(self, message: Output) -> None:
        """To the plugins that listen, before the front end; one that cannot hear does no harm."""
        for hear in self.hearers:
            try:
                hear(message)
            except Exception as error:
                self.debug(f"a listener failed: {type(error).__name__}: {error}")

    def say(self, subtype: str, **data: Any) -> None:
        """Emit a ``system`` message."""
        self.emit(SystemMessage(uuid=self.clock.new_id(), session_id=self.id, subtype=subtype, data=data))

    def notice(self, text: str, *, level: str = "warning", guard: bool = False) -> None:
        """Tell the person something. ``guard``: a guard does not work, which is announced in every output format."""
        if guard:
            self.harness.announce(text)
        self.say("informational", content=text, level=level)

    def tell_tasks(self, known: Mapping[str, Any]) -> None:
        """Clients get the full live set of background tasks: what was begun and whose end was not told yet (headless, 5.10).

        :param known: the tasks by id, each with ``task_type``.
        """
        live = [(id, known[id].task_type, task["description"]) for id, task in self.background_tasks.items() if id in known]
        self.say("background_tasks_changed", tasks=[{"task_id": i, "task_type": t, "description": d} for i, t, d in live])

    def debug(self, text: str) -> None:
        """A line for the debug log."""
        self.harness.debug(text)

    def tell_of(self, event: Event, merged: Merged) -> None:
        """What the answers to an event mean for the person."""
        for text in merged.failures:
            self.notice(f"{event.hook_name} hook error: plugin '{text.source}': {text.text}", guard=True)
        for text in merged.system_messages:
            says = "\n".join(f"{event.hook_name} says: {line}" for line in self.cap(text.text).splitlines())
            self.notice(says, level="warning")
        for rewrite in (merged.updated_input, merged.updated_output):
            if rewrite and rewrite.losers:
                self.notice(f"{event.hook_name}: {rewrite.source} and {', '.join(rewrite.losers)} all replaced the same "
                            f"value; the one of {rewrite.source} counts", level="warning")

    # -- texts that are too long -----------------------------------------------------------------------------------------
    def cap(self, text: str) -> str:
        """The text, or a preview and the path of a file that holds it (hooks contract, 11.4)."""
        if len(text) <= CONTEXT_CAP:
            return text
        return f"{text[:PREVIEW]}\n... ({len(text)} characters in all; the whole text {self.kept(self.clock.new_id(), text)[1]})"

    def kept(self, name: str, text: str) -> tuple[str | None, str]:
        """``spill`` that never raises: the path, if there is one, and "is in PATH" or why the text is lost."""
        try:
            path = self.spill(name, text)
        except OSError as error:
            return None, f"could not be kept: {error.strerror or error}"
        return path, f"is in {path}"

    def spill(self, name: str, text: str) -> str:
        """Write a text beside the transcript and return the path."""
        if self.transcript.path and self.transcript.kept:
            folder = Path(self.transcript.path).with_suffix("") / "tool-results"
            folder.mkdir(parents=True, exist_ok=True, mode=0o700)
        else:
            from tempfile import mkdtemp

            if "kernel.spill" not in self.plugin_state:
                self.plugin_state["kernel.spill"] = mkdtemp(prefix="kernel-")
            folder = Path(self.plugin_state["kernel.spill"])
        path = folder / f"{''.join(c if c.isalnum() or c in '-_' else '-' for c in name)[:100]}.txt"
        path.write_text(text, "utf-8", "replace")
        path.chmod(0o600)
        return str(path)
