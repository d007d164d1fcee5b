"""What a harness chooses: model, provider, permission mode, store, policy."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from kernel.errors import UsageError
from kernel.harness import DEFAULT_MODEL, MODES, Harness
from kernel.models import ModelInfo
from kernel.options import Options
from kernel.plugins import PluginSet
from kernel.settings import Layer, Settings
from kernel.testing import Kit, ScriptedModel, StubPolicy, module, text


class Provider(ScriptedModel):
    def __init__(self, name: str, serves: str = "") -> None:
        super().__init__()
        self.name = name
        self.serves = serves

    def resolve(self, model: str) -> ModelInfo | None:
        return ModelInfo(id=f"{self.name}/{model}") if not self.serves or model == self.serves else None


def harness(path: Path, settings: dict[str, Any] | None = None, *, providers: tuple[Provider, ...] = (Provider("anthropic"),),
            **options: Any) -> Harness:
    plugins = PluginSet([])
    plugins.register("p", module(register_models=lambda register: [register(p) for p in providers],
                                 register_policies=lambda register: register(StubPolicy())))
    plugin = plugins.get("p")
    assert plugin is not None and plugin.manifest is not None
    plugin.manifest.kernel.provides = {"models": [p.name for p in providers], "policies": ["rules"]}
    layers = [Layer("project", "/s", settings, "/")] if settings else []
    return Harness(Options(cwd=path, **options), plugins=plugins,
                   settings=Settings(layers, [], config_dir=path, project_root=path, trusted=True))


@pytest.mark.parametrize(("flag", "variable", "restored", "setting", "default", "chosen"), [
    ("f", "v", "r", "s", "d", "f"), (None, "v", "r", "s", "d", "v"), (None, None, "r", "s", "d", "r"),
    (None, None, None, "s", "d", "s"), (None, None, None, None, "d", "d"), (None, None, None, None, None, DEFAULT_MODEL),
    (None, None, None, 5, "d", "d")])
def test_which_model_is_chosen(flag: Any, variable: Any, restored: Any, setting: Any, default: Any, chosen: str, tmp_path: Path,
                               monkeypatch: pytest.MonkeyPatch) -> None:
    for name, value in (("ANTHROPIC_MODEL", variable), ("ANTHROPIC_DEFAULT_MODEL", default)):
        if value:
            monkeypatch.setenv(name, value)
    provider, info = harness(tmp_path, {"model": setting}, model=flag).choose_model(restored)
    assert (provider.name, info.id) == ("anthropic", f"anthropic/{chosen}")


@pytest.mark.parametrize(("model", "told"), [
    ("oracel:wise", "did you mean --model oracle:wise? Providers are anthropic, oracle"), ("orcle:a:b", "oracle:a:b?"),
    ("oracle", "'oracle' is a provider, and no model of it is named (--model oracle:MODEL)"), ("oracle:", "oracle:MODEL")])
def test_a_misspelt_or_lonely_provider_is_not_asked_of_the_default_one(tmp_path: Path, model: str, told: str) -> None:
    both = (Provider("anthropic"), Provider("oracle"))
    with pytest.raises(UsageError) as caught:
        harness(tmp_path, providers=both, model=model).choose_model()
    assert told in str(caught.value)
    chosen = harness(tmp_path, {"kernel": {"provider": "anthropic"}}, providers=both, model=model).choose_model()
    assert chosen[1].id == f"anthropic/{model}", "models of a provider that was chosen may have any name"


@pytest.mark.parametrize("model", [
    "sonnet", "us.anthropic.claude-sonnet-4-20250514-v1:0", "llama3:8b", "anthropic", "a:b", ":x", ""])
def test_what_is_no_providers_name_is_asked_of_the_default_one(tmp_path: Path, model: str) -> None:
    both = (Provider("anthropic"), Provider("oracle"))
    assert harness(tmp_path, providers=both).provider_of(model)[1].id == f"anthropic/{model}"


async def asked_without_a_key(tmp_path: Path, *providers: Provider) -> str:
    from kernel import ModelError
    from kernel.testing import Turn

    kit = Kit(tmp_path, [Turn(fail=ModelError("no key", kind="authentication_error", hint="set it"))])
    plugin = kit.harness.plugins.get("test-kit")
    assert plugin is not None and plugin.manifest is not None
    plugin.manifest.kernel.provides = {"models": [p.name for p in providers]}
    return (await kit.run("go")).text


@pytest.mark.anyio
async def test_who_has_no_key_is_told_who_else_could_be_asked(tmp_path: Path) -> None:
    told = await asked_without_a_key(tmp_path, Provider("anthropic"), Provider("oracle"))
    assert told == "API Error: no key (set it; other providers are installed: oracle (--model PROVIDER:MODEL))"
    assert await asked_without_a_key(tmp_path, Provider("anthropic")) == "API Error: no key (set it)"


def test_which_provider_is_chosen(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    both = (Provider("anthropic"), Provider("local"))
    assert harness(tmp_path, providers=both).provider_of("m")[1].id == "anthropic/m"
    assert harness(tmp_path, {"kernel": {"provider": "local"}}, providers=both).provider_of("m")[1].id == "local/m"
    assert harness(tmp_path, providers=both).provider_of("local:llama:8b")[1].id == "local/llama:8b"
    assert harness(tmp_path, providers=both).provider_of("unknown:m")[1].id == "anthropic/unknown:m"
    monkeypatch.setenv("KERNEL_PROVIDER", "local")
    assert harness(tmp_path, providers=both).provider_of("m")[1].id == "local/m"


def test_a_model_that_cannot_be_had_is_an_error_that_says_what_to_do(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="does not serve the model 'other'") as caught:
        harness(tmp_path, providers=(Provider("anthropic", serves="one"),)).provider_of("other")
    assert "--model" in str(caught.value)
    with pytest.raises(UsageError, match="no plugin provides the model provider 'nobody'") as caught:
        harness(tmp_path, {"kernel": {"provider": "nobody"}}).choose_model()
    assert "install a plugin that provides it" in str(caught.value)


# -- permission modes ---------------------------------------------------------------------------------------------------------
@pytest.mark.parametrize(("restored", "mode"), [
    ("acceptEdits", "acceptEdits"), ("dontAsk", "dontAsk"), ("plan", "default"), ("bypassPermissions", "default"),
    ("auto", "auto"), ("nonsense", "default"), (None, "default")])
def test_which_modes_survive_a_resume(restored: str | None, mode: str, tmp_path: Path) -> None:
    assert harness(tmp_path).starting_mode(restored) == mode
    assert harness(tmp_path, permission_mode="plan").starting_mode(restored) == "plan", "a flag wins"


@pytest.mark.parametrize("mode", [*MODES, "manual"])
def test_every_documented_mode_is_known(mode: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("IS_SANDBOX", "1")
    assert harness(tmp_path).checked_mode(mode) == ("default" if mode == "manual" else mode)


def test_a_mode_that_cannot_be_is_an_error(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(UsageError, match="unknown permission mode 'yolo'"):
        harness(tmp_path, permission_mode="yolo").starting_mode()
    off = {"permissions": {"disableBypassPermissionsMode": "disable"}}
    monkeypatch.setenv("IS_SANDBOX", "1")
    with pytest.raises(UsageError, match="switched off by settings"):
        harness(tmp_path, off).checked_mode("bypassPermissions")


def test_root_may_bypass_permissions_in_a_sandbox_only(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("os.geteuid", lambda: 0)
    monkeypatch.delenv("IS_SANDBOX", raising=False)
    with pytest.raises(UsageError, match="refused for root outside a sandbox"):
        harness(tmp_path).checked_mode("bypassPermissions")
    monkeypatch.setattr("os.geteuid", lambda: 1000)
    assert harness(tmp_path).checked_mode("bypassPermissions") == "bypassPermissions"


# -- policies and what is announced ------------------------------------------------------------------------------------
def test_a_policy_that_cannot_be_opened_refuses_everything(tmp_path: Path) -> None:
    class Broken(StubPolicy):
        def open(self, session: Any) -> Any:
            raise ValueError("rules file")

    kit = Kit(tmp_path, policy=Broken())
    session = kit.open()
    assert session.policy.decide(None).behavior == "deny"  # type: ignore[arg-type]
    assert any("cannot be opened, so every tool call is refused: ValueError: rules file" in a for a in kit.harness.announced)


def test_something_is_announced_once_and_to_every_listener(tmp_path: Path) -> None:
    heard: list[str] = []
    made = harness(tmp_path)
    made.listeners.append(heard.append)
    for text_ in ("one", "two", "one"):
        made.announce(text_)
    assert heard == made.announced == ["one", "two"]


@pytest.mark.anyio
async def test_a_session_can_switch_its_model_and_loses_the_other_models_thinking(tmp_path: Path) -> None:
    kit = Kit(tmp_path, [[{"type": "thinking", "thinking": "hm", "signature": "s"}, text("one")], text("two")])
    session = kit.open()
    await session.submit("a")
    session.switch("another")
    await session.submit("b")
    assert kit.model.requests[1]["model"] == "another"
    assert [b["type"] for m in kit.model.requests[1]["messages"] for b in m["content"]] == ["text", "text", "text"]


# -- guards that nobody enforces -----------------------------------------------------------------------------------------
@pytest.mark.parametrize(("state", "said"), [
    (None, "no plugin that does is installed"), ("broken", "the plugin 'runner' is broken"), ("ready", None)])
def test_hooks_that_nothing_enforces_are_announced(tmp_path: Path, state: Any, said: str | None) -> None:
    plugins = PluginSet([])
    if state:
        plugins.register("runner", module())
        runner = plugins.get("runner")
        assert runner is not None and runner.manifest is not None
        runner.manifest.kernel.enforces, runner.state = ["hooks"], state
    layers = [Layer("project", "/s", {"hooks": {"Stop": [{"hooks": [{"type": "command", "command": "x"}]}]}}, "/")]
    made = Harness(Options(cwd=tmp_path), plugins=plugins,
                   settings=Settings(layers, [], config_dir=tmp_path, project_root=tmp_path, trusted=True))
    found = [a for a in made.announced if "nothing enforces them" in a]
    assert (found == []) if said is None else (len(found) == 1 and said in found[0])
