"""Which database, who may read it, what is said when it is away, and what a list shows."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings, strategies as st
from kernel_store_sql.adapter import SessionStoreAdapter
from kernel_store_sql.place import url
from kernel_store_sql.store import SqlStore
from kernel_store_sql.summary import fold

from kernel import EntryKey, Layer, Settings, UsageError

KEY = EntryKey("p", "s")


def given_settings(value: Any, scope: str = "user", trusted: bool = True) -> Settings:
    layer = Layer(scope, "/f", {"kernel": {"sql": {"url": value}}}, "/")  # type: ignore[arg-type]
    return Settings([layer], [], config_dir=Path("/c"), project_root=Path("/p"), trusted=trusted)


@pytest.mark.parametrize(("value", "expected"), [
    ("sqlite:////tmp/x.db", "sqlite:////tmp/x.db"), ("postgresql://u@h/d", "postgresql+psycopg://u@h/d"),
    ("postgres://u@h/d", "postgresql+psycopg://u@h/d"), ("postgresql+psycopg://u@h/d", "postgresql+psycopg://u@h/d")])
def test_the_address_of_the_settings(value: str, expected: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("KERNEL_SQL_URL", raising=False)
    assert url(given_settings(value)) == expected
    monkeypatch.setenv("KERNEL_SQL_URL", "sqlite:///other.db")
    assert url(given_settings(value)) == "sqlite:///other.db"


@pytest.mark.parametrize("value", ["mysql://u@h/d", "x.db", 5, ["sqlite:///x"], "://"])
def test_another_address_is_refused_without_repeating_it(value: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("KERNEL_SQL_URL", raising=False)
    with pytest.raises(UsageError, match=r"kernel\.sql\.url") as error:
        url(given_settings(value))
    assert "u@h" not in str(error.value)


def test_a_strangers_project_does_not_choose_where_conversations_go(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.delenv("KERNEL_SQL_URL", raising=False)
    monkeypatch.setenv("CLAUDE_CONFIG_DIR", str(tmp_path))
    for scope in ("project", "local"):
        assert url(given_settings("postgresql://thief/d", scope, trusted=False)) == f"sqlite:///{tmp_path}/sessions.sqlite3"


def test_only_the_owner_reads_the_file(tmp_path: Path) -> None:
    store = SqlStore(f"sqlite:///{tmp_path}/new/db.sqlite3")
    store.append(KEY, [{"n": 1}])
    for place in (tmp_path / "new").iterdir():
        assert place.stat().st_mode & 0o077 == 0, place
    assert (tmp_path / "new").stat().st_mode & 0o077 == 0
    store.close()


def test_a_database_that_is_away_is_an_os_error_without_the_password() -> None:
    store = SqlStore("postgresql+psycopg://me:topsecret@/d?host=/nonexistent")
    for call in (lambda: store.append(KEY, [{}]), lambda: store.load(KEY), lambda: store.list_sessions("p")):
        with pytest.raises(OSError, match="postgresql") as error:
            call()
        assert "topsecret" not in str(error.value)


def test_nothing_heavy_is_imported_before_the_store_is_asked() -> None:
    code = ("import sys; from kernel_store_sql import plugin, place, store; store.SqlStore('sqlite://');"
            "sys.exit('sqlalchemy' in sys.modules or 'psycopg' in sys.modules)")
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0


def test_a_database_in_memory_serves_one_store() -> None:
    import anyio

    async def go() -> None:
        store = SessionStoreAdapter(SqlStore("sqlite:///:memory:"))
        await store.append({"project_key": "p", "session_id": "s"}, [{"n": 1}])
        assert await store.load({"project_key": "p", "session_id": "s"}) == [{"n": 1}]

    anyio.run(go)


fields = st.fixed_dictionaries({"type": st.sampled_from(["user", "assistant", "tag", "x"])}, optional={
    "customTitle": st.text(max_size=5), "lastPrompt": st.one_of(st.text(max_size=5), st.none()), "tag": st.text(max_size=3),
    "cwd": st.sampled_from(["", "/a", "/b"]), "isSidechain": st.booleans(), "isMeta": st.booleans(),
    "timestamp": st.sampled_from(["2024-01-01T00:00:00.000Z", "nonsense", 5]),
    "message": st.one_of(st.integers(), st.fixed_dictionaries({"content": st.one_of(
        st.sampled_from(["hello", "", "<command-name>/x</command-name>", "<local-command-stdout>y",
                         "[Request interrupted by user]"]),
        st.lists(st.one_of(st.integers(), st.fixed_dictionaries({"type": st.just("text"), "text": st.text(max_size=4)}),
                           st.just({"type": "tool_result"})), max_size=2))}))})


@given(st.lists(fields, max_size=8), st.integers(0, 8))
@settings(max_examples=300, deadline=None)
def test_a_summary_does_not_depend_on_how_entries_are_batched(entries: list[dict[str, Any]], cut: int) -> None:
    assert fold(fold({}, entries[:cut]), entries[cut:]) == fold({}, entries)


@given(st.lists(fields, max_size=8))
@settings(max_examples=300, deadline=None)
def test_the_summary_is_the_public_sdks(entries: list[dict[str, Any]]) -> None:
    sdk = pytest.importorskip("claude_agent_sdk", reason="pip install claude-agent-sdk to run this")
    key = {"project_key": "p", "session_id": "s"}
    assert fold({}, entries) == sdk.fold_session_summary(None, key, entries)["data"]
