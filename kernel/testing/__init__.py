"""The public test kit: a harness in your own process, without a model, a network or a terminal.

A plugin's test in three lines, with the pytest plugin (``-p kernel.testing.pytest_plugin``)::

    def test_my_tool(kernel_kit):
        run = kernel_kit(call("MyTool", value=1), text("done"), installed=["my-plugin"]).play("go")
        assert_result(run, "MyTool", contains="1")

The loop, the dispatcher, the merge and the batch are the real ones; the model plays a script. docs/testing.md shows all.
"""

from __future__ import annotations

from kernel.plugins import Plugin as Plugin
from kernel.testing.builders import event, wire
from kernel.testing.checks import (
    assert_allowed,
    assert_decision,
    assert_end,
    assert_refused,
    assert_request,
    assert_result,
    call_of,
)
from kernel.testing.kit import Kit, Run, installed, plugin_folder, provides
from kernel.testing.processes import HookRun, alive, alive_with, run_hook, until
from kernel.testing.scripted import Scripted as Scripted, ScriptedModel, Turn, call, text
from kernel.testing.skills import Skill, ask_model, assert_triggers, by_words, read_skill, read_skills
from kernel.testing.stand_ins import FakeClock, StubPolicy, module
from kernel.testing.transcripts import assert_golden, golden, story

__all__ = ["FakeClock", "HookRun", "Kit", "Plugin", "Run", "ScriptedModel", "Skill", "StubPolicy", "Turn", "alive", "alive_with",
           "ask_model", "assert_allowed", "assert_decision", "assert_end", "assert_golden", "assert_refused", "assert_request",
           "assert_result", "assert_triggers", "by_words", "call", "call_of", "event", "golden", "installed", "module",
           "plugin_folder", "provides", "read_skill", "read_skills", "run_hook", "story", "text", "until", "wire"]
