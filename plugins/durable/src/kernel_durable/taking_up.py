"""Take up a run that a process left behind: at the last answer of its model, with what was done since given again.

The transcript holds the conversation up to there, and the engine the steps. What the transcript holds beyond stays in it as a
branch that was left.
"""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING, Any

import msgspec

from kernel import Harness, ModelInfo, Options, ResultMessage, Session, SessionError, Usage, UsageError
from kernel_durable import values
from kernel_durable.keeper import tool_call
from kernel_durable.steps import keeper_of

if TYPE_CHECKING:
    from collections.abc import Callable

    from kernel import Output
    from kernel_durable.engine import Run


class Place:
    """Where a run stands: ``answers`` of the conversation's own model are kept; ``last`` is the last one of them."""

    def __init__(self, run: Run) -> None:
        self.answers: list[dict[str, Any]] = []
        while (value := run.recorded.get(f"{len(self.answers)}/model")) is not None:
            self.answers.append(values.read(value))
        self.last = self.answers[-1] if self.answers else None

    def tool_turns(self) -> int:
        """Turns with tool calls that are over."""
        return sum(any(e.get("type") == "content_block_start" and e.get("content_block", {}).get("type") == "tool_use"
                       for e in answer["events"]) for answer in self.answers[:-1])


def harness_of(run: Run, **more: Any) -> Harness:
    """The harness that the run was begun in, as its options and the settings that there are now make it; in its folder.

    :raises UsageError: the folder is gone.
    """
    try:
        os.chdir(run.spec["cwd"])
    except OSError as error:
        raise UsageError(f"the folder of the run cannot be used: {error.strerror}", context=run.spec["cwd"]) from None
    known = {name: value for name, value in run.spec["options"].items() if name in Options.__struct_fields__}
    options = msgspec.convert({**known, **more}, Options, dec_hook=lambda kind, value: Path(value))
    options.extra["durable"] = True
    place = Place(run)
    if options.max_turns is not None:
        options.max_turns = max(1, options.max_turns - place.tool_turns())
    return Harness(options)


def open_at(harness: Harness, run: Run, emit: Callable[[Output], None]) -> tuple[Session, bool]:
    """The conversation as it was when the run's model was asked last; and whether the prompt is in it."""
    place = Place(run)
    session_id, uuid = run.spec["session"], run.spec["uuid"]
    at = place.last["at"] if place.last else None
    said = place.last is not None or _has(harness, session_id, uuid)
    harness.options = msgspec.structs.replace(harness.options, **(
        {"resume": session_id, "resume_at": at} if said or _has(harness, session_id, None) else {"session_id": session_id}))
    session = harness.open(emit)
    keeper = keeper_of(session)
    keeper.adopt(run)
    _restore(session, run, place)
    return session, said


def _has(harness: Harness, session_id: str, uuid: str | None) -> bool:
    """Whether the conversation is kept, with that entry."""
    try:
        harness.open_transcript(msgspec.structs.replace(harness.options, resume=session_id, resume_at=uuid)).close()
    except SessionError:
        return False
    return True


def _restore(session: Session, run: Run, place: Place) -> None:
    """What the session knew beside its history."""
    keeper = keeper_of(session)
    agent = keeper.agent(session)
    keeper.mark_ran(session, agent)
    if place.last is None:
        return
    agent.answers = len(place.answers) - 1
    state = values.state_of(place.last["state"])
    if state.model != session.model_info.id:
        session.switch(state.model)
    session.state = state
    for key, value in run.recorded.items():
        if tool_call(key, "") and "?" not in key:
            session.read_files.update(values.files_of(values.read(value)["files"]))
        elif "/approval:" in key:
            lasting = [u for u in values.read(value).get("updatedPermissions") or () if u.get("destination") == "session"]
            session.policy.update(lasting)
    for answer in place.answers[:-1]:
        _count(session, answer)


def _count(session: Session, answer: dict[str, Any]) -> None:
    """What an answer cost that an earlier process paid for."""
    usage = Usage()
    for event in answer["events"]:
        usage.take((event.get("message") or {}).get("usage") if event.get("type") == "message_start" else event.get("usage"))
    session.spending.aside(_info(session, answer["model"]), usage)


def _info(session: Session, model: str) -> ModelInfo:
    return session.model_info if model == session.model_info.id else session.provider.resolve(model) or session.model_info


async def go_on(session: Session, run: Run, said: bool) -> ResultMessage:
    """Run it to its end."""
    await session.start()
    if said:
        return await session.submit(None)
    return await session.submit(run.spec["prompt"], uuid=run.spec["uuid"])
