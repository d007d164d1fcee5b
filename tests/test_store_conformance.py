"""What every transcript store must do, the same tests for all: files, entries in memory, SQLite, PostgreSQL."""

from __future__ import annotations

import json
import os
import pwd
import shutil
import subprocess
import tempfile
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from kernel import Clock, Entry, EntryKey, EntryStore, Layer, Options, SessionError, Settings, Transcript, UsageError
from kernel.testing import Kit, installed, text

pytestmark = pytest.mark.skipif(not installed("sessions"), reason="the plugin sessions is not installed")
STORES = ("files", "memory", "sqlite", "postgresql")
clock = Clock()


class Memory:
    """The smallest entry store there is."""

    name = "memory"

    def __init__(self) -> None:
        self.kept: dict[EntryKey, str] = {}
        self.changed: dict[EntryKey, int] = {}

    def append(self, key: EntryKey, entries: list[dict[str, Any]]) -> None:
        if entries:
            self.kept[key] = json.dumps([*json.loads(self.kept.get(key, "[]")), *entries])
            self.changed[key] = int(clock.now().timestamp() * 1e6)

    def load(self, key: EntryKey) -> list[dict[str, Any]] | None:
        return json.loads(self.kept[key]) if key in self.kept else None

    def list_sessions(self, project_key: str) -> list[dict[str, Any]]:
        return [{"session_id": k.session_id, "mtime": self.changed[k]} for k in self.kept
                if k.project_key == project_key and not k.subpath]

    def list_session_summaries(self, project_key: str) -> list[dict[str, Any]]:
        return [{**s, "data": {"custom_title": next((e["customTitle"] for e in reversed(self.load(EntryKey(
            project_key, s["session_id"])) or []) if "customTitle" in e), None)}} for s in self.list_sessions(project_key)]

    def delete(self, key: EntryKey) -> None:
        for other in [k for k in self.kept if k[:2] == key[:2] and key.subpath in ("", k.subpath)]:
            del self.kept[other]

    def list_subkeys(self, key: EntryKey) -> list[str]:
        return [k.subpath for k in self.kept if k.session_id == key.session_id and k.project_key == key.project_key and k.subpath]


# -- PostgreSQL: a server of its own, in a folder of its own -------------------------------------------------------------
def programs() -> Path | None:
    found = sorted(Path("/usr/lib/postgresql").glob("*/bin/initdb"), reverse=True)
    at_hand = shutil.which("initdb")
    return found[0].parent if found else Path(at_hand).parent if at_hand else None


def as_server(*command: str) -> list[str]:
    """PostgreSQL refuses to run as root."""
    return ["runuser", "-u", "postgres", "--", *command] if os.geteuid() == 0 else list(command)


def missing() -> str:
    """Why there is no PostgreSQL here; empty where there is."""
    if programs() is None:
        return "PostgreSQL is not installed (Debian: postgresql)"
    if os.geteuid() == 0:
        try:
            pwd.getpwnam("postgres")
        except KeyError:
            return "root cannot start PostgreSQL, and there is no user postgres"
    return ""


@pytest.fixture(scope="session")
def server() -> Iterator[str]:
    if missing():
        pytest.skip(missing())
    bin_ = programs()
    assert bin_ is not None
    home = tempfile.mkdtemp(prefix="kernel-pg-", dir="/tmp")  # the path of a socket must be short
    if os.geteuid() == 0:
        shutil.chown(home, "postgres")
    quiet: dict[str, Any] = {"check": True, "stdout": subprocess.DEVNULL, "cwd": "/", "timeout": 120}
    options = f"-k {home} -c listen_addresses= -c fsync=off -c max_connections=30"
    control = as_server(str(bin_ / "pg_ctl"), "-D", f"{home}/data", "-w", "-l", f"{home}/log")
    try:
        made = as_server(str(bin_ / "initdb"), "-D", f"{home}/data", "-A", "trust", "-U", "kernel", "-E", "UTF8")
        subprocess.run(made, **quiet)
        subprocess.run([*control, "-o", options, "start"], **quiet)
        try:
            yield f"postgresql://kernel@/{{}}?host={home}"
        finally:
            subprocess.run([*control, "-m", "immediate", "stop"], **quiet)
    finally:
        shutil.rmtree(home, ignore_errors=True)


@pytest.fixture(params=STORES)
def kind(request: pytest.FixtureRequest) -> str:
    return str(request.param)


@pytest.fixture
def make(kind: str, request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Callable[[], Any]]:
    """Makes the same store again, as another process would."""
    made: list[Any] = []
    memory = Memory()
    if kind in ("sqlite", "postgresql"):
        if not installed("store-sql"):
            pytest.skip("the plugin store-sql is not installed")
        from kernel_store_sql.place import DRIVERS
        from kernel_store_sql.store import SqlStore

        url = f"sqlite:///{tmp_path}/db/sessions.sqlite3"
        if kind == "postgresql":
            server = request.getfixturevalue("server")
            database = f"t{clock.new_id().replace('-', '')}"
            import psycopg

            with psycopg.connect(server.format("postgres"), autocommit=True) as connection:
                connection.execute(f"CREATE DATABASE {database}")
            url = server.format(database).replace("postgresql", DRIVERS["postgresql"])

        def again() -> Any:
            made.append(SqlStore(url))
            return made[-1]
    else:
        def again() -> Any:
            return memory
    yield again
    for store in made:
        store.close()


class Place:
    """A working directory, and the store on it."""

    def __init__(self, root: Path, entries: Any) -> None:
        from kernel_sessions.store import FileStore

        self.cwd = root / "work"
        self.cwd.mkdir(exist_ok=True)
        self.entries = entries
        self._store = FileStore()

    def open(self, **options: Any) -> Transcript:
        settings = Settings([Layer("cli", "--settings", {}, "/")], [], config_dir=self.cwd, project_root=self.cwd, trusted=False)
        return self._store.open(Options(**{"cwd": self.cwd, **options}), settings, self.entries)

    def listed(self) -> list[dict[str, Any]]:
        """The conversations of the directory, as a front end offers them."""
        settings = Settings([], [], config_dir=self.cwd, project_root=self.cwd, trusted=False)
        return self._store.sessions(Options(cwd=self.cwd), settings, self.entries)

    def say(self, transcript: Transcript, *texts: str, **extra: Any) -> list[str]:
        """Prompts and answers in turn; their uuids."""
        entries = [entry(n, text, **extra) for n, text in enumerate(texts)]
        for one in entries:
            transcript.append([one], cwd=str(self.cwd))
        return [one.uuid for one in entries]


def entry(number: int, text: str, **extra: Any) -> Entry:
    if number % 2:
        return Entry(type="assistant", uuid=clock.new_id(), extra=extra, message={
            "id": f"m{number}", "role": "assistant", "model": "model-a", "content": [{"type": "text", "text": text}],
            "stop_reason": "end_turn"})
    return Entry(type="user", uuid=clock.new_id(), message={"role": "user", "content": text}, extra=extra)


@pytest.fixture
def place(kind: str, make: Callable[[], Any], tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Place:
    monkeypatch.setenv("CLAUDE_CONFIG_DIR", str(tmp_path / "config"))
    return Place(tmp_path, None if kind == "files" else make())


def said(transcript: Transcript) -> list[str]:
    return [content if isinstance(content, str) else "".join(b.get("text", b.get("id", "")) for b in content)
            for _, content in transcript.restored.messages]


# -- conversations --------------------------------------------------------------------------------------------------------
def test_what_was_said_comes_back(place: Place) -> None:
    session = place.open()
    assert isinstance(session, Transcript) and session.source == "startup"
    nasty = "ä \u2028 \x00 \ud800 😀 'quote' \"%s\" {}"
    place.say(session, nasty, "1", "two", "2")
    session.close()
    again = place.open(resume=session.session_id)
    assert said(again) == [nasty.encode("utf-16", "surrogatepass").decode("utf-16", "replace"), "1", "two", "2"]
    assert (again.source, again.session_id, again.restored.model, again.problems) == ("resume", session.session_id, "model-a", [])
    place.say(again, "three")
    again.close()
    assert said(place.open(resume=session.session_id))[-1] == "three"


def test_facts_come_back_and_the_last_one_counts(place: Place) -> None:
    session = place.open(name="First")
    session.set("permission-mode", "acceptEdits")
    place.say(session, "one", "1")
    session.set("custom-title", "Second")
    session.close()
    again = place.open(resume="Second")
    assert again.session_id == session.session_id
    assert (again.restored.title, again.restored.permission_mode) == ("Second", "acceptEdits")
    with pytest.raises(SessionError):
        place.open(resume="First")


def test_conversations_are_listed_the_newest_first(place: Place) -> None:
    first, second = place.open(name="Parrots"), place.open(name="Weather")
    place.say(second, "What weather?", "Rain.")
    place.say(first, "Parrots?", "Green.")
    for session in (second, first):
        session.close()
    rows = place.listed()
    assert [(row["session"], row["shown"]) for row in rows] == [(first.session_id, "Parrots"), (second.session_id, "Weather")]
    assert all(isinstance(row["changed"], str) for row in rows)


def test_continue_takes_the_latest_one(place: Place) -> None:
    first, second = place.open(), place.open()
    place.say(first, "one", "1")
    place.say(second, "two", "2")
    os.utime(first.path, (1, 1)) if Path(first.path).exists() else None
    assert place.open(continue_session=True).session_id == second.session_id
    now = clock.now().timestamp()
    while clock.now().timestamp() - now < 0.002:
        pass  # a store counts in milliseconds
    place.say(first, "three")
    assert place.open(continue_session=True).session_id == first.session_id


def test_an_unknown_session_and_a_taken_id_are_refused(place: Place) -> None:
    with pytest.raises(SessionError, match="No conversation found"):
        place.open(resume=clock.new_id())
    session = place.open()
    place.say(session, "one")
    with pytest.raises(SessionError, match="already in use"):
        place.open(session_id=session.session_id)


def test_a_fork_is_another_conversation(place: Place) -> None:
    session = place.open()
    place.say(session, "one", "1")
    fork = place.open(resume=session.session_id, fork_session=True)
    place.say(fork, "two")
    assert fork.session_id != session.session_id and said(place.open(resume=fork.session_id)) == ["one", "1", "two"]
    assert said(place.open(resume=session.session_id)) == ["one", "1"]


def test_a_cut_leaves_a_dead_branch(place: Place) -> None:
    session = place.open()
    uuids = place.say(session, "one", "1", "two", "2")
    session.close()
    cut = place.open(resume=session.session_id, resume_at=uuids[1])
    assert said(cut) == ["one", "1"]
    place.say(cut, "three")
    cut.close()
    assert said(place.open(resume=session.session_id)) == ["one", "1", "three"]


def test_a_compaction_hides_what_was_before(place: Place) -> None:
    session = place.open()
    place.say(session, "one", "1")
    boundary = Entry(type="system", uuid=clock.new_id(), extra={"subtype": "compact_boundary"})
    session.append([boundary, entry(0, "summary", isCompactSummary=True)], cwd=str(place.cwd))
    place.say(session, "two", "2")
    assert said(place.open(resume=session.session_id)) == ["summary", "two", "2"]
    fork = place.open(resume=session.session_id, fork_session=True)
    place.say(fork, "three")
    assert said(place.open(resume=fork.session_id)) == ["summary", "two", "2", "three"]


def test_subagents_lie_beside_their_conversation(place: Place) -> None:
    session = place.open()
    place.say(session, "one")
    for name, words in (("a1", ["task", "done"]), ("a2", ["other"])):
        child = session.child(name, {"agentType": "Explore", "toolUseId": f"t-{name}"})
        assert child.kept and child.restored.messages == []
        place.say(child, *words)
        child.close()
    again = place.open(resume=session.session_id)
    assert said(again) == ["one"]
    assert {k: v["toolUseId"] for k, v in again.children().items()} == {"a1": "t-a1", "a2": "t-a2"}
    child = again.child("a1", {"worktreePath": "/w"})
    assert said(child) == ["task", "done"]
    child.close()
    assert again.children()["a1"] == {"agentType": "Explore", "toolUseId": "t-a1", "worktreePath": "/w"}


def test_a_session_without_a_prompt_leaves_nothing_and_one_that_is_not_kept_neither(place: Place) -> None:
    for options in ({}, {"persist": False}):
        session = place.open(**options)
        session.set("permission-mode", "plan")
        if options:
            place.say(session, "one")
        session.close()
        with pytest.raises(SessionError):
            place.open(resume=session.session_id)
    assert session.kept is False


def test_two_writers_lose_nothing(place: Place, make: Callable[[], Any], kind: str) -> None:
    """Both branches stay; the later one counts."""
    session = place.open()
    place.say(session, "one", "1")
    other = Place(place.cwd.parent, None if kind == "files" else make()).open(resume=session.session_id)
    kept = place.say(session, "mine") + place.say(other, "theirs")
    session.close()
    other.close()
    assert said(place.open(resume=session.session_id)) == ["one", "1", "theirs"]
    for uuid, word in zip(kept, ("mine", "theirs"), strict=True):
        assert said(place.open(resume=session.session_id, resume_at=uuid)) == ["one", "1", word]


# -- entries --------------------------------------------------------------------------------------------------------------
KEY = EntryKey("project", "session")


@pytest.fixture
def entries(kind: str, make: Callable[[], Any]) -> EntryStore:
    if kind == "files":
        pytest.skip("files are no entry store: their interface is the transcript")
    store = make()
    assert isinstance(store, EntryStore)
    return store


def test_entries_come_back_equal_and_in_order(entries: EntryStore, make: Callable[[], Any]) -> None:
    rows = [{"n": n, "text": "\x00 \u2028 ä", "big": 2**70, "deep": [{"a": [None, True, 1.5]}]} for n in range(50)]
    entries.append(KEY, rows[:20])
    entries.append(KEY, [])
    entries.append(KEY, rows[20:])
    assert make().load(KEY) == rows and entries.load(EntryKey("project", "other")) is None


def test_writers_of_one_conversation_wait_for_each_other(entries: EntryStore, make: Callable[[], Any], kind: str) -> None:
    if kind == "memory":
        pytest.skip("the one in memory is for one thread")
    failed: list[BaseException] = []

    def write(name: str) -> None:
        store = make()
        try:
            for n in range(15):
                store.append(KEY, [{"who": name, "n": n, "part": part} for part in range(3)])
        except BaseException as error:
            failed.append(error)
        finally:
            store.close()

    threads = [threading.Thread(target=write, args=(name,)) for name in "abcd"]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(60)
    assert not failed
    rows = entries.load(KEY) or []
    assert len(rows) == 4 * 15 * 3 and all([r["part"] for r in rows[n:n + 3]] == [0, 1, 2] for n in range(0, len(rows), 3))
    for name in "abcd":
        assert [r["n"] for r in rows if r["who"] == name and r["part"] == 0] == list(range(15))


def test_an_append_is_whole_or_not_at_all(entries: EntryStore, kind: str) -> None:
    if kind == "memory":
        pytest.skip("has no transactions")
    entries.append(KEY, [{"n": 1}])
    loop: dict[str, Any] = {}
    loop["loop"] = loop
    with pytest.raises((ValueError, RecursionError, OSError)):
        entries.append(KEY, [{"n": 2}, loop])
    assert entries.load(KEY) == [{"n": 1}]


def test_the_public_sdks_fourteen_checks(entries: EntryStore, kind: str, make: Callable[[], Any]) -> None:
    if kind == "memory":
        pytest.skip("its summaries are not the SDK's")
    conformance = pytest.importorskip("claude_agent_sdk.testing", reason="pip install claude-agent-sdk to run these")
    import anyio
    from kernel_store_sql.adapter import SessionStoreAdapter

    def fresh() -> Any:
        store = make()
        for project in ("proj", "A", "B", "other", "other-proj"):
            for session in store.list_sessions(project):
                store.delete(EntryKey(project, session["session_id"]))
        return SessionStoreAdapter(store)

    anyio.run(conformance.run_session_store_conformance, fresh)


# -- through the kernel ---------------------------------------------------------------------------------------------------
@pytest.mark.skipif(not installed("store-sql"), reason="the plugin store-sql is not installed")
def test_the_setting_chooses_the_store(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CLAUDE_CONFIG_DIR", str(tmp_path / "config"))
    settings = {"kernel": {"store": "sql", "sql": {"url": f"sqlite:///{tmp_path}/db.sqlite3"}}}

    def run(words: str, **options: Any) -> Any:
        return Kit(tmp_path, [text("yes")], installed=["sessions", "store-sql"], settings=settings, persist=True,
                   **options).play(words)

    first = run("one")
    again = run("two", resume=first.session.id)
    assert [m["content"][0]["text"] for m in again.requests[0]["messages"]] == ["one", "yes", "two"]
    assert not Path(first.session.transcript.path).exists() and (tmp_path / "db.sqlite3").stat().st_mode & 0o777 == 0o600


@pytest.mark.skipif(not installed("store-sql"), reason="the plugin store-sql is not installed")
def test_a_database_that_is_away_is_said_once_and_ends_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CLAUDE_CONFIG_DIR", str(tmp_path / "config"))
    (tmp_path / "file").write_text("")
    settings = {"kernel": {"store": "sql", "sql": {"url": f"sqlite:///{tmp_path}/file/db.sqlite3"}}}
    kit = Kit(tmp_path, [text("yes"), text("yes")], installed=["sessions", "store-sql"], settings=settings, persist=True)
    run = kit.play("one", "two")
    assert run.text == "yes" and len([t for t in kit.harness.announced if "the store 'sql'" in t]) == 1


def test_entries_without_the_journal_are_refused_aloud(tmp_path: Path) -> None:
    """A store of entries alone makes no conversations: nothing is kept, and that is said."""
    from kernel.testing import module

    def kit(**options: Any) -> Kit:
        brings = module(register_stores=lambda register: register(Memory()))
        return Kit(tmp_path, [text("yes")], hooks={"brings": brings}, persist=True, settings={"kernel": {"store": "memory"}},
                   **options)

    made = kit()
    run = made.play("one")
    assert run.text == "yes" and not run.session.transcript.kept
    assert [t for t in made.harness.announced if "needs the store 'files'" in t]
    with pytest.raises(UsageError, match="'files'"):
        kit(resume=clock.new_id()).open()


def test_any_entry_store_serves_a_harness(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Somebody's own store, registered by a plugin of theirs, and cleared in between."""
    from kernel.testing import module

    monkeypatch.setenv("CLAUDE_CONFIG_DIR", str(tmp_path / "config"))
    store = Memory()

    def kit(**options: Any) -> Kit:
        brings = module(register_stores=lambda register: register(store))
        return Kit(tmp_path, [text("yes"), text("no")], hooks={"brings": brings}, installed=["sessions"], persist=True,
                   settings={"kernel": {"store": "memory"}}, **options)

    run = kit().play("one", "/clear", "two")
    assert sorted(key.session_id for key in store.kept) == sorted({key.session_id for key in store.kept}) and len(store.kept) == 2
    old = next(key.session_id for key in store.kept if key.session_id != run.session.id)
    again = kit(resume=old).play("three")
    assert [m["content"][0]["text"] for m in again.requests[0]["messages"]] == ["one", "yes", "three"]
    assert not list((tmp_path / "config").glob("projects/*/*.jsonl"))
