"""Opens the sandbox of a session, or says why none can work here."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any, Literal

from kernel import UsageError
from kernel_sandbox import seccomp, wishes
from kernel_sandbox.view import under

if TYPE_CHECKING:
    from kernel import Sandbox, Session

PROBE_S = 10.0
_NAMESPACES = ("--unshare-ipc", "--unshare-pid", "--unshare-net", "--unshare-uts", "--unshare-cgroup-try")
MOUNTED = ("--ro-bind-try", "/sys", "/sys", "--dev", "/dev")
_ROOTS = ("sys", "sysrq-trigger", "irq", "bus", "fs", "acpi", "scsi", "mtrr")
"""In /proc: files of the system that belong to root. A root without any capability is still their owner, and a new value of
``kernel.core_pattern`` is a program that the system runs."""
_ALWAYS = ("--die-with-parent", "--new-session", "--cap-drop", "ALL")


class Bubblewrap:
    """Registered as the sandbox ``bubblewrap``."""

    name = "bubblewrap"

    def open(self, session: Session) -> Sandbox:
        """:raises UsageError: it cannot work, or a boundary cannot be read; the run does not start.

        ``sandbox.failIfUnavailable: false`` in managed or user settings turns the first into an announced run without
        confinement.
        """
        asked = wishes.read(session)
        try:
            program = find(session, asked)
            form = probe(program, nested=asked.nested, unix_sockets=asked.unix_sockets)
        except UsageError as error:
            if not wishes.tolerated(session):
                raise
            session.harness.announce(f"Commands run WITHOUT a sandbox, as sandbox.failIfUnavailable is false: {error}")
            return Unconfined()
        from kernel_sandbox.confinement import Confinement

        return Confinement(session, asked, program, form)


class Unconfined:
    """What stands in where no sandbox works and that is tolerated."""

    def confines(self, input: dict[str, Any]) -> bool:
        return False

    def wrap(self, argv: list[str], *, cwd: str, purpose: Literal["tool", "hook"], input: dict[str, Any] | None = None,
             writable: Sequence[str] = ()) -> list[str]:
        return argv

    def close(self) -> None:
        pass


def find(session: Session, asked: wishes.Wishes) -> str:
    """The program: the managed setting ``sandbox.bwrapPath``, else ``bwrap`` on the path.

    :raises UsageError: there is none that may be used.
    """
    if sys.platform != "linux":
        raise UsageError(f"bubblewrap confines processes on Linux only, and this is {sys.platform}", context="sandbox",
                         hint="take sandbox.enabled out of the settings")
    given = session.settings.managed("sandbox.bwrapPath")
    if given is not None and not (isinstance(given, str) and os.path.isabs(given) and os.path.isfile(given)):
        raise UsageError(f"{given!r} is no absolute path of a program", context="managed settings, sandbox.bwrapPath")
    program = given or shutil.which("bwrap")
    if program is None:
        raise UsageError("the program bwrap is not installed", context="sandbox",
                         hint="install the package 'bubblewrap', or take sandbox.enabled out of the settings")
    program = os.path.realpath(program)
    replaceable = os.access(program, os.W_OK) or os.access(os.path.dirname(program), os.W_OK)
    places = asked.work if asked.everything else (*asked.work, *(asked.write if replaceable else ()))
    if inside := next((d for d in places if under(program, os.path.realpath(d))), None):
        raise UsageError(f"{program} lies in {inside}, where commands could replace it", context="sandbox",
                         hint="correct PATH, or sandbox.filesystem.allowWrite")
    return program


def probe(program: str, *, nested: bool, unix_sockets: bool) -> list[str]:
    """Arguments for the strongest confinement that works on this machine, tried out with a command that does nothing.

    They end with what is mounted on the root: devices, processes, and the kernel's own files, which stay read-only even
    where everything else may be written. The root itself goes in front of ``MOUNTED``.

    :raises UsageError: none works; the text says what the first attempt said.
    """
    if not unix_sockets and seccomp.program() is None:
        raise UsageError(f"Unix sockets cannot be closed on this processor ({os.uname().machine})", context="sandbox",
                         hint="sandbox.network.allowAllUnixSockets: true leaves them open")
    said = ""
    for spaces, proc in _forms(nested):
        form = [*_ALWAYS, *spaces, *_NAMESPACES, *MOUNTED, *proc]
        problem = _try([program, *rooted(form, writable=False)])
        if problem is None:
            return form
        said = said or problem
    raise UsageError(f"bubblewrap does not work on this machine: {said}", context="sandbox", hint=_advice(said))


def rooted(form: list[str], *, writable: bool) -> list[str]:
    """The form with a root, which has to be mounted before everything on it."""
    at = form.index(MOUNTED[0])
    return [*form[:at], "--bind" if writable else "--ro-bind", "/", "/", *form[at:]]


def _forms(nested: bool) -> Iterator[tuple[list[str], list[str]]]:
    """User namespace and view of processes, strongest first. Versions before 0.8 lack ``--disable-userns``."""
    own = ["--proc", "/proc", *(word for name in _ROOTS for word in ("--ro-bind-try", f"/proc/{name}", f"/proc/{name}"))]
    if not nested:
        yield ["--unshare-user", "--disable-userns"], own
    yield ["--unshare-user"], own
    if os.geteuid() == 0:
        yield [], own
    if nested:  # still closed: files of processes of another user namespace cannot be opened
        yield ["--unshare-user"], ["--ro-bind", "/proc", "/proc"]


def _try(command: list[str]) -> str | None:
    """What went wrong; ``None``: it works."""
    try:
        ran = subprocess.run([*command, "--", "/bin/sh", "-c", ":"], stdin=subprocess.DEVNULL, capture_output=True,  # noqa: S603
                             timeout=PROBE_S, check=False)
    except (OSError, subprocess.TimeoutExpired) as error:
        return str(getattr(error, "strerror", None) or f"it did not end within {PROBE_S:g} s")
    if ran.returncode == 0:
        return None
    lines = ran.stderr.decode("utf-8", "replace").strip().splitlines()
    return lines[-1][:500] if lines else f"exit code {ran.returncode}"


def _advice(said: str) -> str:
    if "proc" in said.lower() and "mount" in said.lower():
        return "inside a container, sandbox.enableWeakerNestedSandbox: true does without a /proc of its own"
    if any(w in said.lower() for w in ("namespace", "permission", "permitted", "uid map", "loopback")):
        return ("the machine must allow user namespaces: kernel.unprivileged_userns_clone=1; "
                "kernel.apparmor_restrict_unprivileged_userns=0, or an AppArmor profile for bwrap; a container that permits them")
    return "try the command bwrap by itself"
