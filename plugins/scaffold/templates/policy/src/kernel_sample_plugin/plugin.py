"""Hook implementations, a few lines each; the work is in the modules beside this one, imported when it is needed."""

from __future__ import annotations

from kernel import PolicyFactory, Registry, hookimpl


@hookimpl
def register_policies(register: Registry[PolicyFactory]) -> None:
    from kernel_sample_plugin.policy import SamplePluginFactory

    register(SamplePluginFactory())
