"""Put the locked files in place: all of them, or none.

What a lock describes lies in ``.kernel/sets/<digest of the lock>``, beside other sets, so nothing that works is touched
before the new set is whole: it is made in a folder of its own, read back and compared with the lock, and renamed. The lock
file comes last. Until then the old lock names the old set; a run that was interrupted anywhere leaves just that.
"""

from __future__ import annotations

import os
import shutil
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from msgspec import Struct

from kernel import config_dir
from kernel_manager import tree
from kernel_manager.errors import ManagerError
from kernel_manager.harness_file import folders, lockfile, locking, verify, wheels
from kernel_manager.harness_file.lockfile import Lock
from kernel_manager.harness_file.locking import Made
from kernel_manager.harness_file.model import Parsed
from kernel_manager.harness_file.resolve import fetch
from kernel_manager.harness_file.tools import Ways
from kernel_manager.harness_file.wheels import Facts

CODE_DAYS = 90
"""Compiled code that was made longer ago is removed; where it is still used it is made again."""


class Synced(Struct, kw_only=True):
    """What a sync did. ``changed`` is false where everything was in place; ``notes`` are for people."""

    lock: Lock
    folder: Path
    changed: bool
    locked: bool
    notes: list[str]


def home(harness: Path, target: Path | None = None) -> Path:
    """The folder that holds the sets; a run looks in the same place."""
    given = os.environ.get("KERNEL_HARNESS_DIR")
    return target.absolute() if target else Path(given).absolute() if given else harness.parent / ".kernel"


def sync(parsed: Parsed, ways: Ways, *, frozen: bool = False, target: Path | None = None) -> Synced:
    """Bring the set to exactly the lock, and the lock to the harness file unless ``frozen``.

    :raises ManagerError: ``frozen``: the lock would have to change; or whatever stopped it. The old set is as it was.
    """
    place = home(parsed.path, target)
    try:
        with _alone(place), tempfile.TemporaryDirectory(prefix=".work-", dir=place) as work:
            return _sync(parsed, ways, frozen, place, Path(work))
    except OSError as error:
        raise ManagerError("disk", f"{error.strerror or error}; the set so far is as it was",
                           context=str(error.filename or place), hint="make room or mend the folder, and sync again") from None


def write_lock(parsed: Parsed, lock: Lock) -> bool:
    """Replace the lock file in one step; says whether anything changed."""
    path, raw = lockfile.path_of(parsed.path), lockfile.dumps(lock)
    for left in path.parent.glob(f".{path.name}-*"):  # of a run that was killed
        left.unlink(missing_ok=True)
    with suppress(OSError):
        if path.read_bytes() == raw:
            return False
    number, name = tempfile.mkstemp(prefix=f".{path.name}-", dir=path.parent)
    try:
        with open(number, "wb") as file:
            file.write(raw)
            file.flush()
            os.fsync(number)
        umask = os.umask(0)
        os.umask(umask)
        os.chmod(name, 0o666 & ~umask)
        os.replace(name, path)
    except BaseException:
        with suppress(OSError):
            os.unlink(name)
        raise
    return True


def _sync(parsed: Parsed, ways: Ways, frozen: bool, place: Path, work: Path) -> Synced:
    previous = _previous(parsed, frozen)
    current = previous if previous and previous.harness == lockfile.digest_of_harness(parsed.raw) else None
    if frozen and current is None:
        raise ManagerError("frozen", "has changed since it was locked", context=str(parsed.path),
                           hint="run kernel harness lock and commit the lock")
    made = None
    if current is not None:
        _check_platform(current)
        made = _as_locked(current, parsed, ways, frozen, work)
    fits = made is not None
    if made is None:
        made = locking.make(parsed, ways, previous, work)
    folder = place / "sets" / lockfile.set_id(lockfile.dumps(made.lock))
    changed = not folder.is_dir() or bool(verify.problems(made.lock, folder))
    if changed:
        if fits:
            _bring(made, parsed, ways, work, local=False)
            _archives(made, [place / "wheels", *ways.find_links], ways, work)
        ways.say(f"putting {len(made.lock.plugins)} plugins in place")
        _put(made, folder, work)
    locked = write_lock(parsed, made.lock)
    _prune(place, {folder.name, lockfile.set_id(lockfile.dumps(previous)) if previous else ""}, made.lock)
    return Synced(lock=made.lock, folder=folder, changed=changed, locked=locked, notes=made.notes)


def _previous(parsed: Parsed, frozen: bool) -> Lock | None:
    try:
        return lockfile.read(lockfile.path_of(parsed.path))[1]
    except ManagerError:  # a lock that cannot be read is written anew
        if frozen:
            raise
        return None


def _check_platform(lock: Lock) -> None:
    import sysconfig

    if lock.platform != "any" and (lock.python, lock.platform) != (locking.python_tag(), sysconfig.get_platform()):
        here = f"{locking.python_tag()} on {sysconfig.get_platform()}"
        raise ManagerError("other-platform", f"was locked for {lock.python} on {lock.platform}, this is {here}",
                           hint="lock it here, in a file of its own")


# -- the bytes ----------------------------------------------------------------------------------------------------------
def _as_locked(lock: Lock, parsed: Parsed, ways: Ways, frozen: bool, work: Path) -> Made | None:
    """A lock that fits its harness file, with the folders of the harness; the rest is fetched where the set needs it. ``None``:
    one of those folders has changed, so it is locked anew."""
    have = Made(lock=lock, archives={}, folders={})
    try:
        _bring(have, parsed, ways, work, local=True)
    except ManagerError as error:
        if error.type == "changed-folder" and not frozen:
            return None
        raise
    return have


def _bring(have: Made, parsed: Parsed, ways: Ways, work: Path, *, local: bool) -> None:
    """What is no archive of an index: folders of the harness (``local``), or repositories and the like at their pins."""
    for name, item in have.lock.distributions.items():
        if item.source.kind != "index" and local == (item.source.kind == "folder"):
            wheel: Facts | None
            if item.source.kind == "url":
                wheel = fetch({name: f"{name} @ {item.source.pin}"}, ways, work)[0].facts
            else:
                wheel = folders.from_pin(item.source, name, parsed, ways, work).wheel
            found = wheels.digests(wheel.path) if wheel is not None and wheel.name == name else {}
            _compare(f"distribution {name}", found, item.files, "changed-folder" if local else "pin-mismatch")
            assert wheel is not None
            have.archives[name] = wheel.path
    for name, plugin in have.lock.plugins.items():
        if plugin.files is not None and plugin.source is not None and local == (plugin.source.kind == "folder"):
            folder = folders.from_pin(plugin.source, name, parsed, ways, work).folder
            _compare(f"plugin {name}", locking.folder_digests(folder) if folder else {}, plugin.files,
                     "changed-folder" if local else "pin-mismatch")
            assert folder is not None
            have.folders[name] = folder


def _archives(have: Made, places: list[Path], ways: Ways, work: Path) -> None:
    """Archives of an index: from a folder that holds the very file, else fetched by digest."""
    missing: dict[str, str] = {}
    for name, item in have.lock.distributions.items():
        if item.source.kind == "index" and item.archive is not None:
            here = next((f for p in places if (f := p / item.archive).is_file() and wheels.sha256(f) == item.sha256), None)
            if here is not None and here.suffix == ".whl":
                have.archives[name] = here
            else:
                missing[name] = f"{name}=={item.version} --hash=sha256:{item.sha256}"
    for archive in fetch(missing, ways, work):
        have.archives[archive.facts.name] = archive.facts.path
    for name, item in have.lock.distributions.items():
        if item.source.kind == "index":
            _compare(f"distribution {name} {item.version}", wheels.digests(have.archives[name]), item.files, "pin-mismatch")


def _compare(owner: str, have: dict[str, str], locked: dict[str, str], kind: str) -> None:
    if have != locked:
        raise ManagerError(kind, f"{_which(have, locked)} is not as it was locked", context=owner,
                           hint="kernel harness lock takes it as it is now")


def keep(made: Made, place: Path, ways: Ways) -> None:
    """Keep what locking downloaded, so that a sync needs no network. A disk that is full does not matter here."""
    known = {folder.resolve() for folder in ways.find_links}
    for name, path in made.archives.items():
        item = made.lock.distributions[name]
        if item.archive == path.name and path.parent.resolve() not in known:
            with suppress(OSError):
                _prepare(place)
                (place / "wheels").mkdir(exist_ok=True)
                shutil.move(path, place / "wheels" / path.name)


def _which(have: dict[str, str], locked: dict[str, str]) -> str:
    return min((name for name in have.keys() | locked.keys() if have.get(name) != locked.get(name)), default="a file")


# -- the switch ------------------------------------------------------------------------------------------------------------
def _put(made: Made, folder: Path, work: Path) -> None:
    """Make the set aside, read it back, and rename it."""
    new = work / "set"
    site = new / "site"
    site.mkdir(parents=True)
    for path in made.archives.values():
        wheels.unpack(path, site)
    for name, source in made.folders.items():
        tree.copy(source, new / "plugins" / name)
    wrong = verify.problems(made.lock, new)
    if wrong:
        raise ManagerError("disk", f"{wrong[0]} after it was written", hint="is the disk in order?")
    folder.parent.mkdir(exist_ok=True)
    if folder.exists():  # a set that was damaged: no run takes it, so it does not matter that this is two steps
        folder.rename(work / "damaged")
    new.rename(folder)


def _prune(place: Path, keep: set[str], lock: Lock) -> None:
    """Remove sets that neither this lock nor the one before it names, and archives that it does not name."""
    for path in (place / "sets").iterdir():
        if path.name not in keep:
            shutil.rmtree(path, ignore_errors=True)
    # what runs compiled (kernel/guard.py): nothing of it is needed, it only saves time
    for path in (config_dir() / "kernel" / "code").glob("*"):
        with suppress(OSError):
            if path.stat().st_mtime < time.time() - CODE_DAYS * 86400:
                path.unlink()
    archives = {d.archive for d in lock.distributions.values()}
    for path in (place / "wheels").glob("*"):
        if path.name not in archives:
            path.unlink(missing_ok=True)


@contextmanager
def _alone(place: Path) -> Iterator[None]:
    """One sync at a time; scratch folders of runs that were killed are removed."""
    _prepare(place)
    with open(place / ".busy", "w") as file:
        try:
            import fcntl
        except ImportError:  # not on this system: two syncs at once would only do the work twice
            pass
        else:
            fcntl.flock(file, fcntl.LOCK_EX)
        for left in place.glob(".work-*"):
            shutil.rmtree(left, ignore_errors=True)
        yield


def _prepare(place: Path) -> None:
    place.mkdir(parents=True, exist_ok=True)
    if not (place / ".gitignore").exists():
        (place / ".gitignore").write_text("*\n")
