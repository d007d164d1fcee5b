"""The typer application of ``kernel harness``."""

from __future__ import annotations

import tempfile
from pathlib import Path
from typing import Annotated, Literal

import typer

from kernel_manager.errors import ManagerError
from kernel_manager.harness_file import (
    commands,
    export as exporting,
    lockfile,
    locking,
    model,
    show as showing,
    sync as syncing,
    verify as verifying,
)
from kernel_manager.harness_file.commands import SUMMARIES, print_json, relative
from kernel_manager.harness_file.tools import Ways

app = typer.Typer(name="kernel harness", help="A harness as a file.", no_args_is_help=True, add_completion=False)

File = Annotated[Path, typer.Argument(help="the harness file")]
Json = Annotated[bool, typer.Option("--json", help="one JSON object")]
Links = Annotated[list[Path] | None, typer.Option("--find-links", help="a folder of wheels; may be given more than once")]
NoIndex = Annotated[bool, typer.Option("--no-index", help="ask no package index")]
Build = Annotated[bool, typer.Option("--no-build-isolation", help="build folders with what is installed here")]
Quiet = Annotated[bool, typer.Option("--quiet", help="no progress on stderr")]
HARNESS = Path(model.FILE)


def ways(links: list[Path] | None, no_index: bool, no_build_isolation: bool, quiet: bool) -> Ways:
    for folder in links or ():
        if not folder.is_dir():
            raise typer.BadParameter(f"{folder} is no folder", param_hint="--find-links")
    return Ways(find_links=[folder.absolute() for folder in links or ()], no_index=no_index,
                build_isolation=not no_build_isolation, say=(lambda text: None) if quiet else commands.say)


@app.command("init", help=SUMMARIES["init"])
def init(file: File = HARNESS,
         force: Annotated[bool, typer.Option("--force", help="replace a file that is there")] = False) -> None:
    from kernel_manager.harness_file.starter import starter

    text = starter(file)
    try:
        with open(file, "w" if force else "x", encoding="utf-8") as out:
            out.write(text)
    except FileExistsError:
        raise ManagerError("exists", "is there already", context=str(file), hint="--force replaces it") from None
    print(f"{file} written. Next: kernel harness lock{'' if file == HARNESS else f' {file}'}")


@app.command("lock", help=SUMMARIES["lock"])
def lock(file: File = HARNESS, find_links: Links = None, no_index: NoIndex = False, no_build_isolation: Build = False,
         upgrade: Annotated[bool, typer.Option("--upgrade", help="take the newest versions, whatever was locked")] = False,
         check: Annotated[bool, typer.Option("--check", help="write nothing; exit code 1 where the lock would change")] = False,
         as_json: Json = False, quiet: Quiet = False) -> None:

    how = ways(find_links, no_index, no_build_isolation, quiet)
    parsed, path = model.read(file), lockfile.path_of(file.absolute())
    previous = _previous(path, how)
    with tempfile.TemporaryDirectory(prefix="kernel-harness-") as work:
        made = locking.make(parsed, how, None if upgrade else previous, Path(work))
        if not check:
            syncing.keep(made, syncing.home(parsed.path), how)
    before = path.read_bytes() if path.exists() else b""
    changed = before != lockfile.dumps(made.lock)
    if changed and not check:
        syncing.write_lock(parsed, made.lock)
    difference = differences(previous, made.lock)
    if as_json:
        print_json({"lock": str(path), "changed": changed, "written": changed and not check, "plugins": len(made.lock.plugins),
                    "distributions": len(made.lock.distributions), "differences": difference, "notes": made.notes})
    else:
        for line in (*difference, *made.notes):
            print(line)
        state = ("would change" if check else "written") if changed else "is up to date"
        print(f"{relative(path)} {state}: {len(made.lock.plugins)} plugins, {len(made.lock.distributions)} distributions")
    raise typer.Exit(1 if changed and check else 0)


def _previous(path: Path, how: Ways) -> lockfile.Lock | None:
    if path.exists():
        try:
            return lockfile.read(path)[1]
        except ManagerError as error:
            how.say(f"{error.context}: {error.message}; it is written anew")
    return None


def differences(old: lockfile.Lock | None, new: lockfile.Lock) -> list[str]:
    before = {n: d.version for n, d in old.distributions.items()} if old else {}
    after = {n: d.version for n, d in new.distributions.items()}
    lines = [f"+ {n} {after[n]}" for n in sorted(after.keys() - before.keys())] if old else []
    lines += [f"- {n} {before[n]}" for n in sorted(before.keys() - after.keys())]
    return lines + [f"~ {n} {before[n]} -> {after[n]}" for n in sorted(after.keys() & before.keys()) if after[n] != before[n]]


@app.command("sync", help=SUMMARIES["sync"])
def sync(file: File = HARNESS, find_links: Links = None, no_index: NoIndex = False, no_build_isolation: Build = False,
         frozen: Annotated[bool, typer.Option("--frozen", help="refuse where the lock would have to change (for CI)")] = False,
         target: Annotated[Path | None, typer.Option("--target", help="instead of .kernel beside the file; a run finds it by "
                                                                      "KERNEL_HARNESS_DIR")] = None,
         as_json: Json = False, quiet: Quiet = False) -> None:

    done = syncing.sync(model.read(file), ways(find_links, no_index, no_build_isolation, quiet), frozen=frozen, target=target)
    if as_json:
        print_json({"folder": str(done.folder), "changed": done.changed, "locked": done.locked, "notes": done.notes,
                    "plugins": {name: p.version for name, p in sorted(done.lock.plugins.items())}})
        return
    for note in done.notes:
        print(note)
    if done.locked:
        print(f"{relative(lockfile.path_of(file.absolute()))} written")
    print(f"{len(done.lock.plugins)} plugins {'put in place' if done.changed else 'are in place'}; run them with: "
          f"kernel --harness {file} -p ...")


@app.command("verify", help=SUMMARIES["verify"])
def verify(file: File = HARNESS, as_json: Json = False,
           environment: Annotated[bool, typer.Option("--environment", help="the installed packages, not the set")] = False,
           target: Annotated[Path | None, typer.Option("--target", help="where sync put the set")] = None) -> None:

    parsed = model.read(file)
    raw, locked = lockfile.read(lockfile.path_of(parsed.path))
    folder = syncing.home(parsed.path, target) / "sets" / lockfile.set_id(raw)
    if not environment and not folder.is_dir():
        raise ManagerError("not-in-place", "the locked set is not there", context=str(folder), hint="run kernel harness sync")
    found = verifying.in_environment(locked) if environment else verifying.problems(locked, folder)
    stale = locked.harness != lockfile.digest_of_harness(parsed.raw)
    lines = [*map(str, found), *([f"{parsed.path} has changed since it was locked (kernel harness lock)"] if stale else [])]
    files = sum(len(d.files) for d in locked.distributions.values()) + sum(len(p.files or ()) for p in locked.plugins.values())
    if as_json:
        print_json({"ok": not lines, "files": files, "stale": stale,
                    "problems": [{"owner": p.owner, "file": p.file, "what": p.what} for p in found]})
    else:
        print("\n".join(lines) if lines else f"{files} files of {len(locked.plugins)} plugins are as they were locked")
    raise typer.Exit(1 if lines else 0)


@app.command("show", help=SUMMARIES["show"])
def show(file: File = HARNESS, as_json: Json = False) -> None:

    data = showing.facts(model.read(file))
    print_json(data) if as_json else print(showing.text(data))


@app.command("export", help=SUMMARIES["export"])
def export(file: File = HARNESS, output: Annotated[Path, typer.Option("--output", help="the folder to write to")] = Path("."),
           image: Annotated[str | None, typer.Option("--image", help="the Python image, best with its digest")] = None,
           only: Annotated[Literal["pyproject", "dockerfile"] | None, typer.Option("--only", help="not both")] = None) -> None:

    parsed = model.read(file)
    locked = lockfile.read(lockfile.path_of(parsed.path))[1]
    for path in exporting.write(parsed, locked, output, image, only):
        print(f"{relative(path)} written")


@app.command("schema", help=SUMMARIES["schema"])
def schema() -> None:
    print_json(model.schema())
