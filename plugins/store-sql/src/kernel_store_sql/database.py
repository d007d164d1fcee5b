"""Tables, connections, and what differs between the two databases. Importing this imports SQLAlchemy."""

from __future__ import annotations

import os
from typing import Any, NamedTuple

from sqlalchemy import BigInteger, Column, Connection, MetaData, String, Table, Text, create_engine, event, select
from sqlalchemy.dialects import postgresql, sqlite
from sqlalchemy.engine import make_url
from sqlalchemy.exc import SQLAlchemyError
from sqlalchemy.pool import StaticPool

PATIENCE_S = 10
"""Seconds that a writer waits for another one, and a connection to come about."""


class Found(NamedTuple):
    """The row of a conversation, locked until the transaction ends."""

    length: int
    changed: int
    data: str


class Database:
    """``shown`` is the address without its password.

    :raises OSError: it cannot be opened.
    """

    select: Any = staticmethod(select)

    def __init__(self, url: str) -> None:
        address = make_url(url)
        self.shown = address.render_as_string(hide_password=True)
        self._is_sqlite = address.get_backend_name() == "sqlite"
        metadata = MetaData()
        self.conversations = Table(
            "kernel_conversations", metadata, *_key(), Column("length", BigInteger, nullable=False),
            Column("changed", BigInteger, nullable=False), Column("data", Text, nullable=False))
        self.entries = Table(
            "kernel_entries", metadata, *_key(), Column("place", BigInteger, primary_key=True, autoincrement=False),
            Column("entry", Text, nullable=False))
        try:
            if self._is_sqlite:
                self._make_private(address.database)
                in_memory = address.database in (None, "", ":memory:")
                one: dict[str, Any] = {"poolclass": StaticPool} if in_memory else {}
                self.engine = create_engine(
                    address, connect_args={"timeout": PATIENCE_S, "check_same_thread": False}, **one)
                event.listen(self.engine, "connect", _sqlite_connected)
                event.listen(self.engine, "begin", _sqlite_begin)
            else:
                self.engine = create_engine(address, pool_pre_ping=True, connect_args={"connect_timeout": PATIENCE_S})
            metadata.create_all(self.engine)
        except (SQLAlchemyError, ImportError) as error:
            raise self.failure(error) from error

    def failure(self, error: Exception) -> OSError:
        """What a library of the database said, in one line and without the password."""
        return OSError(f"{self.shown}: {str(getattr(error, 'orig', None) or error).splitlines()[0]}")

    @staticmethod
    def _make_private(path: str | None) -> None:
        """Make the file before SQLite does, so that only its owner may read it."""
        if path and path != ":memory:":
            os.makedirs(os.path.dirname(path) or ".", mode=0o700, exist_ok=True)
            os.close(os.open(path, os.O_RDWR | os.O_CREAT, 0o600))

    def locked(self, connection: Connection, where: dict[str, Any]) -> Found:
        """The row of a conversation, made where there is none; other writers of it wait until this transaction is over."""
        dialect: Any = sqlite if self._is_sqlite else postgresql
        new = dialect.insert(self.conversations).values(**where, length=0, changed=0, data="{}")
        connection.execute(new.on_conflict_do_nothing())
        c = self.conversations.c
        row = connection.execute(self.of(select(c.length, c.changed, c.data), self.conversations, where).with_for_update()).one()
        return Found(*row)

    @staticmethod
    def of(statement: Any, table: Table, where: dict[str, Any]) -> Any:
        """The statement for the rows that have these values."""
        return statement.where(*(table.c[name] == value for name, value in where.items()))


def _key() -> list[Column[str]]:
    return [Column("project_key", String(512), primary_key=True), Column("session_id", String(255), primary_key=True),
            Column("subpath", String(512), primary_key=True)]


def _sqlite_connected(connection: Any, _: Any) -> None:
    connection.isolation_level = None  # transactions are ours: the driver's own begin too late
    for pragma in ("journal_mode=WAL", "synchronous=NORMAL"):
        connection.execute(f"PRAGMA {pragma}")


def _sqlite_begin(connection: Connection) -> None:
    """A writer takes the lock at once: two that read first and write then would end in a deadlock."""
    reads = connection.get_execution_options().get("kernel_reads")
    connection.exec_driver_sql("BEGIN" if reads else "BEGIN IMMEDIATE")
