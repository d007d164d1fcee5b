"""One run of the command: configuration, rules, repairs, report, exit code."""

from __future__ import annotations

import json
import sys
from collections import Counter
from pathlib import Path
from typing import Any

from msgspec import Struct, field

from kernel_linter.command import FORMATS, PROFILES
from kernel_linter.config import Config, ConfigError, check_words, load
from kernel_linter.rule import Finding, Report
from kernel_linter.ruleset import RuleSet, foreign
from kernel_linter.runner import INTERNAL, Runner


class Asked(Struct, kw_only=True):
    """What the command line said."""

    paths: list[Path] = field(default_factory=lambda: [Path()])
    format: str = "text"
    output_file: Path | None = None
    select: list[str] = field(default_factory=list)
    extend_select: list[str] = field(default_factory=list)
    ignore: list[str] = field(default_factory=list)
    profile: str = ""
    target: str = ""
    strict: bool = False
    preview: bool = False
    fix: bool = False
    unsafe_fixes: bool = False
    diff: bool = False
    since: str = ""
    baseline: Path | None = None
    write_baseline: Path | None = None
    config: Path | None = None
    no_config: bool = False
    exit_zero: bool = False
    statistics: bool = False


def run(asked: Asked) -> int:
    """Check, repair where asked, report; the exit code."""
    try:
        config = _config(asked)
        rules = rules_of_run()
        _check(asked, config, rules)
        report = Runner(config, rules).run(asked.paths)
    except (ConfigError, FileNotFoundError) as error:
        print(f"Error: {error if isinstance(error, ConfigError) else f'{error}: no such file or folder'}", file=sys.stderr)
        return 2
    if asked.fix or asked.diff or asked.unsafe_fixes:
        report = _repair(asked, config, rules, report)
    if asked.write_baseline:
        _write(asked.write_baseline, json.dumps([_mark(f) for f in report.findings], indent=1) + "\n")
    if asked.baseline:
        try:
            _hide(report, asked.baseline)
        except ConfigError as error:
            print(f"Error: {error}", file=sys.stderr)
            return 2
    _report(asked, config, report)
    return 0 if asked.exit_zero else exit_code(report, asked.strict or config.strict)


def exit_code(report: Report, strict: bool) -> int:
    if any(f.code == INTERNAL.code for f in report.findings):
        return 3
    return 1 if report.count("error") or (strict and report.count("warning")) else 0


def rules_of_run() -> RuleSet:
    """Our rules and those of installed plugins that provide some."""
    return RuleSet(_foreign())


def _foreign() -> list[Any]:
    from kernel import Harness, KernelError, Options

    try:
        plugins = Harness(Options()).plugins
    except KernelError as error:
        print(f"Warning: rules of other plugins are left out: {error}", file=sys.stderr)
        return []
    if not any(p.manifest and p.manifest.kernel.provides.get("lint_rules") for p in plugins.ready):
        return []
    from kernel import Registry

    registry: Registry[Any] = Registry("lint_rules")
    plugins.fill(registry, "lint_rules")
    return list(foreign((thing, registry.owner(thing.name) or "") for thing in registry))


def _config(asked: Asked) -> Config:
    config = Config() if asked.no_config else load(asked.paths[0], asked.config)
    config.select = asked.select or config.select
    config.extend_select = [*config.extend_select, *asked.extend_select]
    config.ignore = [*config.ignore, *asked.ignore]
    if asked.profile:
        if asked.profile not in PROFILES:
            raise ConfigError(f"--profile {asked.profile}: one of {', '.join(PROFILES)}")
        config.profile = asked.profile  # type: ignore[assignment]
    config.target = asked.target or config.target
    config.preview = asked.preview
    config.since = asked.since
    return config


def _check(asked: Asked, config: Config, rules: RuleSet) -> None:
    if asked.format not in FORMATS:
        raise ConfigError(f"--format {asked.format}: one of {', '.join(FORMATS)}")
    words = [*config.select, *config.extend_select, *config.ignore, *config.severity,
             *(w.split()[0] for ws in config.per_file_ignores.values() for w in ws if w.split())]
    if words:
        check_words(words, [*rules.all(), INTERNAL])


def _repair(asked: Asked, config: Config, rules: RuleSet, report: Report) -> Report:
    """Repair and look again, up to ten times: one repair may make room for the next."""
    from kernel_linter.fixing import difference, repair

    if asked.diff:
        print(difference(report, unsafe=asked.unsafe_fixes), end="")
        return report
    total: Counter[str] = Counter()
    for _ in range(10):
        done = repair(report, asked.paths, unsafe=asked.unsafe_fixes)
        if not done.count:
            for problem in done.problems:
                print(f"Warning: {problem}", file=sys.stderr)
            break
        total.update(done.files)
        report = Runner(config, rules).run(asked.paths)
    if total:
        print(f"repaired: {sum(total.values())} in {len(total)} file(s)", file=sys.stderr)
    return report


def _report(asked: Asked, config: Config, report: Report) -> None:
    from kernel_linter import output

    color = asked.format in ("text", "grouped") and asked.output_file is None and output.wants_color(sys.stdout)
    text = output.render(report, asked.format, target=config.target, color=color)
    if asked.statistics:
        text += output.statistics(report)
    if asked.output_file:
        _write(asked.output_file, text)
    else:
        sys.stdout.write(text)


def _write(path: Path, text: str) -> None:
    try:
        path.write_text(text, "utf-8")
    except OSError as error:
        print(f"Error: {path}: cannot be written: {error.strerror}", file=sys.stderr)
        raise SystemExit(2) from None


# -- baseline ----------------------------------------------------------------------------------------------------------
def _mark(finding: Finding) -> dict[str, str]:
    from kernel_linter.output import fingerprint

    return {"code": finding.code, "path": finding.path, "fingerprint": fingerprint(finding)}


def _hide(report: Report, path: Path) -> None:
    """Take known findings away; lines of the baseline that fit nothing are said on stderr."""
    try:
        known = json.loads(path.read_text("utf-8"))
        marks = Counter((m["code"], m["path"], m["fingerprint"]) for m in known)
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise ConfigError(f"{path}: is no baseline: {error}") from None
    left = []
    for finding in report.findings:
        mark = _mark(finding)
        key = (mark["code"], mark["path"], mark["fingerprint"])
        if marks[key] > 0:
            marks[key] -= 1
        else:
            left.append(finding)
    report.findings = left
    for (code, where, _), count in sorted(marks.items()):
        if count > 0:
            print(f"Baseline: {where}: {code} is found no longer; remove it", file=sys.stderr)
