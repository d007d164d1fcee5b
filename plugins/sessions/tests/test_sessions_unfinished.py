"""A turn that was cut off goes on by itself where the program wants that, and only then."""

from __future__ import annotations

from typing import Any

import pytest

from kernel.testing import Kit, text

SWITCH = "CLAUDE_CODE_RESUME_INTERRUPTED_TURN"


@pytest.fixture
def opened(home: Any, monkeypatch: pytest.MonkeyPatch) -> Any:
    """The first prompt of a session that resumes a conversation with these entries."""
    for name in (SWITCH, f"{SWITCH}_MAX_AGE_MS", "CLAUDE_CODE_RESUME_PROMPT"):
        monkeypatch.delenv(name, raising=False)

    def open_(*entries: Any, **options: Any) -> str | None:
        talk = home.begin(*entries)
        kit = Kit(home.cwd, [text("x")], installed=["sessions"], persist=True, resume=talk.session_id, **options)

        async def go() -> str | None:
            session = kit.open()
            await session.start()
            await session.close()
            return session.initial_message

        import anyio

        return anyio.run(go)

    return open_


def test_only_where_it_is_asked_for_and_the_turn_is_open(home: Any, opened: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    cut_off = [home.prompt("go"), home.answer(home.call("t1"))]
    assert opened(*cut_off) is None
    monkeypatch.setenv(SWITCH, "1")
    assert opened(*cut_off) == "Continue from where you left off."
    assert opened(home.prompt("go")) == "Continue from where you left off."
    assert opened(*cut_off, home.result("t1")) == "Continue from where you left off."
    assert opened(*cut_off, home.result("t1"), home.answer("done")) is None
    assert opened(home.prompt("go"), home.prompt("[Request interrupted by user]")) is None
    assert opened(*cut_off, prompt="Something else.") is None
    monkeypatch.setenv("CLAUDE_CODE_RESUME_PROMPT", "And now?")
    assert opened(*cut_off) == "And now?"


def test_not_where_it_is_too_long_ago(home: Any, opened: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(SWITCH, "true")
    monkeypatch.setenv(f"{SWITCH}_MAX_AGE_MS", "60000")
    assert opened(home.prompt("go")) is not None
    assert opened(home.prompt("go", timestamp="2020-01-01T00:00:00.000Z")) is None
    assert opened(home.prompt("go", timestamp="nonsense")) is None
