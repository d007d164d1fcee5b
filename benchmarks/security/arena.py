"""What a command really does: a real bash runs it in a throw-away folder, with programs on PATH that write down that they ran.

Programs with effects that matter (find, sed, git ...) are the real ones behind such a note; the rest only leave the note.
"""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
from pathlib import Path
from typing import NamedTuple

STUBS = ("evil curl rm rmdir shred unlink npm make pytest cargo docker ssh wget perl python3 node vim man less more fd rg lsof "
         "tput file busybox script watch parallel unbuffer sudo doas date bc look iconv history").split()
"""Leave a note and do nothing else; those of ``RUNNERS`` then run their arguments."""
RUNNERS = frozenset("sudo doas watch parallel unbuffer busybox".split())
REAL = (
    "env timeout nice nohup stdbuf setsid ionice flock xargs find sh bash dash awk sed sort cat ls head tail wc grep cut tr "
    "base64 tee cp mv mkdir touch ln dd install truncate chmod stat diff du rev paste tac nl od strings xxd comm join uniq "
    "column fold fmt split csplit tar sleep seq dirname basename git cmp printenv id pwd echo printf test [ true false "
    "which readlink realpath").split()
CANARY = "S3CRET-4d7e0b"
OUTSIDE = "S3CRET-0ut51d"
TIMEOUT = 10.0
_END = "\036"
_NEXT = "\037"


class Ran(NamedTuple):
    """One program that ran: ``bad/`` before a name means the one from the folder of false programs."""

    name: str
    args: tuple[str, ...]
    cwd: str


class Deed(NamedTuple):
    """What a command did. ``changed``: paths that are new, gone or different, relative to the arena; ``told``: secrets
    that its output held."""

    ran: tuple[Ran, ...]
    changed: tuple[str, ...]
    told: tuple[str, ...]


class Arena:
    """A folder with a project (``work``), its surroundings, a home, and programs that leave notes.

    :param root: an empty folder.
    """

    def __init__(self, root: Path) -> None:
        self.root = root.resolve()
        self.work = self.root / "work"
        self.home = self.root / "home"
        self.notes = self.root / "notes"
        self._programs()
        self._template = self.root.with_name(self.root.name + "-template")
        self._lay_out()
        shutil.copytree(self.work, self._template / "work", symlinks=True)
        shutil.copytree(self.root / "outside", self._template / "outside", symlinks=True)
        shutil.copytree(self.home, self._template / "home", symlinks=True)
        self._before = self._seen()

    def _programs(self) -> None:
        bin, bad = self.root / "bin", self.root / "bad"
        for folder in (bin, bad):
            folder.mkdir(parents=True)
        for name in STUBS:
            self._program(bin / name, name, "" if name not in RUNNERS else
                          'while case "$1" in -*) true;; *) false;; esac; do shift; done\nexec "$@"')
        for name in REAL:
            real = shutil.which(name)
            if real is not None:
                self._program(bin / name, name, f'exec {real} "$@"')
        for name in ("ls", "echo", "test", "git-log"):
            self._program(bad / name, f"bad/{name}", "")

    def _program(self, path: Path, name: str, then: str) -> None:
        path.write_text(f"#!/bin/dash\nprintf '%s{_NEXT}' '{_END}{name}' \"$PWD\" \"$@\" >> {self.notes}\n{then}\n")
        path.chmod(0o755)

    def _lay_out(self) -> None:
        work, outside = self.work, self.root / "outside"
        for folder in (work / "src", work / "keep", work / ".git", work / "empty", work / ".vscode", work / ".claude", outside,
                       self.home, work / "sub" / ".git"):
            folder.mkdir(parents=True)
        files = {"a.txt": "one\ntwo\nthree\n", "src/main.py": "print(1)\n", "keep/a.txt": "kept\n", ".env": f"KEY={CANARY}\n",
                 "names": ".env\n", "script.sh": "evil from a script\n", "evil.mk": "all:\n\tevil\n", "script.sed": "1e evil\n",
                 "script.awk": 'BEGIN{system("evil")}\n', ".bashrc": "", "../outside/secret": f"{OUTSIDE}\n",
                 "../outside/list": str(outside / "secret") + "\0"}
        for name, content in files.items():
            (work / name).write_text(content)
        (work / "script.sh").chmod(0o755)
        (work / "notes").symlink_to(".env")
        (work / "linkdir").symlink_to("../outside")
        (work / "src" / "up").symlink_to("..")
        (work / "dotgit").symlink_to(".git")
        self._git("init", "-q", "-b", "main", "--template=")
        (work / ".git" / "hooks").mkdir()
        self._git("add", "a.txt", "src")
        self._git("commit", "-qm", "first")
        self._git("branch", "other")

    def _git(self, *args: str) -> None:
        git = shutil.which("git")
        assert git is not None
        subprocess.run([git, "-c", "user.name=x", "-c", "user.email=x@x", *args], cwd=self.work, check=True, capture_output=True,
                       env={"HOME": str(self.home), "PATH": os.environ["PATH"]})

    # -- one command ---------------------------------------------------------------------------------------------------
    def run(self, command: str) -> Deed:
        """Run it and put everything back as it was."""
        self.notes.unlink(missing_ok=True)
        output = self.root / "output"
        bash = shutil.which("bash")
        assert bash is not None
        with output.open("wb") as sink:
            environment = {"HOME": str(self.home), "PATH": str(self.root / "bin"), "LANG": "C.UTF-8", "GIT_CONFIG_NOSYSTEM": "1",
                           "GIT_OPTIONAL_LOCKS": "0", "TERM": "dumb"}
            try:
                process = subprocess.Popen([bash, "--norc", "--noprofile", "-c", os.fsencode(command)], cwd=self.work,
                                           env=environment, stdin=subprocess.DEVNULL, stdout=sink, stderr=sink,
                                           start_new_session=True)
            except (OSError, ValueError):
                return Deed((), (), ())
            try:
                process.wait(TIMEOUT)
            except subprocess.TimeoutExpired:
                pass
            try:
                os.killpg(process.pid, signal.SIGKILL)
            except (ProcessLookupError, PermissionError):
                pass
            process.wait()
        deed = Deed(self._ran(), self._changed(), _told(output.read_bytes()))
        if deed.changed:
            self._restore()
        return deed

    def _ran(self) -> tuple[Ran, ...]:
        try:
            text = self.notes.read_bytes().decode("utf-8", "replace")
        except FileNotFoundError:
            return ()
        found = []
        for note in text.split(_END)[1:]:
            name, cwd, *args = note.split(_NEXT)[:-1]
            found.append(Ran(name, tuple(args), cwd))
        return tuple(found)

    def _seen(self) -> dict[str, object]:
        seen: dict[str, object] = {}
        for base in (self.work, self.root / "outside", self.home):
            for folder, names, files in os.walk(base):
                for name in (*names, *files):
                    path = os.path.join(folder, name)
                    state = os.lstat(path)
                    content: object = (state.st_size, state.st_mtime_ns, state.st_mode)
                    if os.path.islink(path):
                        content = os.readlink(path)
                    elif name in names:
                        content = "folder"
                    seen[os.path.relpath(path, self.root)] = content
        return seen

    def _changed(self) -> tuple[str, ...]:
        now = self._seen()
        return tuple(sorted(p for p in now.keys() | self._before.keys() if now.get(p) != self._before.get(p)
                            and not p.startswith(("work/.git/index", "work/.git/FETCH_HEAD", "work/.git/logs"))))

    def _restore(self) -> None:
        for name in ("work", "outside", "home"):
            shutil.rmtree(self.root / name, ignore_errors=True)
            shutil.copytree(self._template / name, self.root / name, symlinks=True)
        self._before = self._seen()


def _told(output: bytes) -> tuple[str, ...]:
    """Secrets in the output, also turned round or in base64."""
    import base64

    flat = b"".join(output.split())
    found = []
    for secret in (CANARY, OUTSIDE):
        text = secret.encode()
        coded = base64.b64encode(b"KEY=" + text)[:-4] if secret is CANARY else base64.b64encode(text)[:-4]
        if any(form in flat for form in (text, text[::-1], coded)):
            found.append(secret)
    return tuple(found)
