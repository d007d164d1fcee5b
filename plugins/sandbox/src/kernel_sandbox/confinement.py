"""The sandbox of one session: which calls it confines, and the command line that does it."""

from __future__ import annotations

import os
import shutil
import sys
import time
import weakref
from collections.abc import Iterable, Sequence
from pathlib import Path
from tempfile import mkdtemp
from threading import Lock
from typing import TYPE_CHECKING, Any, Literal

from kernel import KernelError, ToolError, UsageError, config_dir
from kernel_sandbox import excluded, inner, seccomp, wishes
from kernel_sandbox.factory import rooted
from kernel_sandbox.patterns import Finder
from kernel_sandbox.protected import Protection, protect
from kernel_sandbox.view import Plan, TooMany, View, under

if TYPE_CHECKING:
    from kernel import Session
    from kernel_sandbox.proxy import Proxy
    from kernel_sandbox.wishes import Wishes

_OPEN_FILTER = 'exec 9<"$0"; exec "$@"'
"""bubblewrap takes its filter from a descriptor; a shell opens it and becomes bubblewrap."""
_PIPES = ("/run/initctl", "/run/systemd/initctl/fifo")
"""Named pipes of init: a read-only mount does not keep their owner from writing to them."""
_FRESH_S = 1.0
"""Seconds for which a search counts that was made on behalf of a command."""
_NEEDED = ("/bin", "/dev", "/etc", "/lib", "/proc", "/usr")


class Confinement:
    """Opened by the factory.

    :param form: what ``factory.probe`` found to work.
    """

    def __init__(self, session: Session, asked: Wishes, program: str, form: list[str]) -> None:
        self.session = session
        self.program = program
        self.form = form
        self.added: list[str] = []
        self.folder = _private_folder()
        self._proxy: list[Proxy] = []
        self._protection: Protection | None = None
        self._last_resort = weakref.finalize(self, _tidy, self.folder, self._proxy)
        self.tmp = str(self.folder / "tmp")
        os.mkdir(self.tmp, 0o700)
        self.mask = str(self.folder / "mask")
        os.close(os.open(self.mask, os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o000))
        self.filter = str(self.folder / "filter")
        Path(self.filter).write_bytes(seccomp.program() or b"")
        self._looking = Lock()
        self._seen: tuple[object, str, int] = (session.settings.layers, session.project_root, 0)
        self._asked = asked
        self._finder = _finder(asked)
        self._looked: tuple[float, dict[str, list[str]]] | None = None
        self._check_start()

    # -- the protocol --------------------------------------------------------------------------------------------------
    def confines(self, input: dict[str, Any]) -> bool:
        asked = self.asked()
        if input.get("dangerouslyDisableSandbox") is True and asked.escape:
            return False
        return not excluded.covers(asked.excluded, input, self.session.policy.matches)

    def wrap(self, argv: list[str], *, cwd: str, purpose: Literal["tool", "hook"], input: dict[str, Any] | None = None,
             writable: Sequence[str] = ()) -> list[str]:
        """:raises ToolError: the boundaries cannot be put into force; the command must not run."""
        asked = self.asked(cwd)
        if purpose == "hook":
            if not asked.hooks:
                return argv
        elif not self.confines(input or {}):
            return argv
        view = self._view(asked, writable)
        try:
            mounts = view.mounts(self.mask)
        except TooMany:
            raise ToolError("sandbox_failed", "The command was not run: the sandbox would need too many mounts. The person has "
                                              "to use fewer or narrower deny rules and sandbox.filesystem paths.") from None
        if view.kind("/") == "hidden":
            raise ToolError("sandbox_failed", "The command was not run: a denied read covers the whole file system.")
        form = rooted(self.form, writable=view.kind("/") == "writable")
        command = [self.program, *form, *mounts, "--setenv", "TMPDIR", self.tmp, "--setenv", "TMPPREFIX", f"{self.tmp}/zsh"]
        for name in asked.hide:
            command += ["--unsetenv", name]
        command += self._network_variables(asked)
        if asked.domains.allowed:
            return [*command, "--chdir", cwd, "--", *self._inner(asked, view), *argv]
        if asked.unix_sockets:
            return [*command, "--chdir", cwd, "--", *argv]
        return ["/bin/sh", "-c", _OPEN_FILTER, self.filter, *command, "--seccomp", "9", "--chdir", cwd, "--", *argv]

    def look(self, cwd: str) -> None:
        """Search for what patterns mean, on behalf of the next ``wrap``: in a large workspace that takes long."""
        self.asked(cwd)
        self.protection()
        self._looked = (time.monotonic(), self._find())

    def close(self) -> None:
        if self._protection is not None:
            self._protection.release()
        self._last_resort()

    # -- what is asked for ---------------------------------------------------------------------------------------------
    def asked(self, cwd: str | None = None) -> Wishes:
        """What settings and rules ask for now; what was asked before where the new cannot be read."""
        layers = self.session.settings.layers
        cwd = cwd or self._seen[1]
        seen = (layers, cwd, len(self.added))
        if layers is not self._seen[0] or seen[1:] != self._seen[1:]:
            self._seen = seen
            try:
                self._asked = wishes.read(self.session, self.added, cwd=cwd)
            except KernelError as error:
                self.session.notice(f"sandbox: {error}; the boundaries stay as they were", guard=True)
            else:
                self._finder = _finder(self._asked)
                self._looked = None
                for proxy in self._proxy:
                    proxy.domains = self._asked.domains
        return self._asked

    def add_directory(self, path: str) -> None:
        """A working directory was added to the session."""
        if path in self.added:
            return
        self.added.append(path)
        if self._protection is not None:
            self._protection.add(protect(_existing([path]), [], []))

    @property
    def hides(self) -> bool:
        """Whether some file may be unreadable that would be readable outside."""
        asked = self._asked
        return bool(asked.no_read or asked.sealed)

    @property
    def refusals(self) -> int:
        """How many connections were refused so far."""
        return self._proxy[0].refusals if self._proxy else 0

    def refused_since(self, count: int) -> list[str]:
        """Hosts that were refused since ``refusals`` had that value."""
        new = self.refusals - count
        return list(dict.fromkeys(list(self._proxy[0].refused)[-new:])) if new > 0 else []

    # -- files ---------------------------------------------------------------------------------------------------------
    def protection(self) -> Protection:
        """What stays read-only in writable places; found once, before anything runs that could change the answer."""
        with self._looking:
            if self._protection is None:
                work = _existing(self._asked.work)
                own = [p for p in _existing(self._own_places()) if not any(under(w, p) for w in work)]
                self._protection = protect(work, _existing(self._asked.write), own)
        return self._protection

    def _own_places(self) -> list[str]:
        """Configuration and code of the harness; code is loaded while the session runs, outside."""
        import kernel

        environment = [sys.prefix] if sys.prefix != sys.base_prefix else []
        return [str(self.session.settings.config_dir), str(config_dir()), os.path.dirname(kernel.__file__), *environment,
                *(str(p.root) for p in self.session.plugins if p.module or p.loaded is None)]  # not those of an embedding program

    def work(self) -> list[str]:
        return _existing(self._asked.work)

    def _check_start(self) -> None:
        """:raises UsageError: nothing could run in the directory that the session starts in."""
        asked = self._asked
        hidden, sealed = (_existing(p.anchor for p in patterns if not p.parts) for patterns in (asked.no_read, asked.sealed))
        view = View(Plan(hidden=hidden, sealed=sealed, shown=_existing(asked.show)))
        start = os.path.realpath(self.session.project_root)
        for path, what in ((start, "the working directory"), ("/", "the whole file system")):
            if view.kind(path) == "hidden" and not asked.everything:
                self.close()
                raise UsageError(f"a denied read covers {what} itself, so no command can run", context="sandbox",
                                 hint="narrow the rule, or name the directory in sandbox.filesystem.allowRead")

    def _view(self, asked: Wishes, writable: Sequence[str]) -> View:
        free = [self.tmp, *writable]
        kept = [str(self.folder), *map(os.path.dirname, writable)]
        if env_file := self.session.environment.get("CLAUDE_ENV_FILE"):
            kept.append(env_file)  # runs before every command, also before those that are not confined
        if asked.everything:
            return View(Plan(writable=["/"], free=_existing(free), kept=_existing(kept), sealed=_existing(_PIPES)))
        found = self.protection()
        work = _existing(asked.work)
        needed = [*work, str(self.folder), *_NEEDED]
        looked, self._looked = self._looked, None
        hits = looked[1] if looked and time.monotonic() - looked[0] < _FRESH_S else self._find()
        denied, hidden, sealed = (_existing(p for p in hits[kind] if not _trips(p, needed)) for kind in (
            "denied", "hidden", "sealed"))
        return View(Plan(
            writable=[*work, *(p for p in _existing(asked.write) if not _of_the_kernel(p)), *_existing(found.repositories)],
            free=_existing([*free, *found.free]),
            kept=_existing([*kept, *found.kept]), denied=denied, hidden=hidden, sealed=[*sealed, *_existing(_PIPES)],
            shown=_existing(asked.show), own=_existing(kept), pinned=_existing(found.repositories)))

    def _find(self) -> dict[str, list[str]]:
        """What the patterns mean now."""
        with self._looking:
            hits = self._finder.find()
        for pattern in self._finder.cut:
            self.session.harness.announce(f"sandbox: below {pattern.anchor} there are too many folders to search, so {pattern} "
                                          "is not enforced everywhere for commands; name a folder in it")
        return hits

    # -- network -------------------------------------------------------------------------------------------------------
    def _network_variables(self, asked: Wishes) -> list[str]:
        if not asked.domains.allowed:
            return []
        proxy = f"http://127.0.0.1:{inner.PORT}"
        direct = "" if asked.domains.local else "localhost,127.0.0.1,::1"
        pairs = [("HTTP_PROXY", proxy), ("HTTPS_PROXY", proxy), ("ALL_PROXY", proxy), ("NO_PROXY", direct)]
        return [word for name, value in pairs for form in (name, name.lower()) for word in ("--setenv", form, value)]

    def _inner(self, asked: Wishes, view: View) -> list[str]:
        """What runs inside first; it comes from our own folder, since the plugin's may be hidden."""
        program = self.folder / "inner.py"
        try:
            if not self._proxy:
                from kernel_sandbox.proxy import Proxy

                shutil.copyfile(inner.__file__, program)
                self._proxy.append(Proxy(self.folder, asked.domains))
        except OSError as error:
            raise ToolError("sandbox_failed", "The command was not run: the sandbox's proxy cannot be started: "
                                              f"{error.strerror or error}") from error
        python = next((p for p in map(os.path.realpath, (sys.executable, "/usr/bin/python3")) if self._serves(p, view)), None)
        if python is None:
            raise ToolError("sandbox_failed", "The command was not run: the sandbox's proxy needs a Python that commands can "
                                              f"read and not write, and {sys.base_prefix} is none. The person can correct "
                                              "sandbox.filesystem, or install python3 for the whole system.")
        return [python, "-I", "-S", str(program), str(self.folder), "-" if asked.unix_sockets else self.filter, "--"]


    @staticmethod
    def _serves(python: str, view: View) -> bool:
        """Whether what closes Unix sockets can run by it: readable inside, and not what a command could have replaced."""
        places = [python, *([os.path.realpath(sys.base_prefix)] if python == os.path.realpath(sys.executable) else [])]
        fine = ("readonly", "writable") if view.kind("/") == "writable" else ("readonly",)
        return os.access(python, os.X_OK) and all(view.kind(place) in fine for place in places)


def _finder(asked: Wishes) -> Finder:
    return Finder({"denied": (*asked.no_write, *asked.fixed), "hidden": asked.no_read, "sealed": asked.sealed}, final="sealed")


def _of_the_kernel(path: str) -> bool:
    """Places that are not files but the system itself; they cannot be opened by ``allowWrite``."""
    return under(path, "/proc") or under(path, "/sys") or path == "/dev"


def _trips(path: str, needed: list[str]) -> bool:
    """Whether the path is a link to something that every command needs: named like a denied file, it would stop them all."""
    return os.path.islink(path) and any(under(n, real) for n in needed for real in [os.path.realpath(path)])


def _existing(paths: Iterable[str]) -> list[str]:
    """Resolved, without what is not there."""
    return list(dict.fromkeys(real for p in paths if os.path.lexists(p) and os.path.lexists(real := os.path.realpath(p))))


def _private_folder() -> Path:
    """A folder of our own. Resolved, because mounts are."""
    given = os.environ.get("CLAUDE_CODE_TMPDIR")
    return Path(os.path.realpath(mkdtemp(prefix="kernel-sandbox-", dir=given if given and os.path.isdir(given) else None)))


def _tidy(folder: Path, proxy: list[Proxy]) -> None:
    for running in proxy:
        running.close()
    shutil.rmtree(folder, ignore_errors=True)
