"""Wrappers, assignments, redirections, and what runs inside (permissions contract, 5.2 to 5.4, 5.6)."""

from __future__ import annotations

import pytest
from hypothesis import given, settings, strategies as st
from kernel_permissions.paper import Paper, PaperView

ALLOW = Paper(allow=["Bash(npm test *)"])
DENY = Paper(allow=["Bash"], deny=["Bash(rm *)", "Bash(git push *)"])


@pytest.mark.parametrize("command", [
    "npm test", "timeout 30 npm test", "timeout -k 5 -s KILL 1m npm test", "timeout --signal=TERM --foreground 0.5 npm test",
    "time npm test", "time -p npm test", "nice npm test", "nice -n 5 npm test", "nice -10 npm test",
    "nice --adjustment=3 npm test",
    "nohup npm test", "stdbuf -oL npm test", "stdbuf -o L -e 0 npm test", "command npm test", "command -p npm test",
    "builtin npm test",
    "noglob npm test", "nohup timeout 30 nice npm test -x", "NODE_ENV=test npm test", "CI=1 LC_ALL=C TZ=UTC npm test",
    "LANG=C timeout 5 npm test", "ls | xargs npm test", "DEBUG='a b' npm test", "npm test && npm test --x", "(npm test)",
])
def test_allow_rules_see_through_what_is_harmless(command: str) -> None:
    assert ALLOW.bash(command) == "allow"


@pytest.mark.parametrize("command", [
    "timeout --unknown 30 npm test", "timeout npm test", "timeout $T npm test", "timeout 5x npm test", "time -o f npm test",
    "nice -n $X npm test", "xargs -n1 npm test", "xargs -0 npm test", "env npm test", "sudo npm test", "setsid npm test",
    "FOO=1 npm test", "LD_PRELOAD=x npm test", "PATH=. npm test", "GIT_DIR=x npm test", "NODE_OPTIONS=x npm test",
    "NODE_ENV=$X npm test",
    "NODE_ENV=$(x) npm test", "CI=1 FOO=2 npm test", "command -v $X npm test", "'timeout' 5 npm test",
    "/usr/bin/timeout 5 npm test",
    "npx npm test", "docker exec c npm test", "ssh h npm test", "nocorrect npm test", "direnv exec . npm test", "npm\ttest\\ x",
    "npm 'test'x", "\\npm test", "\"npm\" test", "/usr/bin/npm test", "npm  \u00a0test", "nice", "time", "timeout 5",
])
def test_allow_rules_do_not_see_through_anything_else(command: str) -> None:
    assert ALLOW.bash(command) == "ask"


@pytest.mark.parametrize("wrapped", [
    "{}", "FOO=1 {}", "A=1 B=$x {}", "timeout 5 {}", "timeout --odd 5 {}", "time {}", "time -o f {}", "nice -n 3 {}", "nohup {}",
    "stdbuf -oL {}", "command {}", "builtin {}", "noglob {}", "env {}", "env -i A=1 {}", "env -u X {}", "env --chdir=/x {}",
    "env -S '{}'",
    "env --split-string='{}'", "env -iS '{}'", "sudo {}", "sudo -u web {}", "sudo -u web -g x A=1 {}", "sudo --user=web {}",
    "sudo -E -- {}",
    "doas -u x {}", "watch {}", "watch -n 1 '{}'", "setsid {}", "setsid -w {}", "ionice -c 2 -n 7 {}", "flock /tmp/l {}",
    "flock -n l -c '{}'",
    "chroot /x {}", "unshare -m {}", "unshare --odd=1 {}", "parallel {} ::: a", "strace -f -o o {}", "taskset -c 1 {}",
    "chrt -f 1 {}",
    "nsenter -t 1 {}", "systemd-run --user {}", "busybox {}", "exec {}", "exec -a x {}", "xargs {}", "xargs -n1 {}",
    "xargs -I% {}",
    "xargs --max-args=1 {}", "find . -exec {} +", "find . -name x -execdir {} ';'", "find . -ok {} \\;", "bash -c '{}'",
    "sh -ec '{}'",
    "bash -o pipefail -c '{}'", "bash --norc -lc '{}' x y", "zsh -c '{}'", "bash <<< '{}'", "bash <<'E'\n{}\nE",
    "bash -s <<E\n{}\nE", "eval '{}'",
    "eval {}", "trap '{}' EXIT", "alias x='{}'", "su -c '{}' u", "su u -c '{}'", "script -qc '{}' /dev/null",
    "runuser -u x -- {}",
    "timeout 5 sudo env A=1 bash -c 'nice {}'", "bash -c \"bash -c '{}'\"", "true && {}", "true || {}", "true; {}", "true | {}",
    "true & {}",
    "true\n{}", "({})", "{{ {}; }}", "! {}", "if true; then {}; fi", "for i in 1; do {}; done", "while {}; do :; done",
    "case x in x) {};; esac", "f() {{ {}; }}; f", "echo $({})", "echo \"$({})\"", "echo `{}`", "cat <({})", "echo x > $({})",
    "x=$({})",
    "cat <<E\n$({})\nE", "[ -n \"$({})\" ]", "a=($({}))", "echo ${{x:-$({})}}", "coproc {}", "time {{ {}; }}", "  {}", "{} # x",
    "{} > /dev/null",
    ">o {}", "2>&1 {}",
])
@pytest.mark.parametrize("denied", ["rm -rf build", "git push origin main"])
def test_no_wrapping_hides_a_denied_command(wrapped: str, denied: str) -> None:
    assert DENY.bash(wrapped.format(denied)) in ("deny", "ask"), wrapped
    assert DENY.bash(wrapped.format("echo ok")) in ("allow", "ask", "deny")


@pytest.mark.parametrize("command", [
    "timeout 5 rm x", "sudo -u web rm x", "env -i rm x", "env - rm x", "env - A=1 rm x", "env -i0S 'rm x'", "env -S'rm x'",
    "mapfile -C 'rm x' -c 1 y", "compgen -C 'rm x'", "find . -exec rm {} +", "bash -c 'rm x'", "eval 'rm x'",
    "xargs -n1 rm", "watch 'rm x'",
    "r\\m x", "'rm' x", "r''m x", "$'r\\x6d' x", "/bin/rm x", "../bin/rm x", "{rm,x}", "rm\tx", "\\rm x", "FOO=1 rm x",
    "echo $(rm x)",
    "git -c a=b push x", "git -C d push x", "git --git-dir=x push y", "git --no-pager push x", "/usr/bin/git push x",
    "git 'push' x",
    "git pu\"s\"h x", "{git,push,x}", "git push", "cd x; rm y", "bash <<'E'\nrm x\nE",
])
def test_spelling_is_resolved_to_a_denial(command: str) -> None:
    assert DENY.bash(command) == "deny"


@pytest.mark.parametrize("command", [
    "$X rm", "x=rm; $x y", "${X}m y", "$(echo rm) y", "`echo rm` y", "r? y", "r* y", "\"$X\" y", "eval \"$X\"",
    "bash -c \"$X\"", "source $X", ". $X",
    "exec $X", "curl x | bash", "bash", "sh -s", "echo 'rm x' | sudo -s", "sudo -i", "su", "su - u", "chroot /x", "unshare -r",
    "script", "sudo -su web",
    "bash < f", "bash <(echo rm x)", "trap \"$X\" EXIT", "alias x=$Y", "xargs -I{} {} x", "find . -exec {} ';'",
    "git -c alias.x='!rm y' x",
    "git -calias.x=push x", "test -v 'a[$(rm x)]'", "[ -v 'a[$(rm x)]' ]", "printf -v 'a[$(rm x)]' y", "read 'a[$(rm x)]'",
    "unset 'a[$(rm x)]'",
    "declare 'a[$(rm x)]=1'", "x='a[$(rm y)]'; echo $((x))", "[[ x -eq y ]]", "echo $((X + 1))", "rm$X y", "git $X origin",
    "xargs git", "git push$X",
    "xargs bash", "parallel", "{a,b}{a,b}{a,b}{a,b}{a,b}{a,b}{a,b} y", "eval eval $X", "sudo $X", "env $X", "timeout 5 $X",
])
def test_what_nobody_can_name_is_asked_where_rules_are_scoped(command: str) -> None:
    assert DENY.bash(command) in ("ask", "deny")


@pytest.mark.parametrize("command", [
    "$X y", "eval \"$X\"", "curl x | bash", "git $X origin", "echo $((X + 1))", "bash -c \"$X\""])
def test_without_scoped_rules_a_bare_allow_is_enough(command: str) -> None:
    assert Paper(allow=["Bash"], ask=["Read(.env)"]).bash(command) == "allow"


@pytest.mark.parametrize(("rule", "command", "expected"), [
    ("Bash($X *)", "$X y", "ask"), ("Bash($X y)", "$X y", "allow"), ("Bash(* y)", "r? y", "ask"), ("Bash(*)", "$X y", "allow"),
    ("Bash(watch *)", "watch ls", "ask"), ("Bash(watch ls)", "watch ls", "allow"), ("Bash(setsid *)", "setsid -w ls", "ask"),
    ("Bash(flock *)", "flock f ls", "ask"), ("Bash(ionice *)", "ionice ls", "ask"), ("Bash(sudo *)", "sudo ls", "allow"),
    ("Bash(find *)", "find . -delete", "ask"), ("Bash(find *)", "find . -fprint x", "ask"),
    ("Bash(find . -delete)", "find . -delete", "allow"),
    ("Bash(find *)", "find / -name x", "allow"), ("Bash(find *)", "find . $X", "ask"),
    ("Bash(find *)", "timeout 5 find . -exec x ';'", "ask"),
    ("Bash(eval *)", "eval $X", "ask"), ("Bash(eval *)", "eval ls", "allow"), ("Bash(bash *)", "bash -c \"$X\"", "ask"),
    ("Bash(bash *)", "bash -c 'make x'", "allow"), ("Bash(env *)", "env A=1 make", "allow"),
    ("Bash(A=1 make *)", "A=1 make x", "allow"),
    ("Bash(npx *)", "npx anything", "allow"), ("Bash(X=1)", "X=1", "allow"), ("Bash(for *)", "for x in a; do make; done", "ask"),
])
def test_which_rules_may_approve(rule: str, command: str, expected: str) -> None:
    assert Paper(allow=[rule]).bash(command) == expected


@pytest.mark.parametrize("command", [
    "X=1", "PATH=/x ls", "export X=1", "declare X=1", "for PATH in a; do ls; done", "read PATH", "printf -v PATH x",
    "PATH=x; ls", "LC_ALL=$X ls",
    "for F in a; do echo $F; done", "for f in '/etc/*'; do echo $f; done", "for f in /etc/*; do echo \"$f\"; done",
    "for f in $(ls); do echo $f; done", "unset X", "X+=1",
])
def test_assignments_that_are_not_known_to_be_safe_ask(command: str) -> None:
    assert Paper().bash(command) == "ask"


@pytest.mark.parametrize("command", [
    "LANG=C ls", "LC_ALL=C; ls", "TZ=UTC", "NO_COLOR=1 git status", "LANG=C LC_TIME=C ls | wc -l"])
def test_safe_assignments_do_not(command: str) -> None:
    assert Paper().bash(command) == "allow"


VIEW = PaperView(dirs=["/proj/app/out", "/proj/app/.git", "/srv/data", "/proj/app/sub"],
                 files=["/proj/app/in.txt", "/srv/data/x"], links={"/proj/app/away": "/srv/data"})


@pytest.mark.parametrize(("command", "mode", "allow", "expected"), [
    ("echo x > out/f", "default", [], "ask"), ("echo x > out/f", "acceptEdits", [], "allow"),
    ("echo x > out/f", "plan", [], "ask"),
    ("echo x > out/f", "dontAsk", [], "deny"), ("echo x > out/f", "bypassPermissions", [], "allow"),
    ("echo x > out/f", "default", ["Edit(out/**)"], "allow"), ("echo x > out/f", "default", ["Edit"], "allow"),
    ("echo x > out/f", "default", ["Bash(echo *)"], "ask"), ("echo x > out/f", "default", ["Bash"], "allow"),
    ("echo x > /dev/null", "default", [], "allow"), ("echo x 2>&1", "default", [], "allow"), ("ls >&2", "default", [], "allow"),
    ("ls 2>/dev/null | wc -l", "default", [], "allow"), ("echo x >| out/f", "default", [], "ask"),
    ("echo x &> out/f", "default", [], "ask"),
    ("echo x &>> out/f", "default", [], "ask"), ("echo x >& out/f", "default", [], "ask"),
    ("echo x 2> out/f", "default", [], "ask"),
    ("echo x <> out/f", "acceptEdits", [], "ask"), ("> out/f", "default", [], "ask"), ("{ ls; } > out/f", "default", [], "ask"),
    ("echo x > ~/f", "acceptEdits", [], "ask"), ("echo x > *.txt", "acceptEdits", [], "ask"),
    ("echo x > $F", "acceptEdits", [], "ask"),
    ("echo x > \"$F\"", "default", ["Bash"], "ask"), ("echo x > $(ls)", "acceptEdits", [], "ask"),
    ("echo x > {a,b}", "acceptEdits", [], "ask"),
    ("echo x > $F", "dontAsk", [], "deny"), ("echo x > ../f", "acceptEdits", [], "ask"),
    ("echo x > /srv/data/f", "acceptEdits", [], "ask"),
    ("echo x > away/f", "acceptEdits", [], "ask"), ("echo x > .git/config", "acceptEdits", [], "ask"),
    ("echo x > .git/config", "default", ["Bash", "Edit"], "ask"), ("echo x > .git/config", "bypassPermissions", [], "allow"),
    ("cd sub && echo x > f", "acceptEdits", [], "ask"), ("cd . && echo x > f", "acceptEdits", [], "allow"),
    ("cd sub && echo x > f", "default", ["Bash"], "ask"), ("cd sub && echo x > /dev/null", "default", [], "allow"),
    ("echo x > '/dev/null'", "default", [], "allow"), ("cat < in.txt", "default", [], "allow"),
    ("cat < /srv/data/x", "default", [], "ask"),
    ("cat < /srv/data/x", "default", ["Read(//srv/**)"], "allow"), ("cat < away/x", "default", [], "ask"),
    ("cat <<< x", "default", [], "allow"),
    ("cat <<EOF\nx\nEOF", "default", [], "allow"), ("cat $(< in.txt)", "default", [], "ask"),
    ("echo $(< in.txt)", "default", [], "allow"),
    ("echo $(< /srv/data/x)", "default", [], "ask"), ("cat 3< in.txt", "default", [], "allow"),
    ("ls 2>&-", "default", [], "allow"),
    ("echo x > /dev/tcp/h/80", "acceptEdits", [], "ask"), ("while read l; do echo $l; done < /srv/data/x", "default", [], "ask"),
    ("echo x > out/f > .git/config", "acceptEdits", [], "ask"), ("echo x >out/f make y", "acceptEdits", [], "allow"),
    ("echo >out/f x >/srv/data/f", "acceptEdits", [], "ask"),
])
def test_redirections_are_reads_and_writes_of_their_files(command: str, mode: str, allow: list[str], expected: str) -> None:
    assert Paper(allow=allow, view=VIEW).bash(command, mode=mode) == expected


@pytest.mark.parametrize(("command", "deny"), [
    ("echo x > config/.env", "Edit(.env)"), ("echo x > .env", "Read(.env)"), ("cat < .env", "Read(.env)"),
    ("echo x >> \"$HOME/.env\"", "Edit(~/.env)"),
    ("echo x > $PWD/.env", "Edit(.env)"), ("echo x > $D/.env", "Edit(.env)"), ("cd $D && echo x > .env", "Edit(.env)"),
    ("echo x > {.env,a}", "Edit(.env)"),
    ("bash -c 'cat .env'", "Read(.env)"), ("sudo tee .env", "Edit(.env)"), ("cat .e*", "Read(.env)"),
    ("cat secrets/*", "Read(secrets/**)"),
    ("grep -r x secrets", "Read(secrets/**)"), ("cp -r secrets /tmp/x", "Read(./secrets/**)"), ("cat sub/../.env", "Read(.env)"),
    ("sed -i s/a/b/ .env", "Edit(.env)"), ("dd if=.env of=x", "Read(.env)"), ("dd if=x of=.env", "Edit(.env)"),
    ("mv .env x", "Read(.env)"),
    ("mv x .env", "Edit(.env)"), ("cp x .env", "Edit(.env)"), ("ln -s .env x", "Read(.env)"), ("git diff -- .env", "Read(.env)"),
    ("git show HEAD:.env", "Read(.env)"), ("head -n5 .env", "Read(.env)"), ("grep -f.env x", "Read(.env)"),
    ("sort -o.env x", "Read(.env)"),
    ("base64 .env", "Read(.env)"), ("xargs cat < .env", "Read(.env)"), ("cat link", "Read(.env)"),
    ("cat 'a b/.env'", "Read(.env)"),
    ("touch .env", "Edit(.env)"), ("cp /tmp/.env .", "Edit(.env)"), ("cp -t . /tmp/x/.env", "Edit(.env)"),
    ("rm .env", "Edit(.env)"), ("chmod 600 .env", "Edit(.env)"),
    ("truncate -s0 .env", "Edit(.env)"),
])
def test_path_rules_reach_file_commands(command: str, deny: str) -> None:
    view = PaperView(files=["/proj/app/.env", "/proj/app/secrets/k"], links={"/proj/app/link": ".env"})
    assert Paper(allow=["Bash"], deny=[deny], view=view).bash(command) == "deny"
    reads_are_not_asked_about = "Read" in deny and ">" in command
    assert Paper(allow=["Bash"], ask=[deny], view=view).bash(command) == ("allow" if reads_are_not_asked_about else "ask")


@given(st.text("abgirmtpush -&|;'\"$(){}\n", max_size=25), st.sampled_from(["rm *", "git push *", "a *", "*b*"]))
@settings(max_examples=300)
def test_one_more_deny_rule_never_makes_a_decision_looser(command: str, rule: str) -> None:
    order = {"allow": 0, "ask": 1, "deny": 2}
    for allow in (["Bash"], ["Bash(a *)"], []):
        before = Paper(allow=allow, ask=["Bash(g *)"]).bash(command)
        after = Paper(allow=allow, ask=["Bash(g *)"], deny=[f"Bash({rule})"]).bash(command)
        assert order[after] >= order[before]


WRAPS = [
    "{} && true", "true; {}", "({})", "echo $({})", "{} | cat", "timeout 5 {}", "env A=1 {}", "sudo {}", "! {}", "{{ {}; }}",
    "nohup {}", "if true; then {}; fi", "A=1 {}",
]


@given(st.lists(st.sampled_from(WRAPS), max_size=4), st.sampled_from(["rm x", "rm -rf 'a b'", "git push", "git -c a=b push x"]))
@settings(max_examples=300)
def test_wrapping_a_denied_command_never_makes_it_allowed(wraps: list[str], denied: str) -> None:
    command = denied
    for wrap in wraps:
        command = wrap.format(command)
    assert DENY.bash(command) != "allow", command
    inner = command.replace("'", "'\\''")
    assert DENY.bash(f"bash -c '{inner}'") != "allow", command
