"""What a person types about the session: ``/rename``, ``/tag``, ``/clear``, ``/rewind``."""

from __future__ import annotations

from typing import Any

from kernel import Expansion, Extension, KernelError, Session, SessionError
from kernel_sessions.entries import plain_tag


class Typed:
    """A command of the harness itself."""

    kind = ""
    source: str | None = None
    argument_hint = ""


class Rename(Typed):
    name = "rename"
    description = "Name this session"
    argument_hint = "NAME"

    async def expand(self, session: Session, args: str) -> Expansion:
        title = " ".join(args.split())
        if not title:
            raise KernelError("the name stands behind it: /rename The new parser")
        session.set_title(title)
        return Expansion(text=f"The session is named {title!r} now.")


class Tag(Typed):
    name = "tag"
    description = "Tag this session; without a tag, remove the one it has"
    argument_hint = "[TAG]"

    async def expand(self, session: Session, args: str) -> Expansion:
        tag = plain_tag(args)
        session.transcript.set("tag", tag)
        return Expansion(text=f"The session is tagged {tag!r}." if tag else "The session has no tag.")


class Clear(Typed):
    name = "clear"
    description = "Begin a new conversation; this one can be resumed"

    async def expand(self, session: Session, args: str) -> Expansion:
        old = session.id
        chosen = getattr(session.transcript, "chosen_title", session.options.name)
        await session.clear(chosen if isinstance(chosen, str) else None)
        return Expansion(text=f"A new conversation begins. The old one: kernel --resume {old}")


class Rewind(Typed):
    name = "rewind"
    description = "Put files back to what they were at an earlier prompt; without an argument, list the prompts"
    argument_hint = "[NUMBER or UUID]"

    async def expand(self, session: Session, args: str) -> Expansion:
        points = _points(session)
        wanted = args.strip()
        if not wanted:
            shown = [f"{n:>4}  {message_id}  {said}" for n, (message_id, said) in enumerate(points, 1)]
            return Expansion(text="\n".join(["Files can go back to what they were at:", *shown, "/rewind NUMBER does it."]))
        if wanted.isdecimal():
            if not 0 < int(wanted) <= len(points):
                raise KernelError(f"there is no checkpoint {wanted}; /rewind lists {len(points)}")
            wanted = points[int(wanted) - 1][0]
        done = session.rewind_files(wanted)
        return Expansion(text=report(done))


class SessionExtension(Extension):
    """Brings the typed commands; sweeps what is old, at most once a day; lets a turn that was cut off go on."""

    name = "sessions"

    async def open(self, session: Session) -> None:
        if session.parent is None:
            session.commands.update({c.name: c for c in (Rename(), Tag(), Clear(), Rewind())})
            from kernel_sessions import sweep, unfinished

            sweep.begin(session)
            unfinished.go_on(session)

    async def close(self, session: Session) -> None:
        if session.parent is None:
            from kernel_sessions.watching import forget

            forget(session)


def report(done: dict[str, Any]) -> str:
    """What a rewind did, for a person."""
    changed, failed = done["filesChanged"], done.get("failed", [])
    text = [f"{len(changed)} files put back ({done['insertions']} lines added, {done['deletions']} removed).", *changed]
    if done.get("skippedLinks"):
        text.append(f"{done['skippedLinks']} left alone: links, or moved since.")
    return "\n".join([*text, *(f"Failed: {problem}" for problem in failed)])


def _points(session: Session) -> list[tuple[str, str]]:
    """The session's checkpoints, oldest first: uuid of the prompt and its first words."""
    checkpoints = getattr(session.transcript, "checkpoints", None)
    if checkpoints is None:
        raise SessionError("File rewinding is not enabled")
    said = getattr(session.transcript, "said", {})
    return [(point.message_id, said.get(point.message_id, "")) for point in checkpoints.points]
