"""The tools through the real loop: gates, hooks, batches, interrupts. The model plays a script."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from functools import partial
from pathlib import Path
from typing import Any

import anyio
import pytest
from kernel_tools_files import engines, paths

from kernel import PostToolUse, PostToolUseFailure, PostToolUseResult, PreToolUse, PreToolUseResult
from kernel.testing import Kit, Run, alive, call, module, text


def run(root: Path, *turns: Any, **kit: Any) -> Run:
    return anyio.run(partial(Kit(root, [*turns, text("done")], installed=["tools-files"], **kit).run, "go"))


def seen(done: Run, id: str) -> str:
    return str(done.result_of(id)["content"])


def test_the_plugin_brings_its_tools_and_manuals(tmp_path: Path) -> None:
    done = run(tmp_path)
    assert [t["name"] for t in done.requests[0]["tools"]] == ["Read", "Write", "Edit", "NotebookEdit", "Glob", "Grep"]
    assert "# Grep" in done.requests[0]["system"][0]["text"]


def test_read_and_edit_in_one_message(tmp_path: Path) -> None:
    (tmp_path / "a.txt").write_text("one\n")
    done = run(tmp_path, [call("Read", "r", file_path="a.txt"),
                          call("Edit", "e", path="a.txt", old_string="one", new_string="1")])
    assert seen(done, "r") == "1\tone" and not done.result_of("e").get("is_error")
    assert (tmp_path / "a.txt").read_text() == "1\n"


def test_reads_of_one_message_run_side_by_side_and_answer_in_order(tmp_path: Path) -> None:
    for n in range(20):
        (tmp_path / f"{n}.txt").write_text(f"text {n}\n")
    done = run(tmp_path, [call("Read", f"r{n}", file_path=f"{n}.txt") for n in range(20)])
    assert [seen(done, f"r{n}") for n in range(20)] == [f"1\ttext {n}" for n in range(20)]
    assert len(done.session.read_files) == 20


def test_hooks_see_absolute_paths_and_the_documented_result(tmp_path: Path) -> None:
    (tmp_path / "a.txt").write_text("one\n")
    events: list[Any] = []

    def pre_tool_use(event: PreToolUse) -> None:
        events.append(event.to_wire() if hasattr(event, "to_wire") else event)

    def post_tool_use(event: PostToolUse) -> None:
        events.append(event)

    run(tmp_path, call("Read", "r", file_path="./a.txt", offset="1"), hooks={"watch": module(pre_tool_use=pre_tool_use,
                                                                                             post_tool_use=post_tool_use)})
    assert events[-1].tool_input == {"file_path": str(tmp_path / "a.txt"), "offset": 1}
    assert events[-1].tool_response["file"]["content"] == "one\n"


def test_a_hook_may_send_the_call_elsewhere(tmp_path: Path) -> None:
    """The new input passes the same gates: its path is made absolute, and is what is opened."""
    (tmp_path / "b.txt").write_text("other\n")

    def pre_tool_use(event: PreToolUse) -> PreToolUseResult:
        return PreToolUseResult(updated_input={"file_path": "b.txt"})

    done = run(tmp_path, call("Read", "r", file_path="a.txt"), hooks={"h": module(pre_tool_use=pre_tool_use)})
    assert seen(done, "r") == "1\tother"


@pytest.mark.parametrize("fits", [True, False])
def test_a_hook_may_replace_the_result_within_its_shape(tmp_path: Path, fits: bool) -> None:
    (tmp_path / "a.txt").write_text("secret\n")

    def post_tool_use(event: PostToolUse) -> PostToolUseResult:
        file = {**event.tool_response["file"], "content": "***\n"}
        return PostToolUseResult(updated_tool_output={"type": "text", "file": file if fits else {"content": "***"}})

    done = run(tmp_path, call("Read", "r", file_path="a.txt"), hooks={"h": module(post_tool_use=post_tool_use)})
    assert seen(done, "r") == ("1\t***" if fits else "1\tsecret")
    assert fits or any("does not fit" in notice for notice in done.notices())


@pytest.mark.parametrize(("name", "input"), [
    ("Read", {"file_path": "a.ipynb"}), ("Read", {"file_path": "a.txt"}), ("Write", {"file_path": "new.txt", "content": "x\n"}),
    ("Edit", {"file_path": "a.txt", "old_string": "one", "new_string": "1"}), ("Glob", {"pattern": "*"}),
    ("NotebookEdit", {"notebook_path": "a.ipynb", "cell_id": "cell-0", "new_source": "x"}),
    ("Grep", {"pattern": "o"}), ("Grep", {"pattern": "o", "output_mode": "content"}),
    ("Grep", {"pattern": "o", "output_mode": "count"})])
def test_a_result_that_a_hook_hands_back_reads_the_same(tmp_path: Path, name: str, input: dict[str, Any]) -> None:
    """What the model sees comes from the structured result, but for notes."""
    (tmp_path / "a.txt").write_text("one\ntwo\n")
    (tmp_path / "a.ipynb").write_text('{"cells": [{"cell_type": "code", "source": "o"}]}')
    first = [call("Read", file_path=p) for p in ("a.txt", "a.ipynb") if name != "Read"]

    def post_tool_use(event: PostToolUse) -> PostToolUseResult | None:
        return PostToolUseResult(updated_tool_output=event.tool_response) if event.tool_use_id == "x" else None

    plain = run(tmp_path, *first, call(name, "x", **input))
    for file, content in (("a.txt", "one\ntwo\n"), ("a.ipynb", '{"cells": [{"cell_type": "code", "source": "o"}]}')):
        (tmp_path / file).write_text(content)
    (tmp_path / "new.txt").unlink(missing_ok=True)
    handed = run(tmp_path, *first, call(name, "x", **input), hooks={"h": module(post_tool_use=post_tool_use)})
    assert seen(plain, "x") == seen(handed, "x")


def test_an_input_that_cannot_be_raises_no_hook_a_failure_does(tmp_path: Path) -> None:
    failures: list[str] = []
    started: list[str] = []

    def pre_tool_use(event: PreToolUse) -> None:
        started.append(event.tool_use_id)

    def post_tool_use_failure(event: PostToolUseFailure) -> None:
        failures.append(event.tool_use_id)

    done = run(tmp_path, [call("Edit", "a", file_path="x", old_string="a", new_string="a"), call("Read", "b", file_path="\0"),
                          call("Read", "c", file_path="missing"), call("Read", "d", file_path="x", whole=True)],
               hooks={"h": module(pre_tool_use=pre_tool_use, post_tool_use_failure=post_tool_use_failure)})
    assert started == failures == ["c"]
    assert seen(done, "a").startswith("<tool_use_error>no_change")
    assert seen(done, "b").startswith("<tool_use_error>invalid_arguments")
    assert "whole: unknown key" in seen(done, "d")


@pytest.mark.parametrize("answer", ["deny", "ask"])
def test_nothing_is_told_of_a_file_that_may_not_be_read(tmp_path: Path, answer: str) -> None:
    """Not even whether it exists: checks that look at the file come behind the permission."""
    (tmp_path / "there").write_text("secret\n")
    names = ["there", "not"]
    calls = [call(name, f"{name}-{file}", file_path=file, **more) for file in names for name, more in (
        ("Read", {}), ("Write", {"content": "x"}), ("Edit", {"old_string": "secret", "new_string": "x"}))]
    done = run(tmp_path, calls, policy=lambda name, input: answer)
    for name in ("Read", "Write", "Edit"):
        assert seen(done, f"{name}-there") == seen(done, f"{name}-not")


def test_the_policy_is_asked_about_both_ends_of_a_link(tmp_path: Path) -> None:
    (tmp_path / "target").write_text("x\n")
    (tmp_path / "link").symlink_to("target")
    asked: list[list[str]] = []
    kit = Kit(tmp_path, [call("Read", "r", file_path="link"), text("done")], installed=["tools-files"])
    decide = kit.policy.decide

    def spy(question: Any) -> Any:
        asked.append(question.tool.permission_paths(question.input))
        return decide(question)

    kit.policy.decide = spy
    anyio.run(partial(kit.run, "go"))
    assert asked == [[str(tmp_path / "link"), str(tmp_path / "target")]]


def test_a_long_read_stays_whole_and_a_long_search_goes_to_a_file(tmp_path: Path) -> None:
    (tmp_path / "a.txt").write_text(("x" * 400 + "\n") * 240)
    done = run(tmp_path, call("Read", "r", file_path="a.txt"),
               call("Grep", "g", pattern="x", output_mode="content"))
    assert len(seen(done, "r")) > 90_000
    assert len(seen(done, "g")) < 50_000 and "whole output is in" in seen(done, "g")


def test_an_interrupt_ends_a_search_and_its_process(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    pid = tmp_path / "pid"
    os.mkfifo(pid)
    script = f"echo $$ > {pid}; exec sleep 60"
    monkeypatch.setattr(engines, "engine_for", lambda input, entry: engines.Engine(["sh", "-c", script]))
    kit = Kit(tmp_path, [call("Grep", "g", pattern="x"), text("done")], installed=["tools-files"])
    session = kit.open()
    found: list[int] = []

    async def go() -> None:
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(kit.run, "go", session)
            found.append(int(await anyio.to_thread.run_sync(pid.read_text)))
            session.interrupt()

    anyio.run(go)
    deadline = time.monotonic() + 10  # killed; the system may take a moment to clear it away
    while alive(found[0]) and time.monotonic() < deadline:
        time.sleep(0.02)
    assert not alive(found[0])


def test_an_interrupt_ends_a_long_read(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The reading thread looks for it once a mebibyte."""
    with (tmp_path / "a.txt").open("wb") as file:
        for _ in range(64):
            file.write(b"line\n" * 200_000)
    kit = Kit(tmp_path, [call("Read", "r", file_path="a.txt"), text("done")], installed=["tools-files"])
    session = kit.open()
    checks: list[int] = []
    real = anyio.from_thread.check_cancelled

    def check() -> None:
        checks.append(1)
        if len(checks) == 3:
            anyio.from_thread.run_sync(session.interrupt)
        real()

    monkeypatch.setattr(anyio.from_thread, "check_cancelled", check)
    anyio.run(partial(kit.run, "go", session))
    assert 3 <= len(checks) < 60 and not session.read_files


def test_an_input_that_is_no_prepared_one_is_no_crash() -> None:
    """Rules are also matched against inputs that somebody made up."""
    from kernel_tools_files.toolset import file_tools

    for tool in file_tools():
        for value in ({}, {tool.rule_field: 3}, {tool.rule_field: "a\0b"}, {tool.rule_field: "relative"}):
            assert all(isinstance(path, str) for path in tool.permission_paths(value))


def test_an_input_keeps_its_target_and_is_a_plain_object_otherwise() -> None:
    import json

    import msgspec

    input = paths.PathInput(a=1)
    assert msgspec.json.encode({"x": input}) == b'{"x":{"a":1}}' and json.dumps(input) == '{"a": 1}' and input == {"a": 1}


def test_loading_the_tools_imports_nothing_heavy() -> None:
    heavy = {"difflib", "hashlib", "PIL", "zlib", "json", "jsonschema", "kernel_tools_files.images",
             "kernel_tools_files.programs"}
    code = "import sys, kernel_tools_files.toolset as t; t.file_tools(); print(*sys.modules)"
    bare = "import sys, kernel.tools, anyio; print(*sys.modules)"
    loaded, before = ({*subprocess.run([sys.executable, "-c", c], capture_output=True, text=True, check=True).stdout.split()}
                      for c in (code, bare))
    assert (loaded - before) & heavy == set()
