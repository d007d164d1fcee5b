"""Which servers a run has: entries, expansion, precedence, approval, managed configuration."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from kernel_mcp.entries import BadEntry, parse
from kernel_mcp.sources import CANNOT_ADD, EXCLUSIVE, Gathered, gather

from kernel import Layer, Manifest, Options, Settings, UsageError

STDIO = {"command": "run", "args": ["a"]}


# -- entries ----------------------------------------------------------------------------------------------------------------
@pytest.mark.parametrize(
    ("entry", "kind"),
    [
        (STDIO, "stdio"),
        ({"type": "stdio", **STDIO}, "stdio"),
        ({"type": "http", "url": "https://x/"}, "http"),
        ({"type": "streamable-http", "url": "https://x/"}, "http"),
        ({"type": "sse", "url": "http://x/"}, "sse"),
        ({"type": "ws", "url": "wss://x/"}, "ws"),
        ({"type": "sdk"}, "sdk"),
        ({"type": "sdk", "name": "other"}, "sdk"),
    ],
)
def test_an_entry_is_read(entry: dict[str, Any], kind: str) -> None:
    server = parse("s", entry, "run", "")
    assert server is not None and server.kind == kind


@pytest.mark.parametrize(
    ("name", "entry", "kind"),
    [
        ("s", {"url": "https://x"}, "url_missing_type"),
        ("s", {"type": "carrier-pigeon"}, "unknown_type"),
        ("s", {"type": 5, "command": "x"}, "unknown_type"),
        ("s", {}, "invalid_config"),
        ("s", [], "invalid_config"),
        ("s", "text", "invalid_config"),
        ("s", {"command": 5}, "invalid_config"),
        ("s", {"command": " "}, "invalid_config"),
        ("s", {"command": "x", "args": "a b"}, "invalid_config"),
        ("s", {"command": "x", "args": [1]}, "invalid_config"),
        ("s", {"command": "x", "env": {"A": 1}}, "invalid_config"),
        ("s", {"command": "x", "env": {"A=B": "1"}}, "invalid_config"),
        ("s", {"type": "http"}, "invalid_config"),
        ("s", {"type": "http", "url": "ftp://x"}, "invalid_config"),
        ("s", {"type": "ws", "url": "http://x"}, "invalid_config"),
        ("s", {"type": "http", "url": "http://x", "headers": []}, "invalid_config"),
        ("s", {"type": "http", "url": "http://x", "headersHelper": "x ${user_config.a}"}, "invalid_config"),
        ("", STDIO, "invalid_config"),
        ("workspace", STDIO, "reserved_name"),
        ("Claude Browser", STDIO, "reserved_name"),
    ],
)
def test_an_entry_that_cannot_be_used_says_why(name: str, entry: Any, kind: str) -> None:
    with pytest.raises(BadEntry) as error:
        parse(name, entry, "run", "")
    assert error.value.kind == kind


def test_an_empty_address_is_not_configured_and_no_fault() -> None:
    assert parse("s", {"type": "http", "url": ""}, "run", "") is None


@pytest.mark.parametrize(
    ("text", "expected", "warnings"),
    [
        ("${SET}", "value", 0),
        ("a${SET}b", "avalueb", 0),
        ("${UNSET:-default}", "default", 0),
        ("${UNSET:-}", "", 0),
        ("${SET:-x}", "value", 0),
        ("${UNSET}", "${UNSET}", 1),
        ("$SET", "$SET", 0),
        ("${}", "${}", 0),
        ("${PLUGIN}", "mine", 0),
        ("${SET} ", "value ", 1),
    ],
)
def test_expansion(monkeypatch: pytest.MonkeyPatch, text: str, expected: str, warnings: int) -> None:
    monkeypatch.setenv("SET", "value")
    monkeypatch.delenv("UNSET", raising=False)
    said: list[str] = []
    server = parse(
        "s", {"command": text, "args": [text], "env": {"A": text}}, "run", "", variables={"PLUGIN": "mine"}, warn=said.append
    )
    assert server is not None and (server.command, server.args, server.env["A"]) == (expected, (expected,), expected)
    assert len(said) == 3 * warnings
    web = parse("s", {"type": "http", "url": f"http://x/{text}", "headers": {"H": text}}, "run", "", variables={"PLUGIN": "mine"})
    assert web is not None and web.headers["H"] == expected


@pytest.mark.parametrize(
    ("value", "expected"), [(1000, 1000), (999, None), (None, None), ("x", None), (True, None), (5000.5, 5000)]
)
def test_a_limit_under_a_second_is_ignored(value: Any, expected: int | None) -> None:
    server = parse("s", {**STDIO, "timeout": value}, "run", "")
    assert server is not None and server.timeout_ms == expected


def test_secrets_are_not_shown() -> None:
    server = parse(
        "s",
        {"type": "http", "url": "http://x", "headers": {"A": "Bearer s3cret", "B": "${TOKEN}", "C": "${T:-s3cret}"}},
        "run",
        "",
    )
    assert server is not None and server.shown()["headers"] == {"A": "***", "B": "${TOKEN}", "C": "***"}


# -- sources ----------------------------------------------------------------------------------------------------------------
class Place:
    """A project and a home of its own."""

    def __init__(self, root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        self.cwd = root / "project"
        self.config = root / "config"
        self.managed = root / "managed"
        for folder in (self.cwd, self.config, self.managed):
            folder.mkdir()
        monkeypatch.setenv("CLAUDE_CONFIG_DIR", str(self.config))

    def write(self, **content: Any) -> None:
        for name, value in content.items():
            path = {
                "project": self.cwd / ".mcp.json",
                "global_": self.config / ".claude.json",
                "managed": self.managed / "managed-mcp.json",
            }[name]
            path.write_text(value if isinstance(value, str) else json.dumps(value))

    def gather(
        self, *, trusted: bool = False, plugins: tuple[Any, ...] = (), scopes: dict[str, Any] | None = None, **options: Any
    ) -> Gathered:
        layers = [
            Layer(scope, str(self.managed / "managed-settings.json"), data, "/")  # type: ignore[arg-type]
            for scope, data in {"managed": {}, **(scopes or {})}.items()
        ]
        settings = Settings(layers, [], config_dir=self.config, project_root=self.cwd, trusted=trusted)
        return gather(Options(cwd=self.cwd, **options), settings, list(plugins))


@pytest.fixture
def place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Place:
    return Place(tmp_path, monkeypatch)


def entry(mark: str) -> dict[str, Any]:
    return {"command": mark}


def test_the_whole_entry_of_the_highest_source_counts(place: Place) -> None:
    """One name in every place; taking one away uncovers the next."""
    place.write(
        project={"mcpServers": {"s": {**entry("project"), "env": {"A": "1"}}}},
        global_={
            "mcpServers": {"s": {**entry("user"), "env": {"B": "2"}}},
            "projects": {str(place.cwd): {"mcpServers": {"s": entry("local")}}},
        },
    )
    run = {"extra": {"mcp_config": [json.dumps({"mcpServers": {"s": entry("run")}})]}}
    assert place.gather(**run).servers["s"].command == "run"
    found = place.gather().servers["s"]
    assert found.command == "local" and not found.env
    assert place.gather(setting_sources=("user", "project")).servers["s"].env == {"A": "1"}
    assert place.gather(setting_sources=("user",)).servers["s"].command == "user"
    assert not place.gather(setting_sources=()).servers


def test_only_the_servers_of_the_run(place: Place) -> None:
    place.write(global_={"mcpServers": {"mine": entry("user")}})
    config = json.dumps({"mcpServers": {"given": entry("run")}})
    assert set(place.gather(extra={"mcp_config": [config], "strict_mcp_config": True}).servers) == {"given"}
    assert not place.gather(extra={"bare": True}).servers


@pytest.mark.parametrize("text", ["{", '{"a": 1}', '{"mcpServers": []}', "no-such-file.json", "[]"])
def test_a_config_of_the_command_line_that_cannot_be_used_ends_the_start(place: Place, text: str) -> None:
    with pytest.raises(UsageError, match="--mcp-config"):
        place.gather(extra={"mcp_config": [text]})


def test_a_broken_file_or_entry_costs_only_itself(place: Place) -> None:
    place.write(project="{ this is not JSON", global_={"mcpServers": {"good": STDIO, "bad": {"url": "http://x"}}})
    found = place.gather()
    assert set(found.servers) == {"good"}
    assert [e["type"] for e in found.errors] == ["url_missing_type"]
    assert any(".mcp.json is not valid JSON" in w for w in found.warnings) and any("'bad'" in w for w in found.warnings)


APPROVAL = [
    # (options, trusted, settings by scope) -> connected?
    ({"print_mode": True}, False, {}, True),
    ({"print_mode": False}, False, {}, False),
    ({"print_mode": False}, False, {"project": {"enableAllProjectMcpServers": True}}, False),
    ({"print_mode": False}, True, {"project": {"enableAllProjectMcpServers": True}}, True),
    ({"print_mode": False}, False, {"local": {"enabledMcpjsonServers": ["s"]}}, False),
    ({"print_mode": False}, True, {"local": {"enabledMcpjsonServers": ["s"]}}, True),
    ({"print_mode": False}, False, {"user": {"enabledMcpjsonServers": ["s"]}}, True),
    ({"print_mode": False}, False, {"cli": {"enableAllProjectMcpServers": True}}, True),
    ({"print_mode": False}, True, {"user": {"enabledMcpjsonServers": ["other"]}}, False),
    ({"print_mode": True}, True, {"project": {"disabledMcpjsonServers": ["s"]}}, False),
    ({"print_mode": True}, False, {"user": {"disabledMcpjsonServers": ["s"], "enabledMcpjsonServers": ["s"]}}, False),
    (
        {"print_mode": False, "permission_mode": "bypassPermissions"},
        True,
        {"user": {"skipDangerousModePermissionPrompt": True}},
        True,
    ),
    ({"print_mode": False, "permission_mode": "bypassPermissions"}, False, {}, False),
    ({"print_mode": True}, False, {"user": {"kernel": {"mcp": {"require_approval_in_print_mode": True}}}}, False),
]


@pytest.mark.parametrize(("options", "trusted", "scopes", "connected"), APPROVAL)
def test_approval_of_the_projects_servers(place: Place, options: Any, trusted: bool, scopes: Any, connected: bool) -> None:
    place.write(project={"mcpServers": {"s": STDIO}})
    found = place.gather(trusted=trusted, scopes=scopes, **options)
    assert ("s" in found.servers) is connected and ("s" in found.disabled) is not connected


def test_a_server_switched_off_in_the_project_is_not_connected(place: Place) -> None:
    place.write(global_={"mcpServers": {"s": STDIO}, "projects": {str(place.cwd): {"disabledMcpServers": ["s"]}}})
    assert "s" in place.gather().disabled


class FakePlugin:
    def __init__(self, root: Path, name: str, servers: Any) -> None:
        self.root, self.name, self.id = root, name, f"{name}@shop"
        self.manifest = Manifest(name=name, mcp_servers=servers, user_config={"on": {"type": "boolean", "default": True}})


def test_servers_of_plugins(place: Place, tmp_path: Path) -> None:
    """File and manifest are merged, the manifest wins; doubles by endpoint are dropped; paths lead nowhere else."""
    root = tmp_path / "plug"
    root.mkdir()
    (root / ".mcp.json").write_text(
        json.dumps({"mcpServers": {"a": {"command": "${CLAUDE_PLUGIN_ROOT}/bin"}, "b": entry("file")}})
    )
    (root / "more.json").write_text(json.dumps({"c": entry("flat"), "d": STDIO}))
    place.write(global_={"mcpServers": {"mine": STDIO}})
    plugin = FakePlugin(
        root, "demo", ["more.json", {"b": entry("manifest"), "e": {"command": "${user_config.key}"}}, "../out.json"]
    )
    found = place.gather(plugins=(plugin,), scopes={"user": {"pluginConfigs": {"demo@shop": {"options": {"key": "opt"}}}}})
    mine = {n: s.command for n, s in found.servers.items() if s.scope == "plugin"}
    assert mine == {"plugin:demo:a": f"{root}/bin", "plugin:demo:b": "manifest", "plugin:demo:c": "flat", "plugin:demo:e": "opt"}
    assert any("'d' is configured already" in w for w in found.warnings) and any("out.json" in w for w in found.warnings)


def test_a_plugins_server_has_the_folder_and_the_options_of_its_plugin_alone(place: Place, tmp_path: Path) -> None:
    """Both go by the plugin's id: another marketplace's plugin of the same name has its own."""
    args = ["${CLAUDE_PLUGIN_DATA}", "${user_config.on}", "${user_config.key}"]
    configs = {"demo@shop": {"options": {"key": "mine"}}, "demo@other": {"options": {"key": "theirs"}}}
    server = place.gather(
        plugins=(FakePlugin(tmp_path, "demo", {"a": {"command": "x", "args": args}}),),
        scopes={"user": {"pluginConfigs": configs}},
    ).servers["plugin:demo:a"]
    folder = str(place.config / "plugins" / "data" / "demo-shop")
    assert server.args == (folder, "true", "mine")
    assert server.places == {"CLAUDE_PLUGIN_ROOT": str(tmp_path), "CLAUDE_PLUGIN_DATA": folder}


def test_managed_configuration_rules_alone(place: Place) -> None:
    place.write(managed={"mcpServers": {"ours": STDIO}}, global_={"mcpServers": {"mine": entry("user")}})
    assert set(place.gather().servers) == {"ours"}
    config = json.dumps({"mcpServers": {"given": STDIO}})
    for extra in ({"mcp_config": [config]}, {"strict_mcp_config": True}):
        with pytest.raises(UsageError, match=EXCLUSIVE):
            place.gather(extra=extra)
    place.gather(extra={"mcp_config": [json.dumps({"mcpServers": {"p": {"type": "sdk"}}})]})
    place.write(managed={"mcpServers": {}})
    assert not place.gather().servers
    place.write(managed="{ broken")
    assert not place.gather().servers, "what cannot be read lets nothing through"
    assert "exclusive control" in CANNOT_ADD


def test_only_plugins_bring_servers_where_policy_says_so(place: Place) -> None:
    place.write(global_={"mcpServers": {"mine": STDIO}})
    assert not place.gather(scopes={"managed": {"strictPluginOnlyCustomization": ["mcp"]}}).servers
    assert not place.gather(scopes={"managed": {"strictPluginOnlyCustomization": True}}).servers
    assert place.gather(scopes={"managed": {"strictPluginOnlyCustomization": ["skills"]}}).servers


def test_which_lists_count(place: Place) -> None:
    place.write(global_={"mcpServers": {"s": STDIO}})
    allow = {"allowedMcpServers": [{"serverName": "s"}]}
    assert "s" in place.gather(scopes={"user": allow, "managed": {"allowedMcpServers": []}}).servers
    assert "s" in place.gather(scopes={"user": allow, "managed": {"allowManagedMcpServersOnly": True}}).disabled
    assert "s" in place.gather(scopes={"user": {"allowedMcpServers": "nonsense"}}).disabled
    assert "s" in place.gather(scopes={"project": {"deniedMcpServers": [{"serverName": "s"}]}, "managed": allow}).disabled
