"""The terminal's own commands. What plugins bring (``/compact``, ``/rewind`` ...) is in ``session.commands``."""

from __future__ import annotations

import time
from datetime import datetime
from typing import TYPE_CHECKING, Any

from kernel_terminal.lines import cut
from kernel_terminal.questions import Choice, Question
from kernel_terminal.safe import one_line

if TYPE_CHECKING:
    from kernel import Harness, Session

COMMANDS = {
    "help": "keys and commands",
    "model": "[MODEL]  which model answers; without a name, choose one",
    "mode": "[MODE]  the permission mode; without a name, choose one",
    "output": "the last tool result, whole",
    "resume": "[ID or NAME]  go on with another conversation; without a name, choose one",
    "tasks": "what runs in the background, and its output",
    "stop": "TASK  end a background task",
    "context": "what fills the model's window",
    "cost": "what this conversation costs",
    "status": "model, mode, folder, session, plugins",
    "quit": "leave; the conversation is kept",
}
ALIASES = {"exit": "quit", "q": "quit", "?": "help", "continue": "resume"}
AT_ONCE = frozenset(("help", "output", "tasks", "stop", "context", "cost", "status", "quit"))
"""Commands that do not wait for the running turn."""
SHOWN_SESSIONS = 50
OUTPUT_CHARS = 2_000
PER_TOKEN = 4
KEYS = """\
enter          send; while a turn runs, the message goes to the model with its next step
esc, enter     a new line (ctrl-j does the same)
esc            interrupt the turn; with a message waiting, send that at once
ctrl-c         the same, or empty the line; twice on an empty line, leave
shift-tab      next permission mode
tab, arrows    complete /commands and @files; arrows also walk through what was typed before
up             on an empty line, take back the message that waits
ctrl-o         the last tool result, whole (/output does the same)
ctrl-z, ctrl-d suspend; leave"""
PLAIN_KEYS = """\
Type a message and press enter. A line that ends with a backslash goes on in the next one.
Ctrl-c interrupts the turn; when none runs, it leaves. Ctrl-d leaves."""


def help_text(commands: dict[str, str], plain: bool) -> str:
    wide = max(len(name) for name in commands) + 1
    rows = [f"/{name:<{wide}}  {cut(one_line(told), 70)}" for name, told in sorted(commands.items())]
    return "\n".join([PLAIN_KEYS if plain else KEYS, "", *rows, "", "@path in a message shows the model that file."])


# -- sessions ------------------------------------------------------------------------------------------------------------------
def sessions(harness: Harness) -> list[dict[str, Any]] | None:
    """The conversations of this folder, newest first; ``None``: the store cannot list them."""
    store = harness.one("stores", "files")
    listing = getattr(store, "sessions", None)
    if listing is None:
        return None
    chosen = str(harness.settings.own("kernel.store") or "files")
    entries = harness.one("stores", chosen) if chosen != "files" else None
    found: list[dict[str, Any]] = listing(harness.options, harness.settings, entries)
    return found


def picker(found: list[dict[str, Any]], but: str = "") -> Question:
    choices = [Choice(cut(one_line(item["shown"]), 60), item["session"], detail=_when(str(item.get("changed", ""))))
               for item in found if item["session"] != but][:SHOWN_SESSIONS]
    return Question("Which conversation?", choices, kind="Resume")


def _when(changed: str) -> str:
    """``5 min ago``, ``3 h ago``, ``2026-11-30``."""
    try:
        then = datetime.fromisoformat(changed)
    except ValueError:
        return ""
    ago = max(time.time() - then.timestamp(), 0)
    if ago < 3600:
        return f"{ago // 60:.0f} min ago"
    return f"{ago // 3600:.0f} h ago" if ago < 86400 else then.astimezone().strftime("%Y-%m-%d")


# -- reports -------------------------------------------------------------------------------------------------------------------
def cost(session: Session) -> str:
    spending = session.root.spending
    if not spending.by_model:
        return "Nothing was asked yet."
    lines = [f"{'model':<32} {'in':>10} {'cached':>10} {'out':>9} {'US$':>9}"]
    for model, used in spending.by_model.items():
        came = used["inputTokens"] + used["cacheCreationInputTokens"]
        lines.append(f"{cut(one_line(model), 32):<32} {came:>10,} {used['cacheReadInputTokens']:>10,} {used['outputTokens']:>9,} "
                     f"{used['costUSD']:>9.4f}")
    return "\n".join([*lines, f"together {spending.usd:.4f} US$, {spending.api_seconds:.0f} s of waiting for models"])


def used_tokens(session: Session) -> int | None:
    """Tokens of the last request with its answer; ``None`` where nothing was measured."""
    if session.measured is None:
        return None
    return int(session.measured[0].prompt_tokens + session.measured[0].output_tokens)


def context(session: Session) -> str:
    import msgspec

    window = session.model_info.context_window
    parts = {"system prompt": sum(len(str(b.get("text", ""))) for b in session.system),
             "tool definitions": len(msgspec.json.encode(session.toolbox.definitions)),
             "messages": sum(len(msgspec.json.encode(blocks, enc_hook=str)) for _, blocks in session.history.messages)}
    estimated = {name: size // PER_TOKEN for name, size in parts.items()}
    measured = used_tokens(session)
    total = measured if measured is not None else sum(estimated.values())
    how = "measured" if measured is not None else "estimated"
    lines = [f"{total:,} of {window:,} tokens ({100 * total / window:.0f} %), {how}"]
    lines += [f"  {name:<18} about {size:>9,}" for name, size in estimated.items()]
    return "\n".join([*lines, "kernel context show prints each part; /compact makes room."])


def status(session: Session, harness: Harness) -> str:
    ready = [p.name for p in harness.plugins.ready]
    transcript = session.transcript.path if session.transcript.kept else "not kept"
    rows = {"model": session.model_info.id, "mode": session.state.permission_mode, "folder": session.state.cwd,
            "session": session.id, "title": session.title or "", "transcript": transcript,
            "trusted": "yes" if harness.settings.trusted else "no: what the folder brings does not count",
            "sandbox": "on" if session.sandbox is not None else "off", "plugins": f"{len(ready)} ready"}
    broken = [p.name for p in harness.plugins if p.state == "broken"]
    if broken:
        rows["broken"] = ", ".join(broken)
    return "\n".join(f"{name:<11} {one_line(told, 400)}" for name, told in rows.items() if told)


def tasks(session: Session) -> str:
    """The table of background tasks, which the plugin ``tools-shell`` describes."""
    table: dict[str, Any] = session.root.plugin_state.get("tasks") or {}
    shown = [t for t in table.values() if getattr(t, "in_background", True)]
    if not shown:
        return "Nothing runs in the background."
    lines = []
    for task in shown:
        lines.append(f"{task.id}  {task.status:<9}  {cut(one_line(task.description), 60)}")
        output = task.output(OUTPUT_CHARS).strip().splitlines() if hasattr(task, "output") else []
        lines += [f"    {cut(text, 100)}" for text in output[-3:]]
    return "\n".join([*lines, "/stop TASK ends one."])
