"""Entries in two tables of SQLite or PostgreSQL: what was said, and one row for each conversation and subagent."""

from __future__ import annotations

import json
import time
from collections.abc import Iterator
from contextlib import contextmanager
from functools import cached_property
from typing import TYPE_CHECKING, Any

import msgspec

from kernel import EntryKey
from kernel_store_sql.summary import fold

if TYPE_CHECKING:
    from sqlalchemy import Connection

    from kernel_store_sql.database import Database


class SqlStore:
    """An ``EntryStore``. Every append is one transaction; writers of one conversation wait for each other.

    :param url: as SQLAlchemy takes it.
    """

    name = "sql"

    def __init__(self, url: str) -> None:
        self.url = url

    @cached_property
    def _database(self) -> Database:
        from kernel_store_sql.database import Database

        return Database(self.url)

    def append(self, key: EntryKey, entries: list[dict[str, Any]]) -> None:
        if not entries:
            return
        t, where = self._database, _where(key)
        rows = [{**where, "entry": _encode(entry)} for entry in entries]
        with self._connected() as connection:
            found = t.locked(connection, where)
            for number, row in enumerate(rows, found.length):
                row["place"] = number
            connection.execute(t.entries.insert(), rows)
            data = "{}" if key.subpath else _encode(fold(_decode(found.data), entries))
            changed = max(int(time.time() * 1000), found.changed)
            connection.execute(t.of(t.conversations.update(), t.conversations, where).values(
                length=found.length + len(rows), changed=changed, data=data))

    def load(self, key: EntryKey) -> list[dict[str, Any]] | None:
        t = self._database
        with self._connected(reads=True) as connection:
            rows = connection.execute(t.of(t.select(t.entries.c.entry), t.entries, _where(key)).order_by(t.entries.c.place))
            raw = ",".join(row[0] for row in rows)
        found: list[dict[str, Any]] | None = _decode(f"[{raw}]") if raw else None
        return found

    def list_sessions(self, project_key: str) -> list[dict[str, Any]]:
        return [{"session_id": s["session_id"], "mtime": s["mtime"]} for s in self.list_session_summaries(project_key)]

    def list_session_summaries(self, project_key: str) -> list[dict[str, Any]]:
        t = self._database
        c = t.conversations.c
        with self._connected(reads=True) as connection:
            asked = t.select(c.session_id, c.changed, c.data).where(c.project_key == project_key, c.subpath == "")
            rows = connection.execute(asked.order_by(c.changed.desc(), c.session_id)).all()
        return [{"session_id": row[0], "mtime": row[1], "data": _decode(row[2])} for row in rows]

    def delete(self, key: EntryKey) -> None:
        t, where = self._database, _where(key)
        if not key.subpath:
            del where["subpath"]
        with self._connected() as connection:
            for table in (t.entries, t.conversations):
                connection.execute(t.of(table.delete(), table, where))

    def list_subkeys(self, key: EntryKey) -> list[str]:
        t = self._database
        c = t.conversations.c
        with self._connected(reads=True) as connection:
            return list(connection.execute(t.select(c.subpath).where(
                c.project_key == key.project_key, c.session_id == key.session_id, c.subpath != "").order_by(c.subpath)).scalars())

    def close(self) -> None:
        """Let go of the database; it is opened again when it is asked again."""
        if "_database" in self.__dict__:
            self._database.engine.dispose()
            del self.__dict__["_database"]

    @contextmanager
    def _connected(self, *, reads: bool = False) -> Iterator[Connection]:
        """One transaction.

        :raises OSError: the database did not do it. Nothing of it is in force then.
        """
        from sqlalchemy.exc import SQLAlchemyError

        try:
            with self._database.engine.connect().execution_options(kernel_reads=reads) as connection, connection.begin():
                yield connection
        except SQLAlchemyError as error:
            raise self._database.failure(error) from error


def _where(key: EntryKey) -> dict[str, Any]:
    return {"project_key": key.project_key, "session_id": key.session_id, "subpath": key.subpath}


def _encode(value: dict[str, Any]) -> str:
    """JSON as text that every database takes: no raw NUL, no lone surrogate."""
    try:
        return msgspec.json.encode(value, enc_hook=str).decode("utf-8")
    except (UnicodeEncodeError, OverflowError):
        return json.dumps(value, default=str)


def _decode(text: str) -> Any:
    try:
        return msgspec.json.decode(text)
    except (msgspec.DecodeError, UnicodeError):
        return json.loads(text)
