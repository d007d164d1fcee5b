"""Hook implementations."""

from __future__ import annotations

from typing import TYPE_CHECKING

from kernel import hookimpl

if TYPE_CHECKING:
    from kernel import Extension, Middleware, OutputValidator, Registry


@hookimpl
def register_extensions(register: Registry[Extension]) -> None:
    from kernel_evidence.record import EvidenceRecord

    register(EvidenceRecord())


@hookimpl
def register_middleware(register: Registry[Middleware]) -> None:
    from kernel_evidence.collect import Collect

    register(Collect())


@hookimpl
def register_validators(register: Registry[OutputValidator]) -> None:
    from kernel_evidence.validators import CitationExists, CitationSupports, Freshness, HistoryIsolation

    for validator in (CitationExists(), CitationSupports(), Freshness(), HistoryIsolation()):
        register(validator)
