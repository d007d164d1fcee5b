"""Checks of citations (structured-output contract, section 6; context contract, 11): ``[ev_12]`` in a text of the answer."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any, Literal

from kernel import OutputProblem, Session
from kernel_evidence.book import Evidence, book, hash_of, lines_of, turn_of

_CITED = re.compile(r"\[(ev_\d+)\]")
_WORD = re.compile(r"\w{3,}", re.UNICODE)
_NUMBER = re.compile(r"\d+(?:[.,]\d+)*")
TTL_S = {"web_page": 86_400.0, "web_search": 86_400.0, "mcp_tool": 300.0, "mcp_resource": 300.0}
"""Seconds for which evidence is current; files are current while their lines are as they were."""
ENOUGH = 0.5
"""The share of a claim's words that its evidence must hold."""


def texts(value: Any, path: str = "") -> list[tuple[str, str]]:
    """Every text of a value with its JSON pointer."""
    if isinstance(value, str):
        return [(path, value)]
    if isinstance(value, dict):
        return [
            found
            for key, inner in value.items()
            for found in texts(inner, f"{path}/{str(key).replace('~', '~0').replace('/', '~1')}")
        ]
    if isinstance(value, list):
        return [found for number, inner in enumerate(value) for found in texts(inner, f"{path}/{number}")]
    return []


def cited_in(value: Any, text: str) -> list[str]:
    """Ids that an answer cites, each once."""
    whole = [(("", text)), *texts(value)] if value is not None else [("", text)]
    return list(dict.fromkeys(found for _, inner in whole for found in _CITED.findall(inner)))


class _Citations:
    name = ""
    uses_model = False
    scope: Literal["tool_loop"] = "tool_loop"

    async def validate(self, value: Any, text: str, session: Session) -> list[OutputProblem]:
        problems = []
        for path, inner in texts(value) if value is not None else [("", text)]:
            for sentence in _sentences(inner):
                for id in _CITED.findall(sentence):
                    found = book(session).items.get(id)
                    wrong = self.wrong(id, found, _CITED.sub("", sentence), session)
                    if wrong:
                        problems.append(
                            OutputProblem(
                                validator=self.name,
                                path=path,
                                rule=self.name,
                                expected=wrong,
                                received=f"[{id}]",
                                retry_scope=self.scope,
                            )
                        )
        return problems

    def wrong(self, id: str, found: Evidence | None, claim: str, session: Session) -> str:
        raise NotImplementedError


class CitationExists(_Citations):
    """Every cited id is in the registry, and of this run."""

    name = "citation_exists"

    def wrong(self, id: str, found: Evidence | None, claim: str, session: Session) -> str:
        if found is None:
            return f"an id that exists; {id} does not"
        return "" if found.turn_id == turn_of(session) else f"evidence of this run; {id} is of an earlier one"


class HistoryIsolation(_Citations):
    """No evidence of earlier runs, whether it exists or not."""

    name = "history_isolation"

    def wrong(self, id: str, found: Evidence | None, claim: str, session: Session) -> str:
        return (
            f"evidence of this run; {id} is of an earlier one" if found is not None and found.turn_id != turn_of(session) else ""
        )


class CitationSupports(_Citations):
    """The excerpt holds the claim's numbers and at least half of its words: finds what was made up, not what was twisted."""

    name = "citation_supports"

    def wrong(self, id: str, found: Evidence | None, claim: str, session: Session) -> str:
        if found is None:
            return ""
        excerpt = found.excerpt.casefold()
        numbers = [n for n in _NUMBER.findall(claim) if n not in excerpt]
        if numbers:
            return f"what {id} says; {', '.join(numbers[:3])} does not stand there"
        words = {w.casefold() for w in _WORD.findall(claim)}
        held = sum(1 for word in words if word in excerpt)
        return (
            ""
            if not words or held / len(words) >= ENOUGH
            else f"a claim that {id} supports; {held} of {len(words)} words stand there"
        )


class Freshness(_Citations):
    """Evidence within its time to live; a file's lines are as they were."""

    name = "freshness"

    def wrong(self, id: str, found: Evidence | None, claim: str, session: Session) -> str:
        if found is None:
            return ""
        if found.source_type == "file":
            return "" if _unchanged(found, session) else f"{id} read again: {found.uri} has changed since"
        given = session.settings.own("kernel.evidence.ttlSeconds")
        given = given.get(found.source_type) if isinstance(given, dict) else None
        ttl = given if isinstance(given, int | float) and not isinstance(given, bool) else TTL_S.get(found.source_type)
        age = (session.clock.now() - found.moment).total_seconds()
        return "" if ttl is None or age <= ttl else f"{id} fetched again: it is {round(age):,} s old, and {ttl:g} s are its time"


def _unchanged(found: Evidence, session: Session) -> bool:
    path = Path(session.root.project_root, found.uri)
    try:
        now = lines_of(path, int(found.locator.get("start_line", 1)), int(found.locator.get("end_line", 1)))
    except OSError:
        return False
    return now is None or hash_of(now) == found.content_hash


def _sentences(text: str) -> list[str]:
    """Pieces that end at a full stop, a line end, or a citation behind one."""
    return re.split(r"(?<=[.!?])\s+(?!\[ev_)|\n", text)
