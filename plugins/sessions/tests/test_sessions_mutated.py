"""Mutated transcripts load or are refused with a sentence, and are mended: never a traceback, never an illegal request."""

from __future__ import annotations

import json
import os
import random
from pathlib import Path
from typing import Any

import pytest
from kernel_sessions import exporting, find, listing
from kernel_sessions.inspecting import findings, rewritten
from kernel_sessions.reader import parse, read

from kernel import Clock, History, SessionError, normalise

COUNT = int(os.environ.get("KERNEL_EXAMPLES", "500"))
ODD: list[Any] = [None, True, 0, -1, 2**70, 1.5, "", "x", "\ud800", [], {}, [[]], [None], [5], {"a": {}}, [{"type": 5}],
                  [{"type": "text"}],
                  [{"type": "tool_result"}], [{"type": "tool_use", "id": 5}], [{"type": "tool_use", "id": "t1", "name": None}],
                  [{"type": "text", "text": None}], [{"type": "thinking"}], {"content": [{"type": "tool_use"}]}]
HOW = ("flip", "drop", "again", "swap", "tear", "rubbish", "glue", "field", "field", "field", "inside", "inside")
FIELDS = ("type", "uuid", "parentUuid", "message", "sessionId", "isSidechain", "isMeta", "timestamp", "logicalParentUuid", "cwd",
          "subtype", "snapshot", "messageId", "customTitle", "entrypoint", "gitBranch", "teamName", "isCompactSummary")


def original(home: Any) -> bytes:
    session = home.open(name="Title")
    session.set("permission-mode", "default")
    home_entries: list[list[Any]] = [
        [home.context("rules"), home.prompt("Look.")], [home.answer("I look."), home.answer(home.call("t1"), home.call("t2"))],
        [home.result("t2", "b")], [home.result("t1", "a")], [home.answer("Found.")], [home.prompt("And?")],
        [home.answer(home.call("t3", deep=[{"x": 1}]))], [home.result("t3")], [home.answer("Done.")]]
    boundary = home.context("")
    boundary.type, boundary.message = "system", None
    boundary.extra = {"subtype": "compact_boundary"}
    home_entries.insert(5, [boundary, home.prompt("Summary.", isCompactSummary=True)])
    for entries in home_entries:
        session.append(entries, cwd=str(home.cwd))
    session.set("tag", "red")
    session.close()
    data = Path(session.path).read_bytes()
    snapshot = {"type": "file-history-snapshot", "messageId": "m", "snapshot": {"trackedFileBackups": {"/x": {
        "backupFileName": None, "version": 1}}}}
    return data + json.dumps(snapshot).encode() + b"\n"


def mutated(data: bytes, draw: random.Random) -> bytes:
    lines = data.split(b"\n")[:-1]
    for _ in range(draw.randint(1, 4)):
        if not lines:
            break
        n = draw.randrange(len(lines))
        how = draw.choice(HOW)
        if how == "flip" and lines[n]:
            at = draw.randrange(len(lines[n]))
            lines[n] = lines[n][:at] + bytes([draw.randrange(256)]) + lines[n][at + 1:]
        elif how == "drop":
            del lines[n]
        elif how == "again":
            lines.insert(draw.randrange(len(lines) + 1), lines[n])
        elif how == "swap":
            m = draw.randrange(len(lines))
            lines[n], lines[m] = lines[m], lines[n]
        elif how == "tear":
            lines[n] = lines[n][: draw.randrange(len(lines[n]) + 1)]
        elif how == "rubbish":
            noise = draw.randbytes(30).replace(b"\n", b"")
            lines.insert(n, draw.choice((b"\0" * 50, noise, b"[" * 5000, b'{"a":' * 3000, b"null", b"5")))
        elif how == "glue" and n + 1 < len(lines):
            lines[n:n + 2] = [lines[n][: draw.randrange(len(lines[n]) + 1)] + lines[n + 1]]
        else:
            lines[n] = _bent(lines[n], draw, inside=how == "inside")
    end = draw.choice((b"\n", b"\n", b"\n", b"", b'\n{"type":"us', b"\n\n\n"))
    return b"\n".join(lines) + end


def _bent(raw: bytes, draw: random.Random, *, inside: bool) -> bytes:
    """An entry with a value of another kind."""
    try:
        entry = json.loads(raw)
    except (ValueError, RecursionError):
        return raw
    target = entry
    if not isinstance(entry, dict):
        return raw
    message = entry.get("message")
    if inside and isinstance(message, dict):
        target = message
        content = message.get("content")
        if isinstance(content, list) and content and isinstance(content[0], dict) and draw.random() < 0.6:
            target = content[0]
    if not isinstance(target, dict):
        return raw
    field = draw.choice([*target, *FIELDS] if target is entry else [*target, "content"])
    if draw.random() < 0.2:
        target.pop(field, None)
    else:
        uuids = [entry.get("uuid"), entry.get("parentUuid"), "nobody"]
        target[field] = draw.choice([*ODD, *uuids])
    return json.dumps(entry).encode()


def test_every_mutated_transcript_loads_or_is_mended(home: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CLAUDE_CODE_ENABLE_SDK_FILE_CHECKPOINTING", "1")
    seed = int(os.environ.get("SEED", random.randrange(1 << 30)))
    data = original(home)
    whole = home.open(continue_session=True)
    whole.close()
    path = Path(whole.path)
    loaded = refused = 0
    for number in range(COUNT):
        where = f"SEED={seed}, transcript {number}"
        path.write_bytes(mutated(data, random.Random(f"{seed}-{number}")))
        try:
            session = home.open(resume=whole.session_id)
        except SessionError as error:
            refused += bool(str(error))
        else:
            loaded += 1
            _goes_on(home, session, where)
        journal = read(path)
        findings(journal)
        listing.listed([path.parent])
        if found := find.load(path):
            for write in (exporting.as_text, exporting.as_markdown, exporting.as_json, exporting.as_lines):
                assert isinstance(write(found), str), where
        new, done = rewritten(journal, Clock())
        left = [f for f in findings(parse(path, new)) if f.kind in ("torn", "damaged", "orphan")]
        assert not left and rewritten_again(path, new) == [], f"{where}: {left}, {done}"
        if found:
            path.write_bytes(new)
            again = find.load(path)
            assert again is not None, where
            said, kept = ({json.dumps(e["message"], sort_keys=True).replace("\\ud800", "\\ufffd")
                           for e in conversation.chain.messages()} for conversation in (found, again))
            assert said <= kept, f"{where}: a repair lost what a resume has"
    assert loaded > COUNT // 2 and loaded + refused == COUNT


def rewritten_again(path: Path, data: bytes) -> list[str]:
    """What a second repair would do."""
    path.write_bytes(data)
    return rewritten(read(path), Clock())[1]


def _goes_on(home: Any, session: Any, where: str) -> None:
    """What is restored makes a legal history, and what is said next is there at the next resume."""
    history = History(normalise(session.restored.messages)[0])
    history.append("user", [{"type": "text", "text": "next"}])
    json.loads(history.encode())
    session.append([home.prompt("next")], cwd=str(home.cwd))
    session.close()
    again = home.open(resume=session.session_id)
    again.close()
    assert again.restored.messages[-1] == ("user", "next"), where
