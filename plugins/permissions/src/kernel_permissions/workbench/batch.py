"""``kernel permissions check --batch``: calls in, decisions out, a line each.

Rules come with each line, so nothing is read but what paths in a call need of the file system.
"""

from __future__ import annotations

import json
from collections import OrderedDict
from typing import IO, Any

from ..paper import Paper
from ..rules import KNOWN_TOOLS, PRIMARY, RENAMED, RuleError, parse
from ..shell import Parser
from ..view import RealView
from .desk import MODES, mode_of
from .files import Unusable
from .weigh import Weighing

MAX_LINE = 4 << 20
"""Bytes of one line; a longer one is answered with an error and passed over."""
KEPT = 256
"""Rule sets that are kept ready."""
_LISTS = ("allow", "ask", "deny")


def serve(source: IO[bytes], sink: IO[bytes]) -> None:
    """Answer every line until the source ends. Each answer is flushed before the next line is read."""
    batch = Batch()
    while line := source.readline(MAX_LINE):
        too_long = len(line) == MAX_LINE and not line.endswith(b"\n")
        while too_long and (rest := source.readline(MAX_LINE)) and not rest.endswith(b"\n"):
            pass
        if not too_long and not line.strip():
            continue
        answer = {"id": None, "error": f"the line is longer than {MAX_LINE} bytes"} if too_long else batch.answer(line)
        sink.write(json.dumps(answer).encode() + b"\n")
        sink.flush()


class Batch:
    """Answers lines; rule sets and parsed commands are kept between them."""

    def __init__(self) -> None:
        from pathlib import Path

        self.view = RealView(str(Path.home()))
        self.here = str(Path.cwd())
        self.parser = Parser()
        self._papers: OrderedDict[tuple[Any, ...], Paper] = OrderedDict()

    def answer(self, line: bytes) -> dict[str, Any]:
        """``{"id", "decision", "rule", "reason"}``, with ``warnings`` about rules; or ``{"id", "error"}``."""
        id: Any = None
        try:
            given = json.loads(line.decode(), parse_constant=_no_number)
            if not isinstance(given, dict):
                raise Unusable("a line must be one JSON object")
            id = given.get("id")
            return {"id": id, **self.decide(given)}
        except Unusable as error:
            return {"id": id, "error": str(error)}
        except UnicodeDecodeError:
            return {"id": id, "error": "the line is not UTF-8"}
        except (ValueError, RecursionError) as error:
            return {"id": id, "error": f"the line is no JSON: {error}"}
        except Exception as error:  # whatever one line does, the stream goes on; no answer is no allow
            return {"id": id, "error": f"no decision: {type(error).__name__}: {error}"}

    def decide(self, given: dict[str, Any]) -> dict[str, Any]:
        """:raises Unusable: a field is missing or of the wrong kind."""
        tool, input = given.get("tool"), given.get("input")
        if not isinstance(tool, str) or not tool:
            raise Unusable("'tool' must be the name of a tool")
        if not isinstance(input, dict):
            raise Unusable("'input' must be an object")
        mode = given.get("mode") or "default"
        if not isinstance(mode, str):
            raise Unusable(f"'mode' must be one of {', '.join(MODES)}")
        mode = mode_of(mode)
        cwd = given.get("cwd") or self.here
        if not isinstance(cwd, str) or "\0" in cwd or not cwd.startswith("/"):
            raise Unusable("'cwd' must be an absolute path")
        name = RENAMED.get(tool, tool)
        if name not in KNOWN_TOOLS and not name.startswith("mcp__"):
            raise Unusable(f"there is no tool {tool!r}")
        field = PRIMARY.get(name)
        if field in input and not isinstance(input[field], str):
            raise Unusable(f"'input.{field}' must be a string")
        paper = self._paper(given.get("rules"), cwd)
        decision = Weighing(paper.call(name, input, mode=mode), paper.facts, self.parser)
        verdict = decision.run()
        answer = {"decision": verdict.behavior, "rule": decision.rule.text if decision.rule else None, "reason": verdict.message}
        return {**answer, "warnings": paper.warnings} if paper.warnings else answer

    def _paper(self, rules: Any, cwd: str) -> Paper:
        lists = _lists(rules)
        key = (cwd, *lists)
        paper = self._papers.get(key)
        if paper is None:
            paper = self._papers[key] = _read(lists, cwd, self.view)
            if len(self._papers) > KEPT:
                self._papers.popitem(last=False)
        else:
            self._papers.move_to_end(key)
        return paper


def _no_number(name: str) -> Any:
    raise ValueError(f"{name} is no JSON number")


def _lists(rules: Any) -> tuple[tuple[str, ...], ...]:
    if rules is None:
        rules = {}
    if not isinstance(rules, dict) or not set(rules) <= set(_LISTS):
        raise Unusable("'rules' must be an object with the lists allow, ask and deny")
    found: list[tuple[str, ...]] = []
    for name in _LISTS:
        texts = rules.get(name) or []
        if not isinstance(texts, list) or not all(isinstance(t, str) for t in texts):
            raise Unusable(f"'rules.{name}' must be a list of strings")
        found.append(tuple(texts))
    return tuple(found)


def _read(lists: tuple[tuple[str, ...], ...], cwd: str, view: RealView) -> Paper:
    """A policy over the rules that can be read; the others are named in its warnings, as in settings (2.5)."""
    faults: list[str] = []
    allow, ask, deny = ([t for t in texts if t.strip() and _parses(t, faults)] for texts in lists)
    paper = Paper(allow=allow, ask=ask, deny=deny, cwd=cwd, view=view)
    paper.warnings[:0] = faults
    return paper


def _parses(text: str, faults: list[str]) -> bool:
    try:
        parse(text)
    except RuleError as error:
        faults.append(f"{text}: {error}")
        return False
    return True
