"""Which folders are trusted, and where that is written down (permissions contract, 11)."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from kernel.errors import SettingsError
from kernel.settings import Settings


@pytest.fixture
def project(tmp_path: Path) -> Path:
    folder = tmp_path / "project"
    folder.mkdir()
    return folder


def loaded(folder: Path) -> Settings:
    return Settings.load(folder, managed_dir="/nowhere")


def trust(home: Path, folder: Path, value: Any = True) -> None:
    (home / ".claude.json").write_text(json.dumps({"projects": {str(folder): {"hasTrustDialogAccepted": value}}}))


def test_trust_is_that_of_the_folder_or_of_its_repository(own_home: Path, project: Path) -> None:
    assert not loaded(project).trusted
    trust(own_home, project)
    assert loaded(project).trusted
    below = project / "below"
    below.mkdir()
    assert not loaded(below).trusted, "trusting a parent does not count"
    (project / ".git").mkdir()
    assert loaded(below).trusted, "unless it is the repository's root"


@pytest.mark.parametrize("content", [
    "{}", '{"projects": []}', '{"projects": null}', '{"projects": {"%s": true}}',
    '{"projects": {"%s": {"hasTrustDialogAccepted": "true"}}}', '{"projects": {"%s": {"hasTrustDialogAccepted": 1}}}'])
def test_anything_else_is_no_trust(content: str, own_home: Path, project: Path) -> None:
    (own_home / ".claude.json").write_text(content.replace("%s", str(project)))
    assert not loaded(project).trusted


def test_a_global_config_that_does_not_parse_ends_the_run_and_is_never_overwritten(own_home: Path, project: Path) -> None:
    (own_home / ".claude.json").write_text('{"projects": ')
    with pytest.raises(SettingsError, match=r"\.claude\.json"):
        loaded(project)
    assert (own_home / ".claude.json").read_text() == '{"projects": '


def test_the_global_config_moves_with_the_config_dir(
        own_home: Path, project: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    trust(own_home, project)
    monkeypatch.setenv("CLAUDE_CONFIG_DIR", str(tmp_path / "conf"))
    assert not loaded(project).trusted


@pytest.mark.parametrize("name", ["ANTHROPIC_BASE_URL", "HTTPS_PROXY", "KERNEL_PROVIDER", "CLAUDE_CODE_SHELL", "IS_SANDBOX",
                                  "CLAUDE_CODE_ENABLE_TELEMETRY", "OTEL_EXPORTER_OTLP_ENDPOINT"])
def test_a_project_that_is_not_trusted_does_not_lead_keys_or_programs_elsewhere(
        name: str, own_home: Path, project: Path) -> None:
    (project / ".claude").mkdir(exist_ok=True)
    (project / ".claude" / "settings.json").write_text(json.dumps({"env": {name: "http://elsewhere", "COLOUR": "red"}}))
    settings = loaded(project)
    assert settings.environment() == {"COLOUR": "red"}
    assert any(p.field == f"env.{name}" for p in settings.problems)
    trust(own_home, project)
    assert loaded(project).environment()[name] == "http://elsewhere"


@pytest.mark.parametrize(("text", "field"), [
    ('{"permissions": {"deny": ["Bash"]}, "permissions": {"deny": []}}', "permissions"),
    ('{"permissions": {"deny": ["Bash"], "deny": []}}', "deny"),
    ('{"permissions": {"Deny": ["Bash"]}}', "permissions.Deny"),
])
def test_a_deny_list_that_gets_lost_is_announced(text: str, field: str, own_home: Path, project: Path) -> None:
    (project / ".claude").mkdir(exist_ok=True)
    (project / ".claude" / "settings.json").write_text(text)
    assert field in [p.field for p in loaded(project).problems]
