"""What is asked for: flags and ``[tool.kernel.lint]`` or ``kernel-lint.toml`` (lint contract, section 4)."""

from __future__ import annotations

import re
import tomllib
from fnmatch import fnmatch
from pathlib import Path
from typing import Any, Literal

from msgspec import Struct, field

from kernel_linter.rule import Diagnostic, Rule, Severity

Profile = Literal["default", "strict", "spec", "compat", "security"]
WIDENING = ("SKL001", "CMD001", "AGT001", "AGT008", "AGT010", "AGT016", "HOK006", "HOK013", "HOK014", "HOK015", "HOK021",
            "HOK022",
            "PLG041")
"""Rules beside ``SEC`` whose faults give more rights than was meant."""


class ConfigError(Exception):
    """A configuration that cannot be used; exit code 2."""


class Config(Struct, kw_only=True):
    select: list[str] = field(default_factory=list)
    extend_select: list[str] = field(default_factory=list)
    ignore: list[str] = field(default_factory=list)
    profile: Profile = "default"
    target: str = ""
    strict: bool = False
    preview: bool = False
    exclude: list[str] = field(default_factory=list)
    per_file_ignores: dict[str, list[str]] = field(default_factory=dict)
    ignore_paths: list[str] = field(default_factory=list)
    known_tools: list[str] = field(default_factory=list)
    severity: dict[str, Severity] = field(default_factory=dict)
    source: str = ""
    since: str = ""
    """A git revision to compare catalogues with."""


_KEYS = {name.replace("_", "-"): name for name in Config.__struct_fields__ if name not in ("source", "preview", "since")}


def load(start: Path, file: Path | None = None) -> Config:
    """The nearest configuration upward from a folder, or the given file. Raises ``ConfigError``."""
    if file is not None:
        return _read(file, whole=file.name != "pyproject.toml")
    try:
        here = start.absolute() if start.is_dir() else start.absolute().parent
    except OSError:
        return Config()
    for folder in (here, *here.parents):
        own, project = folder / "kernel-lint.toml", folder / "pyproject.toml"
        if own.is_file():
            return _read(own, whole=True)
        if project.is_file():
            try:
                found = b"[tool.kernel.lint" in project.read_bytes()[:1_000_000]
            except OSError:
                found = False
            if found:
                return _read(project, whole=False)
    return Config()


def _read(file: Path, *, whole: bool) -> Config:
    import msgspec

    try:
        data: Any = tomllib.loads(file.read_bytes()[:1_000_000].decode("utf-8-sig"))
    except OSError as error:
        raise ConfigError(f"{file}: cannot be read: {error.strerror}") from None
    except (ValueError, RecursionError) as error:
        raise ConfigError(f"{file}: is not valid TOML: {error}") from None
    for step in () if whole else ("tool", "kernel", "lint"):
        data = data.get(step, {}) if isinstance(data, dict) else {}
    strange = sorted(set(data) - set(_KEYS))
    if strange:
        raise ConfigError(f"{file}: unknown key {strange[0]!r}; known: {', '.join(sorted(_KEYS))}")
    try:
        return msgspec.convert({**{_KEYS[k]: v for k, v in data.items()}, "source": str(file)}, Config)
    except msgspec.ValidationError as error:
        raise ConfigError(f"{file}: {error}") from None


def check_words(words: list[str], known: list[Rule]) -> None:
    """Every selector must name something."""
    for word in words:
        if word != "ALL" and not any(matches(word, rule) for rule in known):
            raise ConfigError(f"{word!r} names no rule: give a code (PLG001), a prefix (PLG, HOK02), PREFIX/slug, or ALL")


def matches(word: str, rule: Rule) -> int:
    """How well a selector fits a rule: the length of the match, 0 for none."""
    if word == "ALL":
        return 1
    if word in (rule.code, rule.id) or (word == rule.slug and "/" not in word):
        return 100
    return len(word) if re.fullmatch(r"[A-Z]{1,12}-?\d*", word) and rule.code.startswith(word) else 0


class Selection:
    """Which findings are kept, and how severe they are."""

    def __init__(self, config: Config) -> None:
        self.config = config
        self._known: dict[str, bool] = {}
        self._files = [(glob, [_word(c) for c in codes]) for glob, codes in config.per_file_ignores.items()]

    def might(self, rule: Rule) -> bool:
        if rule.code not in self._known:
            self._known[rule.code] = self._selected(rule)
        return self._known[rule.code]

    def _selected(self, rule: Rule) -> bool:
        config = self.config
        ignored = max((matches(w, rule) for w in config.ignore), default=0)
        wanted = max((matches(w, rule) for w in (*config.select, *config.extend_select)), default=0)
        if wanted and wanted > ignored:
            return True
        if ignored or config.select:
            return False
        return self._in_profile(rule)

    def _in_profile(self, rule: Rule) -> bool:
        profile = self.config.profile
        if rule.profile == "spec":
            return profile == "spec"
        if profile == "security":
            return rule.code.startswith("SEC") or rule.code in WIDENING
        if profile == "compat":
            return rule.severity == "error" and not rule.code.startswith(("SEC", "KRN0"))
        return True

    def excused(self, said: Diagnostic) -> bool:
        """Paths that exist after a build only, tools that are known, features that the target has."""
        if said.host and (not self.config.target or version(self.config.target) >= version(said.host)):
            return True
        return bool(said.about) and (said.about in self.config.known_tools or any(
            fnmatch(said.about, g) or fnmatch(said.about, f"{g.rstrip('/')}/*") for g in self.config.ignore_paths))

    def severity(self, rule: Rule, own: Severity | None, path: str) -> Severity | None:
        """The severity of a finding; ``None`` where it is not reported."""
        if not self.might(rule) or any(fnmatch(path, g) or fnmatch(path, f"{g.rstrip('/')}/*") for g in self.config.exclude):
            return None
        for glob, words in self._files:
            if (fnmatch(path, glob) or fnmatch(path, f"*/{glob}")) and any(matches(w, rule) for w in words):
                return None
        given = next((s for w, s in self.config.severity.items() if w in (rule.code, rule.id)), None)
        severity = given or own or rule.severity
        return "error" if severity == "warning" and self.config.profile == "strict" else severity


def _word(text: str) -> str:
    """``"SKL036 long on purpose"``: the first word is the selector, the rest is the reason."""
    return text.split()[0] if text.split() else text


def version(text: str) -> tuple[int, ...]:
    return tuple(int(n) for n in re.findall(r"\d+", text)[:3])
