"""Path rules: patterns, anchors, links, directories (permissions contract, 6.2)."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from hypothesis import given, settings, strategies as st
from kernel_permissions.paper import Paper, PaperView
from kernel_permissions.paths import PathPattern, Places, glob_regex
from kernel_permissions.view import RealView, posix


def covers(pattern: str, path: str, loose: bool = True) -> bool:
    return PathPattern(pattern, loose=loose, cwd="/p", home="/h", directory="/src-of-rule").covers(path)


@pytest.mark.parametrize(("pattern", "path", "allow", "deny"), [
    # a bare name at any depth under the working directory
    (".env", "/p/.env", True, True), (".env", "/p/a/b/.env", True, True), (".env", "/q/.env", False, False),
    ("*.pem", "/p/a/x.pem", True, True),
    (".env", "/p/.env/x", True, True), ("**/.env", "/p/a/.env", True, True), ("./.env", "/p/.env", True, True),
    ("./.env", "/p/a/.env", False, True),
    ("secrets", "/p/secrets/a/b", True, True), ("secrets/", "/p/a/secrets/b", True, True),
    ("secrets/", "/p/secrets", False, True),
    # one folder and everything below it
    ("src/**", "/p/src/a/b", True, True), ("src/**", "/p/v/src/a", False, True), ("./src/**", "/p/v/src/a", False, True),
    ("./src/**", "/p/src/a", True, True),
    ("src/**", "/p/src", False, True), ("src/**", "/p/srcx/a", False, False), ("src/*", "/p/v/src/a", False, False),
    ("src/*", "/p/src/a", True, True),
    ("*/**", "/p/a/b", True, True), ("**", "/p/a", True, True), ("**", "/q/a", False, False),
    ("**/src/**", "/p/v/src/a", True, True),
    # anchored
    ("/src/**", "/src-of-rule/src/a", True, True), ("/src/**", "/p/src/a", False, False),
    ("/src/**", "/src-of-rule/v/src/a", False, False),
    ("//etc/passwd", "/etc/passwd", True, True), ("//**", "/anything/at/all", True, True), ("//etc/**", "/etc/a/b", True, True),
    ("//", "/x", True, True),
    ("~/x/**", "/h/x/a", True, True), ("~/x/**", "/h/y/x/a", False, False), ("~/.ssh", "/h/.ssh/id", True, True),
    ("~", "/h/a", True, True),
    ("src/components/**", "/p/src/components/a", True, True), ("src/components/**", "/p/v/src/components/a", False, False),
    ("/", "/src-of-rule/x", True, True), ("a/../b", "/p/b", False, False),
    # inside a part
    ("a?c", "/p/abc", True, True), ("a?c", "/p/a/c", False, False), ("a*c", "/p/abbc", True, True),
    ("a*c", "/p/a/c", False, False),
    ("[ab].txt", "/p/a.txt", True, True), ("[!ab].txt", "/p/a.txt", False, False), ("[a-c]x", "/p/bx", True, True),
    ("a\\*", "/p/a*", True, True),
    ("a\\*", "/p/ab", False, False), ("a/**/b", "/p/a/b", True, True), ("a/**/b", "/p/a/x/y/b", True, True),
    ("a/**/b", "/p/a/x/c", False, False),
    ("**/*.key", "/p/k.key", True, True), ("a/*/c", "/p/a/b/c", True, True), ("a/*/c", "/p/a/b/b/c", False, False),
    ("[z-a]", "/p/x", False, True),
    (".*", "/p/.git/x", True, True), ("a//b", "/p/a/b", True, True), ("é.txt", "/p/e\u0301.txt", True, True),
    ("{a,b}", "/p/a", False, False),
])
def test_patterns(pattern: str, path: str, allow: bool, deny: bool) -> None:
    assert (covers(pattern, path, loose=False), covers(pattern, path, loose=True)) == (allow, deny)


@given(st.text("ab*?", max_size=8), st.text("ab", max_size=9))
def test_a_part_is_a_glob(pattern: str, name: str) -> None:
    expected = re.compile("".join({"*": ".*", "?": "."}.get(c, c) for c in pattern))
    assert bool(re.compile(glob_regex(pattern)).fullmatch(name)) is bool(expected.fullmatch(name))


@given(st.lists(st.sampled_from(["**", "a", "b", "*"]), min_size=1, max_size=5),
       st.lists(st.sampled_from(["a", "b"]), min_size=1, max_size=6))
def test_two_stars_take_any_number_of_parts(parts: list[str], names: list[str]) -> None:
    """Against the plain definition: try every way to divide the names."""
    def match(p: list[str], n: list[str]) -> bool:
        if not p:
            return True  # a folder covers what is in it
        if p[0] == "**":
            return any(match(p[1:], n[i:]) for i in range(len(n) + 1))
        return bool(n) and p[0] in ("*", n[0]) and match(p[1:], n[1:])
    assert covers("//" + "/".join(parts), "/" + "/".join(names)) is match(parts, names)


@given(st.text(max_size=20), st.text(max_size=20), st.booleans())
def test_what_allow_covers_deny_covers_too(pattern: str, path: str, folder: bool) -> None:
    path = "/p/" + path.strip("/").replace("\0", "")
    if covers(pattern, path, loose=False):
        assert covers(pattern, path, loose=True)


def test_no_pattern_makes_matching_slow() -> None:
    assert not covers("*a" * 100 + "b", "/p/" + "a" * 4_000)
    assert not covers("**/a/" * 60 + "b", "/p/" + "a/" * 1_000)


VIEW = PaperView(
    files=["/p/app/a.txt", "/p/app/.env", "/h/.ssh/id", "/out/x", "/p/app/d/y"], home="/h", dirs=["/added"],
    links={"/p/app/link": "/out/x", "/p/app/env": ".env", "/p/app/dir": "/out", "/p/app/loop": "loop", "/p/app/key": "/h/.ssh/id",
           "/linked": "/p/app", "/p/app/in": "d"})


def decide(tool: str, path: str, mode: str = "default", **rules: list[str]) -> str:
    field = "notebook_path" if tool == "NotebookEdit" else "path" if tool in ("Grep", "Glob") else "file_path"
    return Paper(**rules, view=VIEW, cwd="/p/app", directories=("/added",)).decide(tool, {field: path}, mode=mode).behavior  # type: ignore[arg-type]


@pytest.mark.parametrize(("tool", "path", "expected"), [
    ("Read", "/p/app/a.txt", "allow"), ("Read", "a.txt", "allow"), ("Read", "./d/../a.txt", "allow"),
    ("Read", "/added/x", "allow"),
    ("Read", "/added", "allow"), ("Read", "/out/x", "ask"), ("Read", "/p/app-secrets/x", "ask"), ("Read", "/p/app/../x", "ask"),
    ("Read", "link", "ask"),
    ("Read", "dir/x", "ask"), ("Read", "dir/new", "ask"), ("Read", "in/y", "allow"), ("Read", "loop", "ask"),
    ("Read", "~/x", "ask"), ("Read", "~x", "ask"),
    ("Read", "a\0b", "ask"), ("Read", "", "ask"), ("Read", "/p/app/in/../../../out/x", "ask"), ("Read", "dir/../a.txt", "ask"),
    ("Read", "/linked/a.txt", "ask"), ("Grep", "d", "allow"), ("Grep", "/out", "ask"), ("Glob", "/out", "ask"),
    ("Edit", "a.txt", "ask"),
    ("Write", "/out/x", "ask"), ("NotebookEdit", "n.ipynb", "ask"),
])
def test_reading_inside_is_free_and_links_lead_outside(tool: str, path: str, expected: str) -> None:
    assert decide(tool, path) == expected
    assert decide(tool, path, mode="dontAsk") == ("allow" if expected == "allow" else "deny")


def test_search_without_a_path_searches_where_the_session_stands() -> None:
    assert Paper(view=VIEW, cwd="/p/app").decide("Grep", {"pattern": "x"}).behavior == "allow"
    assert Paper(view=VIEW, cwd="/p/app").decide("Grep", {"pattern": "x"}, cwd="/out").behavior == "ask"
    assert Paper(view=VIEW, cwd="/p/app", deny=["Read(**)"]).decide("Grep", {"pattern": "x"}).behavior == "deny"


@pytest.mark.parametrize(("tool", "path", "rules", "expected"), [
    ("Edit", "a.txt", {"allow": ["Edit(*.txt)"]}, "allow"), ("Write", "new.txt", {"allow": ["Edit(*.txt)"]}, "allow"),
    ("NotebookEdit", "n.ipynb", {"allow": ["Edit(*.ipynb)"]}, "allow"), ("Edit", "link", {"allow": ["Edit(link)"]}, "ask"),
    ("Edit", "link", {"allow": ["Edit(link)", "Edit(//out/**)"]}, "allow"),
    ("Read", "link", {"allow": ["Read(//out/**)"]}, "allow"),
    ("Read", "/out/x", {"allow": ["Edit(//out/**)"]}, "allow"), ("Edit", "/out/x", {"allow": ["Read(//out/**)"]}, "ask"),
    ("Write", "a.txt", {"allow": ["Write"]}, "allow"), ("Edit", "a.txt", {"allow": ["Write"]}, "ask"),
    ("Write", "a.txt", {"allow": ["Edit"]}, "allow"),
    ("Read", "/out/x", {"allow": ["Read"]}, "allow"), ("Grep", "/out", {"allow": ["Read"]}, "allow"),
    ("Grep", "/out", {"allow": ["Grep"]}, "allow"),
    ("Read", ".env", {"deny": ["Read(.env)"]}, "deny"), ("Read", "env", {"deny": ["Read(.env)"]}, "deny"),
    ("Read", "key", {"deny": ["Read(~/.ssh/**)"]}, "deny"),
    ("Read", "d/../.env", {"deny": ["Read(./.env)"]}, "deny"), ("Read", ".//.env", {"deny": ["Read(./.env)"]}, "deny"),
    ("Grep", "env", {"deny": ["Read(.env)"]}, "deny"), ("Edit", ".env", {"deny": ["Read(.env)"]}, "deny"),
    ("Write", "x/.env", {"deny": ["Read(.env)"]}, "deny"),
    ("NotebookEdit", ".env", {"deny": ["Read(.env)"]}, "ask"), ("NotebookEdit", ".env", {"deny": ["Edit(.env)"]}, "deny"),
    ("Read", ".env", {"deny": ["Edit(.env)"]}, "allow"), ("Write", "a.txt", {"deny": ["Edit"]}, "deny"),
    ("Grep", "d", {"deny": ["Read"]}, "deny"),
    ("Read", "a.txt", {"ask": ["Read(*.txt)"]}, "ask"), ("Edit", "a.txt", {"ask": ["Edit(*.txt)"], "allow": ["Edit"]}, "ask"),
    ("Read", "a.txt", {"deny": ["Grep"]}, "allow"), ("Glob", "d", {"deny": ["Read(d/**)"]}, "deny"),
    ("Read", "a.txt", {"deny": ["*"]}, "deny"),
    ("Write", "link", {"deny": ["Edit(//out/**)"]}, "deny"), ("Write", "dir/new", {"deny": ["Edit(//out/**)"]}, "deny"),
    ("Read", "/p/app/x", {"deny": ["Read(app/**)"]}, "allow"),
])
def test_path_rules(tool: str, path: str, rules: dict[str, list[str]], expected: str) -> None:
    assert decide(tool, path, **rules) == expected


def test_deny_rules_hold_from_the_start_and_from_where_the_session_stands() -> None:
    paper = Paper(deny=["Read(./secrets/**)"], cwd="/p/app", view=VIEW)
    assert paper.decide("Read", {"file_path": "/p/app/secrets/x"}, cwd="/p/app/d").behavior == "deny"
    assert paper.decide("Read", {"file_path": "/p/app/d/secrets/x"}, cwd="/p/app/d").behavior == "deny"


def test_allow_rules_keep_to_the_case_and_deny_rules_do_not_where_the_file_system_ignores_it() -> None:
    view = PaperView(files=["/p/app/Secret.txt", "/out/A"], case_insensitive=True)
    paper = Paper(deny=["Read(secret.txt)"], allow=["Read(//out/a)"], view=view, cwd="/p/app")
    assert paper.decide("Read", {"file_path": "SECRET.TXT"}).behavior == "deny"
    assert paper.decide("Read", {"file_path": "/out/A"}).behavior == "ask"
    assert Paper(deny=["Read(secret.txt)"], cwd="/p/app").decide("Read", {"file_path": "SECRET.TXT"}).behavior == "allow"


def test_search_tools_can_leave_out_what_may_not_be_read() -> None:
    policy = Paper(deny=["Read(.env)"], view=VIEW, cwd="/p/app").policy
    paths = (".env", "env", "a.txt", "/p/app/d/.env", "a\0")
    assert [policy.denies_reading(p, "/p/app") for p in paths] == [True, True, False, True, True]


@pytest.mark.parametrize(("path", "expected"), [
    ("C:\\Users\\a", "/c/Users/a"), ("c:/x", "/c/x"), ("\\\\?\\C:\\x", "/c/x"), ("\\\\server\\share\\x", "//server/share/x"),
    ("\\\\?\\UNC\\server\\share", "//server/share"), ("x\\y", "x/y"), ("C:", "/c"),
])
def test_windows_paths_have_one_spelling(path: str, expected: str) -> None:
    assert posix(path) == expected


def test_windows_rules_ignore_case_for_deny() -> None:
    view = PaperView(home="C:\\Users\\u", windows=True)
    paper = Paper(deny=["Read(//c/proj/app/secret.txt)"], view=view, cwd="C:\\proj\\app")
    assert paper.decide("Read", {"file_path": "c:\\PROJ\\app\\SECRET.txt"}).behavior == "deny"
    assert paper.decide("Read", {"file_path": "C:\\proj\\app\\x"}).behavior == "allow"
    assert paper.decide("Read", {"file_path": "\\\\server\\share\\x"}).behavior == "ask"


def test_the_real_file_system_is_seen_through_the_same_questions(tmp_path: Path) -> None:
    work, out = tmp_path / "work", tmp_path / "out"
    work.mkdir()
    out.mkdir()
    (work / "link").symlink_to(out)
    (work / "gone").symlink_to(tmp_path / "nothing")
    (work / "loop").symlink_to(work / "loop")
    view = RealView(str(tmp_path))
    places = Places(view, [str(work)])

    def inside(path: str) -> bool:
        target = places.target(path, str(work))
        return target is not None and places.inside(target)
    assert [inside(p) for p in ("a", "new/deep/file", "link/x", "gone", "link/../a", "../work/a", "../out/x", "~/x")] == [
        True, True, False, False, False, True, False, False]
    assert view.entries(str(work / "missing")) is None and view.resolve("a\0b") is None and not view.exists("a\0b")
    assert sorted(view.entries(str(work)) or []) == ["gone", "link", "loop"]
    assert view.is_dir(str(out)) and not view.is_dir(str(work / "gone")) and view.exists(str(work / "gone"))
    assert view.ignores_case(str(work)) in (True, False)


def test_a_working_directory_behind_a_link_is_inside(tmp_path: Path) -> None:
    (tmp_path / "real").mkdir()
    (tmp_path / "alias").symlink_to(tmp_path / "real")
    places = Places(RealView("/root"), [str(tmp_path / "alias")])
    target = places.target("x", str(tmp_path / "alias"))
    assert target is not None and places.inside(target)


@given(st.text(max_size=30))
@settings(max_examples=200)
def test_no_path_makes_a_decision_fail(path: str) -> None:
    for tool in ("Read", "Edit", "Grep"):
        field = "path" if tool == "Grep" else "file_path"
        assert Paper(deny=["Read(.env)"]).decide(tool, {field: path}).behavior in ("allow", "ask", "deny")
    real = Paper(view=RealView("/root"), cwd="/nowhere")
    assert real.decide("Read", {"file_path": path}).behavior in ("allow", "ask", "deny")
