"""``--resume-session-at`` and its guard ``--resume-drops-turn`` (sessions contract, section 4.4)."""

from __future__ import annotations

from typing import Any

from kernel import SessionError
from kernel_sessions.chain import Chain, Graph, is_prompt
from kernel_sessions.paths import is_session_id
from kernel_sessions.reader import Line


class ResumeRejected(SessionError):
    """The guard refuses. The text begins as documented, so that a front end can put it into a result."""

    reference = "resume-rejected"

    def __init__(self, reason: str) -> None:
        super().__init__(f"Resume rejected by --resume-drops-turn: {reason}")


def cut(graph: Graph, uuid: str, drops: Any = None) -> Chain:
    """The conversation up to and including that entry.

    :param drops: the user entry whose turn may be lost, and nothing else; ``None`` for no guard.
    :raises SessionError: the file has no such entry.
    :raises ResumeRejected: more than that turn would be lost.
    """
    chain = graph.upto(uuid)
    if chain is None:
        raise SessionError(f"No message found with UUID: {uuid}", context="--resume-session-at",
                           hint="give the uuid of an entry of that session")
    if drops is not None:
        reason = _more_is_lost(graph, uuid, drops)
        if reason:
            raise ResumeRejected(reason)
    return chain


def _more_is_lost(graph: Graph, kept: str, turn: Any) -> str:
    """Why the cut would lose more than the turn; empty if it would not.

    Branches that an earlier rewind left behind are not looked at: they are lost already.
    """
    if not isinstance(turn, str) or not is_session_id(turn):
        return f"{turn!r} is not the uuid of a message"
    active = graph.active().lines
    places = {line.uuid: n for n, line in enumerate(active)}
    if kept not in places or turn not in places or places[turn] <= places[kept]:
        return f"the message {turn} does not come after {kept} in the conversation"
    if not is_prompt(active[places[turn]].entry):
        return f"the message {turn} is not a prompt"
    between = [line for line in active[places[kept] + 1: places[turn]] if not _is_context(line)]
    if between:
        return f"{len(between)} entries between {kept} and the prompt belong to another turn"
    number = active[places[turn]].number
    below = {turn}
    for line in (x for x in graph.lines if x.number > number and not x.is_sidechain):
        if line.entry.get("parentUuid") not in below:
            return f"the entry {line.uuid} does not belong to that turn"
        below.add(line.uuid)
        if is_prompt(line.entry) or _was_queued(line):
            return f"the entry {line.uuid} is another prompt"
    if any(n > number for n in graph.journal.queued):
        return "a queued message came in during that turn"
    return ""


def _is_context(line: Line) -> bool:
    """Context that was added ahead of the prompt; it goes with the prompt."""
    return line.entry["type"] == "user" and bool(line.entry.get("isMeta"))


def _was_queued(line: Line) -> bool:
    """A message that came in while the turn ran: absorbed as an attachment, or a background task's report."""
    attachment = line.entry.get("attachment")
    if isinstance(attachment, dict) and attachment.get("type") == "queued_command":
        return True
    return line.entry["type"] == "user" and "<task-notification>" in str(line.entry.get("message"))
