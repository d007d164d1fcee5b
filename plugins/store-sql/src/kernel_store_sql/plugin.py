"""Hook implementations."""

from __future__ import annotations

from typing import TYPE_CHECKING

from kernel import hookimpl

if TYPE_CHECKING:
    from kernel import EntryStore, Registry


@hookimpl
def register_stores(register: Registry[EntryStore]) -> None:
    """The store ``sql``. The database is opened when it is first asked."""
    from kernel_store_sql.place import url
    from kernel_store_sql.store import SqlStore

    register(SqlStore(url(register.settings)))
