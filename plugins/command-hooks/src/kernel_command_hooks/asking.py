"""Requests beside the conversation: which model a hook asks, its whole answer, and that it is paid for."""

from __future__ import annotations

import os

from kernel import ModelInfo, ModelRequest, Response, Session, UsageError, side_request

FAST_MODEL = "haiku"
"""The alias that providers know their fast model by."""


def choose_model(session: Session, wanted: str | None) -> ModelInfo:
    """The model that the handler names, else a fast one, else the session's.

    :raises ValueError: the session's provider does not serve the one that is named.
    """
    for name in filter(None, (wanted, os.environ.get("ANTHROPIC_SMALL_FAST_MODEL"), FAST_MODEL)):
        try:
            info = session.provider.resolve(name)
        except UsageError as error:
            if wanted:
                raise ValueError(f"model: {error}") from None
            continue
        if info is not None:
            return info
        if wanted:
            raise ValueError(f"model: the provider {session.provider.name!r} does not serve {wanted!r}")
    return session.model_info


async def ask(session: Session, request: ModelRequest, info: ModelInfo) -> Response:
    """One answer, without retries: a hook has little time, and its failure is announced.

    :raises ModelError: the request failed, or the answer did not come to its end.
    :raises ValueError: the input of a call is no JSON object.
    """
    response = await side_request(session, request, info)
    for fault in response.bad_inputs.values():
        raise ValueError(f"the input of a call is no JSON object ({fault})")
    return response
