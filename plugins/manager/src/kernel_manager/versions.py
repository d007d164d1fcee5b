"""Semantic versions and ranges as npm reads them (plugins contract, section 8)."""

from __future__ import annotations

import re
from functools import total_ordering

from kernel_manager.errors import ManagerError

_VERSION = re.compile(r"^[v=\s]*(\d{1,9})\.(\d{1,9})\.(\d{1,9})(?:-([0-9A-Za-z.-]+))?(?:\+[0-9A-Za-z.-]+)?$")
_PIECE = r"(\d{1,9}|[xX*])"
_PARTIAL = re.compile(rf"^[v=\s]*{_PIECE}(?:\.{_PIECE})?(?:\.{_PIECE})?(?:-([0-9A-Za-z.-]+))?(?:\+[0-9A-Za-z.-]+)?$")
MAX_RANGE = 256


@total_ordering
class Version:
    """One version. Build metadata does not count; a pre-release comes before its release."""

    __slots__ = ("core", "pre")

    def __init__(self, core: tuple[int, int, int], pre: tuple[str, ...] = ()) -> None:
        self.core = core
        self.pre = pre

    @classmethod
    def parse(cls, text: str) -> Version | None:
        match = _VERSION.match(text.strip()[:MAX_RANGE])
        if match is None:
            return None
        return cls((int(match[1]), int(match[2]), int(match[3])), tuple(match[4].split(".")) if match[4] else ())

    def _key(self) -> tuple[object, ...]:
        # numbers sort before words, and no pre-release at all sorts last
        return (self.core, not self.pre, tuple((0, int(p), "") if p.isdigit() else (1, 0, p) for p in self.pre))

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Version) and self._key() == other._key()

    def __lt__(self, other: Version) -> bool:
        return self._key() < other._key()

    def __hash__(self) -> int:
        return hash(self._key())

    def __str__(self) -> str:
        return ".".join(map(str, self.core)) + (f"-{'.'.join(self.pre)}" if self.pre else "")


Comparator = tuple[str, Version]


class Range:
    """A range such as ``^1.2 || >=2.0.0-rc.1 <3``.

    :raises ManagerError: ``bad-range``; a range that cannot be read is no range.
    """

    def __init__(self, text: str) -> None:
        self.text = text
        if len(text) > MAX_RANGE:
            raise ManagerError("bad-range", f"a version range over {MAX_RANGE} characters")
        self.sets = [_comparators(part, text) for part in text.split("||")]

    def allows(self, version: str | Version) -> bool:
        """Whether the version fits. A pre-release fits only where the range names one of the same release."""
        have = Version.parse(version) if isinstance(version, str) else version
        if have is None:
            return False
        return any(all(_compare(have, op, want) for op, want in group)
                   and (not have.pre or any(want.pre and want.core == have.core for _, want in group))
                   for group in self.sets)


def _compare(have: Version, op: str, want: Version) -> bool:
    return {"<": have < want, "<=": have <= want, ">": have > want, ">=": have >= want, "=": have == want}[op]


def _comparators(part: str, whole: str) -> list[Comparator]:
    hyphen = re.match(r"^\s*(\S+)\s+-\s+(\S+)\s*$", part)
    if hyphen:
        return [*_one(">=", hyphen[1], whole), *_one("<=", hyphen[2], whole)]
    found: list[Comparator] = []
    for op, word in re.findall(r"(>=|<=|>|<|=|\^|~>?)?\s*([^\s<>=^~]+)", part):
        found += _one({"~>": "~"}.get(op, op), word, whole)
    rest = re.sub(r"(>=|<=|>|<|=|\^|~>?)?\s*([^\s<>=^~]+)", "", part).strip()
    if rest:
        raise ManagerError("bad-range", f"{whole!r} is no version range")
    return found


def _one(op: str, word: str, whole: str) -> list[Comparator]:
    match = _PARTIAL.match(word)
    if match is None:
        raise ManagerError("bad-range", f"{whole!r} is no version range: {word!r} is no version")
    numbers: list[int] = []
    for piece in (match[1], match[2], match[3]):
        if piece is None or piece in "xX*":
            break
        numbers.append(int(piece))
    pre = tuple(match[4].split(".")) if match[4] and len(numbers) == 3 else ()
    return _bounds(op, numbers, pre)


def _bounds(op: str, numbers: list[int], pre: tuple[str, ...]) -> list[Comparator]:
    def at(core: list[int], pre: tuple[str, ...] = ()) -> Version:
        padded = [*core, 0, 0, 0][:3]
        return Version((padded[0], padded[1], padded[2]), pre)

    def after(position: int) -> Version:
        """The first version that is not of the same series any more; its ``-0`` keeps its pre-releases out."""
        return at([*numbers[:position], [*numbers, 0, 0, 0][position] + 1], ("0",))

    full = len(numbers) == 3
    low = at(numbers, pre)
    if not numbers:
        return [("<", at([0, 0, 0], ("0",)))] if op in ("<", ">") else []
    if op == "^":
        position = next((n for n, value in enumerate(numbers) if value), len(numbers) - 1)
        return [(">=", low), ("<", after(position))]
    if op == "~":
        return [(">=", low), ("<", after(min(1, len(numbers) - 1)))]
    if full:
        return [(op or "=", low)]
    if op in ("", "="):
        return [(">=", low), ("<", after(len(numbers) - 1))]
    if op == ">":
        return [(">=", after(len(numbers) - 1))]
    if op == "<=":
        return [("<", after(len(numbers) - 1))]
    return [(op, low)]


def highest(versions: list[str], ranges: list[Range]) -> str | None:
    """The highest version that fits all ranges, as it was written."""
    fitting = [(parsed, text) for text in versions if (parsed := Version.parse(text)) and all(r.allows(parsed) for r in ranges)]
    return max(fitting, key=lambda item: item[0])[1] if fitting else None
