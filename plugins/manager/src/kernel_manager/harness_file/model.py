"""``harness.yaml``: which plugins, which settings, which order."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Annotated, Any, Literal

import msgspec
from msgspec import Meta, Struct, field

from kernel_manager.errors import ManagerError
from kernel_manager.harness_file import document
from kernel_manager.harness_file.document import Lines, refuse

FORMAT = 1
FILE = "harness.yaml"

Name = Annotated[str, Meta(min_length=1, max_length=200)]


class Wanted(Struct, forbid_unknown_fields=True, omit_defaults=True, kw_only=True):
    """One plugin, named in exactly one way."""

    requirement: Annotated[Name | None, Meta(description="a Python requirement: kernel-permissions>=0.1,<1")] = None
    path: Annotated[Name | None, Meta(description="a plugin folder, relative to this file")] = None
    git: Annotated[Name | None, Meta(description="the URL of a git repository")] = None
    ref: Annotated[Name | None, Meta(description="with git: a branch, a tag or a commit")] = None
    folder: Annotated[Name | None, Meta(description="with git: the plugin's folder inside the repository")] = None
    entry: Annotated[Name | None, Meta(description="a marketplace entry: name@marketplace")] = None
    source: Annotated[Name | None, Meta(description="any other source that kernel plugins install takes")] = None


WAYS = ("requirement", "path", "git", "entry", "source")


class HarnessFile(Struct, forbid_unknown_fields=True, omit_defaults=True, kw_only=True):
    """The whole file."""

    harness: Annotated[Literal[1], Meta(description="the version of this format")]
    name: Annotated[Name | None, Meta(description="what people call this harness")] = None
    description: Annotated[str | None, Meta(description="what it is for")] = None
    plugins: Annotated[list[Name | Wanted], Meta(description="the plugins; a text is a requirement, ./folder, or "
                                                             "name@marketplace")] = field(default_factory=list)
    marketplaces: Annotated[dict[Name, Name], Meta(description="name of a marketplace -> where it is: ./folder, owner/repo, "
                                                               "git+URL")] = field(default_factory=dict)
    settings: Annotated[dict[str, Any], Meta(description="settings of every run, below --settings and above the files of "
                                                         "project and user")] = field(default_factory=dict)
    order: Annotated[list[Name], Meta(description="plugins whose hooks come first, in this order; the others follow by "
                                                  "name")] = field(default_factory=list)
    block: Annotated[list[Name], Meta(description="plugins that stay out although something brings them")] = field(
        default_factory=list)


class Parsed(Struct, kw_only=True):
    """A harness file that was read. ``wanted`` is every plugin with the line where it stands."""

    path: Path
    raw: bytes
    file: HarnessFile
    lines: Lines
    wanted: list[tuple[Wanted, int]]

    @property
    def base(self) -> Path:
        return self.path.parent

    def refuse(self, where: str, message: str, hint: str = "") -> ManagerError:
        return refuse(self.path, self.lines.get(where), f"{where.removeprefix('$.')}: {message}", hint)


def read(path: Path) -> Parsed:
    """:raises ManagerError: ``no-harness`` or ``bad-harness``."""
    path = Path(path).absolute()
    return from_bytes(path, document.load(path)[0])


def from_bytes(path: Path, raw: bytes) -> Parsed:
    data, lines = document.parse(path, raw)
    if not isinstance(data, dict):
        raise refuse(path, 1, "must be a mapping with 'harness' and 'plugins'", "kernel harness init writes a starter file")
    try:
        file = msgspec.convert(data, HarnessFile)
    except msgspec.ValidationError as error:
        raise _translated(path, lines, str(error)) from None
    parsed = Parsed(path=path, raw=raw, file=file, lines=lines, wanted=[])
    for n, item in enumerate(file.plugins):
        where = f"$.plugins[{n}]"
        wanted = spelled(item) if isinstance(item, str) else item
        _check(parsed, where, wanted)
        parsed.wanted.append((wanted, lines.get(where, 1)))
    for key in ("order", "block"):
        names = getattr(file, key)
        twice = next((n for n in range(len(names)) if names[n] in names[:n]), None)
        if twice is not None:
            raise parsed.refuse(f"$.{key}[{twice}]", f"{names[twice]!r} stands twice")
    return parsed


def spelled(text: str) -> Wanted:
    """What a plain text in ``plugins`` means."""
    if text.startswith(("./", "../", "/", "~/")) or text in (".", ".."):
        return Wanted(path=text)
    if re.fullmatch(r"[A-Za-z0-9][\w.-]*@[\w.-]+", text):
        return Wanted(entry=text)
    if re.match(r"[A-Za-z0-9][\w.-]*/[\w.-]+(@|#|$)|git\+|(npm|github|python|pip):|https?://|git@", text):
        return Wanted(source=text)
    return Wanted(requirement=text)


def _check(parsed: Parsed, where: str, wanted: Wanted) -> None:
    ways = [way for way in WAYS if getattr(wanted, way) is not None]
    if len(ways) != 1:
        raise parsed.refuse(where, f"a plugin is named in exactly one way, here are {len(ways)}", f"one of {', '.join(WAYS)}")
    for extra in ("ref", "folder"):
        if getattr(wanted, extra) is not None and wanted.git is None:
            raise parsed.refuse(f"{where}.{extra}", "goes with git only")
    if wanted.requirement is not None:
        requirement(parsed, where, wanted.requirement)
    market = wanted.entry.rpartition("@")[2] if wanted.entry else None
    if market is not None and market not in parsed.file.marketplaces:
        raise parsed.refuse(where, f"{wanted.entry!r} is no entry of a marketplace of this file",
                            f"write name@marketplace, and add marketplaces: {{{market}: owner/repo}}")


def requirement(parsed: Parsed, where: str, text: str) -> Any:
    from packaging.requirements import InvalidRequirement, Requirement

    try:
        return Requirement(text)
    except InvalidRequirement as error:
        raise parsed.refuse(where, f"{text!r} is no Python requirement: {str(error).splitlines()[0]}",
                            "for example kernel-permissions>=0.1,<1") from None


def _translated(path: Path, lines: Lines, said: str) -> ManagerError:
    """msgspec's message as ours: file, line, field, what was expected, what to do."""
    message, _, at = said.partition(" - at `")
    where = at.rstrip("`") or "$"
    unknown = re.search(r"unknown field `(.+)`", message)
    if unknown:
        from difflib import get_close_matches

        known = Wanted.__struct_fields__ if "[" in where else HarnessFile.__struct_fields__
        near = get_close_matches(unknown[1], known, n=1)
        line = lines.get(f"{where}.{unknown[1]}") or lines.get(where)
        hint = f"did you mean {near[0]!r}?" if near else f"known are {', '.join(known)}"
        return refuse(path, line, f"{unknown[1]}: there is no such field", hint)
    line = lines.get(where) or lines.get("$")
    return refuse(path, line, f"{where.removeprefix('$').removeprefix('.') or 'the file'}: {message}",
                  "kernel harness schema prints what is allowed")


def schema() -> dict[str, Any]:
    """The JSON Schema of the file, for editors and checks."""
    made = msgspec.json.schema(HarnessFile)
    return {"$schema": "https://json-schema.org/draft/2020-12/schema", "title": "harness.yaml", **made}
