"""A run as text that people can read: in failure texts, and as a golden transcript."""

from __future__ import annotations

import json
import os
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from kernel.testing.kit import Run

_UUID = re.compile(r"\b[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}\b")
_TIME = re.compile(r"\b\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(?:\.\d+)?(?:Z|[+-]\d\d:\d\d)?")

_update: list[bool] = [False]  # whether --update-golden was given; set by the pytest plugin


def story(run: Run) -> str:
    """The conversation as the model saw it, what the person was told, and how it ended."""
    lines: list[str] = []
    for message in run.session.history.wire():
        content = message["content"]
        for block in [{"type": "text", "text": content}] if isinstance(content, str) else content:
            lines.append(_block(message["role"], block))
    lines += [_indented("told", notice) for notice in run.notices()]
    result = run.result
    refused = [denial["tool_use_id"] for denial in result.permission_denials]
    lines.append(f"end: {result.subtype} ({result.terminal_reason}), {result.num_turns} turns"
                 + (f", refused: {', '.join(refused)}" if refused else ""))
    if result.is_error:
        lines += [_indented("error", text) for text in (*(result.errors or ()), run.text) if text]
    return "\n".join(lines) + "\n"


def _block(role: str, block: dict[str, Any]) -> str:
    kind = block.get("type")
    if kind == "text":
        return _indented(role, block["text"])
    if kind == "tool_use":
        return _indented(f"call {block['id']}", f"{block['name']} {json.dumps(block['input'], ensure_ascii=False)}")
    if kind == "tool_result":
        content = block["content"]
        text = content if isinstance(content, str) else "\n".join(
            b["text"] if b.get("type") == "text" else f"({b.get('type')})" for b in content)
        return _indented(f"{'error' if block.get('is_error') else 'result'} {block['tool_use_id']}", text)
    return f"{role}: ({kind})"


def _indented(head: str, text: str) -> str:
    return f"{head}: " + text.replace("\n", "\n    ")


def golden(run: Run, replace: Mapping[str, str] | None = None) -> str:
    """The story without what differs from run to run: the workspace becomes ``$CWD``, the home ``$HOME``, ids ``$ID``, points in
    time ``$TIME``.

    :param replace: further texts to replace, text -> name.
    """
    text = story(run)
    places = {str(run.session.options.cwd): "$CWD", os.path.realpath(run.session.options.cwd): "$CWD",
              os.environ.get("HOME", ""): "$HOME"}
    for old, new in sorted((*(replace or {}).items(), *places.items()), key=lambda pair: -len(pair[0])):
        if len(old) > 1:
            text = text.replace(old, new)
    return _TIME.sub("$TIME", _UUID.sub("$ID", text))


def assert_golden(run: Run, path: Path | str, *, replace: Mapping[str, str] | None = None, update: bool | None = None) -> None:
    """The run reads as it is written in the file; ``pytest --update-golden`` writes the file.

    :raises AssertionError: it does not, with the difference; or there is no such file.
    """
    path, got = Path(path), golden(run, replace)
    if _update[0] if update is None else update:
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(got, "utf-8")
        return
    if not path.is_file():
        raise AssertionError(f"there is no golden transcript {path}; look at the run, then write it with --update-golden:\n{got}")
    want = path.read_text("utf-8")
    if got != want:
        from difflib import unified_diff

        difference = unified_diff(want.splitlines(), got.splitlines(), str(path), "this run", lineterm="")
        raise AssertionError("the run differs from the golden transcript (--update-golden accepts it):\n" + "\n".join(difference))
