"""Requests to the model beside the conversation: no history, no tools of ours, their own small limits."""

from __future__ import annotations

from kernel import ModelError, ModelInfo, ModelRequest, Response, Session, ToolError, side_request

TRIES = 3
_LIMITED = ("rate_limit_error", "overloaded_error")


async def ask(session: Session, models: list[ModelInfo], request: ModelRequest, what: str) -> Response:
    """The answer of the first model that exists.

    :param models: tried in turn where the server does not know one.
    :param what: what the answer was wanted for; begins the error's text.
    :raises ToolError: ``rate_limited`` or ``model_failed``. Nothing that the API said is passed on, since the model could
        take it for what it asked for.
    """
    for number, info in enumerate(models):
        try:
            return await side_request(session, request, info, tries=TRIES)
        except ModelError as error:
            if number + 1 < len(models) and (error.status == 404 or error.kind == "not_found_error"):
                continue
            session.debug(f"plugin tools-web: side request to {info.id} failed: {error.kind} {error.status}: {error.message}")
            limited = error.status in (429, 529) or error.kind in _LIMITED
            how = f"{error.kind}, status {error.status}" if error.status else error.kind
            raise ToolError("rate_limited" if limited else "model_failed",
                            f"{what}: the model did not answer ({how}). Try again later.", retryable=True) from error
    raise AssertionError("at least one model is given")


def small_model(session: Session) -> list[ModelInfo]:
    """The setting ``kernel.web.model``, else the provider's small model, then the session's own."""
    given = session.settings.get("kernel.web.model")
    name = given if isinstance(given, str) and given else "haiku" if session.provider.name == "anthropic" else ""
    found = session.provider.resolve(name) if name else None
    return [found, session.model_info] if found is not None and found.id != session.model_info.id else [session.model_info]
