"""Hook implementations: one model provider."""

from __future__ import annotations

from typing import TYPE_CHECKING

from kernel import hookimpl

if TYPE_CHECKING:
    from kernel import ModelProvider, Registry


@hookimpl
def register_models(register: Registry[ModelProvider]) -> None:
    from kernel_model_anthropic.provider import Anthropic

    register(Anthropic())
