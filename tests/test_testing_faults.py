"""A plugin that does not work fails the tests of its author, in the kernel's own words."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from kernel import KernelError, ModelInfo, PreToolUse, PreToolUseResult, Tool, ToolError, UsageError
from kernel.testing import Kit, ScriptedModel, assert_allowed, assert_end, assert_refused, call, module, plugin_folder, text

TOOL = """
from kernel import Tool, ToolResult, hookimpl

class Hello(Tool):
    name = "Hello"
    description = "Greets."
    input_schema = {"type": "object"}
    permission = "free"

    async def call(self, input, context):
        return ToolResult(content="Hello!")
"""
REGISTER = "@hookimpl\ndef register_tools(register):\n    register(Hello())\n"


@pytest.fixture
def install(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Callable[..., str]]:
    """Install a plugin of one module, as pip lays it out, and give its name."""
    site = tmp_path / "site"
    monkeypatch.syspath_prepend(str(site))
    names: list[str] = []

    def make(source: str, implements: list[str], *, requires: str = ">=0.1", **kernel: Any) -> str:
        name = f"faulty{len(names)}"
        names.append(name)
        plugin_folder(site / f"{name}_pkg", name, {"__init__.py": "", "plugin.py": source},
                      kernel={"requires": requires, "implements": implements, **kernel})
        info = site / f"{name}-1.0.dist-info"
        info.mkdir()
        (info / "entry_points.txt").write_text(f"[kernel.plugins]\n{name} = {name}_pkg.plugin\n")
        return name

    yield make
    for loaded in [m for m in sys.modules if m.partition("_pkg")[0] in names]:
        del sys.modules[loaded]


FAULTS: dict[str, tuple[str, list[str], dict[str, Any], str]] = {
    "a hook that the manifest does not name": (
        TOOL + REGISTER + "@hookimpl\ndef pre_tool_use(event):\n    pass\n", ["register_tools"], {},
        "implements pre_tool_use, which its manifest does not name"),
    "a hook that only the manifest names": (TOOL + REGISTER, ["register_tools", "stop"], {}, "does not implement stop"),
    "a hook without its mark": (TOOL + REGISTER.replace("@hookimpl\n", ""), ["register_tools"], {}, "does not implement"),
    "an import that fails": ("import no_such_module_at_all\n", ["register_tools"], {}, "ModuleNotFoundError: No module named"),
    "a syntax error": ("def register_tools(register:\n", ["register_tools"], {}, "SyntaxError"),
    "a misspelt hook": (TOOL + REGISTER.replace("tools", "tols"), ["register_tols"], {}, "did you mean 'register_tools'?"),
    "a misspelt key": (TOOL + REGISTER, ["register_tools"], {"provide": {}}, "metadata.kernel.provide: unknown field"),
    "another kernel": (TOOL + REGISTER, ["register_tools"], {"requires": ">=99"}, "needs kernel >=99"),
    "a dependency that does not take part": (TOOL + REGISTER, ["register_tools"], {"dependencies": ["permissions"]},
                                             "needs the plugin 'permissions', which is not available")}


@pytest.mark.parametrize("fault", FAULTS)
def test_a_named_plugin_that_cannot_be_used_fails_the_test_at_once(
        fault: str, install: Callable[..., str], kernel_kit: Callable[..., Kit]) -> None:
    source, implements, more, told = FAULTS[fault]
    name = install(source, implements, **more)
    with pytest.raises(KernelError) as caught:
        kernel_kit(installed=[name])
    assert f"plugin {name}" in str(caught.value) and told in str(caught.value)
    assert kernel_kit(text("ok"), installed=[name], check=False).play("go").text == "ok", "the fault itself can be tested, too"


def test_a_folder_with_a_broken_manifest_fails_the_test(kernel_kit: Callable[..., Kit], tmp_path: Path) -> None:
    folder = plugin_folder(tmp_path / "p", "folder", {".claude-plugin/plugin.json": "{"})
    with pytest.raises(KernelError, match="is not valid JSON"):
        kernel_kit(plugin_dirs=[folder])


def test_what_fails_while_it_registers_fails_the_test_when_a_session_opens(
        install: Callable[..., str], kernel_kit: Callable[..., Kit]) -> None:
    source = "from kernel import hookimpl\n@hookimpl\ndef register_tools(register):\n    import no_such_module_at_all\n"
    kit = kernel_kit(text("ok"), installed=[install(source, ["register_tools"], provides={"tools": ["Hello"]})])
    with pytest.raises(KernelError, match="register_tools raised ModuleNotFoundError"):
        kit.play("go")


def test_a_plugin_without_fault_takes_part(install: Callable[..., str], kernel_kit: Callable[..., Kit]) -> None:
    name = install(TOOL + REGISTER, ["register_tools"], provides={"tools": ["Hello"]})
    run = kernel_kit(call("Hello"), text("ok"), installed=[name]).play("go")
    assert_allowed(run, "Hello")


# -- allowed means ran ----------------------------------------------------------------------------------------------------
class Strict(Tool):
    name = "Strict"
    description = "Takes a number."
    input_schema = {"type": "object", "properties": {"n": {"type": "integer"}}, "required": ["n"], "additionalProperties": False}

    def validate_input(self, input: dict[str, Any], context: Any) -> None:
        if input["n"] < 0:
            raise ToolError("invalid_arguments", "n: must not be negative")

    async def call(self, input: dict[str, Any], context: Any) -> Any:
        raise ToolError("failed", "the tool itself failed")


@pytest.mark.parametrize(("block", "told"), [
    (call("Stricd", n=1), "No such tool: 'Stricd'"), (call("Strict", n="x"), "invalid_arguments"),
    (call("Strict"), "invalid_arguments"), (call("Strict", n=-1), "n: must not be negative")])
def test_a_call_that_never_ran_was_not_allowed(kernel_kit: Callable[..., Kit], block: dict[str, Any], told: str) -> None:
    run = kernel_kit(block, text("ok"), tools=[Strict()]).play("go")
    with pytest.raises(AssertionError, match="never ran") as caught:
        assert_allowed(run, block["name"])
    assert told in str(caught.value)


def test_a_call_whose_tool_failed_was_allowed_and_a_rewritten_one_too(kernel_kit: Callable[..., Kit]) -> None:
    def rewrite(event: PreToolUse) -> PreToolUseResult | None:
        return PreToolUseResult(permission_decision="allow", updated_input={"n": -5}) if event.tool_input["n"] == 5 else None

    run = kernel_kit([call("Strict", "good", n=1), call("Strict", "bad", n=5)], text("ok"), tools=[Strict()],
                     hooks={"h": module(pre_tool_use=rewrite)}).play("go")
    assert_allowed(run, "good")
    with pytest.raises(AssertionError, match="never ran"):
        assert_allowed(run, "bad")
    with pytest.raises(AssertionError, match="was not refused"):
        assert_refused(run, "bad")


# -- models -----------------------------------------------------------------------------------------------------------------
class Parrot(ScriptedModel):
    name = "parrot"

    def resolve(self, model: str) -> ModelInfo | None:
        return ModelInfo(id=model) if model == "grey" else None


@pytest.fixture
def parrot() -> dict[str, Any]:
    return {"parrots": module(register_models=lambda register: register(Parrot([call("Look"), text("I am grey.")])))}


def test_a_model_given_as_text_is_the_one_that_is_asked(kernel_kit: Callable[..., Kit], parrot: Any, probe: Any) -> None:
    kit = kernel_kit(hooks=parrot, settings={"kernel": {"provider": "parrot"}}, model="grey", tools=[probe("Look")])
    run = kit.play("who are you?")
    assert_end(run, text="I am grey.")
    assert_allowed(run, "Look")
    assert [r["model"] for r in run.requests] == ["grey", "grey"] and "Look" in [t["name"] for t in run.requests[0]["tools"]]


def test_a_model_of_an_installed_plugin_is_named_as_on_the_command_line(
        kernel_kit: Callable[..., Kit], install: Callable[..., str]) -> None:
    source = """
from kernel import hookimpl
from kernel.testing import ScriptedModel, text

class Oracle(ScriptedModel):
    name = "oracle"

    def resolve(self, model):
        return super().resolve(model) if model == "wise" else None

@hookimpl
def register_models(register):
    register(Oracle([text("Patience.")]))
"""
    name = install(source, ["register_models"], provides={"models": ["oracle"]})
    run = kernel_kit(installed=[name], model="oracle:wise").play("will it rain?")
    assert_end(run, text="Patience.")
    assert len(run.requests) == 1 and run.requests[0]["messages"][-1]["content"][-1]["text"] == "will it rain?"
    with pytest.raises(UsageError, match="does not serve the model 'other'"):
        kernel_kit(installed=[name], model="oracle:other").play("hello")
    with pytest.raises(UsageError, match="the turns of the script would never be played"):
        kernel_kit(text("never said"), installed=[name], model="oracle:wise").play("hello")


def test_a_provider_given_as_an_object_is_asked_whatever_its_name(kernel_kit: Callable[..., Kit]) -> None:
    class Bare:  # the four names of the protocol and nothing else
        name = "bare"

        def __init__(self) -> None:
            self.inner = Parrot([text("Hello.")])
            self.resolve, self.stream, self.aclose = self.inner.resolve, self.inner.stream, self.inner.aclose

    run = kernel_kit(model=Bare(), settings={"model": "grey"}).play("hello")
    assert run.text == "Hello." and [r["model"] for r in run.requests] == ["grey"]


def test_an_alias_is_served_by_the_script(kernel_kit: Callable[..., Kit]) -> None:
    run = kernel_kit(text("hi"), model="opus").play("hello")
    assert run.text == "hi" and run.requests[0]["model"] == "opus"


@pytest.mark.parametrize("model", [3, object(), ["opus"], ScriptedModel])
def test_what_is_no_model_is_refused(kernel_kit: Callable[..., Kit], model: Any) -> None:
    with pytest.raises(UsageError, match="model is a"):
        kernel_kit(model=model)
