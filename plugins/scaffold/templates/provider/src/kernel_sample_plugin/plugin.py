"""Hook implementations, a few lines each; the work is in the modules beside this one, imported when it is needed."""

from __future__ import annotations

from kernel import ModelProvider, Registry, hookimpl


@hookimpl
def register_models(register: Registry[ModelProvider]) -> None:
    from kernel_sample_plugin.provider import SamplePluginProvider

    register(SamplePluginProvider())
