"""Which database: the environment, the settings, else a file beside the transcripts."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

from kernel import UsageError, config_dir

if TYPE_CHECKING:
    from kernel import Settings

VARIABLE = "KERNEL_SQL_URL"
KEY = "kernel.sql.url"
DRIVERS = {"postgres": "postgresql+psycopg", "postgresql": "postgresql+psycopg"}


def url(settings: Settings | None) -> str:
    """The database's address. A project's own files decide it only where the person trusts the project.

    :raises UsageError: it is no text, or of another database.
    """
    given = os.environ.get(VARIABLE) or (settings.own(KEY) if settings is not None else None)
    if given is None:
        return f"sqlite:///{config_dir() / 'sessions.sqlite3'}"
    scheme, found, rest = given.partition("://") if isinstance(given, str) else ("", "", "")
    if not found or scheme.partition("+")[0] not in ("sqlite", *DRIVERS):
        raise UsageError("expected sqlite:///PATH or postgresql://USER@HOST/DATABASE", context=KEY)
    return f"{DRIVERS.get(scheme, scheme)}://{rest}"
