"""AskUserQuestion (tools contract, 14.3).

The question is put by whoever answers permission questions: the policy turns every call into one. The answers come back
as a rewritten input, so the tool itself only reads them.
"""

from __future__ import annotations

from typing import Any

from kernel import Session, Tool, ToolContext, ToolError, ToolResult
from kernel_tools_user import manuals
from kernel_tools_user.looks import looks

MAX_QUESTIONS = 4
HEADER_CHARS = 12
ANSWER_FIELDS = ("answers", "response", "annotations", "afkTimeoutMs")
"""What only hooks and people fill in."""

_TEXT = {"type": "string"}
_QUESTION = {
    "type": "object",
    "properties": {
        "question": {"type": "string", "minLength": 1, "description": "The whole question, with a question mark."},
        "header": {"type": "string", "maxLength": HEADER_CHARS, "description": f"A label of at most {HEADER_CHARS} characters."},
        "options": {
            "type": "array", "minItems": 2, "maxItems": 4,
            "description": "The choices. The person can always answer freely, so do not add 'Other'.",
            "items": {
                "type": "object",
                "properties": {
                    "label": {"type": "string", "minLength": 1, "description": "One to five words."},
                    "description": {"type": "string", "description": "What choosing it means."},
                    "preview": {"type": "string", "description": "Something to look at beside it, for example a code sample."},
                },
                "required": ["label"], "additionalProperties": False,
            },
        },
        "multiSelect": {"type": "boolean", "default": False, "description": "Whether several options may be chosen."},
    },
    "required": ["question", "header", "options"], "additionalProperties": False,
}
_ANSWERS = {"type": "object", "additionalProperties": {"anyOf": [_TEXT, {"type": "array", "items": _TEXT}]}}
_ANNOTATIONS = {"type": "object", "additionalProperties": {"type": "object"}}
_NOT_YOURS = "Filled in by the person's client, never by you."


class AskUserQuestion(Tool):
    name = "AskUserQuestion"
    description = "Asks the person one to four questions with given options and waits for the answers."
    permission = "user"
    input_schema = {
        "type": "object",
        "properties": {
            # An empty list passes the schema, so that a hook may put the call off; the call itself refuses it.
            "questions": {"type": "array", "maxItems": MAX_QUESTIONS, "items": _QUESTION,
                          "description": "One to four questions."},
            "answers": {**_ANSWERS, "description": _NOT_YOURS},
            "response": {"type": "string", "description": _NOT_YOURS},
            "annotations": {**_ANNOTATIONS, "description": _NOT_YOURS},
            "afkTimeoutMs": {"type": "number", "description": _NOT_YOURS},
            "metadata": {"type": "object", "properties": {"source": _TEXT}},
        },
        "required": ["questions"], "additionalProperties": False,
    }
    output_schema = {
        "type": "object",
        "properties": {"questions": {"type": "array"}, "answers": {"type": "object", "additionalProperties": _TEXT},
                       "response": _TEXT, "annotations": _ANNOTATIONS, "afkTimeoutMs": {"type": "number"}},
        "required": ["questions", "answers"],
    }

    def prompt(self) -> str:
        return manuals.ASK

    def is_enabled(self, session: Session) -> bool:
        return session.agent_id is None

    def is_read_only(self, input: dict[str, Any]) -> bool:
        return True

    def is_concurrency_safe(self, input: dict[str, Any]) -> bool:
        return False  # one question after the other

    def prepare_input(self, input: dict[str, Any], context: ToolContext) -> dict[str, Any]:
        """The model cannot answer its own questions."""
        seen = looks(context)
        if context.call_id in seen:
            return input
        seen[context.call_id] = None
        return {key: value for key, value in input.items() if key not in ANSWER_FIELDS}

    def validate_input(self, input: dict[str, Any], context: ToolContext) -> None:
        texts = [q["question"] for q in input["questions"]]
        _unique(texts, "questions", "question")
        for n, question in enumerate(input["questions"]):
            _unique([o["label"] for o in question["options"]], f"questions.{n}.options", "label")

    async def call(self, input: dict[str, Any], context: ToolContext) -> ToolResult:
        if not input["questions"]:
            raise ToolError("invalid_arguments", "questions: expected one to four questions, received none")
        answers = {question: given if isinstance(given, str) else ", ".join(given)
                   for question, given in (input.get("answers") or {}).items()}
        if not answers and not input.get("response"):
            raise ToolError("no_answer", "The questions were allowed, but nobody answered them. Go on with what seems most "
                                         "sensible and say which choices you made, or end with the questions.")
        structured = {"questions": input["questions"], "answers": answers,
                      **{key: input[key] for key in ("response", "annotations", "afkTimeoutMs") if input.get(key)}}
        return ToolResult(content=self.from_structured(structured), structured=structured)

    def from_structured(self, structured: Any) -> str:
        if structured.get("response"):
            return f"The person answered in their own words instead of choosing:\n{structured['response']}"
        notes = structured.get("annotations") or {}
        lines = []
        for question in [q["question"] for q in structured["questions"]]:
            if question in structured["answers"]:
                lines.append(f"{question}\n-> {structured['answers'][question]}{_note(notes.get(question))}")
            else:
                lines.append(f"{question}\n-> (not answered)")
        known = {q["question"] for q in structured["questions"]}
        lines += [f"{key}\n-> {value}" for key, value in structured["answers"].items() if key not in known]
        away = ["The time for an answer ran out; the person may be away."] if structured.get("afkTimeoutMs") else []
        return "\n".join(["The person answered:", *lines, *away])


def _note(annotation: Any) -> str:
    notes = annotation.get("notes") if isinstance(annotation, dict) else None
    return f" (note: {notes})" if notes else ""


def _unique(texts: list[str], where: str, what: str) -> None:
    twice = next((t for n, t in enumerate(texts) if t in texts[:n]), None)
    if twice is not None:
        raise ToolError("invalid_arguments", f"{where}: each {what} must be there once, received {twice[:100]!r} twice")
