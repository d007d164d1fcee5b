"""What is made: names, files, places, faults. The plugins that come out run their own tests."""

from __future__ import annotations

import ast
import json
import keyword
import os
import shlex
import subprocess
import sys
import tomllib
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, strategies as st
from kernel_scaffold.kinds import KINDS
from kernel_scaffold.make import check_name, make, render, templates, write

from kernel import UsageError
from kernel.testing import Kit

PLUGIN = Path(__file__).parent.parent
ROOT = PLUGIN.parents[1]
ALL_KINDS = pytest.mark.parametrize("kind", KINDS)


def new(folder: Path, *args: str, env: dict[str, str] | None = None) -> subprocess.CompletedProcess[str]:
    return subprocess.run([sys.executable, "-m", "kernel", "plugins", "new", *args], cwd=folder, capture_output=True, text=True,
                          timeout=60, check=False, env={**os.environ, "HOME": str(folder), **(env or {})})


def tree(folder: Path) -> dict[str, bytes]:
    """The files of a folder, without what running it leaves behind."""
    left = {"__pycache__", ".pytest_cache", ".venv"}
    return {p.relative_to(folder).as_posix(): p.read_bytes() for p in folder.rglob("*") if p.is_file() and not left & {*p.parts}}


# -- names ------------------------------------------------------------------------------------------------------------
@pytest.mark.parametrize("name", ["demo", "word-count", "a", "x2", "a-1-b", "email", "n" * 64])
def test_good_names(name: str) -> None:
    check_name(name)


@pytest.mark.parametrize(("name", "told"), [
    ("WordCount", "did you mean 'word-count'?"), ("word_count", "did you mean 'word-count'?"), ("my plugin", "'my-plugin'"),
    ("2fast", "'fast'"), ("-x", "'x'"), ("a--b", "'a-b'"), ("a-", "'a'"), ("../up", "'up'"), ("a/b", "'a-b'"),
    ("", "for example"), ("über", "lower-case"), ("dеmo", "lower-case"), ("demo\n", "lower-case"), ("--json", "'json'"),
    ("a" * 65, "65 characters, at most 64"), ("con", "device"), ("lpt1", "device"), ("harness", "the kernel itself")])
def test_bad_names_are_refused_with_what_to_do(name: str, told: str) -> None:
    with pytest.raises(UsageError) as caught:
        check_name(name)
    assert told in str(caught.value)


@given(st.text(max_size=70) | st.from_regex(r"[a-z0-9-]{1,70}", fullmatch=True))
def test_an_accepted_name_does_everywhere(name: str) -> None:
    try:
        check_name(name)
    except UsageError:
        return
    files = render(name, "tool", "Ada")
    package = f"kernel_{name.replace('-', '_')}"
    assert package.isidentifier() and not keyword.iskeyword(package) and f"src/{package}/plugin.py" in files
    project = tomllib.loads(files["pyproject.toml"].decode())["project"]
    assert project["name"] == f"kernel-{name}" and project["entry-points"]["kernel.plugins"] == {name: f"{package}.plugin"}
    (tool,) = json.loads(files[".claude-plugin/plugin.json"])["metadata"]["kernel"]["provides"]["tools"]
    assert tool.isidentifier()
    assert all(ast.parse(text) for path, text in files.items() if path.endswith(".py") and text.strip())


# -- files ------------------------------------------------------------------------------------------------------------
@ALL_KINDS
def test_every_kind_is_whole(kind: str, kernel_kit: Callable[..., Kit], tmp_path: Path) -> None:
    made = make("my-thing", kind, tmp_path, "Ada")
    files = tree(made.path)
    assert sorted(files) == made.files and {"README.md", "pyproject.toml", ".gitignore", "tests/test_my_thing.py"} <= files.keys()
    assert not [path for path, text in files.items() if b"sample" in (path.encode() + text).lower()]
    for path, text in files.items():
        assert text.endswith(b"\n") and b"\r" not in text and b"\t" not in text, path
    plugin = kernel_kit(plugin_dirs=[made.path]).harness.plugins.get("my-thing")
    assert plugin and plugin.state == "ready" and plugin.errors == [] and plugin.manifest
    project = tomllib.loads(files["pyproject.toml"].decode())["project"]
    assert (plugin.manifest.version, plugin.manifest.description) == (project["version"], project["description"])
    assert plugin.manifest.author and plugin.manifest.author.name == project["authors"][0]["name"] == "Ada"
    packed = tomllib.loads(files["pyproject.toml"].decode())["tool"]["hatch"]["build"]["targets"]["wheel"]["force-include"]
    folders = {path.split("/")[0] for path in files if "/" in path} - {"src", "tests"}
    assert set(packed) == folders, "what is not packed is missing where the wheel is installed"


@pytest.mark.parametrize("author", [
    'A "quoted" name', "back\\slash", "Ünal Øst", "Ada <ada@example.org>", "sample author", "{x}"])
def test_any_author_is_written_as_it_is(author: str) -> None:
    files = render("demo", "tool", author)
    assert json.loads(files[".claude-plugin/plugin.json"])["author"]["name"] == author
    assert tomllib.loads(files["pyproject.toml"].decode())["project"]["authors"] == [{"name": author}]


@pytest.mark.parametrize("author", ["two\nlines", "\x00", "\x7f", "a" * 201])
def test_an_author_that_cannot_be_written_is_refused(author: str) -> None:
    with pytest.raises(UsageError, match="--author"):
        render("demo", "tool", author)


def test_a_placeholder_that_nothing_replaces_is_found(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from kernel_scaffold import make as module

    (tmp_path / "skill").mkdir()
    (tmp_path / "skill" / "a.md").write_text("The Sample Plugin")
    monkeypatch.setattr(module, "templates", lambda: tmp_path)
    with pytest.raises(AssertionError, match="a placeholder that nothing replaces"):
        render("demo", "skill", "Ada")


def test_every_folder_of_templates_is_used() -> None:
    assert {p.name for p in templates().iterdir()} == {layer for kind in KINDS.values() for layer in kind.layers}


def test_the_template_at_the_top_is_what_is_made_for_a_tool() -> None:
    made = render("word-count", "tool", "The kernel authors")
    assert made == tree(ROOT / "plugin-template"), "kernel plugins new word-count --author 'The kernel authors', and put it there"


@ALL_KINDS
def test_the_linter_finds_nothing_at_all(kind: str, tmp_path: Path) -> None:
    make("my-thing", kind, tmp_path, "Ada")
    done = subprocess.run([sys.executable, "-m", "kernel", "plugins", "validate", "--strict", "--json", "my-thing"], cwd=tmp_path,
                          capture_output=True, text=True, timeout=60, check=False)
    assert done.returncode == 0 and json.loads(done.stdout)["findings"] == [], done.stdout + done.stderr


# -- places -----------------------------------------------------------------------------------------------------------
def test_a_folder_with_something_in_it_is_left_alone(tmp_path: Path) -> None:
    (tmp_path / "demo").mkdir()
    (tmp_path / "demo" / "mine.txt").write_text("mine")
    done = new(tmp_path, "demo")
    assert done.returncode == 2 and "is not empty; nothing in it was changed" in done.stderr
    assert tree(tmp_path) == {"demo/mine.txt": b"mine"}


@pytest.mark.parametrize("target", ["file", "link", "dangling"])
def test_what_is_no_folder_is_left_alone(tmp_path: Path, target: str) -> None:
    place = tmp_path / "demo"
    if target == "file":
        place.write_text("mine")
    else:
        (tmp_path / "elsewhere").mkdir(exist_ok=True)
        place.symlink_to(tmp_path / ("elsewhere" if target == "link" else "nowhere"))
    done = new(tmp_path, "demo")
    assert done.returncode == 2 and "exists and is no folder" in done.stderr
    assert not list(tmp_path.glob("elsewhere/*")) and not (tmp_path / "nowhere").exists()


def test_an_empty_folder_is_filled_and_a_missing_parent_is_made(tmp_path: Path) -> None:
    (tmp_path / "demo").mkdir()
    assert new(tmp_path, "demo").returncode == 0 and (tmp_path / "demo" / "pyproject.toml").is_file()
    assert new(tmp_path, "demo", "--dir", "a/b").returncode == 0 and (tmp_path / "a" / "b" / "demo" / "pyproject.toml").is_file()
    assert (tmp_path / "demo").stat().st_mode & 0o777 == 0o777 & ~current_umask()


def current_umask() -> int:
    mask = os.umask(0o022)
    os.umask(mask)
    return mask


SMALL_FILES = """
import resource, sys
resource.setrlimit(resource.RLIMIT_FSIZE, (700, 700))
from kernel.cli import main
sys.exit(main(["plugins", "new", "demo"]))
"""


def test_a_write_that_fails_leaves_nothing(tmp_path: Path) -> None:
    """The system refuses every file above 700 bytes, so the third or fourth fails."""
    work = tmp_path / "work"
    work.mkdir()
    done = subprocess.run([sys.executable, "-B", "-c", SMALL_FILES], cwd=work, capture_output=True, text=True, timeout=60,
                          check=False)
    assert done.returncode == 1 and done.stderr.startswith("Error: "), done.stderr
    assert list(work.iterdir()) == []


def test_who_fills_the_folder_meanwhile_is_not_overwritten(tmp_path: Path) -> None:
    (tmp_path / "demo").mkdir()
    (tmp_path / "demo" / "theirs").write_text("theirs")
    with pytest.raises(OSError, match="not empty"):
        write(tmp_path / "demo", {"a": b"mine"})
    assert tree(tmp_path) == {"demo/theirs": b"theirs"}


def test_a_place_that_cannot_be_made_is_said(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    done = new(tmp_path, "demo", "--dir", "file/inside")
    assert done.returncode in (1, 2) and done.stderr.startswith("Error: ") and "file" in done.stderr


# -- the command line ---------------------------------------------------------------------------------------------------
def test_json_says_what_was_made(tmp_path: Path) -> None:
    done = new(tmp_path, "word-count", "--kind", "skill", "--json")
    said = json.loads(done.stdout)
    assert (said["name"], said["kind"], said["package"], said["distribution"], said["notes"]) == (
        "word-count", "skill", "kernel_word_count", "kernel-word-count", [])
    assert said["path"] == str((tmp_path / "word-count").resolve()) and said["files"] == sorted(tree(tmp_path / "word-count"))


@pytest.mark.parametrize(("args", "told"), [
    (["demo", "--kind", "toool"], "kinds are tool, hooks"), (["Demo"], "did you mean 'demo'?"), ([], "NAME"),
    (["a", "b"], "unexpected"), (["demo", "--frobnicate"], "--frobnicate")])
def test_wrong_usage_is_exit_code_2(tmp_path: Path, args: list[str], told: str) -> None:
    done = new(tmp_path, *args)
    assert done.returncode == 2 and told in done.stderr and "Traceback" not in done.stderr
    assert list(tmp_path.iterdir()) == []


def test_help_and_readme_name_every_kind(tmp_path: Path) -> None:
    done = new(tmp_path, "--help")
    assert done.returncode == 0 and all(kind in done.stdout for kind in KINDS)
    readme = (PLUGIN / "README.md").read_text("utf-8")
    assert [line.split("`")[1] for line in readme.splitlines() if line.startswith("| `")] == list(KINDS)


def test_what_an_installed_plugin_registers_is_not_registered_twice(tmp_path: Path) -> None:
    """The tool would be named Read, which the plugin tools-files has."""
    done = new(tmp_path, "read")
    assert done.returncode == 2 and "'Read' (tools)" in done.stderr and "'tools-files'" in done.stderr
    assert new(tmp_path, "read", "--kind", "hooks").returncode == 0


def test_two_kinds_at_once_are_refused_with_what_to_do(tmp_path: Path) -> None:
    done = new(tmp_path, "both", "--kind", "tool", "--kind", "hooks")
    assert done.returncode == 2 and "--kind can be given once" in done.stderr and "'A second kind in one plugin'" in done.stderr
    assert not (tmp_path / "both").exists()
    assert "## A second kind in one plugin" in (ROOT / "docs" / "plugins.md").read_text("utf-8")


@pytest.mark.parametrize(("name", "kind", "cls"), [
    ("echo-provider", "provider", "EchoProvider"), ("word-tool", "tool", "WordTool"), ("tool", "tool", "ToolTool"),
    ("big-compactor", "compactor", "BigCompactor"), ("echo", "provider", "EchoProvider")])
def test_no_class_says_its_kind_twice(name: str, kind: str, cls: str) -> None:
    whole = b"".join(content for path, content in render(name, kind, "Ada").items() if path.endswith(".py")).decode()
    assert f"class {cls}" in whole and f"register({cls}())" in whole
    assert name == "tool" or not [twice for twice in ("ProviderProvider", "ToolTool", "CompactorCompactor") if twice in whole]


def test_a_name_that_is_installed_already_is_noted(tmp_path: Path) -> None:
    done = new(tmp_path, "scaffold", "--kind", "skill")
    assert done.returncode == 0 and "installed already (distribution kernel-scaffold)" in done.stderr


def test_the_author_comes_from_git(tmp_path: Path) -> None:
    (tmp_path / "config").write_text("[user]\nname = Grace G. Hopper\n")
    assert new(tmp_path, "demo", env={"GIT_CONFIG_NOSYSTEM": "1", "GIT_CONFIG_GLOBAL": str(tmp_path / "config")}).returncode == 0
    author = json.loads((tmp_path / "demo" / ".claude-plugin" / "plugin.json").read_text())["author"]
    assert author == {"name": "Grace G. Hopper"}


# -- what comes out works -------------------------------------------------------------------------------------------------
def as_installed(folder: Path, name: str) -> dict[str, str]:
    """The environment in which the folder counts as installed with ``pip install -e``; pip itself is left out."""
    site = folder.parent / "site"
    info = site / f"kernel_{name.replace('-', '_')}-0.1.0.dist-info"
    info.mkdir(parents=True)
    points = tomllib.loads((folder / "pyproject.toml").read_text())["project"]["entry-points"]["kernel.plugins"]
    (info / "entry_points.txt").write_text("[kernel.plugins]\n" + "".join(f"{k} = {v}\n" for k, v in points.items()))
    (info / "direct_url.json").write_text(json.dumps({"url": folder.as_uri(), "dir_info": {"editable": True}}))
    return {**os.environ, "PYTHONPATH": f"{folder / 'src'}:{site}"}


@pytest.mark.parametrize(("kind", "name"), [
    *((kind, "my-thing") for kind in KINDS), ("tool", "tool"), ("tool", "path"), ("tool", "false"), ("policy", "policy"),
    ("provider", "model"), ("compactor", "compactor"), ("hooks", "secrets")])
def test_the_tests_of_a_new_plugin_pass_and_fire_every_event_it_answers(kind: str, name: str, tmp_path: Path) -> None:
    """Also where the plugin is named like something that its code uses."""
    made: Any = make(name, kind, tmp_path, "Ada")
    command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "--event-coverage", "--event-coverage-fail"]
    done = subprocess.run(command, cwd=made.path, env=as_installed(made.path, name), capture_output=True, text=True,
                          timeout=120, check=False)
    assert done.returncode == 0 and " failed" not in done.stdout, done.stdout + done.stderr
    assert f"event coverage of {name}: " in done.stdout and "never fired" not in done.stdout


def test_a_new_tool_is_used_by_a_scripted_model_without_a_key(tmp_path: Path) -> None:
    """The last of the ten minutes, as the README of the new plugin writes it."""
    made: Any = make("my-count", "tool", tmp_path, "Ada")
    line = next(line for line in (made.path / "README.md").read_text().splitlines() if "script:talk.yaml" in line)
    args = shlex.split(line, comments=True)
    env = {k: v for k, v in as_installed(made.path, "my-count").items() if not k.startswith("ANTHROPIC")}
    done = subprocess.run([sys.executable, "-m", *args], cwd=made.path, env={**env, "HOME": str(tmp_path)}, capture_output=True,
                          text=True, timeout=60, check=False)
    words = len((made.path / "README.md").read_text().split())
    assert done.returncode == 0 and done.stdout.startswith(f"README.md has {words} words in "), done.stdout + done.stderr
