"""The provider ``sample-plugin``: repeats what was said. Put a request to your server in the place of ``_answer``."""

from __future__ import annotations

from collections.abc import AsyncIterator

from kernel import ModelError, ModelInfo, ModelRequest, StreamEvent, text_of


class SamplePluginProvider:
    """Speaks the stream of the Messages API, whatever the server behind it speaks.

    It never retries and never repairs: it raises ``ModelError`` before the first event and ``StreamError`` after it, and
    the kernel decides what is tried again.
    """

    name = "sample-plugin"

    def resolve(self, model: str) -> ModelInfo | None:
        """What is known of a model; ``None`` for one that is not served here. Makes no request."""
        return ModelInfo(id=model, context_window=32_000, max_output=4_000) if model.startswith("echo") else None

    async def stream(self, request: ModelRequest) -> AsyncIterator[StreamEvent]:
        answer = self._answer(request)
        usage = {"input_tokens": len(request.history.encode()) // 4, "output_tokens": len(answer) // 4 + 1}
        yield {"type": "message_start", "message": {"id": "msg_1", "model": request.model, "usage": usage}}
        yield {"type": "content_block_start", "index": 0, "content_block": {"type": "text", "text": ""}}
        for word in answer.split(" "):
            yield {"type": "content_block_delta", "index": 0, "delta": {"type": "text_delta", "text": f"{word} "}}
        yield {"type": "content_block_stop", "index": 0}
        yield {"type": "message_delta", "delta": {"stop_reason": "end_turn"}, "usage": usage}
        yield {"type": "message_stop"}

    def _answer(self, request: ModelRequest) -> str:
        said = text_of(request.history.wire()[-1]["content"])
        if len(said) > 100_000:
            raise ModelError("that is too long to repeat", status=400, kind="invalid_request_error")
        return f"You said: {said}"

    async def aclose(self) -> None:
        """Close connections; there are none."""
