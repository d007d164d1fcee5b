"""Git sources: fetched shallow, checked out without hooks, filters or submodules."""

from __future__ import annotations

import os
import re
import shutil
from pathlib import Path

from kernel_manager.errors import ManagerError
from kernel_manager.programs import git_timeout, piped, run
from kernel_manager.sources import Source, without_secrets
from kernel_manager.unpack import LIMITS

_SAFE = ["-c", "core.hooksPath=/dev/null", "-c", "core.fsmonitor=false", "-c", "protocol.ext.allow=never", "-c",
         "submodule.recurse=false", "-c", "fetch.recurseSubmodules=false", "-c", "advice.detachedHead=false", "-c",
         "core.autocrlf=false", "-c", "core.protectNTFS=true", "-c", "core.protectHFS=true",
         "-c", "init.defaultBranch=main", "-c", "protocol.file.allow=always"]

MAX_FILES, MAX_BYTES = 10 * LIMITS.files, 4 * LIMITS.total_bytes
"""Of a whole repository; the plugin in it has limits of its own."""


def _git(*args: str, cwd: Path, what: str) -> str:
    return run(["git", *_SAFE, *args], cwd=cwd, timeout=git_timeout(), type="git-failed", what=what)


def fetch(source: Source, target: Path) -> str:
    """Check a git source out into a new folder, without its ``.git``, and return the commit.

    :raises ManagerError: ``git-failed``, ``pin-mismatch``, ``missing-program``.
    """
    url = _url(str(source.url))
    what = f"git {without_secrets(url)}"
    target.mkdir(parents=True)
    _git("init", "--quiet", ".", cwd=target, what=what)
    (target / ".git" / "info").mkdir(exist_ok=True)
    # the repository's own attributes could ask for filters, which are programs; these here come before them
    (target / ".git" / "info" / "attributes").write_text("* -filter -text -ident -working-tree-encoding\n")
    wanted = source.sha or source.ref or "HEAD"
    try:
        _git("fetch", "--quiet", "--depth", "1", "--no-tags", "--no-recurse-submodules", "--", url, wanted, cwd=target, what=what)
        found = "FETCH_HEAD"
    except ManagerError as error:
        if error.type != "git-failed" or not (source.sha or re.fullmatch(r"[0-9a-f]{7,40}", wanted)):
            raise
        # a server need not give out a commit by its name, and a short one cannot be asked for
        _git("fetch", "--quiet", "--no-recurse-submodules", "--", url, "+refs/heads/*:refs/remotes/o/*",
             "+refs/tags/*:refs/tags/*", cwd=target, what=what)
        found = wanted
    commit = _git("rev-parse", "--verify", "--quiet", "--end-of-options", f"{found}^{{commit}}", cwd=target, what=what).strip()
    if source.sha and commit != source.sha:
        raise ManagerError("pin-mismatch", f"gave the commit {commit}, not {source.sha}", context=what)
    _check_tree(target, commit, what)
    _git("checkout", "--quiet", "--force", commit, cwd=target, what=what)
    shutil.rmtree(target / ".git")
    return commit


def _check_tree(target: Path, commit: str, what: str) -> None:
    """A few objects can name one tree a billion times, which a checkout would write: counted before, while it is listed.

    :raises ManagerError: ``unsafe-archive``.
    """
    files = size = 0
    with piped(["git", *_SAFE, "ls-tree", "-r", "-l", "-z", "--full-tree", commit], cwd=target) as listed:
        rest = b""
        while chunk := listed.read(1 << 16):
            *rows, rest = (rest + chunk).split(b"\0")
            for row in rows:
                length = row.partition(b"\t")[0].rpartition(b" ")[2]
                files, size = files + 1, size + (int(length) if length.isdigit() else 0)
            if files > MAX_FILES or size > MAX_BYTES or len(rest) > 1 << 20:
                raise ManagerError("unsafe-archive", f"its tree holds over {MAX_FILES} files or {MAX_BYTES >> 20} MiB",
                                   context=what)


def tags(url: str, prefix: str, cwd: Path) -> dict[str, str]:
    """Tag -> commit of all tags that begin with the prefix."""
    out = _git("ls-remote", "--tags", "--", _url(url), f"refs/tags/{prefix}*", cwd=cwd, what=f"git {without_secrets(url)}")
    found: dict[str, str] = {}
    for line in out.splitlines():
        commit, _, name = line.partition("\t")
        tag = name.removeprefix("refs/tags/")
        if tag.endswith("^{}"):
            found[tag.removesuffix("^{}")] = commit  # what an annotated tag points at
        else:
            found.setdefault(tag, commit)
    return found


def _url(url: str) -> str:
    """GitHub over https unless ssh was written; ``CLAUDE_CODE_PLUGIN_PREFER_HTTPS`` turns ssh to GitHub into https."""
    if os.environ.get("CLAUDE_CODE_PLUGIN_PREFER_HTTPS") and url.startswith("git@github.com:"):
        return "https://github.com/" + url.removeprefix("git@github.com:")
    return url
