"""Where a setting comes from and who wins (settings contract, sections 1 to 3 and 6)."""

from __future__ import annotations

import itertools
import json
import os
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, strategies as st

from kernel.errors import SettingsError
from kernel.harness import Harness
from kernel.options import Options
from kernel.settings import FAIL_CLOSED, MANAGED_ONLY, SCOPES, Layer, Problem, Settings, config_dir, git_root


class Place:
    """A home, a project and a folder of managed settings; ``put`` writes one scope's file."""

    def __init__(self, home: Path, base: Path) -> None:
        self.home, self.project, self.managed = home, base / "project", base / "managed"
        self.project.mkdir()
        mine = self.project / ".claude"
        self.files = {"user": home / ".claude" / "settings.json", "project": mine / "settings.json",
                      "local": mine / "settings.local.json", "managed": self.managed / "managed-settings.json"}
        self.cli: str | None = None

    def put(self, scope: str, data: Any) -> None:
        raw = data if isinstance(data, bytes) else json.dumps(data).encode()
        if scope == "cli":
            self.cli = raw.decode()
            return
        self.files[scope].parent.mkdir(parents=True, exist_ok=True)
        self.files[scope].write_bytes(raw)

    def load(self, **options: Any) -> Settings:
        return Settings.load(self.project, **{"cli": self.cli, "managed_dir": str(self.managed), **options})


@pytest.fixture
def place(own_home: Path, tmp_path: Path) -> Place:
    return Place(own_home, tmp_path)


# -- precedence -------------------------------------------------------------------------------------------------------
@pytest.mark.parametrize(("high", "low"), list(itertools.combinations(SCOPES, 2)))
def test_of_two_scopes_the_higher_one_counts(high: str, low: str, place: Place) -> None:
    for scope, mine in ((high, {"x": high}), (low, {"y": low})):
        place.put(scope, {"model": scope, "permissions": {"deny": [scope, "both"]}, "o": {"a": mine},
                          "env": {"A": scope, **{k.upper(): v for k, v in mine.items()}}, f"only-{scope}": 1})
    settings = place.load()
    assert settings.get("model") == high and settings.get(f"only-{low}") == 1
    assert settings.get("permissions.deny") == [high, "both", low]
    assert settings.get("o") == {"a": {"x": high, "y": low}}
    assert settings.environment() == {"A": high, "X": high, "Y": low}
    assert [(layer.scope, value) for layer, value in settings.by_layer("model")] == [(high, high), (low, low)]


def test_all_scopes_in_order(place: Place) -> None:
    for scope in SCOPES:
        place.put(scope, {"model": scope, "list": [scope]})
    settings = place.load()
    assert [layer.scope for layer in settings.layers] == list(SCOPES)
    assert settings.get("model") == "managed" and settings.get("list") == list(SCOPES)
    assert settings.problems == []


def test_null_is_the_same_as_unset_in_its_scope(place: Place) -> None:
    place.put("project", {"model": None, "o": {"a": None, "b": 1}})
    place.put("user", {"model": "user", "o": {"a": 2}})
    settings = place.load()
    assert settings.get("model") == "user" and settings.get("o") == {"a": 2, "b": 1}
    assert settings.get("nothing") is None and settings.get("nothing.at.all", "default") == "default"


@pytest.mark.parametrize(("high", "low", "joined"), [
    (1, [2], 1), ([1], 2, [1]), ({"a": 1}, 5, {"a": 1}), (False, True, False), (0, 1, 0), ("", "x", ""), ([], [1], [1]),
    ([1, 1], [1, 2], [1, 2]), ([{"a": 1}], [{"a": 1}, {"a": 2}], [{"a": 1}, {"a": 2}]),
    ({"l": [1]}, {"l": [2], "m": {"x": 1}}, {"l": [1, 2], "m": {"x": 1}})])
def test_how_values_are_joined(high: Any, low: Any, joined: Any, place: Place) -> None:
    place.put("project", {"k": high})
    place.put("user", {"k": low})
    assert place.load().get("k") == joined


def test_lists_that_are_taken_whole(place: Place) -> None:
    place.put("project", {"fallbackModel": ["a"], "availableModels": ["m1"], "extraKnownMarketplaces": {"x": {"source": 1}}})
    place.put("user", {"fallbackModel": ["b"], "availableModels": ["m2"],
                       "extraKnownMarketplaces": {"x": {"source": 2, "autoUpdate": True}, "y": {"source": 3}}})
    settings = place.load()
    assert settings.get("fallbackModel") == ["a"]
    assert settings.get("availableModels") == ["m1", "m2"]
    assert settings.get("extraKnownMarketplaces") == {"x": {"source": 1}, "y": {"source": 3}}
    place.put("managed", {"availableModels": ["m0"]})
    assert place.load().get("availableModels") == ["m0"]


JSON = st.recursive(st.booleans() | st.integers(0, 3) | st.sampled_from("pq"), max_leaves=5, extend=lambda inner: (
    st.lists(inner, max_size=2) | st.dictionaries(st.sampled_from("ab"), inner, max_size=2)))


@given(st.lists(st.dictionaries(st.sampled_from(["k", "l"]), JSON, max_size=2), min_size=1, max_size=4))
def test_a_scalar_is_that_of_the_highest_layer_and_no_layer_is_changed(layers: list[dict[str, Any]]) -> None:
    before = json.dumps(layers)
    settings = Settings([Layer("user", str(n), data, "/") for n, data in enumerate(layers)], [], config_dir=Path("/"),
                        project_root=Path("/"), trusted=False)
    first = next((data["k"] for data in layers if "k" in data), None)
    found = settings.get("k")
    assert type(found) is type(first)
    if not isinstance(first, dict | list):
        assert found == first
    assert json.dumps(layers) == before


# -- where files are --------------------------------------------------------------------------------------------------
def test_the_config_dir_can_be_moved(place: Place, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    place.put("user", {"model": "home"})
    assert place.load().get("model") == "home" and config_dir() == place.home / ".claude"
    monkeypatch.setenv("CLAUDE_CONFIG_DIR", str(tmp_path / "conf"))
    assert place.load().get("model") is None
    (tmp_path / "conf").mkdir()
    (tmp_path / "conf" / "settings.json").write_text('{"model": "moved"}')
    assert place.load().get("model") == "moved"


def test_project_settings_are_those_of_the_start_directory_only(place: Place) -> None:
    place.put("project", {"model": "above"})
    below = place.project / "below"
    below.mkdir()
    assert Settings.load(below, managed_dir="/nowhere").get("model") is None


def test_home_as_project_is_not_read_twice(place: Place) -> None:
    place.put("user", {"list": [1]})
    assert [layer.scope for layer in Settings.load(place.home, managed_dir="/nowhere").layers] == ["user"]


def local_file(folder: Path, **data: Any) -> None:
    (folder / ".claude").mkdir(parents=True, exist_ok=True)
    (folder / ".claude" / "settings.local.json").write_text(json.dumps(data))


def test_local_settings_of_the_repositorys_root_and_of_the_start_directory(place: Place, monkeypatch: pytest.MonkeyPatch) -> None:
    root, start = place.project, place.project / "deep" / "er"
    (root / ".git").mkdir()
    start.mkdir(parents=True)
    local_file(root, model="root", permissions={"allow": ["A"]})
    local_file(start, model="start", permissions={"allow": ["B"]}, only="start")
    settings = Settings.load(start, managed_dir="/nowhere")
    assert settings.get("model") == "root" and settings.get("only") == "start"
    assert settings.get("permissions.allow") == ["A", "B"]
    assert {layer.directory for layer in settings.layers} == {str(start)}, "patterns are relative to the start directory"
    assert git_root(start) == root and git_root(place.home) is None
    monkeypatch.setenv("CLAUDE_CODE_ENTRYPOINT", "sdk-py")
    assert Settings.load(start, managed_dir="/nowhere").get("model") == "start"


@pytest.mark.skipif(not hasattr(os, "geteuid") or os.geteuid() != 0, reason="only root can give a folder away")
@pytest.mark.parametrize("given_away", [".", ".git", ".claude"])
def test_local_settings_of_a_root_that_somebody_else_owns_are_not_read(given_away: str, place: Place) -> None:
    start = place.project / "deep"
    start.mkdir()
    (place.project / ".git").mkdir()
    local_file(place.project, model="root")
    os.chown(place.project / given_away, 12345, 12345)
    assert Settings.load(start, managed_dir="/nowhere").get("model") is None


def test_local_settings_where_home_is_the_root(place: Place) -> None:
    (place.home / ".git").mkdir()
    start = place.home / "project"
    start.mkdir()
    local_file(place.home, model="root")
    local_file(start, model="start")
    assert Settings.load(start, managed_dir="/nowhere").get("model") == "start"


@pytest.mark.parametrize("sources", [(), ("user",), ("project",), ("local",), ("user", "local"), ("user", "project", "local")])
def test_sources_choose_among_three_and_managed_and_cli_are_always_read(sources: tuple[str, ...], place: Place) -> None:
    for scope in SCOPES:
        place.put(scope, {"list": [scope]})
    settings = place.load(sources=sources)
    assert settings.get("list") == [s for s in SCOPES if s in sources or s in ("managed", "cli")]


# -- --settings -------------------------------------------------------------------------------------------------------
def test_the_cli_source_is_text_or_a_path(place: Place, tmp_path: Path) -> None:
    assert place.load(cli='  {"model": "text"}').get("model") == "text"
    (tmp_path / "more.json").write_bytes(b'\xef\xbb\xbf{"model": "file"}')
    assert place.load(cli=str(tmp_path / "more.json")).get("model") == "file"
    (place.project / "near.json").write_text('{"model": "near"}')
    assert place.load(cli="near.json").get("model") == "near"
    (place.home / "mine.json").write_text('{"model": "mine"}')
    assert place.load(cli="~/mine.json").get("model") == "mine"


@pytest.mark.parametrize("value", [
    "nothing.json", "{", '{"a": 1} x', "{'a': 1}", "[1]", "", ".", pytest.param("x" * 5000, id="long"), "a\u0000b",
    '{"a": "\udcff"}', pytest.param('["' + "y" * 5000 + '"]', id="long list")])
def test_a_cli_source_that_cannot_be_read_ends_the_run(value: str, place: Place) -> None:
    with pytest.raises(SettingsError, match="--settings"):
        place.load(cli=value)


def test_a_cli_file_over_two_mebibytes_is_refused(place: Place) -> None:
    limit = 2 * 1024 * 1024
    for size, fits in ((limit, True), (limit + 1, False)):
        raw = b'{"model": "big"}'
        (place.project / "big.json").write_bytes(raw + b" " * (size - len(raw)))
        if fits:
            assert place.load(cli="big.json").get("model") == "big"
        else:
            with pytest.raises(SettingsError, match="over 2097152 bytes"):
                place.load(cli="big.json")


# -- broken files -----------------------------------------------------------------------------------------------------
GROUP = {"hooks": [{"type": "command", "command": "x"}]}
BROKEN: dict[str, tuple[Any, str]] = {
    "no JSON": (b"{", "is not valid JSON"), "a comment": (b'{"model": "x" // no\n}', "is not valid JSON"),
    "a trailing comma": (b'{"model": "x",}', "is not valid JSON"), "no UTF-8": (b'{"model": "\xff"}', "is not valid JSON"),
    "too deep": (b'{"x": ' + b"[" * 200_000 + b"]" * 200_000 + b"}", "is not valid JSON"),
    "a list": ([1], "must hold one JSON object, found list"), "null": (None, "found NoneType"),
    "hooks as a list": ({"hooks": []}, "hooks: must be an object"),
    "an event as an object": ({"hooks": {"Stop": {}}}, "hooks.Stop: must be a list of groups"),
    "a handler without a group": (
        {"hooks": {"Stop": [{"type": "command", "command": "x"}]}}, "hooks.Stop[0]: must be an object with a list"),
    "a matcher that is no text": ({"hooks": {"Stop": [{**GROUP, "matcher": 1}]}}, "hooks.Stop[0].matcher: must be a string"),
    **{f"a handler like {handler}": ({"hooks": {"Stop": [GROUP, {"hooks": [handler]}]}}, f"hooks.Stop[1].hooks[0]{says}")
       for handler, says in (
           ({"command": "x"}, ".type: must be one of"), ({"type": "shell"}, ".type: must be one of command, http"),
           ({"type": []}, ".type: must be one of"), ("text", ": must be an object"),
           ({"type": "command"}, ".command: must be a string"), ({"type": "mcp_tool", "server": "s"}, ".tool: must be a string"),
           ({"type": "command", "command": "x", "timeout": 0}, ".timeout: must be a positive number"),
           ({"type": "command", "command": "x", "timeout": True}, ".timeout: must be a positive number"))},
}


@pytest.mark.parametrize("scope", ["user", "project", "local"])
@pytest.mark.parametrize("case", BROKEN)
def test_a_broken_file_is_set_aside_as_a_whole_and_named(case: str, scope: str, place: Place) -> None:
    content, says = BROKEN[case]
    place.put(scope, {"model": "lost", **content} if isinstance(content, dict) else content)
    place.put("cli", {"other": "kept"})
    settings = place.load()
    assert settings.get("model") is None and settings.get("other") == "kept"
    (problem,) = settings.problems
    assert problem.path == str(place.files[scope]) and says in f"{problem.field}: {problem.message}"


def test_good_hooks_are_kept_with_fields_and_events_that_are_not_known(place: Place) -> None:
    hooks = {"Stop": [{**GROUP, "description": "d", "matcher": ""}], "BrandNew": [GROUP],
             "PreToolUse": [{"hooks": [{"type": "http", "url": "u", "timeout": 2.5, "x": 1}], "matcher": "Bash"}]}
    place.put("user", {"hooks": hooks})
    settings = place.load()
    assert settings.problems == [] and settings.get("hooks") == hooks, "unknown keys are kept"


def test_a_wrong_shape_of_hooks_in_managed_settings_drops_the_hooks_only(place: Place) -> None:
    place.put("managed", {"model": "kept", "hooks": {"Stop": {}}})
    settings = place.load()
    assert settings.get("model") == "kept" and settings.get("hooks") is None and len(settings.problems) == 1


@pytest.mark.parametrize("scope", ["user", "project", "local", "managed"])
def test_a_bad_entry_of_a_list_is_dropped_and_the_rest_holds(scope: str, place: Place) -> None:
    permissions = {"deny": ["Bash(rm *)", 5, None], "allow": "Bash", "ask": {"x": 1}, "defaultMode": "plan"}
    place.put(scope, {"model": "kept", "permissions": permissions})
    settings = place.load()
    assert settings.get("permissions") == {"deny": ["Bash(rm *)"], "allow": [], "ask": [], "defaultMode": "plan"}
    assert settings.get("model") == "kept"
    assert [p.field for p in settings.problems] == ["permissions.allow", "permissions.ask", "permissions.deny"]


def test_permissions_that_are_no_object_are_dropped(place: Place) -> None:
    place.put("user", {"permissions": ["x"], "model": "kept"})
    settings = place.load()
    assert settings.get("permissions") is None and settings.get("model") == "kept"
    assert str(settings.problems[0]) == f"{place.files['user']}, permissions: must be an object"
    assert str(Problem("/f", "", "m")) == "/f: m"


# -- managed settings -------------------------------------------------------------------------------------------------
def test_managed_files_are_joined_in_alphabetical_order_and_the_later_wins(place: Place) -> None:
    place.put("managed", {"model": "base", "list": [0], "only": 1})
    (place.managed / "managed-settings.d").mkdir()
    for name, data in (("20.json", {"model": "20", "list": [20]}), ("10.json", {"model": "10", "list": [10], "ten": 1}),
                       ("x.txt", {"model": "x"})):
        (place.managed / "managed-settings.d" / name).write_text(json.dumps(data))
    settings = place.load()
    assert settings.get("model") == "20" and settings.get("only") == settings.get("ten") == 1
    assert sorted(settings.get("list")) == [0, 10, 20]
    assert [layer.scope for layer in settings.layers] == ["managed"]


@pytest.mark.parametrize("key", sorted(FAIL_CLOSED))
@pytest.mark.parametrize(("value", "counts"), [
    (True, True), (False, False), ("false", True), (0, True), ([], True), ({}, True), ("", True), (None, None)])
def test_a_managed_switch_that_is_no_boolean_counts_as_on(key: str, value: Any, counts: Any, place: Place) -> None:
    place.put("managed", {key: value})
    assert place.load().managed(key) is counts


def test_without_managed_settings_there_is_no_managed_value(place: Place) -> None:
    place.put("user", {"allowManagedHooksOnly": True})
    settings = place.load()
    assert settings.managed("allowManagedHooksOnly") is None and settings.managed("model") is None


@pytest.mark.parametrize("key", sorted(MANAGED_ONLY))
def test_managed_only_keys_have_no_effect_elsewhere(key: str, place: Place) -> None:
    for scope in ("user", "project", "local", "cli"):
        place.put(scope, {key: True, "model": "kept"})
    settings = place.load()
    assert settings.get(key) is None and settings.get("model") == "kept"
    place.put("managed", {key: True})
    assert place.load().get(key) is True


def test_the_managed_only_keys_are_those_of_the_contract(shared: Path) -> None:
    text = (shared / "contract" / "settings.md").read_text("utf-8")
    line = next(x for x in text.splitlines() if x.startswith("4. Managed-only keys:"))
    assert {key for key in line.split("`")[1::2] if "." not in key} <= MANAGED_ONLY


# -- env --------------------------------------------------------------------------------------------------------------
@pytest.mark.parametrize("scope", ["project", "local"])
@pytest.mark.parametrize("name", [
    "PATH", "LD_PRELOAD", "PYTHONPATH", "NODE_OPTIONS", "BASH_ENV", "CLAUDE_CONFIG_DIR", "CLAUDE_CODE_PROCESS_WRAPPER",
    "CLAUDE_CODE_SYNC_SKILLS", "CLAUDE_CODE_SYNC_PLUGINS", "CLAUDE_CODE_PLUGIN_CACHE_DIR", "CLAUDE_CODE_PLUGIN_SEED_DIR"])
def test_loader_variables_do_not_come_from_a_project(name: str, scope: str, place: Place) -> None:
    place.put(scope, {"env": {name: "evil", "FINE": "1"}})
    assert place.load().environment() == {"FINE": "1"}
    place.put("user", {"env": {name: "mine"}})
    assert place.load().environment() == {"FINE": "1", name: "mine"}


@pytest.mark.parametrize("name", ["CLAUDE_CODE_REMOTE", "CLAUDE_CODE_ACCOUNT_UUID", "CLAUDE_CODE_PROJECT_DIR_NAME"])
def test_identity_variables_come_from_no_file(name: str, place: Place) -> None:
    for scope in SCOPES:
        place.put(scope, {"env": {name: "x"}})
    assert place.load().environment() == {}


@pytest.mark.parametrize(("env", "added"), [
    ({"A": "x", "B": ""}, {"A": "x", "B": ""}), ({"A": 5, "B": 1.5}, {"A": "5", "B": "1.5"}), ({"A": None}, {}),
    ({"A": {}, "B": [1]}, {}), ({"A=B": "x", "": "y", "C": "z"}, {"C": "z"}), ({"A": "x\u0000y", "B\u0000": "1"}, {}),
    ([], {}), ("text", {})])
def test_only_what_can_be_a_variable_becomes_one(env: Any, added: dict[str, str], place: Place) -> None:
    place.put("project", {"env": env})
    assert place.load().environment() == added
    Harness(Options(cwd=place.project))  # sets them for the process
    assert {k: os.environ[k] for k in added} == added


# -- what the harness makes of them -----------------------------------------------------------------------------------
def test_problems_are_announced(place: Place) -> None:
    place.put("project", b"{")
    assert any("settings.json: is not valid JSON" in a for a in Harness(Options(cwd=place.project)).announced)


@pytest.mark.parametrize(("flag", "setting", "mode"), [
    (None, None, "default"), (None, "acceptEdits", "acceptEdits"), ("plan", "acceptEdits", "plan"), ("manual", None, "default"),
    (None, "nonsense", "default"), (None, "auto", "auto"), (None, 5, "default")])
def test_the_starting_mode(flag: str | None, setting: Any, mode: str, place: Place) -> None:
    place.put("user", {"permissions": {"defaultMode": setting}})
    assert Harness(Options(cwd=place.project, permission_mode=flag)).starting_mode() == mode


@pytest.mark.parametrize("mode", ["acceptEdits", "bypassPermissions"])
def test_a_project_that_is_not_trusted_cannot_start_in_a_wider_mode(mode: str, place: Place) -> None:
    place.put("project", {"permissions": {"defaultMode": mode}})
    harness = Harness(Options(cwd=place.project))
    assert harness.starting_mode() == "default"
    assert any("Ignoring permissions.defaultMode" in a for a in harness.announced)
