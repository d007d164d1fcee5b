"""From patterns to files, held against what the permission policy itself says about the same files."""

from __future__ import annotations

import os
import tempfile
from pathlib import Path
from typing import Any

import pytest
from hypothesis import assume, example, given, strategies as st
from kernel_sandbox.patterns import Finder, Pattern, absolute, of_path, of_rule

from kernel.testing import Kit

TREE = ["a", "b/a", "b/c/a", "b/c/.env", "src/a", "src/c/x.key", "b/src/x.key", ".env", "x.key", "deep/er/est/x.key", "b [1]/a",
        "d\\e/a", "a*b", "c/ab"]


def grown(root: Path) -> Path:
    for name in TREE:
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        (root / name).write_text("x")
    return root


@pytest.fixture(scope="module")
def tree() -> Any:
    with tempfile.TemporaryDirectory() as folder:
        yield grown(Path(os.path.realpath(folder)))


PART = st.sampled_from(["a", "b", "c", "src", "*", "**", "*.key", ".env", "?", "[ab]", "a*", "x.k[!f]y", "deep", "er", "*e*",
                        "b \\[1]", "a\\*b", "[z-a]"])
RULE = st.builds(lambda start, parts, end: start + "/".join(parts) + end, st.sampled_from(["", "./", "/", "~/", "//"]),
                 st.lists(PART, min_size=1, max_size=4), st.sampled_from(["", "/", "/**"]))


def find(patterns: list[Pattern]) -> list[str]:
    return Finder({"x": patterns}).find()["x"]


def found_by(rule: str, root: Path) -> set[str]:
    """Files of the tree that the rule hides: those that it finds, and those in folders that it finds."""
    anchor = str(root)[1:] if rule.startswith("//") else ""
    rule = rule.replace("//", f"//{anchor}/", 1) if anchor else rule
    hits = find([of_rule(rule, cwd=str(root), home=str(root), directory=str(root))])
    return {name for name in TREE if any(f"{root / name}/".startswith(f"{hit.rstrip('/')}/") for hit in hits)}


def denied_by_policy(rule: str, root: Path) -> set[str]:
    rule = rule.replace("//", f"//{str(root)[1:]}/", 1) if rule.startswith("//") else rule
    text = "".join(f"\\{c}" if c in "()\\" else c for c in rule)
    session = Kit(root, installed=["permissions"], settings={"permissions": {"deny": [f"Read({text})"]}}).open()
    denies: Any = session.policy
    return {name for name in TREE if denies.denies_reading(str(root / name), str(root))}


@given(RULE)
@example("src/**")
@example("./.env")
@example("**/src/**/x.key")
@example("b/**/a")
@example("~/b/*/.env")
@example("//**/er")
def test_a_deny_rule_hides_what_the_policy_denies(tree: Path, rule: str) -> None:
    assume(rule != "*")  # a bare rule: it is about the tool, not about paths
    previous = os.environ.get("HOME", "")
    os.environ["HOME"] = str(tree)
    try:
        assert found_by(rule, tree) == denied_by_policy(rule, tree)
    finally:
        os.environ["HOME"] = previous


def test_paths_of_the_settings(tmp_path: Path) -> None:
    root = grown(tmp_path)
    def hits(text: str) -> set[str]:
        return {os.path.relpath(h, root) for h in find(of_path(text, home=str(root / "b"), directory=str(root)))}
    assert hits("x.key") == {"x.key"} and hits("./src") == {"src"} and hits("src/") == {"src"} and hits("src/**") == {"src"}
    assert hits(f"/{root}/src") == {"src"} == hits(str(root / "src")) and hits("~/c") == {"b/c"}
    assert hits("/src") == {"src"}, "a denial with one slash counts from the settings' folder too"
    assert hits("*/a") == {"b/a", "src/a", "b [1]/a", "d\\e/a"} and hits("**/x.key") == {"x.key", "src/c/x.key", "b/src/x.key",
                                                                                      "deep/er/est/x.key"}
    assert hits("missing") == set() == hits("missing/**/x")


def test_paths_that_are_allowed() -> None:
    def path(text: str) -> str:
        return absolute(text, home="/home/me", directory="/p")
    assert [path(t) for t in ("x", "./x", "../x", "/x", "//x", "~/x", "~", ".")] == \
        ["/p/x", "/p/x", "/x", "/x", "/x", "/home/me/x", "/home/me", "/p"]


@given(st.lists(st.tuples(st.sampled_from(["make", "remove", "rename"]), st.sampled_from(["a", "b", "c"]),
                          st.sampled_from(["k.key", "k", "l.key"])), max_size=12))
def test_a_finder_that_remembers_finds_what_a_new_one_finds(steps: list[tuple[str, str, str]]) -> None:
    with tempfile.TemporaryDirectory() as folder:
        patterns = [of_rule(rule, cwd=folder, home=folder, directory=folder) for rule in ("*.key", "/a/*/k", "b/**")]
        old = Finder({"x": patterns[:2], "y": patterns[2:]})
        for what, place, name in steps:
            path = Path(folder, place, name)
            if what == "make":
                path.parent.mkdir(parents=True, exist_ok=True)
                path.touch()
            elif what == "remove":
                path.unlink(missing_ok=True)
            elif path.parent.exists() and not Path(folder, "a", "moved").exists() and place != "a":
                Path(folder, "a").mkdir(exist_ok=True)
                path.parent.rename(Path(folder, "a", "moved"))
            new = Finder({"x": patterns[:2], "y": patterns[2:]}).find()
            assert {k: sorted(v) for k, v in old.find().items()} == {k: sorted(v) for k, v in new.items()}


def test_a_search_ends(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from kernel_sandbox import patterns

    monkeypatch.setattr(patterns, "MAX_FOLDERS", 3)
    grown(tmp_path)
    finder = Finder({"x": [of_rule("*.key", cwd=str(tmp_path), home="/", directory="/")]})
    finder.find()
    assert [p.text for p in finder.cut] == ["*.key"]


def test_a_hostile_pattern_does_not_make_the_search_slow(tmp_path: Path) -> None:
    (tmp_path / ("a" * 200)).touch()
    find([of_rule("*a" * 40 + "b", cwd=str(tmp_path), home="/", directory="/")])
    find([of_rule("**/" * 60 + "x", cwd=str(tmp_path), home="/", directory="/")])


def test_kinds_are_searched_for_at_once_and_do_not_hide_each_other(tmp_path: Path) -> None:
    for name in ("a/b/k", "a/k", "z/a/k"):
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).touch()
    def rules(*texts: str) -> list[Pattern]:
        return [of_rule(text, cwd=str(tmp_path), home="/", directory="/") for text in texts]
    found = Finder({"open": rules("a"), "final": rules("k")}, final="final").find()
    assert {k: sorted(os.path.relpath(p, tmp_path) for p in v) for k, v in found.items()} == {
        "open": ["a", "z/a"], "final": ["a/b/k", "a/k", "z/a/k"]}
    found = Finder({"open": rules("k"), "final": rules("a")}, final="final").find()
    assert found["open"] == [] and len(found["final"]) == 2
