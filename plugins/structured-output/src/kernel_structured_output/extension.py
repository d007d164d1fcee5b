"""A run that must end with a value: the schema is checked first, the value later, and the run ends when it is there."""

from __future__ import annotations

from typing import Any

from msgspec import UNSET

from kernel import Extension, Harness, Leave, Session
from kernel_structured_output import schema
from kernel_structured_output.state import attempts, begin, max_retries
from kernel_structured_output.tool import NAME, StructuredOutput

OPTION = "json_schema"
ASK = f"The answer is not handed in yet. Call the tool {NAME} once with the final answer."


class StructuredOutputs(Extension):
    """Works where ``--json-schema`` (or the same option of a program) gives a schema, and is silent otherwise."""

    name = "structured-output"

    def check(self, harness: Harness) -> None:
        given = harness.options.extra.get(OPTION)
        if given is not None:
            schema.check(given) if isinstance(given, dict) else schema.read(str(given))

    async def open(self, session: Session) -> None:
        given = session.options.extra.get(OPTION)
        if given is not None and session.parent is None:
            wanted = schema.check(given) if isinstance(given, dict) else schema.read(str(given))
            session.toolbox.offer([StructuredOutput(wanted)])

    async def before_prompt(self, session: Session) -> None:
        begin(session)

    async def before_request(self, session: Session) -> None:
        if self._wanted(session) and attempts(session).accepted:  # a Stop hook sent the run on
            attempts(session).reopen()
            session.result_facts.pop("structured_output", None)

    async def after_batch(self, session: Session) -> bool:
        run = attempts(session)
        if not self._wanted(session):
            return False
        if run.accepted:
            session.result_facts["structured_output"] = run.value
            if run.warnings:
                session.debug(f"plugin structured-output: {len(run.warnings)} warning(s): {run.warnings}")
            return True
        if run.failed > max_retries():
            raise self._exhausted(session, f"{run.failed} values did not fit; the last: {_said(run)}")
        return False

    async def before_stop(self, session: Session, answer: str) -> str | None:
        if not self._wanted(session):
            return None
        run = attempts(session)
        run.failed += 1
        if run.failed > max_retries():
            raise self._exhausted(session, f"the model ended {run.failed} times without a value that fits")
        return ASK

    async def at_end(self, session: Session, leave: Leave) -> Leave | None:
        """A success without the value would look like one with it; it never is."""
        if not self._wanted(session) or leave.subtype != "success" or leave.terminal_reason == "tool_deferred" or leave.is_error:
            return None
        if session.result_facts.get("structured_output", UNSET) is not UNSET:
            return None
        why = leave.text or f"the run ended ({leave.terminal_reason})"
        return Leave(leave.terminal_reason, "error_during_execution", stop_reason=leave.stop_reason,
                     errors=(f"No structured output: {why}",))

    def _wanted(self, session: Session) -> bool:
        return NAME in session.toolbox.by_name

    def _exhausted(self, session: Session, why: str) -> Leave:
        return Leave("structured_output_retry_exhausted", "error_max_structured_output_retries", errors=(
            f"No valid structured output within {max_retries()} retries: {why}",))


def _said(run: Any) -> str:
    return "; ".join(f"{p.path or '/'}: {p.rule}, expected {p.expected[:80]}" for p in run.last[:2]) or "nothing"
