"""The file: what is damaged is named, and nothing that stands in one ends in a crash."""

from __future__ import annotations

import json
import os
import random
import zlib
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from kernel_replay.recording import RecordingError, load
from kernel_replay.testing import recorded, replayed

from kernel import KernelError, PreToolUse, PreToolUseResult, Tool, ToolContext, ToolResult
from kernel.testing import Kit, call, module, text

SEED = int(os.environ.get("REPLAY_SEED", "0")) or random.SystemRandom().randrange(1 << 30)
DAMAGES = int(os.environ.get("REPLAY_DAMAGES", "300"))
CHANGES = int(os.environ.get("REPLAY_CHANGES", "25"))


class Echo(Tool):
    name = "Echo"
    description = "Says it again."
    input_schema = {"type": "object"}

    async def call(self, input: dict[str, Any], context: ToolContext) -> ToolResult:
        return ToolResult(content=str(input))


def seen(event: PreToolUse) -> PreToolUseResult:
    return PreToolUseResult(additional_context=f"{event.tool_use_id} is seen")


@pytest.fixture
def kit(kernel_kit: Callable[..., Kit]) -> Callable[..., Kit]:
    return lambda *turns: kernel_kit(*turns, tools=[Echo()], hooks={"seen": module(pre_tool_use=seen)})


@pytest.fixture
def path(kit: Callable[..., Kit], tmp_path: Path) -> Path:
    found = tmp_path / "run.jsonl"
    recorded(kit([call("Echo", "a", n=1), call("Echo", "b", n=2)], text("done")), found).play("go")
    return found


def test_damage_at_any_place_is_named(path: Path, kit: Callable[..., Kit]) -> None:
    print(f"REPLAY_SEED={SEED}")
    draw = random.Random(SEED)
    whole = path.read_bytes()
    events = len(load(path).events)
    named = 0
    for _ in range(DAMAGES):
        data = bytearray(whole)
        place, kind = draw.randrange(len(data)), draw.choice(["flip", "cut", "insert", "remove", "swap"])
        if kind == "flip":
            data[place] ^= 1 << draw.randrange(8)
        elif kind == "cut":
            del data[place:]
        elif kind == "insert":
            data[place:place] = draw.randbytes(draw.randint(1, 40))
        elif kind == "remove":
            del data[place:place + draw.randint(1, 200)]
        else:
            lines = bytes(data).split(b"\n")
            one, other = draw.randrange(len(lines)), draw.randrange(len(lines))
            lines[one], lines[other] = lines[other], lines[one]
            data = bytearray(b"\n".join(lines))
        if data == whole:
            continue
        path.write_bytes(data)
        said = ""
        try:
            found = load(path)
        except RecordingError as error:
            said = str(error)
            named += 1
        assert str(path) in said if said else found.cut and len(found.events) < events, f"{kind} at {place} was not seen"
    assert named > DAMAGES / 2


def test_a_file_that_is_cut_replays_up_to_there(path: Path, kit: Callable[..., Kit]) -> None:
    whole = path.read_bytes()
    for share in (0.3, 0.5, 0.8, 0.95):
        path.write_bytes(whole[:int(len(whole) * share)])
        report = replayed(path, kit())
        assert report.difference is None and report.cut and report.events == report.of


def test_nothing_that_may_stand_in_a_recording_ends_in_a_crash(path: Path, kit: Callable[..., Kit]) -> None:
    """Values and lines are changed, and the checksums made to fit."""
    print(f"REPLAY_SEED={SEED}")
    draw = random.Random(SEED)
    lines = [json.loads(line) for line in path.read_bytes().splitlines()]
    outcomes = {"equal": 0, "differs": 0, "refused": 0}
    for _ in range(CHANGES):
        changed = json.loads(json.dumps(lines))
        for _ in range(draw.randint(1, 3)):
            number = draw.randrange(len(changed))
            kind = draw.choice(["value", "value", "value", "drop", "twice", "swap"])
            if kind == "value":
                mangle(draw, changed[number])
            elif kind == "drop":
                del changed[number]
            elif kind == "twice":
                changed.insert(number, changed[number])
            else:
                other = draw.randrange(len(changed))
                changed[number], changed[other] = changed[other], changed[number]
        path.write_bytes(summed(changed))
        try:
            report = replayed(path, kit(), patience=0.3)
        except KernelError:
            outcomes["refused"] += 1
            continue
        assert report.difference is None or report.difference.lines()
        outcomes["equal" if report.equal else "differs"] += 1
    assert outcomes["differs"] and outcomes["refused"], outcomes  # neither alone: the changes would all be of one kind


def mangle(draw: random.Random, value: Any) -> None:
    """Change something inside."""
    while isinstance(value, dict | list) and value:
        key = draw.choice(list(value) if isinstance(value, dict) else range(len(value)))
        inner = value[key]
        if isinstance(inner, dict | list) and inner and draw.random() < 0.8:
            value = inner
            continue
        value[key] = draw.choice([None, 0, -1, 1e300, "", "x" * 100, [], {}, [[]], {"a": 1}, True])
        return


def summed(lines: list[dict[str, Any]]) -> bytes:
    total, out = 0, []
    for line in lines:
        body = json.dumps({k: v for k, v in line.items() if k != "h"}, separators=(",", ":")).encode()
        total = zlib.crc32(body, total)
        out.append(b'{"h":"%08x",%s\n' % (total, body[1:]))
    return b"".join(out)


@pytest.mark.parametrize(("content", "expected"), [
    (b"", "holds no whole line"), (b"{}\n", "is no recording"), (b"hello\nworld\n", "is no recording"),
    (summed([{"recording": 2}]), "version 2"), (summed([{"recording": 1}]), "the header cannot be used"),
    (b'{"h":"00000000",}\n', "was changed or damaged")])
def test_what_is_no_recording_is_said(tmp_path: Path, content: bytes, expected: str) -> None:
    (tmp_path / "x.jsonl").write_bytes(content)
    with pytest.raises(RecordingError, match=expected):
        load(tmp_path / "x.jsonl")


def test_a_full_disk_ends_the_recording_and_not_the_run(kit: Callable[..., Kit], tmp_path: Path,
                                                        monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "run.jsonl"
    made = recorded(kit([call("Echo", "a", n=1)], text("done")), path)
    real, written = os.write, [0]

    def write(descriptor: int, data: Any) -> int:
        if os.readlink(f"/proc/self/fd/{descriptor}") == str(path):
            written[0] += 1
            if written[0] > 12:
                raise OSError(28, "No space left on device")
        return real(descriptor, data)

    monkeypatch.setattr(os, "write", write)
    run = made.play("go")
    monkeypatch.undo()
    assert run.text == "done" and any("No space left" in said for said in made.harness.announced)
    report = replayed(path, kit())
    assert report.difference is None and report.cut
