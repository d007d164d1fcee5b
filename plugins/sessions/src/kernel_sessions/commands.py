"""``kernel sessions list|show|check|repair|export|rename|tag|delete``: the command line's side; the work is done elsewhere."""

from __future__ import annotations

from kernel import TyperCommand

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
COMMANDS = [TyperCommand(f"sessions {word}", summary, f"kernel_sessions.actions:{word}_") for word, summary in WORDS.items()]
