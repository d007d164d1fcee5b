"""``kernel sessions list|show|check|repair|export|rename|tag|delete``: the command line's side; the work is done elsewhere."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from kernel import run_app

WORDS = {
    "list": "the sessions of this folder, or of all",
    "show": "what was said in a session",
    "check": "what is wrong with the files of sessions",
    "repair": "write a session's file anew without what is wrong with it",
    "export": "a session as Markdown, JSON or JSON lines",
    "rename": "name a session",
    "tag": "tag a session; without a tag, remove the one it has",
    "delete": "remove sessions for good",
}


class SessionsCommand:
    """One word behind ``kernel sessions``."""

    def __init__(self, word: str, summary: str) -> None:
        self.name = f"sessions {word}"
        self.summary = summary
        self._word = word

    def run(self, args: list[str]) -> int:
        import typer

        from kernel_sessions import actions

        app = typer.Typer(add_completion=False)
        action: Callable[..., Any] = getattr(actions, f"{self._word}_")
        app.command(help=f"{self.summary[0].upper()}{self.summary[1:]}.")(action)
        return run_app(app, args, f"kernel {self.name}")


COMMANDS = [SessionsCommand(word, summary) for word, summary in WORDS.items()]
