"""Whether runs are durable, where they are kept, and what is done about what nobody knows: read from flags and settings."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Any, Literal, cast, get_args

from msgspec import Struct

from kernel import UsageError, config_dir

if TYPE_CHECKING:
    from kernel import Options, Settings
    from kernel_durable.engine import StepEngine

VARIABLE = "KERNEL_DURABLE_DATABASE"
KEY = "kernel.durable"

Unknown = Literal["retry", "skip", "ask"]
Approvals = Literal["park", "wait", "no_one"]


class Config(Struct, kw_only=True):
    """``unknown``: rules in the order in which they are tried, the last one covers all. ``approvals``: what is done where nobody
    is there to be asked. ``patience``: seconds that ``wait`` waits; ``None`` for no limit."""

    unknown: list[tuple[str, Unknown]]
    approvals: Approvals
    patience: float | None


def is_on(settings: Settings | None, options: Options | None) -> bool:
    """``--durable``, or ``kernel.durable.on`` of a scope that is trusted."""
    flag = options is not None and bool(options.extra.get("durable"))
    return flag or (settings is not None and settings.own(f"{KEY}.on") is True)


def config(settings: Settings) -> Config:
    """:raises UsageError: a setting that cannot be read; its key is named."""
    given = settings.own(f"{KEY}.unknown")
    rules = given if isinstance(given, dict) else {} if given is None else {"*": given}
    unknown = [(str(rule), cast(Unknown, _one_of(f"unknown, {rule}", word, get_args(Unknown)))) for rule, word in rules.items()]
    unknown.sort(key=lambda item: item[0] == "*")
    approvals = settings.own(f"{KEY}.approvals") or "park"
    patience = settings.own(f"{KEY}.patience")
    if patience is not None and (isinstance(patience, bool) or not isinstance(patience, int | float) or patience < 0):
        raise UsageError("expected a number of seconds", context=f"{KEY}.patience")
    return Config(unknown=[*unknown, ("*", "skip")], patience=patience,
                  approvals=cast(Approvals, _one_of("approvals", approvals, get_args(Approvals))))


def _one_of(key: str, value: Any, allowed: tuple[str, ...]) -> str:
    if value not in allowed:
        raise UsageError(f"expected one of {', '.join(allowed)}", context=f"{KEY}.{key}")
    return str(value)


_ENGINES: dict[str, StepEngine] = {}
"""One of a kind in a process, as the engines' own clients are."""


def engine(settings: Settings) -> StepEngine:
    """The engine of ``KERNEL_DURABLE_DATABASE`` or ``kernel.durable.database``; a SQLite file of ours where neither is set.

    :raises UsageError: the address is of no engine that is known, or its packages are not installed.
    """
    ours = f"sqlite:///{config_dir() / 'kernel' / 'durable.sqlite'}"
    given = os.environ.get(VARIABLE) or settings.own(f"{KEY}.database") or ours
    url = given if isinstance(given, str) else ""
    if url not in _ENGINES:
        _ENGINES[url] = _made(url)
    return _ENGINES[url]


def _made(url: str) -> StepEngine:
    scheme = url.partition("://")[0]
    if scheme == "temporal":
        try:
            from kernel_durable.temporal_engine import TemporalEngine
        except ImportError as error:
            raise UsageError(f"the package {error.name} is not installed", context=f"{KEY}.database",
                             hint="pip install kernel-durable[temporal]") from None
        made: StepEngine = TemporalEngine(url)
        return made
    if scheme in ("sqlite", "postgresql", "postgres"):
        from kernel_durable.dbos_engine import DbosEngine

        return DbosEngine(url.replace("postgres://", "postgresql://", 1))
    raise UsageError("expected sqlite:////PATH, postgresql://USER@HOST/DATABASE or temporal://HOST:PORT/NAMESPACE",
                     context=f"{KEY}.database")
