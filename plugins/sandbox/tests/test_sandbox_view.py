"""What holds for a path, as a table, and the invariants behind it."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given, strategies as st
from kernel_sandbox.view import Plan, TooMany, View, under

PLAN = Plan(writable=["/w", "/w/in", "/home/w"], free=["/tmp/own/tmp", "/w/.claude/worktrees"],
            kept=["/w/.claude", "/tmp/own", "/w/.git/hooks"], denied=["/w/vendor"], hidden=["/home", "/w/secret", "/equal"],
            shown=["/home/w", "/w/secret/open", "/equal", "/home/r"],
            sealed=["/home/w/sealed", "/w/secret/open/sealed"], pinned=["/w/.git"])
KINDS = [
    ("/", "readonly"), ("/etc/passwd", "readonly"), ("/w", "writable"), ("/w/a/b", "writable"), ("/wx", "readonly"),
    ("/w/.claude", "readonly"), ("/w/.claude/x", "readonly"), ("/w/.claude/worktrees/x", "writable"),
    ("/w/.git/index", "writable"),
    ("/w/.git/hooks/x", "readonly"), ("/w/vendor/x", "readonly"), ("/w/secret/x", "hidden"), ("/w/secret/open/x", "writable"),
    ("/home", "hidden"), ("/home/x", "hidden"), ("/home/w/x", "writable"), ("/home/w/sealed/x", "hidden"),
    ("/home/r/x", "readonly"),
    ("/w/secret/open/sealed", "hidden"), ("/equal", "readonly"), ("/tmp/own/filter", "readonly"), ("/tmp/own/tmp/x", "writable"),
    ("/tmp/x", "readonly"),
]


@pytest.mark.parametrize(("path", "kind"), KINDS)
def test_what_holds_for_a_path(path: str, kind: str) -> None:
    assert View(PLAN).kind(path) == kind


def test_what_the_harness_needs_is_shown_whatever_is_hidden() -> None:
    view = View(Plan(sealed=["/tmp", "/tmp/own/x"], hidden=["/"], own=["/tmp/own"], free=["/tmp/own/tmp"]))
    kinds = [view.kind(p) for p in ("/tmp/a", "/tmp/own", "/tmp/own/a", "/tmp/own/x", "/tmp/own/tmp/a", "/a")]
    assert kinds == ["hidden", "readonly", "readonly", "hidden", "writable", "hidden"]


def test_allowing_a_place_does_not_open_what_is_kept_in_it_or_around_it() -> None:
    view = View(Plan(writable=["/w", "/w/.git/hooks", "/w/.claude/x"], kept=["/w/.git/hooks", "/w/.claude"]))
    assert view.kind("/w/.git/hooks/x") == view.kind("/w/.claude/x/y") == "readonly"


def test_the_mounts_are_few_and_in_order() -> None:
    assert View(Plan(writable=["/w", "/w/in"], kept=["/etc/x", "/w/.claude", "/w/.claude/y"])).mounts("/m") == [
        "--bind", "/w", "/w", "--ro-bind", "/w/.claude", "/w/.claude"]


def test_folders_on_the_way_to_what_is_kept_cannot_be_moved_away() -> None:
    assert View(Plan(writable=["/w"], kept=["/w/a/b/.npmrc"])).mounts("/m") == [
        "--bind", "/w", "/w", "--bind", "/w/a", "/w/a", "--bind", "/w/a/b", "/w/a/b",
        "--ro-bind", "/w/a/b/.npmrc", "/w/a/b/.npmrc"]


def test_a_hidden_folder_with_something_open_in_it_can_be_walked_through(tmp_path: Path) -> None:
    (tmp_path / "open").mkdir()
    view = View(Plan(hidden=[str(tmp_path)], shown=[f"{tmp_path}/open"]))
    assert view.mounts("/m") == ["--perms", "0111", "--tmpfs", str(tmp_path), "--ro-bind", f"{tmp_path}/open", f"{tmp_path}/open"]
    assert View(Plan(hidden=[str(tmp_path)])).mounts("/m") == ["--perms", "0000", "--tmpfs", str(tmp_path)]


def test_more_mounts_than_bubblewrap_takes_are_refused() -> None:
    with pytest.raises(TooMany):
        View(Plan(sealed=[f"/x/{n}" for n in range(3000)])).mounts("/m")


PATH = st.lists(st.sampled_from("abc"), min_size=1, max_size=4).map(lambda names: "/" + "/".join(names))
PATHS = st.lists(PATH, max_size=4)
PLANS = st.builds(Plan, writable=PATHS, free=PATHS, kept=PATHS, denied=PATHS, hidden=PATHS, shown=PATHS, sealed=PATHS,
                  pinned=PATHS, own=PATHS)


@given(PLANS, PATH)
def test_the_mounts_make_hold_what_is_said(plan: Plan, path: str) -> None:
    """The last mount on the way to a path decides, as the kernel of the system has it."""
    view = View(plan)
    arguments = view.mounts("/mask")
    kind, i = view.kind("/"), 0
    while i < len(arguments):
        option = arguments[i]
        if option == "--perms":
            i += 2
            option = arguments[i]
        target = arguments[i + 1] if option == "--tmpfs" else arguments[i + 2]
        is_mask = option == "--tmpfs" or arguments[i + 1] == "/mask"
        i += 2 if option == "--tmpfs" else 3
        if under(path, target):
            kind = "hidden" if is_mask else {"--bind": "writable", "--ro-bind": "readonly"}[option]
    assert kind == view.kind(path)


@given(PLANS, PATHS, PATH)
def test_more_denials_never_open_anything(plan: Plan, more: list[str], path: str) -> None:
    order = ["hidden", "readonly", "writable"]
    before = order.index(View(plan).kind(path))
    for name in ("kept", "denied", "sealed"):
        stricter = Plan(**{**{f: getattr(plan, f) for f in plan.__struct_fields__}, name: [*getattr(plan, name), *more]})
        assert order.index(View(stricter).kind(path)) <= before
