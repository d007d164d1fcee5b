"""The tool by which the model hands in its answer (section 3)."""

from __future__ import annotations

from typing import Any, ClassVar

import msgspec

from kernel import OutputProblem, Tool, ToolContext, ToolResult
from kernel_structured_output import checks, repair
from kernel_structured_output.schema import Schema
from kernel_structured_output.state import PLANNER_AT, SEMANTIC_RETRIES, Attempts, attempts, max_retries

NAME = "StructuredOutput"


class StructuredOutput(Tool):
    name = NAME
    description = "Hands in the final answer as a value. Call it exactly once, at the very end, when the answer is complete."
    input_schema: ClassVar[dict[str, Any]] = {}  # the value is checked below, so that a failure is told in the documented form
    permission = "free"
    internal = True
    max_result_chars = 20_000

    def __init__(self, schema: Schema) -> None:
        self.schema = schema

    def definition(self) -> dict[str, Any]:
        return {"name": self.name, "description": self.description, "input_schema": self.schema.for_model()}

    def is_read_only(self, input: dict[str, Any]) -> bool:
        return True

    def is_concurrency_safe(self, input: dict[str, Any]) -> bool:
        return False

    async def call(self, input: dict[str, Any], context: ToolContext) -> ToolResult:
        session = context.session
        run = attempts(session)
        value = input.get("value") if self.schema.wrapped else input
        problems = repair.problems_of(self.schema.original, value)
        if not problems:
            found = await checks.run(session, value, "")
            run.warnings += [p for p in found if p.severity == "warning"]
            problems = [p for p in found if p.severity == "error"]
            if problems:
                run.semantic += 1
                problems = [_scoped(run, p) for p in problems]
                if run.semantic > SEMANTIC_RETRIES and checks.accepts_with_warnings(session):
                    run.warnings, problems = [*run.warnings, *problems], []
        if problems:
            return self._again(run, value, problems)
        run.value = value
        return ToolResult(content="The answer was accepted.", structured={"accepted": True})

    def _again(self, run: Attempts, value: Any, problems: list[OutputProblem]) -> ToolResult:
        run.failed += 1
        run.last = problems
        try:
            digest = msgspec.json.encode(value, order="sorted")
        except (TypeError, ValueError, RecursionError):
            digest = repr(value).encode()
        again = digest in run.refused
        run.refused.append(digest)
        small = repair.example(self.schema.original, self.schema.original) if again else None
        return _refused("invalid_output", repair.words(problems, run.failed, max_retries(), again=again, example=small))


def _scoped(run: Attempts, problem: OutputProblem) -> OutputProblem:
    """The third failure of the same item means that the plan is wrong (section 7)."""
    if problem.retry_scope != "tool_loop":
        return problem
    key = f"{problem.validator}{problem.path}{problem.rule}"
    run.items[key] = run.items.get(key, 0) + 1
    return msgspec.structs.replace(problem, retry_scope="planner") if run.items[key] >= PLANNER_AT else problem


def _refused(code: str, text: str) -> ToolResult:
    return ToolResult(content=text, status="retryable_error", error_code=code, retryable=True, structured=text)
