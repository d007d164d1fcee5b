"""Which conversation is meant: by id, by name, or the newest one (sessions contract, section 4.1)."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from msgspec import Struct

from kernel import SessionError
from kernel_sessions.chain import Chain, Graph
from kernel_sessions.paths import all_projects, is_session_id, project_dir, reading_dirs, real, transcripts, worktrees
from kernel_sessions.reader import Journal, light_facts, read


class Loaded(Struct):
    """A conversation that was found and read."""

    path: Path
    journal: Journal
    graph: Graph
    chain: Chain

    @property
    def session_id(self) -> str:
        return self.path.stem.lower()


def load(path: Path) -> Loaded | None:
    """Read a transcript; ``None`` if there is none, or no conversation in it.

    :raises SessionError: the file is there and cannot be read.
    """
    try:
        journal = read(path)
    except (FileNotFoundError, NotADirectoryError):
        return None
    except OSError as error:
        raise SessionError(f"the transcript cannot be read: {error.strerror or error}", context=str(path)) from error
    return active(journal)


def active(journal: Journal) -> Loaded | None:
    """The conversation that counts in what was read; ``None`` if there is none in it."""
    graph = Graph(journal)
    chain = graph.active()
    return Loaded(journal.path, journal, graph, chain) if chain.messages() else None


def wanted(name: str, cwd: str) -> Loaded:
    """The conversation with that id, title or generated title.

    :raises SessionError: there is none, or several have the title.
    """
    if is_session_id(name):
        found = _by_id(name.lower(), cwd)
    else:
        path = _by_title(name, cwd)
        found = load(path) if path else None
    if found is None:
        raise SessionError(f"No conversation found with session ID: {name}")
    return found


def newest(cwd: str, *, interactive: bool) -> Loaded | None:
    """The conversation of the directory whose file changed last.

    :param interactive: leave out those that ``-p`` or the SDK began.
    """
    dated = [(stamp, path) for folder in reading_dirs(cwd) for path, stamp in transcripts(folder)]
    for _, path in sorted(dated, reverse=True):
        found = load(path)
        if found is None or not _belongs(found, cwd):
            continue
        if interactive and str(found.chain.entries[0].get("entrypoint", "")).startswith("sdk-"):
            continue
        return found
    return None


def is_taken(session_id: str) -> bool:
    """Whether any project has a transcript of that id."""
    return any(_has(project / f"{session_id}.jsonl") for project in all_projects())


def repository_dirs(cwd: str) -> list[Path]:
    """The project folders of the directory and of its repository's worktrees."""
    others = [d for root in worktrees(cwd) if real(root) != real(cwd) for d in reading_dirs(root, own=False)]
    return list(dict.fromkeys([*reading_dirs(cwd), *others]))


def _by_id(session_id: str, cwd: str) -> Loaded | None:
    near = repository_dirs(cwd)
    for folder in near:
        found = load(folder / f"{session_id}.jsonl")
        if found:
            return found
    far = [found for folder in all_projects() if folder not in near and (found := load(folder / f"{session_id}.jsonl"))]
    return far[0] if len(far) == 1 else None


def _by_title(title: str, cwd: str) -> Path | None:
    titled: dict[str, list[Path]] = {"custom-title": [], "ai-title": []}
    for path in _near(cwd):
        facts = light_facts(path)
        shown = next((k for k in titled if k in facts), None)  # a chosen title hides the generated one
        if shown and facts[shown].value == title:
            titled[shown].append(path)
    found = titled["custom-title"] or titled["ai-title"]
    if len(found) > 1:
        raise SessionError(f"{len(found)} conversations have the title {title!r}", context="--resume",
                           hint=f"resume one by its ID: {', '.join(p.stem for p in found)}")
    return found[0] if found else None


def _near(cwd: str) -> Iterator[Path]:
    for folder in repository_dirs(cwd):
        for path, _ in transcripts(folder):
            yield path


def _belongs(found: Loaded, cwd: str) -> bool:
    """Whether a conversation is the directory's; asked of folders that only share the beginning of a long name."""
    if found.path.parent == project_dir(cwd):
        return True
    begun = next((c for e in found.chain.entries if isinstance(c := e.get("cwd"), str)), "")
    return real(begun) == real(cwd) if begun else False


def _has(path: Path) -> bool:
    try:
        return path.stat().st_size > 0
    except OSError:
        return False
