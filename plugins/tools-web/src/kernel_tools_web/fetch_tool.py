"""WebFetch (tools contract, section 11)."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from kernel import Tool, ToolContext, ToolError, ToolResult
from kernel_tools_web import manuals
from kernel_tools_web.urls import BadUrl, parse

if TYPE_CHECKING:
    from kernel_tools_web.client import Client


class WebFetch(Tool):
    """:param client: who does the asking; tests give one with other limits."""

    name = "WebFetch"
    description = "Fetches a web page and answers a question about it."
    permission = "ask"
    rule_field = "url"
    max_result_chars = manuals.PAGE_CHARS + 2_000
    input_schema = {
        "type": "object",
        "properties": {
            "url": {"type": "string", "minLength": 1, "description": "The whole URL, with https://."},
            "prompt": {"type": "string", "minLength": 1, "description": "What to find out from the page."},
        },
        "required": ["url", "prompt"], "additionalProperties": False,
    }
    output_schema = {
        "type": "object",
        "properties": {"bytes": {"type": "integer"}, "code": {"type": "integer"}, "codeText": {"type": "string"},
                       "result": {"type": "string"}, "durationMs": {"type": "integer"}, "url": {"type": "string"}},
        "required": ["bytes", "code", "codeText", "result", "durationMs", "url"], "additionalProperties": False,
    }

    def __init__(self, client: Client | None = None) -> None:
        self._client = client

    def prompt(self) -> str:
        return manuals.FETCH

    def is_read_only(self, input: dict[str, Any]) -> bool:
        return True

    def validate_input(self, input: dict[str, Any], context: ToolContext) -> None:
        try:
            parse(input["url"])
        except BadUrl as error:
            raise ToolError("invalid_arguments", f"url: expected a plain https:// URL; {error}") from None

    async def call(self, input: dict[str, Any], context: ToolContext) -> ToolResult:
        from kernel_tools_web.client import Client
        from kernel_tools_web.fetch import fetch  # nothing of it is needed before the first call

        self._client = self._client or Client()  # it keeps the certificates, which take a while to load
        return await fetch(self._client, input, context)

    def from_structured(self, structured: Any) -> str:
        return str(structured["result"])
