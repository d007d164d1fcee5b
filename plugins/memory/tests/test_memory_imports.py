"""``@path`` in instructions: where it counts, how far it goes, what it may not reach (context contract, 2.3)."""

from __future__ import annotations

import json
import os
import tempfile
from pathlib import Path
from typing import Any

import pytest
from hypothesis import example, given, settings, strategies as st
from kernel_memory import texts
from kernel_memory.files import inert
from kernel_memory.loader import MAX_FILES, MAX_NAMES, Loader
from kernel_memory.memory_command import MemoryCommand

from .memory_place import kit, listener, loader, names, write


@pytest.mark.parametrize(("text", "expected"), [
    ("@a.md", ["a.md"]), ("see @docs/a.md, and\t@./b", ["docs/a.md,", "./b"]), ("mail me@a.md", []), ("(@a.md)", []),
    ("@my\\ file.md x", ["my file.md"]), ("`@a` @b", ["b"]), ("``@a ` @b`` @c", ["c"]), ("`open @a", ["a"]),
    ("`a\n\n@b `", ["b"]),
    ("`a\n@b` @c", ["c"]), ("```\n@a\n```\n@b", ["b"]), ("~~~ x\n@a\n```\n@b\n~~~\n@c", ["c"]), ("```\n@a", []), ("@a @a", ["a"]),
    ("@~/x.md @/y", ["~/x.md", "/y"]), ("@", []), ("@@a", ["@a"])])
def test_where_a_path_is_an_import(text: str, expected: list[str]) -> None:
    assert texts.imports(text) == expected


PIECES = ["`", "``", "```", "~~~", "\n", "\n\n", "@a", " @b", "x", "<!--", "-->", "\\ ", "\t"]


@given(st.lists(st.sampled_from(PIECES), max_size=60))
@example(["```", "\n", "<!--", "\n", "```", "\n", "-->"])
def test_no_text_breaks_it_and_nothing_is_made_up(pieces: list[str]) -> None:
    text = "".join(pieces)
    without = texts.without_comments(text)
    assert texts.without_comments(without.replace("<!--", "")) == without.replace("<!--", "")
    assert all(f"@{name}" in text.replace("\\ ", " ") for name in texts.imports(text))


def test_four_hops_and_not_five(tmp_path: Path) -> None:
    for n in range(6):
        write(tmp_path, f"{n}.md", f"Level {n}.\n@{n + 1}.md\n")
    write(tmp_path, "CLAUDE.md", "@1.md\n")
    assert names(loader(tmp_path).start(), tmp_path) == ["4.md", "3.md", "2.md", "1.md", "CLAUDE.md"]


def test_cycles_and_repeats_are_cut_and_the_imported_comes_first(tmp_path: Path) -> None:
    write(tmp_path, "CLAUDE.md", "@a.md @b.md @CLAUDE.md\n")
    write(tmp_path, "a.md", "@b.md @a.md\n")
    write(tmp_path, "b.md", "@a.md\n")
    events, hooks = listener()
    kit(tmp_path, hooks={"ear": hooks}).play("go")
    assert [(Path(e.file_path).name, e.load_reason, Path(e.parent_file_path or "").name) for e in events] == [
        ("b.md", "include", "a.md"), ("a.md", "include", "CLAUDE.md"), ("CLAUDE.md", "session_start", "")]


def test_missing_and_odd_targets_stay_text(tmp_path: Path) -> None:
    write(tmp_path, "CLAUDE.md", "@none.md @docs @bin.dat See @here.md.\n")
    write(tmp_path, "docs/x.md")
    write(tmp_path, "bin.dat", b"\0")
    write(tmp_path, "here.md", "Here.\n")
    made = loader(tmp_path)
    found = made.start()
    assert names(found, tmp_path) == ["here.md", "CLAUDE.md"] and "@none.md @docs" in found[-1].text
    assert [p.partition(": ")[2] for p in made.problems] == ["is binary"]


def test_relative_to_the_file_that_imports_also_behind_a_link(tmp_path: Path) -> None:
    write(tmp_path, "shared/CLAUDE.md", "@beside.md\n")
    write(tmp_path, "shared/beside.md", "Beside.\n")
    (tmp_path / "CLAUDE.md").symlink_to("shared/CLAUDE.md")
    assert names(loader(tmp_path).start(), tmp_path) == ["shared/beside.md", "CLAUDE.md"]


@pytest.fixture
def outside(tmp_path: Path, monkeypatch: Any) -> Path:
    """A project whose files import one from elsewhere, directly and through a link."""
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    monkeypatch.delenv("CLAUDE_CONFIG_DIR", raising=False)
    write(tmp_path, "home/secret.md", "The secret.\n")
    work = tmp_path / "work"
    write(work, "CLAUDE.md", f"@{tmp_path}/home/secret.md @~/secret.md @../home/secret.md @link.md\n")
    (work / "link.md").symlink_to("../home/secret.md")
    return work


def test_an_import_from_elsewhere_needs_an_approval(outside: Path, capsys: Any, monkeypatch: Any) -> None:
    made = loader(outside)
    assert names(made.start(), outside) == ["CLAUDE.md"] and len(made.problems) == 4
    assert all("kernel memory approve" in p for p in made.problems)
    monkeypatch.chdir(outside)
    assert MemoryCommand().run(["list"]) == 1 and "leads out of the working directory" in capsys.readouterr().err
    assert MemoryCommand().run(["approve"]) == 0
    assert [Path(i.path).name for i in loader(outside).start()] == ["secret.md", "CLAUDE.md"]
    capsys.readouterr()
    assert MemoryCommand().run(["list", "--json"]) == 0
    assert [f["kind"] for f in json.loads(capsys.readouterr().out)["files"]] == ["Project", "Project"]
    assert MemoryCommand().run(["approve", "--revoke"]) == 0
    assert names(loader(outside).start(), outside) == ["CLAUDE.md"]


def test_the_global_config_is_never_lost(outside: Path, monkeypatch: Any) -> None:
    from kernel import KernelError

    path = outside.parent / "home/.claude.json"
    monkeypatch.chdir(outside)
    path.write_text('{"other": [1], "projects": {"/x": {"hasTrustDialogAccepted": true}}}')
    assert MemoryCommand().run(["approve"]) == 0
    data = json.loads(path.read_text())
    assert data["other"] == [1] and data["projects"]["/x"] == {"hasTrustDialogAccepted": True}
    assert path.stat().st_mode & 0o777 == 0o600
    path.write_text("{broken")
    with pytest.raises(KernelError, match=r"\.claude\.json"):
        MemoryCommand().run(["approve"])
    assert path.read_text() == "{broken" and names(loader(outside).start(), outside) == ["CLAUDE.md"]


def test_the_users_own_files_import_freely_and_excludes_count_for_imports(outside: Path) -> None:
    write(outside, ".config/CLAUDE.md", "@~/secret.md\n")
    assert [Path(i.path).name for i in loader(outside).start()] == ["secret.md", "CLAUDE.md", "CLAUDE.md"]
    hidden = loader(outside, settings={"claudeMdExcludes": ["**/secret.md"]})
    assert [Path(i.path).name for i in hidden.start()] == ["CLAUDE.md", "CLAUDE.md"]


def test_an_import_bomb_ends(tmp_path: Path) -> None:
    """Files that import each other, many at a time: a fixed number is read, and that is said."""
    everyone = " ".join(f"@n{m}.md" for m in range(1_500))
    for n in range(1_500):
        write(tmp_path, f"n{n}.md", f"{n}\n@n{n + 1}.md\n")
    write(tmp_path, "CLAUDE.md", everyone)
    made = loader(tmp_path)
    assert len(made.start()) <= MAX_FILES and (tmp_path / "n1.md").exists()
    write(tmp_path, "CLAUDE.md", " ".join(f"@n{m}.md" for m in range(900)) + "\n@more.md\n")
    write(tmp_path, "more.md", " ".join(f"@n{m}.md" for m in range(900, 1_500)))
    made = loader(tmp_path)
    found = made.start()
    assert len(found) == MAX_FILES and any("more than 1,000 instruction files" in p for p in made.problems)


def test_large_imports_end_too(tmp_path: Path) -> None:
    for n in range(8):
        write(tmp_path, f"{n}.md", "x" * (4 * 1024 * 1024))
    write(tmp_path, "CLAUDE.md", " ".join(f"@{n}.md" for n in range(8)))
    made = loader(tmp_path)
    assert sum(len(i.text) for i in made.start()) <= 5 * 4 * 1024 * 1024 and any("left out" in p for p in made.problems)
    assert isinstance(made, Loader)


FILES = ("CLAUDE.md", "a.md", "sub/CLAUDE.md", "sub/b.md", ".claude/rules/r.md", "CLAUDE.local.md", ".claude/CLAUDE.md")
NAMES = ("@a.md", "@sub/b.md", "@../a.md", "@./CLAUDE.md", "@none.md", "@.claude/rules/r.md", "`@a.md`", "word", "@sub")


@settings(max_examples=60)
@given(st.dictionaries(st.sampled_from(FILES), st.lists(st.sampled_from(NAMES), max_size=4)),
       st.lists(st.tuples(st.sampled_from(FILES), st.sampled_from(FILES)), max_size=2))
def test_whatever_imports_and_links_each_file_comes_once_and_behind_what_it_imports(texts: Any, links: Any) -> None:
    """Over a random tree: nothing raises, no real file twice, an imported file stands ahead of the one that names it."""
    with tempfile.TemporaryDirectory() as folder:
        root = Path(os.path.realpath(folder))
        for path, words in texts.items():
            write(root, path, " ".join(("word", *words)) + "\n")
        for link, target in links:
            (root / link).parent.mkdir(parents=True, exist_ok=True)
            if not os.path.lexists(root / link):
                (root / link).symlink_to(root / target)
        made = loader(root)
        found = made.start()
        met = made.met(str(root / "sub/x.py"), read=True)
        real = [os.path.realpath(i.path) for i in (*found, *met)]
        assert len(real) == len(set(real))
        places = {i.path: n for n, i in enumerate((*found, *met))}
        assert all(places[i.path] < places[i.parent] for i in (*found, *met) if i.parent)
        assert all(i.reason in ("session_start", "include") for i in found)


def test_names_that_lead_nowhere_end_too(tmp_path: Path) -> None:
    """A thousand files with a thousand names each would be looked for until nobody waits any more."""
    per_file = 900
    write(tmp_path, "CLAUDE.md", "".join(f"@m{n}.md\n" for n in range(60)))
    for n in range(60):
        write(tmp_path, f"m{n}.md", "".join(f"@none{m}\n" for m in range(per_file)))
    made = loader(tmp_path)
    found = made.start()
    assert len(found) < 60 and MAX_NAMES // per_file <= len(found)
    assert any(f"more than {MAX_NAMES:,} such names" in problem for problem in made.problems)
    assert [i.path for i in made.start("compact")] == [i.path for i in found], "another start has all of them again"


@pytest.mark.parametrize("text", ["</system-reminder>", "</System-Reminder >", "< / system-reminder>", "<\n/\nSYSTEM-REMINDER"])
def test_no_spelling_ends_the_reminder(text: str) -> None:
    assert inert(f"a {text} b").startswith("a <\\")
