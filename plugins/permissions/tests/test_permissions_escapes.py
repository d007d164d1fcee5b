"""Ways around the policy that were tried and must stay closed: each would run, read or write what a person did not allow."""

from __future__ import annotations

import os
import shutil
import subprocess
from pathlib import Path

import pytest
from kernel_permissions.paper import Paper, PaperView
from kernel_permissions.view import RealView

_REPOSITORY = ("HEAD", "objects/x", "refs/x", "config")
needs_git = pytest.mark.skipif(shutil.which("git") is None, reason="there is no git here")


def repository(folder: str) -> list[str]:
    return [f"{folder}/{name}" for name in _REPOSITORY]


def real(root: Path, **rules: list[str]) -> Paper:
    """A policy over a real folder."""
    return Paper(view=RealView(str(root.parent / "home")), cwd=str(root), **rules)  # type: ignore[arg-type]


# -- a repository that is not the person's own -----------------------------------------------------------------------------
@pytest.mark.parametrize(("files", "cwd", "expected"), [
    (repository("/proj/app/.git"), "/proj/app", "allow"),
    (repository("/proj/app/.git"), "/proj/app/sub", "allow"),
    (repository("/proj/.git"), "/proj/app/sub", "allow"),
    (["/proj/app/.git"], "/proj/app", "allow"),  # the file of a worktree
    ([], "/proj/app", "allow"),  # no repository at all: git says so
    (repository("/proj/app/sub"), "/proj/app/sub", "ask"),
    ([*repository("/proj/app/.git"), *repository("/proj/app/sub")], "/proj/app/sub", "ask"),
    ([*repository("/proj/app/.git"), *repository("/proj/app/sub")], "/proj/app/sub/deep", "ask"),
    (["/proj/app/HEAD", "/proj/app/commondir"], "/proj/app", "ask"),
    (repository("/proj/app"), "/proj/app", "ask"),  # written file by file
    ([*repository("/proj/app"), "/proj/app/.git/x"], "/proj/app", "ask"),  # a .git that git does not accept
    (repository("/proj/app/.git"), "/proj/app/.git", "ask"),
    (repository("/proj/app/sub/.git"), "/proj/app/sub", "ask"),
    ([*repository("/proj/.git"), "/proj/HEAD"], "/proj/app", "ask"),
])
@pytest.mark.parametrize("command", ["git status", "git diff", "git log -p", "git -C . ls-files -m", "ls | cat; git status"])
def test_git_reads_only_where_the_repository_is_the_persons_own(files: list[str], cwd: str, expected: str, command: str) -> None:
    paper = Paper(view=PaperView(files=files, dirs=["/proj/app/sub/deep"]))
    for mode in ("default", "acceptEdits"):
        assert paper.bash(command, cwd=cwd, mode=mode) == expected
    assert paper.bash(command, cwd=cwd, mode="dontAsk") == ("allow" if expected == "allow" else "deny")


@pytest.mark.parametrize("command", [
    "mkdir -p objects refs && cp f HEAD && git status", "echo x > HEAD; git status", "git status & mv v/* .",
    "bash -c 'cp f HEAD'; git status"])
def test_git_does_not_read_beside_what_may_make_a_repository(command: str) -> None:
    for files in ([], repository("/proj/.git")):
        paper = Paper(view=PaperView(files=["/proj/app/f", *files], dirs=["/proj/app/v"]))
        assert paper.bash(command, mode="acceptEdits") == "ask"


def test_git_reads_beside_edits_where_the_folder_has_its_own_repository() -> None:
    paper = Paper(view=PaperView(files=repository("/proj/app/.git")))
    assert paper.bash("mkdir -p x && git status", mode="acceptEdits") == "allow"


def test_a_repository_behind_a_link_is_not_the_persons_own() -> None:
    view = PaperView(files=[*repository("/proj/app/v"), *repository("/proj/app/w/.git")], links={"/proj/app/.git": "v"})
    assert Paper(view=view).bash("git status") == "ask"
    view = PaperView(files=[*repository("/proj/app/.git"), *repository("/proj/app/v")], links={"/proj/app/l": "v"})
    assert Paper(view=view).bash("git status", cwd="/proj/app/l") == "ask"


@needs_git
def test_a_planted_bare_repository_runs_nothing(tmp_path: Path) -> None:
    """git itself runs the planted command; so the policy must not call this reading."""
    root = tmp_path / "work"
    planted = root / "v"
    subprocess.run(["git", "init", "-q", str(root)], check=True)
    subprocess.run(["git", "init", "-q", "--bare", str(planted)], check=True)
    (planted / "config").write_text("[core]\n\trepositoryformatversion = 0\n\tbare = false\n\tworktree = .\n"
                                    f"\tfsmonitor = \"touch '{tmp_path}/ran'; false\"\n")
    paper = real(root)
    assert paper.bash("git status") == "allow"
    assert paper.bash("git status", cwd=str(planted)) == "ask"
    subprocess.run(["git", "status"], cwd=planted, check=False, capture_output=True, env={"PATH": os.environ["PATH"]})
    assert (tmp_path / "ran").exists(), "the trap itself does not work any more"


# -- links that the command itself moves -----------------------------------------------------------------------------------
def tree(root: Path) -> None:
    """A folder with a link deep inside that leads out once it is moved up, and one that waits for a link to change."""
    for folder in ("a/b", "c/d/e", "plain/sub", "deep/d", "hooks"):
        (root / folder).mkdir(parents=True)
    for name in ("evil", "f", "plain/x", "plain/sub/y", "deep/d/f", "a/b/k"):
        (root / name).write_text("1\n")
    (root / "a/b/l").symlink_to("../..")
    (root / "a/self").symlink_to("../a/self")
    (root / "m").symlink_to("c/d/e")
    (root / "n").symlink_to("m/../../../victim")
    (root.parent / "victim").write_text("1\n")


MOVES_LINKS = [
    "mv a/b/l l && echo x > l/F", "mv a/b/l l && cp evil l/F", "mv a/b/l l && cat l/victim", "mv a/b/l . ; touch l/F",
    "mv a/b . && echo x > b/l/F", "mv a/b . && cp evil b/l/F", "mv a/b . && mkdir b/l/F", "mv a/b . && touch b/l/F",
    "mv a/b . && rm b/l/victim", "mv a/b . && sed -i s/1/2/ b/l/victim", "mv a/b . && cat < b/l/victim", "mv a/b x; ls x/l",
    "cp -a a/b x && cp evil x/l/F", "cp -r a/b . && cp evil b/l/F", "cp -P a/b/l x; touch x/F", "cp -d a/b/l x; touch x/F",
    "cp --no-dereference a/b/l x; touch x/F", "cp --archive a x; touch x/b/l/F", "cp -R a/b/l x; touch x/F",
    "mv a/b/l l & touch l/F", "touch l/F | mv a/b/l l", "for i in 1 2; do touch l/F; mv a/b/l l; done",
    "mv a/b/l . ; cd l; touch F", "mv a/b/l L; touch l/F", "mv a/b/l x; mv x y; touch y/F", "mv a/b/l x; cp -P x y; touch y/F",
    "mv a/b/l hooks; mv hooks/* .; touch l/F", "mv a/b/l hooks/f; cp f hooks", "mv a/b/l ./f2; cp deep/d/f f2",
    "mv a/b/l l/victim .", "mv a/b/l hooks/l/victim hooks", "cp -P a/b/l l/victim .", "rm a/b/l l/victim m n",
    "rm m && mkdir m && cat n", "mv f m; rm m; mkdir m; cat n", "mv m x; mkdir m; cat n", "rm -r m; mkdir m; touch n",
    "sed -i s/1/2/ m; cat n", "mv a/self x; touch x", "mv a/b/l x; echo > x", "mv a/b/l l; cat */victim",
    "mv a/b/l l; head -1 ?/victim",
    "mkdir q && mv a/b q && touch q/b/l/F", "mv a/b/l c/l; touch c/d/../l/F", "mv a/* . && touch b/l/F",
    "mv a/b hooks; diff evil hooks/b/l/victim",
]


@pytest.mark.parametrize("command", MOVES_LINKS)
def test_a_path_that_the_command_itself_may_redirect_asks(tmp_path: Path, command: str) -> None:
    root = tmp_path / "w"
    tree(root)
    assert real(root).bash(command, mode="acceptEdits") == "ask"


@pytest.mark.parametrize("command", [
    "mkdir -p x/y && touch x/y/z", "cp f g && cat g", "mv f g && cat g", "mv plain p && touch p/z && cat p/x",
    "cp -r plain p; ls p/sub",
    "mv plain hooks; sed -i s/1/2/ hooks/plain/x", "rm f; touch f", "rm -r plain; mkdir plain; echo x > plain/x",
    "mv a/b/l l", "mv a/b hooks", "cp -a a x", "rm -rf a", "rm -rf a; mkdir a; touch a/x", "mv a/b/l l && cat evil plain/x",
    "mv a x; ls plain; echo done > f", "touch n2 && mv n2 n3 && cat n3", "cp n2 n3; cat m/../x; ls m", "mv f plain/x hooks",
    "rm m f",
    "echo x > f && cat f && rm f",
])
def test_plain_files_and_folders_need_no_question(tmp_path: Path, command: str) -> None:
    root = tmp_path / "w"
    tree(root)
    assert real(root).bash(command, mode="acceptEdits") == "allow"


@pytest.mark.parametrize(("program", "reader"), [
    ("ln -s .. l", "cat l/victim"), ("tar xf t", "cat l/x"), ("git checkout x", "cat l/x"), ("git -c a=b pull", "cat f2"),
    ("unzip t", "cat l/x"), ("find . -name x -exec mv {} l ';'", "cat l/victim"), ("xargs mv", "cat l/x"), ("mv $X .", "cat l/x"),
    ("mv --odd a b", "cat l/x"), ("install -D a b", "cat f2"), ("rsync -a x y", "cat l/x"), ("cp -L a/b x", "cat l/x"),
])
def test_a_rule_for_a_program_does_not_vouch_for_paths_beside_it(program: str, reader: str) -> None:
    allow = [f"Bash({name} *)" for name in "ln tar git unzip xargs mv install rsync cp".split()]
    paper = Paper(allow=[*allow, f"Bash({program})"], view=PaperView(files=["/proj/app/f", "/proj/app/f2"]))
    assert paper.bash(program) == paper.bash(reader) == "allow"
    for join in ("{} && {}", "{}; {}", "{} | {}", "{}\n{}"):
        assert paper.bash(join.format(program, reader)) == "ask"
        assert paper.bash(join.format(program, "ls")) == "allow"


@pytest.mark.parametrize("command", [
    "mv a/b/l l && echo x > l/F", "mv a/b . && cp evil b/l/F", "cp -a a/b x && cp evil x/l/F", "mv a/b . && rm b/l/victim",
    "mv a/b/l x; mv x y; touch y/F", "rm m && mkdir m && touch n"])
def test_the_links_are_real_traps(tmp_path: Path, command: str) -> None:
    """In a shell each of these changes something outside the folder."""
    root = tmp_path / "o" / "w"
    tree(root)
    (tmp_path / "victim").write_text("1\n")

    def outside() -> dict[Path, int]:
        return {p: p.stat().st_mtime_ns for p in tmp_path.rglob("*") if root not in p.parents and p.is_file()}

    before = outside()
    subprocess.run(["bash", "-c", command], cwd=root, check=False, capture_output=True)
    assert outside() != before


# -- what zsh reads differently (CLAUDE_CODE_SHELL and SHELL may name it) ------------------------------------------------------
@pytest.mark.parametrize("command", [
    "echo x >! P", "echo x >!P", "echo x >>! P", "echo x >>!P", "echo x &>! P", "echo x &>>! P", "echo x >&! P", "echo x >&!P",
    "echo x 2>! P", "echo x >|! P", "echo x >&| P", "echo x >>| P", "echo x &>| P", "{ echo x; } >! P", ">! P",
    "cat <<E >! P\nx\nE",
    "cat =ls", "cat '' =ls", "ls =", "cat =\"ls\"", "cat =$X", "head -c 3 =ls", "for x in =ls; do echo $x; done", "X==ls",
    "echo =(touch P)", "cat $=HOME", "cat \"$=HOME\"", "cat \"$~HOME\"", "cat \"$^HOME\"", "echo \"$+HOME\"", "cat a$~HOME",
    "echo $HOME[1]", "echo \"$path['x']\"", "echo \"$path[(e)x]\"", "echo $1[x]", "cat <<E\n$path[x]\nE", "echo *(e:x:)",
    "ls *(.)",
    "cat <1-3>", "ls &| touch P", "for x (a) touch P", "for x in a; { touch P; }", "if [[ -n x ]] { touch P }", "echo ${(e)X}",
])
def test_what_zsh_reads_differently_is_not_understood(command: str) -> None:
    paper = Paper(allow=["Bash"], view=PaperView(files=["/proj/app/a"]))
    expected = "allow" if command == "ls =" else "ask"
    for mode in ("default", "acceptEdits"):
        assert paper.bash(command, mode=mode) == expected


@pytest.mark.parametrize("command", [
    "printf %d 'path[$(touch P)]'", "printf '%*s' 'path[$(x)]' y", "printf %s%d a \"$(cat a)\"", "printf '\\x25d' 'path[x]'",
    "printf %i \"$X\"", "printf '%1$d' x", "[ -t 'path[$(touch P)]' ]", "test -t $X", "test -t \"$X\"", "cat **/a",
    "cat ***/a", "cat *''*/a", "ls **/*.txt",
])
def test_what_zsh_evaluates_is_not_reading(command: str) -> None:
    assert Paper(view=PaperView(files=["/proj/app/a", "/proj/app/d/a.txt"])).bash(command) == "ask"


@pytest.mark.parametrize("command", [
    "echo ====", "[ a == b ]", "[ a = b ]", "echo a=b", "ls --color=never", "printf '%s\\n' \"$X\" $(ls)",
    "printf '%d %5.1f\\n' 3 -4.5",
    "printf 'a\\tb%%\\n'", "[ -t 1 ]", "echo '=x' '$=x' \\=x", "grep 'x$' a", "grep \"x$\" a", "echo $ \"$\" 5$",
    "echo ${X}[1] x[1]"])
def test_what_every_shell_reads_alike_still_needs_no_rule(command: str) -> None:
    assert Paper(view=PaperView(files=["/proj/app/a"])).bash(command) == "allow"


# -- commands that open more than they are given ---------------------------------------------------------------------------
HOLDS = PaperView(files=["/proj/app/.env", "/proj/app/secrets/k", "/proj/app/e/x", "/proj/app/d2/p", "/etc/passwd",
                         "/proj/app/f"],
                  links={"/proj/app/d1/p": "/etc/passwd"})


@pytest.mark.parametrize(("command", "free", "limited"), [
    ("diff d1 d2", "ask", "ask"), ("diff d2 d1", "ask", "ask"), ("diff d1 f", "ask", "ask"), ("diff d? e", "ask", "ask"),
    ("diff --no-dereference d1 d2", "ask", "ask"), ("diff -N . e", "allow", "ask"), ("diff . e", "allow", "ask"),
    ("diff -N secrets e", "allow", "deny"), ("diff f .env", "allow", "deny"),
    ("diff d2 e", "allow", "allow"), ("diff f e/x", "allow", "allow"),
])
def test_diff_of_folders_reads_what_they_hold(command: str, free: str, limited: str) -> None:
    assert Paper(view=HOLDS).bash(command) == free
    assert Paper(view=HOLDS, deny=["Read(/.env)", "Read(/secrets/**)"]).bash(command) == limited


@pytest.mark.parametrize(("command", "expected"), [
    ("git grep -e SECRET", "ask"), ("git grep --untracked -e SECRET", "ask"), ("git grep --no-index SECRET", "ask"),
    ("git grep --cached x", "ask"), ("git grep x -- src", "allow"), ("git grep --cached x -- src", "ask"),
    ("git grep x src -- src", "ask"),
    ("git grep x src", "allow"), ("git grep -e x -- src", "allow"), ("git grep x HEAD -- src", "ask"), ("git diff -- .env",
    "deny"), ("git show HEAD:.env", "deny"),
    ("git show :.env", "deny"), ("git show :0:.env", "deny"), ("git show HEAD:./.env", "deny"),
    ("git cat-file -p HEAD:.env", "deny"),
    ("git log -p -- .env", "deny"), ("git log -L1,9:.env", "ask"), ("git log -L 1,9:secrets/k", "deny"),
    ("git blame .env", "deny"),
    ("git log -p -- '*.env'", "ask"), ("git diff -- ':/.env'", "ask"), ("git diff ':(glob)**/k'", "ask"),
    ("git show 'HEAD:.en?'", "ask"),
    ("git show HEAD:a", "allow"), ("git diff HEAD~1 -- src/m.py", "allow"), ("git log --oneline", "allow"),
    ("git status", "allow"),
    ("git log --format='%h %s'", "allow"), ("git log --author='a*'", "allow"),
])
def test_git_prints_no_file_under_a_read_rule(command: str, expected: str) -> None:
    view = PaperView(files=[*repository("/proj/app/.git"), "/proj/app/.env", "/proj/app/secrets/k", "/proj/app/src/m.py"])
    assert Paper(view=view, deny=["Read(.env)", "Read(/secrets/**)"]).bash(command) == expected
    assert Paper(view=view).bash(command) == ("ask" if "--no-index" in command else "allow")


def test_git_names_files_from_the_top_of_the_repository() -> None:
    view = PaperView(files=[*repository("/proj/app/.git"), "/proj/app/secrets/k", "/proj/app/src/m.py"])
    assert Paper(view=view, deny=["Read(/secrets/**)"]).bash("git show HEAD:secrets/k", cwd="/proj/app/src") == "ask"


def test_git_diff_without_a_repository_reads_whole_folders() -> None:
    assert Paper(view=HOLDS, deny=["Read(.env)"]).bash("git diff . e") == "ask"
    assert Paper(view=HOLDS, deny=["Read(/secrets/**)"]).bash("git diff d2 e") == "allow"


# -- what runs without standing there as a command (5.2) -------------------------------------------------------------------
RUNS = [
    "PAGER='touch P' man ls", "GIT_PAGER='touch P' git -p log", "GIT_EDITOR='touch P' git commit", "export EDITOR='touch P'; x",
    "env VISUAL='touch P' x", "sudo MANPAGER='touch P' man x", "GIT_SSH_COMMAND='touch P' git fetch",
    "GIT_EXTERNAL_DIFF='touch P' git diff",
    "PAGER=$X man ls", "bash -c 'PAGER=\"touch P\" man ls'", "bash -c 'PAGER=\"touch P\"; man ls'", "LESSOPEN='|touch P' less x",
    "BASH_ENV=x bash -c true", "ENV=x sh -ic true", "env BASH_ENV=x bash -c true", "export BASH_ENV=x; bash -c true",
    "declare -x BASH_ENV=x", "GIT_CONFIG_COUNT=1 GIT_CONFIG_KEY_0=alias.p GIT_CONFIG_VALUE_0=tag git p",
    "GIT_CONFIG_PARAMETERS=\"'alias.p=x'\" git p", "GIT_CONFIG_GLOBAL=x git p", "GIT_EXEC_PATH=x git p", "git --exec-path=x p",
    "git -c core.pager='touch P' -p log", "git -ccore.pager='touch P' -p log", "git -c Core.FsMonitor='touch P' status",
    "git -c alias.x='!touch P' x", "git -c alias.x=y x", "git -c pager.log=\"$X\" log", "git --config-env=alias.x=X x",
    "git --config-env core.pager=X log", "git clone -c core.sshCommand='touch P' u",
    "git clone --config core.sshCommand='touch P' u",
    "git config alias.p push", "git config --global alias.p push", "git config set alias.p push", "git config core.hooksPath h",
    "git config core.editor 'touch P'", "git config credential.helper '!touch P'", "git -c include.path=x log",
    "git bisect run touch P", "git rebase --exec 'touch P' x", "git rebase -x 'touch P' x", "git rebase --exec='touch P' x",
    "git submodule foreach 'touch P'", "git submodule foreach --recursive touch P", "git difftool -x 'touch P'",
    "git filter-branch --x y",
    "git clone -u 'touch P' x", "git fetch --upload-pack='touch P' x", "git grep -O'touch P' x",
    "git push --receive-pack='touch P' x",
    ". /dev/stdin <<< 'touch P'", "source /dev/fd/0 <<< 'touch P'", "source <(echo touch P)", ". $X", "source \"$X\"",
    "bash /dev/stdin <<< 'touch P'", "mapfile -C 'touch P; true' -c 1 <<< a", "readarray -C 'touch P' a", "compgen -C 'touch P'",
    "complete -C 'touch P' x", "complete -F f x", "PS4='$(touch P)'; set -x; true", "PS4='$(touch P)' bash -x x",
    "PROMPT_COMMAND='touch P'; bash -ic true", "hash -p /usr/bin/touch foo; foo P", "alias g=git\ng tag t1", "enable -f x y",
    "bind -x '\"a\":touch P'", "trap 'touch P' EXIT", "exec -a x touch P", "exec $X", "coproc touch P", "eval \"$X\"", "$X",
    "command $X",
    "xargs -I{} {} P <<< touch", "xargs touch", "find . -exec {} ';'", "bash -c \"$X\"", "cat x | bash", "bash < x",
    "repeat 1 touch P", "nocorrect touch P", "- touch P", "emulate sh -c 'touch P'", "fc -s", "fc -e x", "r", "sched +1 touch P",
    "zmodload x", "autoload x", "f() { \"$@\"; }; f touch P", "for c in touch; do $c P; done", "read PS4", "printf -v PS4 x",
]


@pytest.mark.parametrize("command", RUNS)
def test_what_does_not_stand_there_as_a_command_asks_where_a_rule_denies_some(command: str) -> None:
    assert Paper(allow=["Bash"], deny=["Bash(touch *)"]).bash(command) in ("ask", "deny")
    assert Paper(allow=["Bash"], ask=["Bash(touch *)"]).bash(command) == "ask"


@pytest.mark.parametrize(("command", "denied"), [
    ("xargs -I{} git {} t0 <<< tag", "Bash(git tag *)"), ("xargs git <<< tag", "Bash(git tag *)"), ("git $X", "Bash(git tag *)"),
    ("f() { git \"$@\"; }; f tag x", "Bash(git tag *)"), ("bash -c 'git \"$@\"' x tag", "Bash(git tag *)"),
    ("PAGER='git tag x' man ls", "Bash(git tag *)"), ("git rebase -x 'git tag x' y", "Bash(git tag *)")])
def test_a_denied_subcommand_does_not_come_in_by_another_way(command: str, denied: str) -> None:
    assert Paper(allow=["Bash"], deny=[denied]).bash(command) in ("ask", "deny")


@pytest.mark.parametrize("command", [
    "PAGER=cat git log", "GIT_EDITOR=true git rebase --continue", "git -c core.pager=cat log", "git -c user.name=x commit -m y",
    "git -c core.fsmonitor=false status", "git config user.name x", "git config --get alias.p", "git rebase main",
    "git bisect good",
    "source .venv/bin/activate", "bash x.sh", "NODE_OPTIONS=--x npm test", "PATH=$PATH:/x make", "set -x", "git submodule update",
    "git commit -m 'config alias.x y'", "git push origin main", "git fetch", "export CI=1", "git -c a.b=\"$X\" log"])
def test_common_commands_stay_allowed_beside_a_deny_rule(command: str) -> None:
    assert Paper(allow=["Bash"], deny=["Bash(touch *)"]).bash(command) == "allow"
