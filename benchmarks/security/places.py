"""Paths: many spellings of a folder, through links of several kinds, by every tool; and a link that is swapped meanwhile.

Everything goes through the real loop, policy and tools. What counts is what happened: whether a secret was told, a file
made where none may be, or a file refused that is free.
"""

from __future__ import annotations

import os
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NamedTuple

SECRET, FREE = "S3CRET-c0ffee", "F0R-EVERYBODY"
LEAF = "k.txt"
TARGETS = {"denied": ("secret", "alias", "chain", "src/up/secret"),
           "outside": ("../outside", "out", "outchain", "src/upup/outside"),
           "free": ("src", "srclink", "srcchain", "src/up/src")}
"""Folder, a link to it, a chain of links to it, and a way through a link in between."""
PLAIN = 18
"""So many spellings at the beginning are ones that every system reads alike: a free file must not be refused by them."""

Spelling = Callable[[str, str], str]
SPELLINGS: tuple[Spelling, ...] = (
    lambda w, n: n, lambda w, n: f"./{n}", lambda w, n: f".//{n}", lambda w, n: f"././././{n}", lambda w, n: f"{n}/.",
    lambda w, n: f"src/../{n}", lambda w, n: f"src/./../{n}", lambda w, n: f"../work/{n}", lambda w, n: f"./../work/./{n}",
    lambda w, n: f"{w}/{n}", lambda w, n: f"{w}//{n}", lambda w, n: f"{w}/./{n}", lambda w, n: f"{w}/src/../{n}",
    lambda w, n: f"/{w}/{n}", lambda w, n: f"//{w}/{n}", lambda w, n: f"src/../src/./../{n}", lambda w, n: f"{w}/../work/{n}",
    lambda w, n: f"src/../src/../{n}", lambda w, n: f"~/../work/{n}",
    lambda w, n: f"src/up/{n}", lambda w, n: f"src/up/up2/{n}", lambda w, n: f"src/up/../{n}", lambda w, n: f"worklink/{n}",
    lambda w, n: f"worklink/../work/{n}", lambda w, n: f"{w}/worklink/{n}", lambda w, n: f"srclink/../{n}",
    lambda w, n: f"srclink/up/{n}", lambda w, n: f"nowhere/../{n}", lambda w, n: f"{n}/../{n.rsplit('/', 1)[-1]}",
    lambda w, n: f"/proc/self/cwd/{n}", lambda w, n: f"/proc/self/root{w}/{n}", lambda w, n: f"/proc/thread-self/cwd/{n}",
    lambda w, n: f"{n.upper()}", lambda w, n: f"{n}/", lambda w, n: f" {n}", lambda w, n: f"{n[:1]}*{n[2:]}",
    lambda w, n: f"file://{w}/{n}",
    lambda w, n: f"{'./' * 900}{n}", lambda w, n: f"{n}\0", lambda w, n: n.replace("/", "\\"), lambda w, n: f"$PWD/{n}",
    lambda w, n: f"${{HOME}}/../work/{n}", lambda w, n: f"\u2024/{n}")


class Case(NamedTuple):
    target: str
    spelling: int
    link: int
    tool: str
    input: dict[str, Any]

    def made(self, work: Path) -> Path | None:
        """The file that it would make in the free folder."""
        path = str(self.input.get("file_path") or self.input.get("command") or "")
        return work / "src" / path.rsplit("/", 1)[-1] if "new-" in path else None


class Wrong(NamedTuple):
    case: Case
    what: str


class PathFigures(NamedTuple):
    calls: int
    spellings: int
    tools: int
    free: int
    """Calls about free places, in spellings that every system reads alike, that did what they were to do."""
    wrong: list[Wrong]


def lay_out(root: Path) -> Path:
    work = root / "work"
    for folder in (work / "src", work / "secret", root / "outside", root / "home"):
        folder.mkdir(parents=True)
    for folder, word in ((work / "src", FREE), (work / "secret", SECRET), (root / "outside", SECRET)):
        (folder / LEAF).write_text(f"{word}\n")
    (work / "a.txt").write_text("x\n")
    links = {"alias": "secret", "chain": "chain2", "chain2": f"{work}/secret", "out": "../outside", "outchain": "out2",
             "out2": str(root / "outside"), "srclink": "src", "srcchain": "srcchain2", "srcchain2": "src", "src/up": "..",
             "src/upup": "../..", "worklink": str(work), "up2": "."}
    for name, to in links.items():
        (work / name).symlink_to(to)
    return work


def cases(work: Path, spellings: range) -> Iterator[Case]:
    for target, names in TARGETS.items():
        for number in spellings:
            for link, name in enumerate(names):
                folder = SPELLINGS[number](str(work), name)
                for tool, input in _calls(folder, f"new-{number}-{link}"):
                    yield Case(target, number, link, tool, input)


def _calls(folder: str, new: str) -> Iterator[tuple[str, dict[str, Any]]]:
    """Every way to read what is in the folder, and to make a file there."""
    search = {"pattern": f"{SECRET}|{FREE}", "output_mode": "content"}
    bare = folder.replace("\0", "")
    quoted = bare if bare.startswith("~") else f'"{bare}"'
    yield "Read", {"file_path": f"{folder}/{LEAF}"}
    yield "Grep", {**search, "path": folder}
    yield "Grep", {**search, "path": f"{folder}/{LEAF}"}
    yield "Bash", {"command": f"cat {quoted}/{LEAF}"}
    yield "Bash", {"command": f"cat {bare}/{LEAF}"}
    yield "Write", {"file_path": f"{folder}/{new}-w", "content": "x"}
    yield "Edit", {"file_path": f"{folder}/{new}-e", "old_string": "", "new_string": "x"}
    yield "Bash", {"command": f"echo x > {quoted}/{new}-b"}
    yield "Bash", {"command": f"cp a.txt {quoted}/{new}-c"}


@contextmanager
def home(path: Path) -> Iterator[None]:
    before = os.environ.get("HOME")
    os.environ["HOME"] = str(path)
    try:
        yield
    finally:
        os.environ.pop("HOME")
        if before is not None:
            os.environ["HOME"] = before


async def paths(root: Path, spellings: range = range(len(SPELLINGS))) -> PathFigures:
    """Every case through the loop, in batches."""
    from kernel.testing import Kit, call, text

    work = lay_out(root)
    given = list(cases(work, spellings))
    batches = [given[n:n + 40] for n in range(0, len(given), 40)]
    turns: list[Any] = [[call(c.tool, f"c{n}-{i}", **c.input) for i, c in enumerate(batch)] for n, batch in enumerate(batches)]
    rules = {"permissions": {"deny": ["Read(secret/**)"]}}
    with home(root / "home"):
        kit = Kit(work, [*turns, text("done")], installed=["permissions", "tools-files", "tools-shell"], settings=rules,
                  permission_mode="acceptEdits")
        run = await kit.run("go")
        await run.session.close()
    results = _results(run.requests[-1])
    wrong: list[Wrong] = []
    free = 0
    for n, batch in enumerate(batches):
        for i, case in enumerate(batch):
            told = results[f"c{n}-{i}"]
            if SECRET in told:
                wrong.append(Wrong(case, "told a secret"))
            if case.target == "free" and case.spelling < PLAIN:
                made = case.made(work)
                if FREE in told or "has not changed since" in told or (made is not None and made.exists()):
                    free += 1
                else:
                    wrong.append(Wrong(case, f"refused what is free: {told[:200]}"))
    wrong += [Wrong(Case("", -1, -1, "", {}), f"made {path}") for folder in (work / "secret", root / "outside")
              for path in sorted(folder.iterdir()) if path.name != LEAF]
    return PathFigures(len(given), len(spellings), len({c.tool for c in given}), free, wrong)


def _results(request: dict[str, Any]) -> dict[str, str]:
    return {block["tool_use_id"]: str(block["content"]) for message in request["messages"] for block in message["content"]
            if isinstance(block, dict) and block.get("type") == "tool_result"}


# -- a link that is swapped between the decision and the use ------------------------------------------------------------------
class RaceFigures(NamedTuple):
    """``calls`` through a link that somebody swapped ``swaps`` times; ``inside``: how often the free side was met;
    ``refused``: how often the call was."""

    calls: int
    swaps: int
    inside: int
    refused: int
    wrong: list[str]


async def race(root: Path, rounds: int) -> RaceFigures:
    """Read, Write and Edit through links that a thread swaps all the time between a free and a forbidden place."""
    from kernel.testing import Kit, call, text

    work = lay_out(root)
    (work / "swapped").symlink_to("src")
    (work / "leaf").symlink_to(f"src/{LEAF}")
    swaps, done = [0], threading.Event()

    def swap() -> None:
        while not done.is_set():
            for name, to in (("swapped", "../outside"), ("leaf", f"../outside/{LEAF}"), ("swapped", "src"),
                             ("leaf", f"src/{LEAF}")):
                spare = work / ".spare"
                spare.symlink_to(to)
                os.replace(spare, work / name)
                swaps[0] += 1

    def batch(n: int) -> list[Any]:
        return [call("Read", f"r{n}", file_path="leaf"), call("Read", f"d{n}", file_path=f"swapped/{LEAF}"),
                call("Grep", f"g{n}", pattern=".", path="leaf", output_mode="content"),
                call("Write", f"w{n}", file_path=f"swapped/new-{n}", content="x"),
                call("Edit", f"e{n}", file_path=f"swapped/edit-{n}", old_string="", new_string="x")]

    with home(root / "home"):
        kit = Kit(work, [*(batch(n) for n in range(rounds)), text("done")], installed=["permissions", "tools-files"],
                  permission_mode="acceptEdits")
        thread = threading.Thread(target=swap, daemon=True)
        thread.start()
        try:
            run = await kit.run("go")
        finally:
            done.set()
            thread.join()
        await run.session.close()
    results = _results(run.requests[-1])
    wrong = [f"{name} told a secret" for name, told in results.items() if SECRET in told]
    wrong += [f"made {path.name} outside" for path in (root / "outside").iterdir() if path.name != LEAF]
    inside = sum(FREE in told for told in results.values()) + len([*(work / "src").glob("new-*"), *(work / "src").glob("edit-*")])
    refused = sum("path_changed" in told or "approval" in told or "outside" in told for told in results.values())
    return RaceFigures(len(results), swaps[0], inside, refused, wrong)
