"""``plugin.json`` as the contract describes it: what is read, what is refused, what is warned of (plugins contract, 3)."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, strategies as st

from kernel.manifest import KINDS, PLACE, Read, read
from kernel.plugins import find
from kernel.testing import plugin_folder


def written(root: Path, content: Any) -> Read:
    place = root / PLACE
    place.parent.mkdir(parents=True, exist_ok=True)
    place.write_bytes(content if isinstance(content, bytes) else json.dumps(content).encode())
    return read(root)


# -- good ones --------------------------------------------------------------------------------------------------------------
def test_the_least_manifest_is_a_name(tmp_path: Path) -> None:
    found = written(tmp_path, {"name": "x"})
    assert found.manifest is not None and found.manifest.name == "x"
    assert (found.errors, found.warnings) == ([], [])
    assert found.manifest.default_enabled and found.manifest.kernel.implements == []


def test_without_a_manifest_the_folders_name_counts(tmp_path: Path) -> None:
    found = read(tmp_path)
    assert found.manifest is not None and found.manifest.name == tmp_path.name and found.errors == []


def test_every_documented_field_is_read(tmp_path: Path) -> None:
    fields = {
        "name": "full", "displayName": "Full", "version": "1.2.3", "description": "d",
        "author": {"name": "A", "email": "e", "url": "u"}, "homepage": "https://x", "repository": "https://r", "license": "MIT",
        "keywords": ["k"], "defaultEnabled": False,
        "skills": ["./s"], "commands": {"c": {"content": "t"}}, "agents": "./a.md", "workflows": "./w", "outputStyles": ["./o"],
        "hooks": {"Stop": []}, "mcpServers": {"m": {}}, "lspServers": "./lsp.json", "themes": "./t", "monitors": ["./m"],
        "settings": {"agent": "x"}, "userConfig": {"u": {}}, "channels": [{}], "dependencies": ["other"], "$schema": "https://s",
        "experimental": {"themes": "./t"}, "metadata": {"anything": 1}}
    found = written(tmp_path, fields)
    assert (found.errors, found.warnings) == ([], [])
    manifest = found.manifest
    assert manifest is not None and manifest.author is not None
    assert (manifest.display_name, manifest.author.name, manifest.default_enabled) == ("Full", "A", False)
    assert manifest.commands == {"c": {"content": "t"}} and manifest.hooks == {"Stop": []} and manifest.output_styles == ["./o"]


def test_the_kernels_part_is_read(tmp_path: Path) -> None:
    part = {"requires": ">=0.1", "implements": ["stop"], "provides": {"tools": ["T"]}, "capabilities": {"files": "read"},
            "dependencies": ["permissions"]}
    found = read(plugin_folder(tmp_path, "x", kernel=part))
    assert found.manifest is not None and found.errors == found.warnings == []
    kernel = found.manifest.kernel
    assert (kernel.requires, kernel.implements, kernel.provides, kernel.dependencies) == (
        ">=0.1", ["stop"], {"tools": ["T"]}, ["permissions"])


def test_of_two_equal_keys_the_last_counts(tmp_path: Path) -> None:
    found = written(tmp_path, b'{"name": "one", "name": "two"}')
    assert found.manifest is not None and found.manifest.name == "two"


@pytest.mark.parametrize("name", ["x", "my-plugin", "My_Plugin.2", "ümlaut", "a" * 200])
def test_names_that_are_accepted(name: str, tmp_path: Path) -> None:
    found = written(tmp_path, {"name": name})
    assert found.manifest is not None and found.manifest.name == name


# -- warnings -----------------------------------------------------------------------------------------------------------------
@pytest.mark.parametrize(("more", "says"), [
    ({"engines": {}}, "engines: unknown field"), ({"category": "x"}, "category: unknown field"),
    ({"Name": "x"}, "Name: unknown field"), ({"metadata": "text"}, "metadata: must be an object, ignored"),
    ({"experimental": []}, "experimental: must be an object"),
    ({"metadata": {"kernel": {"provides": {"gadgets": ["g"]}}}}, "provides.gadgets: unknown kind")])
def test_what_is_ignored_is_warned_of_and_the_plugin_loads(more: dict[str, Any], says: str, tmp_path: Path) -> None:
    found = written(tmp_path, {"name": "x", **more})
    assert found.manifest is not None and found.errors == []
    assert len(found.warnings) == 1 and says in found.warnings[0] and str(tmp_path / PLACE) in found.warnings[0]


# -- refusals -------------------------------------------------------------------------------------------------------------------
MALFORMED: dict[str, tuple[Any, str]] = {
    "empty file": (b"", "is not valid JSON"),
    "no JSON": (b"name: x", "is not valid JSON"),
    "a comment": (b'{"name": "x"} // hello', "is not valid JSON"),
    "a trailing comma": (b'{"name": "x",}', "is not valid JSON"),
    "a byte-order mark": (b'\xef\xbb\xbf{"name": "x"}', "is not valid JSON"),
    "no UTF-8": (b'{"name": "\xff"}', "is not valid JSON"),
    "UTF-16": ('{"name": "x"}'.encode("utf-16"), "is not valid JSON"),
    "too deep": (b'{"name": "x", "hooks": ' + b"[" * 200_000 + b"]" * 200_000 + b"}", "is not valid JSON"),
    "a list": ([], "must hold one JSON object, found list"),
    "a string": ("x", "must hold one JSON object, found str"),
    "null": (None, "must hold one JSON object, found NoneType"),
    "no name": ({}, "name: a non-empty string is required"),
    "a name that is null": ({"name": None}, "name: a non-empty string is required"),
    "a name that is a number": ({"name": 1}, "name: a non-empty string is required"),
    "an empty name": ({"name": ""}, "name: ''"),
    "a name with a space": ({"name": "a b"}, "name: 'a b'"),
    "a name with a slash": ({"name": "a/b"}, "name: 'a/b'"),
    "a name with a backslash": ({"name": "a\\b"}, "name: "),
    "a name that climbs": ({"name": "..x"}, "name: '..x'"),
    "a name with a colon": ({"name": "a:b"}, "name: 'a:b'"),
    "a name with an at": ({"name": "a@b"}, "name: 'a@b'"),
    "a name with a line end": ({"name": "a\nb"}, "name: "),
    "a name with a NUL": ({"name": "a\u0000"}, "name: "),
    "a name that looks like a flag": ({"name": "-x"}, "name: '-x'"),
    "author as text": ({"name": "x", "author": "A"}, "$.author"),
    "author without a name": ({"name": "x", "author": {"email": "e"}}, "author"),
    "keywords as text": ({"name": "x", "keywords": "k"}, "$.keywords"),
    "repository as object": ({"name": "x", "repository": {"url": "u"}}, "$.repository"),
    "version as number": ({"name": "x", "version": 1.0}, "$.version"),
    "defaultEnabled as text": ({"name": "x", "defaultEnabled": "yes"}, "$.defaultEnabled"),
    "skills as number": ({"name": "x", "skills": 1}, "$.skills"),
    "agents as object": ({"name": "x", "agents": {}}, "$.agents"),
    "dependencies as object": ({"name": "x", "dependencies": {"a": "1"}}, "$.dependencies"),
    "settings as list": ({"name": "x", "settings": []}, "$.settings"),
    "kernel as list": ({"name": "x", "metadata": {"kernel": []}}, "Expected `object`"),
    "implements as text": ({"name": "x", "metadata": {"kernel": {"implements": "stop"}}}, "$.implements"),
    "provides as list": ({"name": "x", "metadata": {"kernel": {"provides": ["T"]}}}, "$.provides"),
    "provides a number": ({"name": "x", "metadata": {"kernel": {"provides": {"tools": [1]}}}}, "$.provides"),
    "requires a number": ({"name": "x", "metadata": {"kernel": {"requires": 1}}}, "$.requires"),
}


@pytest.mark.parametrize("case", MALFORMED)
def test_a_malformed_manifest_is_an_error_that_names_file_and_field(case: str, tmp_path: Path) -> None:
    content, says = MALFORMED[case]
    found = written(tmp_path, content)
    assert found.manifest is None
    assert len(found.errors) == 1 and says in found.errors[0] and str(tmp_path / PLACE) in found.errors[0]


def test_a_folder_that_is_not_there_a_file_and_a_manifest_that_is_a_folder(tmp_path: Path) -> None:
    assert "is no folder" in read(tmp_path / "nothing").errors[0]
    file = tmp_path / "file"
    file.write_text("")
    assert read(file).manifest is None and read(file).errors
    (tmp_path / "plugin" / PLACE).mkdir(parents=True)
    assert "cannot be read" in read(tmp_path / "plugin").errors[0]


KEYS = st.sampled_from(["name", "version", "author", "hooks", "skills", "metadata", "experimental", "keywords", "x"])
VALUES = st.recursive(st.none() | st.booleans() | st.integers() | st.text(max_size=4),
                      lambda inner: st.lists(inner, max_size=2) | st.dictionaries(st.text(max_size=6), inner, max_size=2))


@given(st.dictionaries(KEYS, VALUES))
def test_reading_never_raises(tmp_path_factory: pytest.TempPathFactory, content: dict[str, Any]) -> None:
    found = written(tmp_path_factory.getbasetemp() / "any", content)
    assert (found.manifest is None) == bool(found.errors)


def test_every_manifest_of_the_corpus_is_read_without_an_exception(shared: Path) -> None:
    roots = [path.parent.parent for path in sorted((shared / "corpus").rglob(".claude-plugin/plugin.json"))]
    assert len(roots) > 100
    found = {str(root): read(root) for root in roots}
    broken = {root: f.errors for root, f in found.items() if f.manifest is None}
    assert len(broken) < len(roots) / 20, broken
    assert all(f.errors for f in found.values() if f.manifest is None)
    plugins = find(roots, path=[])  # the same through the loader, which shows what is wrong instead of raising
    assert len(plugins) == len(roots)
    assert all(p.errors for p in plugins if p.state == "broken")


def test_the_kinds_are_those_that_have_a_registration_hook() -> None:
    from kernel import hookspecs

    specs = {n.removeprefix("register_") for n in vars(hookspecs) if n.startswith("register_")}
    assert set(KINDS) == specs


def test_a_misspelt_key_of_the_kernels_part_is_an_error(tmp_path: Path) -> None:
    found = read(plugin_folder(tmp_path, "x", kernel={"hooks": ["pre_tool_use"]}))
    assert found.manifest is None
    assert "metadata.kernel.hooks: unknown field" in found.errors[0] and "implements" in found.errors[0]
