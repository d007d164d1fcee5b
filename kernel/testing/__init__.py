"""The public test kit: a harness in your own process, without a model, a network or a terminal.

A plugin's test in three lines, with the pytest plugin (``-p kernel.testing.pytest_plugin``)::

    def test_my_tool(kernel_kit):
        run = kernel_kit(call("MyTool", value=1), text("done"), installed=["my-plugin"]).play("go")
        assert_result(run, "MyTool", contains="1")

The loop, the dispatcher, the merge and the batch are the real ones; the model plays a script. docs/testing.md shows all.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:  # what a type checker sees; at run time a name is imported when it is first asked for
    from kernel.plugins import Plugin as Plugin
    from kernel.testing.builders import event as event, wire as wire
    from kernel.testing.checks import (
        assert_allowed as assert_allowed,
        assert_decision as assert_decision,
        assert_end as assert_end,
        assert_refused as assert_refused,
        assert_request as assert_request,
        assert_result as assert_result,
        call_of as call_of,
    )
    from kernel.testing.kit import (
        Kit as Kit,
        Run as Run,
        installed as installed,
        plugin_folder as plugin_folder,
        provides as provides,
    )
    from kernel.testing.processes import (
        HookRun as HookRun,
        alive as alive,
        alive_with as alive_with,
        run_hook as run_hook,
        until as until,
    )
    from kernel.testing.scripted import (
        Scripted as Scripted,
        ScriptedModel as ScriptedModel,
        Turn as Turn,
        call as call,
        text as text,
    )
    from kernel.testing.skills import (
        Skill as Skill,
        ask_model as ask_model,
        assert_triggers as assert_triggers,
        by_words as by_words,
        read_skill as read_skill,
        read_skills as read_skills,
    )
    from kernel.testing.stand_ins import FakeClock as FakeClock, StubPolicy as StubPolicy, module as module
    from kernel.testing.transcripts import assert_golden as assert_golden, golden as golden, story as story

_HOMES = {
    "kernel.plugins": "Plugin",
    "kernel.testing.builders": "event wire",
    "kernel.testing.checks": """
        assert_allowed assert_decision assert_end assert_refused assert_request assert_result call_of
    """,
    "kernel.testing.kit": "Kit Run installed plugin_folder provides",
    "kernel.testing.processes": "HookRun alive alive_with run_hook until",
    "kernel.testing.scripted": "Scripted ScriptedModel Turn call text",
    "kernel.testing.skills": "Skill ask_model assert_triggers by_words read_skill read_skills",
    "kernel.testing.stand_ins": "FakeClock StubPolicy module",
    "kernel.testing.transcripts": "assert_golden golden story",
}
_HOME = {name: home for home, names in _HOMES.items() for name in names.split()}

__all__ = sorted(_HOME)


def __getattr__(name: str) -> Any:
    from importlib import import_module

    if name not in _HOME:
        raise AttributeError(f"module 'kernel.testing' has no attribute {name!r}")
    value = getattr(import_module(_HOME[name]), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
