"""Run the rules over paths: one pass, every finding with a place, no rule can end the run."""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from kernel_linter.catalogue import Marketplace
from kernel_linter.config import Config, Selection
from kernel_linter.python_side import python_files
from kernel_linter.rule import Diagnostic, Finding, Report, Rule
from kernel_linter.ruleset import RuleSet
from kernel_linter.source import File
from kernel_linter.suppress import apply
from kernel_linter.targets import Job, NothingFound, jobs, named, targets

MAX_PER_RULE = 300
"""Findings of one rule in one file. What is more is counted, not shown."""

INTERNAL = Rule("KRN-INTERNAL", "internal", "error", "file", lambda _: iter(()),
                "A rule failed on this input; the others went on.")


class Runner:
    def __init__(self, config: Config | None = None, rules: RuleSet | None = None) -> None:
        self.config = config or Config()
        self.rules = rules or RuleSet()
        self.chosen = Selection(self.config)
        self.report = Report()
        self._seen: set[tuple[Any, ...]] = set()
        self._files: dict[str, File] = {}
        self._counts: Counter[tuple[str, str]] = Counter()

    def run(self, paths: Iterable[Path]) -> Report:
        """Check every path. Raises ``FileNotFoundError`` for one that is not there."""
        for path in paths:
            try:
                found = jobs(path)
            except NothingFound as error:
                file = File(path, named(path))
                self._keep(self._nothing(), file.at(str(error).partition(": ")[2]), None)
                continue
            for job in found:
                self.job(job)
        self.report.findings = apply(self.report.findings, self._files, self.config, self.chosen)
        self.report.findings.sort(key=lambda f: (f.path, f.line, f.column, f.code))
        self.report.rules = {**self.rules.used, INTERNAL.code: INTERNAL}
        self.report.files = len(self._files)
        self.report.python = sum(name.endswith(".py") for name in self._files)
        return self.report

    def _nothing(self) -> Rule:
        rule = self.rules.find("LNT003")
        assert rule is not None
        self.rules.used[rule.code] = rule
        return rule

    def job(self, job: Job) -> None:
        only = os.path.abspath(job.only) if job.only else None
        if isinstance(job.thing, Marketplace):
            job.thing.since = self.config.since
        found = targets(job)
        while True:
            try:
                kind, target = next(found)
            except StopIteration:
                return
            except Exception as error:
                self._keep(INTERNAL, File(Path(job.shown), job.shown).at(f"cannot be taken apart: {_short(error)}"), only)
                return
            self.target(kind, target, only)

    def target(self, kind: str, target: Any, only: str | None = None) -> None:
        if isinstance(target, File):
            self._files.setdefault(target.shown, target)
        elif kind == "plugin":
            for file in python_files(target):
                self._files.setdefault(file.shown, file)
        for rule in self.rules.on(kind):
            if not self.chosen.might(rule):
                continue
            try:
                for said in rule.check(target):
                    self._keep(rule, said, only)
            except Exception as error:
                self._keep(INTERNAL, _file_of(target, kind).at(f"{rule.code} failed: {_short(error)}; please report it"), only)

    def _keep(self, rule: Rule, said: Diagnostic, only: str | None) -> None:
        file = said.file
        if only and not (os.path.abspath(file.path) + os.sep).startswith(only + os.sep):
            return
        severity = self.chosen.severity(rule, said.severity, file.shown)
        if severity is None or self.chosen.excused(said):
            return
        key = (rule.code, file.shown, said.start, said.end, said.message)
        if key in self._seen:
            return
        self._seen.add(key)
        self._files.setdefault(file.shown, file)
        self._counts[rule.code, file.shown] += 1
        if self._counts[rule.code, file.shown] > MAX_PER_RULE:
            return
        line, column = file.position(said.start)
        end_line, end_column = file.position(max(said.end, said.start))
        value = file.text[said.start:said.end][:200] if said.end > said.start else ""
        plugin = file.plugin.name if file.plugin else None
        self.report.findings.append(Finding(rule.code, rule.slug, severity, said.message, file.shown or ".", line, column,
                                            end_line, end_column,
                                            said.pointer, plugin, said.fix, value))


def _short(error: Exception) -> str:
    return f"{type(error).__name__}: {str(error)[:200]}"


def _file_of(target: Any, kind: str) -> File:
    """A file to speak about when a rule failed."""
    for found in (target, getattr(target, "file", None), getattr(target, "head", None), getattr(getattr(target, "hooks", None),
                                                                                                "file", None)):
        if isinstance(found, File):
            return found
    return File(Path(kind), kind)


def lint(*paths: str | Path, config: Config | None = None) -> Report:
    """Check paths with the rules of this plugin. For tests and for programs."""
    return Runner(config).run([Path(p) for p in paths])
