"""Warnings on a terminal: what strangers wrote in them cannot steer it."""

from __future__ import annotations

import pytest
from kernel_headless.writers import JsonWriter, TextWriter

from kernel import SystemMessage

SAID = "file \x1b[31mred\x9b2J\r\x07 \u202eturned: is no text"


@pytest.mark.parametrize("kind", [TextWriter, JsonWriter])
def test_an_announcement(kind: type[TextWriter] | type[JsonWriter], capsys: pytest.CaptureFixture[str]) -> None:
    kind(False).announce(SAID)
    assert capsys.readouterr().err == "Warning: file \ufffd[31mred\ufffd2J\ufffd\ufffd \ufffdturned: is no text\n"


def test_a_notice(capsys: pytest.CaptureFixture[str]) -> None:
    message = SystemMessage(uuid="u", session_id="s", subtype="informational", data={"content": SAID, "level": "warning"})
    TextWriter(False).take(message)
    assert not {"\x1b", "\x9b", "\r", "\x07", "\u202e"} & set(capsys.readouterr().err)
