"""The tool by which the model hands in its answer (section 3)."""

from __future__ import annotations

from typing import Any, ClassVar

import msgspec

from kernel import OutputProblem, Tool, ToolContext, ToolResult
from kernel_structured_output import checks, repair
from kernel_structured_output.schema import Schema
from kernel_structured_output.state import Attempts, attempts, max_retries

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
        if session.parent is not None:  # a fork has the tool because its request begins like the conversation's
            return _refused("not_available", "Only the conversation hands in its answer; give your report as text.")
        run = attempts(session)
        if self.schema.wrapped and "value" not in input:
            problems = [OutputProblem(validator="json_schema", path="", rule="required", expected='the answer under "value"',
                                      received=repair.shown(input))]
            return self._again(run, input, problems)
        value = input["value"] if self.schema.wrapped else input
        problems = await repair.check(self.schema, value) or await checks.weigh(session, run, value, "")
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
            digest = repr(value).encode("utf-8", "replace")
        again = digest in run.refused
        run.refused.append(digest)
        small = repair.example(self.schema) if again else None
        if small is not None and self.schema.wrapped:
            small = {"value": small}
        return _refused("invalid_output", repair.words(problems, run.failed, max_retries(), again=again, example=small))


def _refused(code: str, text: str) -> ToolResult:
    return ToolResult(content=text, status="retryable_error", error_code=code, retryable=True, structured=text)
