"""What a process may import once it runs a locked harness (``lock.py``).

A module is read once; the bytes that were compared with the lock are the bytes that are compiled. ``__pycache__`` folders
are never read: whoever can write one would run code that no digest covers. Compiled code is kept by the digest of its source
in the user's own ``<config dir>/kernel/code``, a place as trusted as the settings, under a tag that only who can read the
user's ``code.key`` can make: what was damaged, exchanged or brought there by an archive is compiled anew, and never read.
"""

from __future__ import annotations

import errno
import hashlib
import marshal
import os
import stat
import sys
from collections.abc import Iterator, Sequence
from functools import cache
from importlib.machinery import BuiltinImporter, ExtensionFileLoader, FrozenImporter, ModuleSpec, PathFinder, SourceFileLoader
from importlib.util import MAGIC_NUMBER
from types import CodeType, ModuleType
from typing import TYPE_CHECKING, Any

from kernel.errors import LockError

if TYPE_CHECKING:
    from kernel.lock import Lock


MOST = 1 << 30
"""Bytes of one file; locking takes no larger one."""


class Guard:
    """An import finder that gives what is locked, and refuses it when it is not what was locked."""

    def __init__(self, lock: Lock, alone: bool) -> None:
        self.lock, self.alone = lock, alone
        self.site = os.path.join(lock.site, "")
        self.seen: set[str] = set()
        import kernel

        self.kernel = tuple(os.path.join(folder, "") for folder in kernel.__path__)
        self.cache = _cache_folder()
        self.key = _cache_key(self.cache) if self.cache is not None else b""

    def install(self) -> None:
        sys.path.insert(0, str(self.lock.site))
        if self.alone:
            sys.path[1:] = [p for p in sys.path[1:] if p and _is_standard(p)]
            sys.meta_path[:] = [BuiltinImporter, FrozenImporter]  # finders of editable installs know no lock
        sys.meta_path.insert(2 if self.alone else 0, self)

    def find_spec(self, name: str, path: Sequence[str] | None = None, target: ModuleType | None = None) -> ModuleSpec | None:
        spec = PathFinder.find_spec(name, path, target)
        if spec is None or spec.origin is None or not spec.has_location:
            return spec
        locked = self.lock.files.get(spec.origin)
        if locked is not None:
            self._other_files(locked[1])
            if isinstance(spec.loader, ExtensionFileLoader):
                spec.loader = Extension(name, spec.origin, locked, self)
            elif isinstance(spec.loader, SourceFileLoader):
                spec.loader, spec.cached = Source(name, spec.origin, locked, self), None
            else:
                return None
            return spec
        if spec.origin.startswith(self.kernel):
            return spec
        strange = spec.origin.startswith(self.site) or (self.alone and not _is_standard(spec.origin))
        return None if strange else spec

    def find_distributions(self, *args: Any, **kwargs: Any) -> Iterator[Any]:
        """What ``importlib.metadata`` asks for."""
        from importlib.metadata import MetadataPathFinder

        return iter(MetadataPathFinder.find_distributions(*args, **kwargs))

    def invalidate_caches(self) -> None:
        PathFinder.invalidate_caches()

    def checked(self, path: str, locked: tuple[str, str]) -> bytes:
        """The file's bytes.

        :raises LockError: they are not the locked ones. It is no ImportError, which callers like to swallow.
        """
        wrong = "has changed since it was locked"
        try:
            data = content(path, links=not self.lock.has_set)
            if hashlib.sha256(data).hexdigest() == locked[0]:
                return data
        except OSError as error:
            wrong = f"cannot be read ({error.strerror})"
        raise LockError(f"{path} of {locked[1]} {wrong}", context=str(self.lock.path),
                        hint=f"kernel harness sync {self.lock.harness} puts the locked files in place")

    def _other_files(self, owner: str) -> None:
        """With a distribution's first module its files that are no modules are compared: certificates, templates, metadata."""
        if owner in self.seen:
            return
        self.seen.add(owner)
        for name, digest in self.lock.placed(owner).items():
            if not name.endswith((".py", ".so", ".pyd", ".pyi")):
                self.checked(os.path.join(self.lock.site, name), (digest, owner))


class Source(SourceFileLoader):
    def __init__(self, name: str, path: str, locked: tuple[str, str], guard: Guard) -> None:
        super().__init__(name, path)
        self.locked, self.guard = locked, guard

    def get_code(self, fullname: str) -> CodeType:
        path = self.get_filename(fullname)
        data = self.guard.checked(path, self.locked)
        if self.guard.cache is None or not self.guard.key:
            return compile(data, path, "exec", dont_inherit=True)
        key = hashlib.sha256(b"\0".join((MAGIC_NUMBER, bytes([sys.flags.optimize]), os.fsencode(path), self.locked[0].encode())))
        kept = os.path.join(self.guard.cache, key.hexdigest())
        try:
            with open(kept, "rb") as file:
                tag, raw = file.read(32), file.read()
            if tag == self._tag(kept, raw):  # marshal may crash on what it did not write itself
                code = marshal.loads(raw)  # noqa: S302
                if isinstance(code, CodeType):
                    return code
        except (OSError, ValueError, EOFError, TypeError):
            pass
        code = compile(data, path, "exec", dont_inherit=True)
        try:
            raw = marshal.dumps(code)
            with open(f"{kept}.{os.getpid()}", "wb") as out:
                out.write(self._tag(kept, raw) + raw)
            os.replace(out.name, kept)
        except OSError:  # a full disk costs time only
            pass
        return code

    def _tag(self, kept: str, raw: bytes) -> bytes:
        """Over the name, too: code of one module cannot stand in for another's."""
        name = os.path.basename(kept).encode()
        return hashlib.blake2b(name + b"\0" + raw, key=self.guard.key, digest_size=32).digest()


class Extension(ExtensionFileLoader):
    def __init__(self, name: str, path: str, locked: tuple[str, str], guard: Guard) -> None:
        super().__init__(name, path)
        self.locked, self.guard = locked, guard

    def create_module(self, spec: ModuleSpec) -> ModuleType:
        self.guard.checked(self.path, self.locked)
        return super().create_module(spec)


def _cache_folder() -> str | None:
    """Where compiled code is kept; ``None`` where the folder is not the user's alone."""
    config = os.environ.get("CLAUDE_CONFIG_DIR") or os.path.expanduser("~/.claude")  # kernel.settings would import msgspec
    folder = os.path.join(config, "kernel", "code")
    try:
        os.makedirs(folder, mode=0o700, exist_ok=True)
        facts = os.stat(folder)
    except OSError:
        return None
    mine = not hasattr(os, "getuid") or (facts.st_uid == os.getuid() and not facts.st_mode & 0o022)
    return folder if mine else None


def _cache_key(folder: str) -> bytes:
    """The user's own 32 random bytes beside the folder, made where they are missing; empty where they are nobody's secret."""
    path = f"{folder}.key"
    for _ in range(2):
        try:
            with open(os.open(path, os.O_RDONLY | getattr(os, "O_NOFOLLOW", 0) | getattr(os, "O_NONBLOCK", 0)), "rb") as file:
                facts, key = os.fstat(file.fileno()), file.read(33)
            mine = not hasattr(os, "getuid") or (facts.st_uid == os.getuid() and not facts.st_mode & 0o077)
            return key if mine and len(key) == 32 else b""
        except FileNotFoundError:
            staged = f"{path}.{os.getpid()}"
            try:
                with open(os.open(staged, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600), "wb") as out:
                    out.write(os.urandom(32))
                os.link(staged, path)  # of two processes the first one's counts
            except FileExistsError:
                pass
            except OSError:
                return b""
            finally:
                if os.path.exists(staged):
                    os.unlink(staged)
        except OSError:
            return b""
    return b""


@cache
def _standard() -> tuple[str, ...]:
    """Where the standard library lies: the running interpreter's, and of a virtual environment the one it stands on."""
    import sysconfig

    base = {"installed_base": sys.base_prefix, "installed_platbase": sys.base_exec_prefix}
    zipped = os.path.join(sys.base_prefix, "lib", f"python{sys.version_info[0]}{sys.version_info[1]}.zip")
    places = (sysconfig.get_path("stdlib", vars=base), sysconfig.get_path("platstdlib", vars=base),
              os.path.dirname(os.__file__), zipped)
    return tuple({os.path.join(os.path.realpath(p), "") for p in places})


def _is_standard(path: str) -> bool:
    """Whether a file or a folder belongs to the standard library; the site folders inside it do not."""
    real = os.path.join(os.path.realpath(path), "")
    return real.startswith(_standard()) and not any(part in ("site-packages", "dist-packages") for part in real.split(os.sep))


def content(path: str, *, links: bool) -> bytes:
    """The bytes of a regular file; a pipe or a device would never end.

    :param links: follow one (installers put them into an environment). A set has none: its target could change unseen.
    :raises OSError: with the reason as ``strerror``.
    """
    handle = os.open(path, os.O_RDONLY | getattr(os, "O_NONBLOCK", 0) | (0 if links else getattr(os, "O_NOFOLLOW", 0)))
    with open(handle, "rb", buffering=0) as file:
        facts = os.fstat(handle)
        if not stat.S_ISREG(facts.st_mode):
            raise OSError(errno.EINVAL, "is no regular file", path)
        if facts.st_size > MOST:
            raise OSError(errno.EFBIG, f"is over {MOST >> 20} MiB", path)
        return file.read()
