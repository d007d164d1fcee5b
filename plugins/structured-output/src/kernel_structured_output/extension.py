"""A run that must end with a value: the schema is checked first, the value later, and the run ends when it is there."""

from __future__ import annotations

from typing import Any

from msgspec import UNSET

from kernel import Extension, Harness, Leave, Middleware, Session, Tool, ToolContext, ToolResult, ToolRunner, UsageError
from kernel_structured_output import checks, last_try, schema
from kernel_structured_output.repair import words
from kernel_structured_output.state import SEMANTIC_RETRIES, Attempts, attempts, begin, max_retries
from kernel_structured_output.tool import NAME, StructuredOutput

OPTION = "json_schema"
GIVEN = "structured-output.given"
"""In ``session.plugin_state``: the option as it was when the tool was last brought to it."""
ASK = f"The answer is not handed in yet. Call the tool {NAME} once with the final answer."


class StructuredOutputs(Extension):
    """Works where ``--json-schema`` (or the same option of a program) gives a schema, and is silent otherwise."""

    name = "structured-output"

    def check(self, harness: Harness) -> None:
        wrong = checks.wrong_settings(harness.settings.own(checks.SETTINGS))
        if wrong:
            raise UsageError(wrong, context="settings")
        given = harness.options.extra.get(OPTION)
        if given is not None:
            schema.of(given)

    async def open(self, session: Session) -> None:
        self._offer(session)

    def _offer(self, session: Session) -> None:
        """Bring the tool to what the option says now: a program may ask for another value, or for none, with each prompt."""
        if session.parent is not None:
            return
        given = session.options.extra.get(OPTION)
        if given is session.plugin_state.get(GIVEN):
            return
        session.plugin_state[GIVEN] = given
        session.toolbox.withdraw([NAME])
        if given is not None:
            session.toolbox.offer([StructuredOutput(schema.of(given))])

    async def before_prompt(self, session: Session) -> None:
        self._offer(session)
        begin(session)

    async def before_request(self, session: Session) -> None:
        self._offer(session)
        if not self._wanted(session):
            return
        if attempts(session).accepted:  # a Stop hook sent the run on
            attempts(session).reopen()
            session.result_facts.pop("structured_output", None)
        last_try.begin(session, NAME)

    async def after_batch(self, session: Session) -> bool:
        run = attempts(session)
        if not self._wanted(session):
            return False
        if run.accepted:
            session.result_facts["structured_output"] = run.value
            _tell(session, run)
            return True
        if run.spent:
            raise self._exhausted(session, f"the tries for {run.spent} are used up; the last: {_said(run)}", SEMANTIC_RETRIES)
        if run.failed > max_retries():
            raise self._exhausted(session, f"{run.failed} values did not fit; the last: {_said(run)}")
        return False

    async def before_stop(self, session: Session, answer: str) -> str | None:
        run = attempts(session)
        if not self._wanted(session):
            return await self._plain(session, run, answer)
        run.failed += 1
        if run.failed > max_retries():
            raise self._exhausted(session, f"the model ended {run.failed} times without a value that fits")
        return ASK

    async def _plain(self, session: Session, run: Attempts, answer: str) -> str | None:
        """Checks of meaning of an answer without a schema, where the setting asks for them."""
        if session.parent is not None or session.settings.own(checks.PLAIN) is not True:
            return None
        problems = await checks.weigh(session, run, None, answer)
        if not problems:
            _tell(session, run)
            return None
        run.failed += 1
        run.last = problems
        if run.spent or run.failed > max_retries():
            raise self._exhausted(session, f"the answer did not pass its checks; the last: {_said(run)}", run.failed - 1)
        return words(problems, run.failed, max_retries(), again=False, plain=True)

    async def at_end(self, session: Session, leave: Leave) -> Leave | None:
        """A success without the value would look like one with it; it never is."""
        if leave.terminal_reason != "tool_deferred":
            begin(session)
        if not self._wanted(session) or leave.subtype != "success" or leave.terminal_reason == "tool_deferred" or leave.is_error:
            return None
        if session.result_facts.get("structured_output", UNSET) is not UNSET:
            return None
        why = leave.text or f"the run ended ({leave.terminal_reason})"
        return Leave(leave.terminal_reason, "error_during_execution", stop_reason=leave.stop_reason,
                     errors=(f"No structured output: {why}",))

    def _wanted(self, session: Session) -> bool:
        return session.parent is None and NAME in session.toolbox.by_name

    def _exhausted(self, session: Session, why: str, tries: int | None = None) -> Leave:
        tries = max_retries() if tries is None else tries
        return Leave("structured_output_retry_exhausted", "error_max_structured_output_retries", errors=(
            f"No valid structured output within {tries} retries: {why}",))


class Done(Middleware):
    """Notes which tools ended well in this run, for the check of side effects."""

    name = "done-tools"

    async def around_tool(self, tool: Tool, input: dict[str, Any], context: ToolContext, next: ToolRunner) -> ToolResult:
        result = await next(tool, input, context)
        if not tool.internal and result.status in ("success", "partial", "empty"):
            attempts(context.session.root).done.add(tool.name)
        return result


def _tell(session: Session, run: Attempts) -> None:
    """Warnings of validators go to the log; an answer that was taken although it did not pass is announced."""
    for problem in run.warnings:
        text = f"{problem.validator} {problem.path or '/'}: {problem.rule}, expected {problem.expected[:200]}"
        if problem.severity == "error":
            session.notice(f"the answer was taken although a check failed: {text}")
        else:
            session.debug(f"plugin structured-output: warning: {text}")


def _said(run: Any) -> str:
    return "; ".join(f"{p.path or '/'}: {p.rule}, expected {p.expected[:80]}" for p in run.last[:2]) or "nothing"
