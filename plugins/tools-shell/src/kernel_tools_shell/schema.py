"""The shape of a Bash result (tools contract, section 10)."""

from __future__ import annotations

from typing import Any

OUTPUT_SCHEMA: dict[str, Any] = {
    "type": "object",
    "properties": {
        "stdout": {"type": "string", "description": "Both streams of the command, as they came."},
        "stderr": {"type": "string", "description": "Notes of the tool, not of the command."},
        "interrupted": {"type": "boolean"},
        "isImage": {"type": "boolean"},
        "rawOutputPath": {"type": "string"},
        "backgroundTaskId": {"type": "string"},
        "backgroundedByUser": {"type": "boolean"},
        "timedOutAfterMs": {"type": "number"},
        "backgroundCwdHint": {"type": "string"},
        "backgroundEndsWithFinalResponse": {"type": "boolean"},
        "dangerouslyDisableSandbox": {"type": "boolean"},
        "returnCodeInterpretation": {"type": "string"},
        "noOutputExpected": {"type": "boolean"},
        "structuredContent": {"type": "array"},
        "persistedOutputPath": {"type": "string"},
        "persistedOutputSize": {"type": "number"},
        "staleReadFileStateHint": {"type": "string"},
        "ghRateLimitHint": {"type": "string"},
        "gitOperation": {"type": "object"},
    },
    "required": ["stdout", "stderr", "interrupted"],
}
