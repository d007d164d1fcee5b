"""Hook implementations, a few lines each; the work is in the modules beside this one, imported when it is needed."""

from __future__ import annotations

from kernel import Compactor, Registry, hookimpl


@hookimpl
def register_compactors(register: Registry[Compactor]) -> None:
    from kernel_sample_plugin.compactor import SamplePluginCompactor

    register(SamplePluginCompactor())
