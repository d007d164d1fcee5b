"""Questions that are kept until somebody answers: today or tomorrow, from this process or another.

Where a front end can ask, it asks, and its answer is kept. Where nobody can be asked, the question is stored, and the run waits,
is left, or goes on with the outcome that nobody was there (setting ``kernel.durable.approvals``).
"""

from __future__ import annotations

import hashlib
from typing import TYPE_CHECKING, Any

import anyio

from kernel import PermissionCall, Session, Tool, ToolContext, Verdict

if TYPE_CHECKING:
    from kernel_durable.engine import RunInfo
    from kernel_durable.keeper import Keeper
    from kernel_durable.steps import Steps

NO_ONE = ("Nobody was there to be asked about {tool}, so the call was not run. That is not a refusal: nobody has seen the "
          "question. Go on with what needs no approval, or end and say what you would need.")
WAITING = "Not run: the run waits for an approval (kernel durable approvals answer {id} allow|deny)."


def short(run_id: str, question: str) -> str:
    """The name of a question that people type."""
    return hashlib.sha256(f"{run_id}\0{question}".encode()).hexdigest()[:8]


class StoredAsker:
    """A ``kernel.Asker`` for a session where nobody can be asked at once."""

    side_by_side = True

    def __init__(self, keeper: Keeper) -> None:
        self._keeper = keeper

    async def __call__(self, call: PermissionCall, verdict: Verdict, call_id: str) -> dict[str, Any]:
        keeper = self._keeper
        if keeper.config.approvals == "no_one":
            return {"behavior": "deny", "message": NO_ONE.format(tool=call.tool.name), "no_one": True}
        question = {"kind": "permission", "tool": call.tool.name, "input": call.input, "reason": verdict.message,
                    "suggestions": verdict.suggestions, "agent": call.agent_id}
        answer = await ask(keeper, call_id, question)
        if answer is None and keeper.waiting:
            return {"behavior": "deny", "interrupt": True, "message": WAITING.format(id=keeper.waiting)}
        return answer or {"behavior": "deny", "message": NO_ONE.format(tool=call.tool.name), "no_one": True}


async def ask(keeper: Keeper, name: str, question: dict[str, Any]) -> dict[str, Any] | None:
    """Store a question and get its answer; ``None`` where none comes here: the run is left for it, or nobody is there."""
    run = await keeper.current()
    assert run is not None
    key = f"question:{name}"
    if key not in run.recorded:
        await keeper.record(run, key, {**question, "asked": keeper.root.clock.timestamp()})
        keeper.root.notice(f"{question['tool']} waits for an approval: kernel durable approvals answer {short(run.id, name)} "
                           "allow|deny", level="info")
    waits = keeper.config.approvals == "wait"
    found: dict[str, Any] | None = None
    with anyio.move_on_after(keeper.config.patience if waits else LOOK_S):
        found = await run.answer(name)
    if found is None and not waits:
        keeper.waiting = short(run.id, name)
    return found


LOOK_S = 0.4
"""Seconds in which an answer that is there already is found."""


async def about_unknown(steps: Steps, tool: Tool, input: dict[str, Any], context: ToolContext) -> str:
    """Ask a person whether a call with unknown effects is run again: ``retry``, ``skip``, or ``wait`` where the run is left."""
    keeper = steps.keeper
    if keeper.config.approvals == "no_one":
        return "skip"
    answer = await ask(keeper, f"unknown:{context.call_id}", {
        "kind": "effects unknown", "tool": tool.name, "input": input, "suggestions": [],
        "reason": "it was running when its process ended; allow: run it again, deny: tell the model that nobody knows"})
    if answer is None and keeper.waiting:
        return "wait"
    return "retry" if answer is not None and answer.get("behavior") == "allow" else "skip"


def questions(info: RunInfo) -> list[dict[str, Any]]:
    """The stored questions of a run: ``{"id", "run", "name", "question", "answer"}``."""
    from kernel_durable.values import read

    found: list[dict[str, Any]] = []
    for key, value in info.steps.items():
        if key.startswith("question:"):
            name = key.removeprefix("question:")
            answer = info.steps.get(f"answer {name}")
            found.append({"id": short(info.id, name), "run": info.id, "name": name, "question": read(value),
                          "answer": read(answer) if answer else None})
    return found


def offer(session: Session, keeper: Keeper) -> None:
    """Answer in the stead of a person where the front end has nobody to ask."""
    if session.asker is None:
        session.asker = StoredAsker(keeper)
