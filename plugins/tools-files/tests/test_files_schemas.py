"""What the six tools tell the kernel and the model about themselves. A golden file per tool: a change of it is a change of the
contract. Written anew by ``UPDATE_GOLDEN=1 pytest ...``."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

import pytest
from kernel_tools_files.toolset import file_tools

from kernel import Tool

HERE = Path(__file__).parent
TOOLS = {tool.name: tool for tool in file_tools()}


def described(tool: Tool) -> dict[str, Any]:
    return {"name": tool.name, "aliases": list(tool.aliases), "permission": tool.permission, "rule_name": tool.rule_name,
            "rule_field": tool.rule_field, "read_only": tool.is_read_only({}), "concurrency_safe": tool.is_concurrency_safe({}),
            "input_schema": tool.input_schema, "output_schema": tool.output_schema}


@pytest.mark.parametrize("name", TOOLS)
def test_a_tool_is_what_its_golden_file_says(name: str) -> None:
    golden = HERE / "golden" / f"{name}.json"
    if os.environ.get("UPDATE_GOLDEN"):
        golden.write_text(json.dumps(described(TOOLS[name]), indent=1) + "\n")
    assert json.loads(golden.read_text()) == described(TOOLS[name])


def test_the_manifest_provides_the_tools_that_are_registered() -> None:
    manifest = json.loads((HERE.parent / ".claude-plugin" / "plugin.json").read_text())
    assert manifest["metadata"]["kernel"]["provides"]["tools"] == list(TOOLS)


@pytest.mark.parametrize("name", TOOLS)
def test_schemas_are_valid_and_closed(name: str) -> None:
    from jsonschema import Draft202012Validator

    tool = TOOLS[name]
    Draft202012Validator.check_schema(tool.input_schema)
    Draft202012Validator.check_schema(tool.output_schema or {})
    assert tool.input_schema["additionalProperties"] is False


@pytest.mark.parametrize("name", TOOLS)
def test_every_tool_has_a_manual_and_a_short_description(name: str) -> None:
    assert len(TOOLS[name].prompt()) > 100 and len(TOOLS[name].description) < 120


@pytest.mark.parametrize(("name", "given", "repaired"), [
    ("Read", {"path": "a"}, {"file_path": "a"}),
    ("Write", {"path": "a", "content": "x"}, {"file_path": "a", "content": "x"}),
    ("Edit", {"path": "a", "file_path": "b"}, {"path": "a", "file_path": "b"}),
    ("NotebookEdit", {"path": "a"}, {"notebook_path": "a"}),
    ("NotebookEdit", {"file_path": "a"}, {"notebook_path": "a"}),
    ("Read", {"file_path": "a", "allow_large": True}, {"file_path": "a"}),
    ("Glob", {"path": "a", "pattern": "*"}, {"path": "a", "pattern": "*"}),
])
def test_misspelt_keys_are_put_right(name: str, given: dict[str, Any], repaired: dict[str, Any]) -> None:
    assert TOOLS[name].repair_input(given) == repaired
