"""Find, decide, load: nothing runs before it is needed, and nobody's fault is anybody else's (decision D7)."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from kernel import __version__
from kernel.errors import DuplicateError, LoadError
from kernel.harness import Harness
from kernel.hookspecs import hookimpl
from kernel.manifest import in_range
from kernel.options import Options
from kernel.plugins import Plugin, PluginSet, decide, find, load
from kernel.registry import Registry
from kernel.testing import Kit, call, module, plugin_folder, text

Install = Callable[..., Path]


@pytest.fixture
def site(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """A folder of installed packages, on the import path."""
    folder = tmp_path / "site"
    folder.mkdir()
    monkeypatch.syspath_prepend(str(folder))
    before = set(sys.modules)
    yield folder
    for name in set(sys.modules) - before:
        del sys.modules[name]


@pytest.fixture
def install(site: Path) -> Install:
    """Write what an installer leaves behind: a package with its manifest, and its metadata."""
    def put(name: str, code: str = "", *, version: str = "1.2.3", editable: Path | None = None, entry: str | None = None,
            distribution: str | None = None, **kernel: Any) -> Path:
        package = f"pkg_{name.replace('-', '_')}"
        distribution = distribution or f"dist_{name.replace('-', '_')}"
        (site / package).mkdir(exist_ok=True)
        (site / package / "__init__.py").write_text("")
        (site / package / "plugin.py").write_text("from kernel import *\nfrom kernel import hookimpl\n" + code)
        info = site / f"{distribution}-{version}.dist-info"
        info.mkdir()
        (info / "METADATA").write_text(f"Name: {distribution}\nVersion: {version}\n")
        (info / "entry_points.txt").write_text(
            f"[console_scripts]\nx = y:z\n\n[kernel.plugins]\n{entry or name} = {package}.plugin\n\n[other]\na = b\n")
        root = editable or site / package
        if editable:
            (info / "direct_url.json").write_text(json.dumps({"url": editable.as_uri(), "dir_info": {"editable": True}}))
        return plugin_folder(root, name, kernel=kernel)
    return put


def module_of(name: str) -> str:
    return f"pkg_{name.replace('-', '_')}.plugin"


STOP = "@hookimpl\ndef stop(event): return StopResult(system_message='heard')\n"


# -- find -------------------------------------------------------------------------------------------------------------------
def test_installed_plugins_are_found_from_their_metadata_sorted_by_name(install: Install, site: Path) -> None:
    for name in ("zeta", "alpha", "mid-dle"):
        install(name, "raise SystemExit('must not be imported')")
    found = find(path=[str(site)])
    assert [p.name for p in found] == ["alpha", "mid-dle", "zeta"]
    plugin = found[1]
    assert (plugin.source, plugin.state) == ("distribution", "ready")
    assert (plugin.distribution, plugin.id) == ("dist-mid-dle", "mid-dle@installed")
    assert plugin.root == site / "pkg_mid_dle" and plugin.module == "pkg_mid_dle.plugin"
    assert not [m for m in sys.modules if m.startswith("pkg_")]


def test_the_root_of_an_editable_plugin_is_its_project(install: Install, site: Path, tmp_path: Path) -> None:
    project = tmp_path / "my project"
    install("edit", editable=project)
    (plugin,) = find(path=[str(site)])
    assert plugin.root == project and plugin.manifest is not None


@pytest.mark.parametrize("content", [
    "", "{", "[]", "null", '{"dir_info": null}', '{"dir_info": {"editable": true}}', '{"url": 5}', "\udcff"])
def test_metadata_that_makes_no_sense_does_no_harm(content: str, install: Install, site: Path) -> None:
    root = install("odd")
    (site / "dist_odd-1.2.3.dist-info" / "direct_url.json").write_bytes(content.encode("utf-8", "surrogateescape"))
    (plugin,) = find(path=[str(site)])
    assert plugin.root == root


def test_places_that_are_no_folders_and_other_packages_are_passed_over(site: Path, tmp_path: Path) -> None:
    (site / "other-1.0.dist-info").mkdir()
    (site / "more-1.0.dist-info").mkdir()
    (site / "more-1.0.dist-info" / "entry_points.txt").write_text("[console_scripts]\nkernel.plugins = x:y\n")
    assert find(path=[str(site), str(tmp_path / "nothing"), str(site / "file.zip")]) == []


def test_the_first_place_on_the_path_wins(install: Install, site: Path, tmp_path: Path) -> None:
    install("twice")
    other = tmp_path / "other"
    (other / "dist_twice-1.2.3.dist-info").mkdir(parents=True)
    (other / "dist_twice-1.2.3.dist-info" / "entry_points.txt").write_text("[kernel.plugins]\ntwice = elsewhere.plugin\n")
    (plugin,) = find(path=[str(site), str(other)])
    assert plugin.module == "pkg_twice.plugin" and plugin.state == "ready"


def test_a_folder_is_found_and_hides_an_installed_plugin_of_its_name(install: Install, site: Path, tmp_path: Path) -> None:
    install("both")
    folder = plugin_folder(tmp_path / "both", "both")
    (plugin,) = find([folder], path=[str(site)])
    assert (plugin.source, plugin.root, plugin.id) == ("inline", folder, "both@inline")


def test_two_folders_of_one_name_are_listed_and_the_second_is_out(tmp_path: Path) -> None:
    folders = [plugin_folder(tmp_path / place / "x", "same") for place in ("one", "two")]
    found = find(folders, path=[])
    assert [(p.name, p.state) for p in found] == [("same", "ready"), ("same", "broken")]
    assert "another folder already gives the plugin 'same'" in found[1].errors[0]


def test_two_distributions_of_one_name_are_listed_and_the_second_is_out(install: Install, site: Path) -> None:
    install("same", distribution="dist_one")
    install("same", distribution="dist_two")
    found = find(path=[str(site)])
    assert [(p.distribution, p.state) for p in found] == [("dist-one", "ready"), ("dist-two", "broken")]
    assert "dist-one" in found[1].errors[0] and "same" in found[1].errors[0]


def test_entry_point_and_manifest_must_agree(install: Install, site: Path) -> None:
    install("real", entry="alias")
    (plugin,) = find(path=[str(site)])
    assert plugin.state == "broken" and "'alias'" in plugin.errors[0] and "'real'" in plugin.errors[0]


def test_a_broken_manifest_is_listed(site: Path, install: Install) -> None:
    root = install("bad")
    (root / ".claude-plugin" / "plugin.json").write_text("{")
    (plugin,) = find(path=[str(site)])
    assert (plugin.name, plugin.state) == ("bad", "broken") and "is not valid JSON" in plugin.errors[0]


# -- decide -----------------------------------------------------------------------------------------------------------------
def described(name: str, **kernel: Any) -> Plugin:
    from kernel.manifest import KernelPart, Manifest

    return Plugin(name=name, root=Path("/"), source="inline", manifest=Manifest(name=name, kernel=KernelPart(**kernel)))


def test_what_is_blocked_takes_its_dependents_along() -> None:
    plugins = [described("a"), described("b", dependencies=["a"]), described("c", dependencies=["b"]), described("d")]
    decide(plugins, ["a"])
    assert [(p.name, p.state) for p in plugins] == [("a", "blocked"), ("b", "blocked"), ("c", "blocked"), ("d", "ready")]
    assert plugins[0].errors == ["blocked by name"] and "'b'" in plugins[2].errors[0]


def test_a_dependency_that_is_missing_or_circular() -> None:
    plugins = [described("a", dependencies=["nobody"]), described("x", dependencies=["y"]), described("y", dependencies=["x"])]
    decide(plugins, [])
    assert [p.state for p in plugins] == ["blocked", "ready", "ready"]
    assert "'nobody', which is not available" in plugins[0].errors[0]


@pytest.mark.parametrize(("requires", "fits"), [
    (None, True), ("", True), (">=0.1", True), (">=0.1,<1", True), (">=0.1, <0.2", True), ("==0.1.0", True), ("==0.1", True),
    (">=0.2", False), ("<0.1", False), ("!=0.1.0", False), (">0.1.0", False), ("<=0.1.0", True), (">=9", False), ("~=0.1", False),
    ("^0.1", False), ("nonsense", False), (">=0.1,nonsense", False), (">=0.0.9.5", True)])
def test_the_kernel_range(requires: str | None, fits: bool) -> None:
    assert in_range("0.1.0", requires) == fits
    plugin = described("x", requires=requires)
    decide([plugin], [])
    if __version__ == "0.1.0":
        assert (plugin.state == "ready") == fits
        assert fits or f"needs kernel {requires}, this is 0.1.0" in plugin.errors[0]


def test_versions_are_compared_as_numbers() -> None:
    assert in_range("0.10.0", ">=0.9") and not in_range("0.9.0", ">=0.10")


# -- load -------------------------------------------------------------------------------------------------------------------
@pytest.mark.anyio
async def test_a_module_is_imported_when_its_first_hook_fires_and_not_before(install: Install, tmp_path: Path) -> None:
    install("lazy", STOP, implements=["stop"])
    install("idle", "@hookimpl\ndef session_end(event): pass\n", implements=["session_end"])
    kit = Kit(tmp_path, [call("Nothing"), text("done")], installed=["lazy", "idle"], check=False)
    session = kit.open()
    seen: list[bool] = []
    kit.harness.plugins.register("watch", module(user_prompt_submit=lambda event: seen.append(module_of("lazy") in sys.modules)))
    kit.harness.dispatcher.refresh()
    run = await kit.run("go", session)
    assert seen == [False] and module_of("lazy") in sys.modules
    assert module_of("idle") not in sys.modules
    assert "Stop says: heard" in run.notices()


def test_only_the_plugin_that_provides_a_name_is_loaded(install: Install, site: Path) -> None:
    code = "class S:\n    name = '{0}'\n@hookimpl\ndef register_stores(register): register(S())\n"
    for name in ("one", "two"):
        install(name, code.format(name), implements=["register_stores"], provides={"stores": [name]})
    plugins = PluginSet(find(path=[str(site)]))
    registry: Registry[Any] = Registry("stores")
    plugins.fill(registry, "stores", only="two")
    assert registry.names() == ["two"] and module_of("one") not in sys.modules


FAULTY: dict[str, tuple[str, list[str], str]] = {
    "a misspelt hook": ("@hookimpl\ndef stopp(event): pass\n", ["stop"], "there is no hook 'stopp'; did you mean 'stop'?"),
    "a hook that the manifest does not name": (
        STOP + "@hookimpl\ndef setup(event): pass\n", ["stop"], "implements setup, which its manifest does not name"),
    "a hook that is not there": ("", ["stop"], "does not implement stop, which its manifest names"),
    "a hook without its mark": ("def stop(event): pass\n", ["stop"], "does not implement stop, which its manifest names"),
    "a wrong argument": (
        "@hookimpl\ndef stop(evnt): pass\n", ["stop"], "hook stop has no argument 'evnt'; it may take event, session"),
    "a wrong annotation": (
        "@hookimpl\ndef stop(event: PreToolUse): pass\n", ["stop"], "hook stop takes a Stop, but its annotation says PreToolUse"),
    "a wrong annotation as text": (
        "@hookimpl\ndef stop(event: 'kernel.Setup'): pass\n", ["stop"], "its annotation says kernel.Setup"),
    "an exception": ("1 / 0\n", ["stop"], "cannot be imported: ZeroDivisionError"),
    "a syntax error": ("def stop(:\n", ["stop"], "cannot be imported: SyntaxError"),
    "a missing import": ("import nothing_like_this\n", ["stop"], "cannot be imported: ModuleNotFoundError"),
    "an exit": ("raise SystemExit(5)\n", ["stop"], "cannot be imported: SystemExit"),
}


@pytest.mark.anyio
@pytest.mark.parametrize("case", FAULTY)
async def test_a_plugin_that_cannot_be_loaded_is_named_and_stops_nobody(case: str, install: Install, tmp_path: Path) -> None:
    code, implements, says = FAULTY[case]
    install("faulty", code, implements=implements)
    install("good", STOP, implements=["stop"])
    kit = Kit(tmp_path, [text("done")], installed=["faulty", "good"], check=False)
    run = await kit.run("go")
    assert (run.result.result, run.result.terminal_reason) == ("done", "completed")
    told = [n for n in run.notices() if "plugin 'faulty'" in n or "plugin faulty" in n]
    assert told and says in told[0]
    assert "Stop says: heard" in run.notices()
    plugin = kit.harness.plugins.get("faulty")
    assert plugin is not None and plugin.state == "broken" and says in plugin.errors[0]
    with pytest.raises(LoadError, match=r"plugin faulty, module pkg_faulty\.plugin"):
        load(plugin)


@pytest.mark.anyio
async def test_good_annotations_and_argument_orders(install: Install, tmp_path: Path) -> None:
    code = """
from __future__ import annotations
import kernel
from typing import Any
@hookimpl
def stop(session: Any, event: kernel.Stop): return StopResult(system_message=f"{event.event_name} {session.id != ''}")
@hookimpl
def user_prompt_submit(event: Event): return UserPromptSubmitResult(system_message=event.prompt)
@hookimpl
async def session_start(session): return SessionStartResult(system_message="no event")
"""
    install("order", code, implements=["stop", "user_prompt_submit", "session_start"])
    path = tmp_path / "site" / "pkg_order" / "plugin.py"
    path.write_text("from __future__ import annotations\n" + path.read_text().replace("from __future__ import annotations\n", ""))
    run = await Kit(tmp_path, [text("done")], installed=["order"]).run("hello")
    assert {"Stop says: Stop True", "UserPromptSubmit says: hello", "SessionStart:startup says: no event"} <= set(run.notices())


def test_an_unknown_hook_in_the_manifest_is_found_before_anything_runs(install: Install, site: Path) -> None:
    install("odd", "raise SystemExit", implements=["stop", "pre_tool_usee"])
    install("friend", implements=["stop"], dependencies=["odd"])
    found = find(path=[str(site)])
    decide(found, [])
    plugins = PluginSet(found)
    odd, friend = plugins.get("odd"), plugins.get("friend")
    assert odd is not None and friend is not None
    assert odd.state == "broken" and "there is no hook 'pre_tool_usee'; did you mean 'pre_tool_use'?" in odd.errors[0]
    assert friend.state == "blocked" and "'odd'" in friend.errors[0]
    assert module_of("odd") not in sys.modules


def test_plugins_without_hooks_live_side_by_side(install: Install, site: Path) -> None:
    for name in ("one", "two", "three"):
        install(name)
    assert [p.state for p in PluginSet(find(path=[str(site)]))] == ["ready"] * 3


def test_a_folder_whose_python_part_is_not_installed_says_so(tmp_path: Path) -> None:
    plugins = PluginSet(find([plugin_folder(tmp_path / "x", "x", kernel={"implements": ["stop"]})], path=[]))
    (plugin,) = plugins
    assert plugin.state == "ready" and "its Python part is not installed" in plugin.warnings[0]


@pytest.mark.anyio
@pytest.mark.parametrize("code", [
    "1 / 0\n", "@hookimpl\ndef pre_tool_use(evnt): pass\n", "@hookimpl\ndef pre_tool_use(event): raise KeyError('x')\n",
    "@hookimpl\nasync def pre_tool_use(event): return 'yes'\n"], ids=["import", "argument", "raises", "nonsense"])
async def test_a_gate_that_cannot_be_loaded_or_fails_denies_and_names_itself(
        code: str, install: Install, tmp_path: Path, probe: Any) -> None:
    install("guard", code, implements=["pre_tool_use"])
    kit = Kit(tmp_path, [call("Probe"), call("Probe"), text("done")], installed=["guard"], check=False,
              tools=[tool := probe()])
    run = await kit.run("go")
    assert tool.ran == [] and run.result.terminal_reason == "completed"
    for id in ("call_1", "call_2"):
        assert "plugin 'guard'" in str(run.result_of(id)["content"])
    assert any("guard" in a for a in kit.harness.announced)


# -- registries -------------------------------------------------------------------------------------------------------------
def test_a_duplicate_name_names_both_plugins(install: Install, site: Path, tmp_path: Path) -> None:
    code = "class T:\n    name = 'Same'\n@hookimpl\ndef register_tools(register): register(T())\n"
    install("first", code, implements=["register_tools"], provides={"tools": ["Same"]})
    install("second", code, implements=["register_tools"], provides={"tools": ["Same"]})
    kit = Kit(tmp_path, installed=["first", "second"], check=False)
    assert kit.harness.tools.owner("Same") == "first"
    plugin = kit.harness.plugins.get("second")
    assert plugin is not None and plugin.state == "broken"
    assert "plugin second: registers the tools 'Same', which the plugin 'first' already has" in plugin.errors[0]
    assert any("plugin second" in a and "'first'" in a for a in kit.harness.announced)


@pytest.mark.parametrize("item", [object(), type("T", (), {"name": ""})(), type("T", (), {"name": 5})()])
def test_a_thing_without_a_name_is_refused(item: Any) -> None:
    with pytest.raises(DuplicateError, match="without a name"):
        Registry("tools")(item)


def test_a_registry_keeps_order_and_owners() -> None:
    registry: Registry[Any] = Registry("tools")
    for name in ("b", "a"):
        registry.plugin = f"plugin-{name}"
        registry(type("T", (), {"name": name})())
    assert (registry.names(), [t.name for t in registry], len(registry)) == (["b", "a"], ["b", "a"], 2)
    assert (registry.owner("a"), registry.owner("x"), registry.get("x")) == ("plugin-a", None, None)


def test_a_registration_that_raises_breaks_its_plugin_alone(install: Install, tmp_path: Path) -> None:
    install("bad", "@hookimpl\ndef register_tools(register): raise ValueError('no tools today')\n", implements=["register_tools"])
    good = "class T:\n    name = 'Good'\n@hookimpl\ndef register_tools(register): register(T())\n"
    install("good", good, implements=["register_tools"], provides={"tools": ["Good"]})
    kit = Kit(tmp_path, installed=["bad", "good"], check=False)
    assert "Good" in kit.harness.tools.names()
    assert any("plugin bad: register_tools raised ValueError: no tools today" in a for a in kit.harness.announced)


def test_what_is_registered_without_being_declared_is_warned_of(install: Install, tmp_path: Path) -> None:
    code = "class T:\n    name = 'Hidden'\n@hookimpl\ndef register_tools(register): register(T())\n"
    install("sly", code, implements=["register_tools"])
    kit = Kit(tmp_path, installed=["sly"], check=False)
    assert "Hidden" in kit.harness.tools.names()
    plugin = kit.harness.plugins.get("sly")
    assert plugin is not None and "registers Hidden, which metadata.kernel.provides.tools does not name" in plugin.warnings[0]


def test_hooks_of_a_program_are_checked_at_once() -> None:
    plugins = PluginSet([])
    with pytest.raises(LoadError, match="there is no hook 'stopp'"):
        plugins.register("mine", module(stopp=lambda event: None))
    with pytest.raises(LoadError, match="no argument 'x'"):
        plugins.register("mine", module(stop=lambda x: None))

    class Object:
        @hookimpl
        def stop(self, event: Any) -> None:
            pass

    plugins.register("mine", Object())
    assert [p.name for p in plugins] == ["mine"]


def test_the_harness_announces_what_is_broken_and_takes_the_settings_blocks(tmp_path: Path, install: Install) -> None:
    install("odd", implements=["nothing_like_it"])
    install("fine", implements=["stop"])
    harness = Harness(Options(cwd=tmp_path, settings=json.dumps({"kernel": {"blocked": ["fine"]}})))
    fine = harness.plugins.get("fine")
    assert fine is not None and fine.state == "blocked"
    assert any(a.startswith("plugin odd: ") for a in harness.announced)


def test_a_project_that_is_not_trusted_blocks_nothing(tmp_path: Path, install: Install) -> None:
    install("guard", implements=["pre_tool_use"])
    (tmp_path / ".claude").mkdir()
    (tmp_path / ".claude" / "settings.json").write_text(json.dumps({"kernel": {"blocked": ["guard"], "policy": "weaker"}}))
    harness = Harness(Options(cwd=tmp_path))
    guard = harness.plugins.get("guard")
    assert guard is not None and guard.state == "ready"
    assert any("has not been trusted" in a for a in harness.announced)
    assert harness.settings.own("kernel.policy") is None


@pytest.mark.parametrize("value", ["permissions", 5, {"a": 1}, [1, None], True])
def test_a_block_list_that_is_none_blocks_nothing_and_is_announced(value: Any, tmp_path: Path) -> None:
    before = {p.name: p.state for p in Harness(Options(cwd=tmp_path)).plugins}
    (tmp_path / ".claude").mkdir()
    (tmp_path / ".claude" / "settings.json").write_text(json.dumps({"kernel": {"blocked": value}}))
    harness = Harness(Options(cwd=tmp_path))
    assert {p.name: p.state for p in harness.plugins} == before
    assert any("kernel.blocked" in a for a in harness.announced)


def test_a_star_stands_for_the_hook_of_every_event(tmp_path: Path) -> None:
    from kernel.events import EVENTS, snake

    folder = plugin_folder(tmp_path / "all", "all", kernel={"implements": ["register_tools", "*"]})
    (found,) = find([folder], path=[])
    assert found.manifest is not None
    assert found.manifest.kernel.implements == ["register_tools", *map(snake, EVENTS)]
