"""Hook implementations: a model that plays a script, and a recorder that writes one."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

from kernel import hookimpl

if TYPE_CHECKING:
    from kernel import Middleware, ModelProvider, Registry


@hookimpl
def register_models(register: Registry[ModelProvider]) -> None:
    from kernel_model_script.provider import ScriptModel

    register(ScriptModel(register.settings, register.options.cwd if register.options else None))


@hookimpl
def register_middleware(register: Registry[Middleware]) -> None:
    path = os.environ.get("KERNEL_RECORD", "").strip()
    if path:
        from kernel_model_script.record import Recorder

        register(Recorder(path))
