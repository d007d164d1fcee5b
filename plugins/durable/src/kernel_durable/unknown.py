"""A tool that was running when its process ended: nobody knows what it did. Who may run it again, and what else is done."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from kernel import Tool, ToolContext, ToolError, ToolResult
from kernel_durable import asking

if TYPE_CHECKING:
    from kernel_durable.engine import Run
    from kernel_durable.keeper import Keeper
    from kernel_durable.steps import Steps

UNKNOWN = ("The process that ran this call ended before its result was recorded, so its effects are unknown: it may have done "
           "all, part or nothing of its work. It was not repeated. Check before you repeat it.")


async def settled(steps: Steps, run: Run, key: str, tool: Tool, input: dict[str, Any], context: ToolContext) -> ToolResult | None:
    """The result of a call that must not be run; ``None`` where it may. That it begins is kept before it may have effects."""
    if _is_read_only(tool, input) or is_made_of_steps(tool):
        return None
    keeper = steps.keeper
    begun = next(number for number in range(len(run.recorded) + 1) if f"{key}?{number}" not in run.recorded)
    once = await _key(tool, input, context)
    if begun:
        first = keeper.found(run, f"{key}?0") or {}
        if first["tool"] != tool.name:
            raise keeper.differs(f"the call {context.call_id} was one of {first['tool']} and is one of {tool.name}")
        if once is not None and once == first["key"]:
            return await _looked_up(tool, once, input, context)  # the same key again: the effect comes about once
        word = _rule(steps, tool, input)
        if word == "ask":
            word = await asking.about_unknown(steps, tool, input, context)
            if word == "wait":
                return left(keeper)
        elif word == "retry" and begun > 1:
            word = "skip"  # repeated at most once
        if word == "skip":
            return ToolResult(content=UNKNOWN, status="cancelled", error_code="effects_unknown",
                              structured={"effects": "unknown", "begun": begun})
        tool.validate_input(input, context)
    await keeper.record(run, f"{key}?{begun}", {"tool": tool.name, "input": input, "key": once})
    return None


def left(keeper: Keeper) -> ToolResult:
    """The result of a call that whoever takes the run up will run; it is not kept."""
    return ToolResult(content=asking.WAITING.format(id=keeper.waiting), status="cancelled", error_code="waiting")


def is_made_of_steps(tool: Tool) -> bool:
    return getattr(tool, "made_of_steps", False) is True


async def _key(tool: Tool, input: dict[str, Any], context: ToolContext) -> str | None:
    declared = getattr(tool, "idempotency_key", None)
    found = declared(input, context) if declared is not None else None
    if found is not None and not isinstance(found, str):
        raise ToolError("fatal", f"{tool.name}: idempotency_key returned {type(found).__name__}, expected a string or None")
    return found


async def _looked_up(tool: Tool, key: str, input: dict[str, Any], context: ToolContext) -> ToolResult | None:
    """What the tool itself can find out about a call with that key."""
    look = getattr(tool, "outcome_of", None)
    found = await look(key, input, context) if look is not None else None
    return found if isinstance(found, ToolResult) else None


def _is_read_only(tool: Tool, input: dict[str, Any]) -> bool:
    try:
        return bool(tool.is_read_only(input))
    except Exception:
        return False


def _rule(steps: Steps, tool: Tool, input: dict[str, Any]) -> str:
    """What the settings say about such a call: the first rule that covers it."""
    policy = steps.session.policy
    return next(word for rule, word in steps.keeper.config.unknown if rule == "*" or policy.matches(rule, tool.name, input))
