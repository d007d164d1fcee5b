"""The read-only set: which commands need no rule, and the flag or path that ends it (permissions contract, 5.7)."""

from __future__ import annotations

import pytest
from kernel_permissions.paper import Paper, PaperView
from kernel_permissions.readonly_table import DOCKER, GIT, TABLE, WIDE
from kernel_permissions.scripts import awk_only_prints, sed_only_prints

VIEW = PaperView(
    files=["/proj/app/a.txt", "/proj/app/b.txt", "/proj/app/src/m.py", "/etc/passwd", "/proj/app-secrets/k", "/proj/app/out/x"],
    dirs=["/proj/app/src", "/proj/app/sub", "/extra"], links={"/proj/app/link": "/etc/passwd", "/proj/app/inner": "src/m.py",
                                                             "/proj/app/out/away": "/etc"})
PAPER = Paper(view=VIEW, directories=("/extra",), wide=True)


@pytest.mark.parametrize("command", [
    "ls", "ls -la", "ls -l --color=never src", "ls *.txt", "ls src/*.py", "ls -1tr", "ls -d .", "cat a.txt b.txt",
    "cat -n a.txt", "cat -- a.txt",
    "cat src/../a.txt", "cat /proj/app/a.txt", "cat inner", "cat \"a.txt\" 'b.txt'", "cat a\\.txt", "echo hi $X \"$Y\"",
    "echo $(ls)", "echo -e 'a\\n'", "echo", "printf '%s\\n' \"$X\" $Y", "pwd", "pwd -P", "head -5 a.txt", "head -n 5 a.txt",
    "head --lines=5 a.txt",
    "tail -f a.txt", "tail -n +5 a.txt", "tail --pid 7 -f a.txt", "wc -l *.txt", "wc src/*.py", "stat -c '%s' a.txt",
    "du -sh src", "du -h --max-depth=1",
    "file -b a.txt", "diff a.txt b.txt", "diff -u a.txt b.txt", "cut -d: -f1 a.txt", "cut -d , -f 2- a.txt",
    "paste -d, a.txt b.txt", "column -t a.txt",
    "sort a.txt", "sort -rn -k2,2 -t: a.txt", "grep x a.txt", "grep -rn x src", "grep -e x -e y a.txt", "grep -c '' a.txt",
    "grep -A3 -B 2 x a.txt",
    "grep -rn --include='*.py' x .", "grep -f a.txt b.txt", "grep /etc/passwd a.txt", "grep -5 x a.txt", "rg foo",
    "rg -n foo src", "rg -g '*.py' x",
    "rg --files", "rg --type py x src", "fd x src", "fd -e py", "fdfind -t f x", "find . -name '*.py'",
    "find src -type f -maxdepth 2", "find",
    "find . \\( -name a -o -name b \\) -print0", "find . -newer a.txt -size +1k", "find -L src -not -path '*/x/*'",
    "which python", "lsof -i :80",
    "lsof -p 1", "pgrep -fl node", "tput cols", "ss -tlnp", "sed -n '1,5p' a.txt", "sed 's/a/b/g' a.txt",
    "sed -e 's/a/b/' -e '/x/d' a.txt", "sed -n '$p' a.txt",
    "awk '{print $1}' a.txt", "awk -F: '{print $1, $NF}' a.txt", "awk 'NR==1' a.txt", "awk '/x/ {print $2}' a.txt", "true",
    "false", ":", "test -f a.txt",
    "test \"$X\" = y", "[ -n \"$X\" ]", "[ a = b ]", "[ ! -d src ]", "[ -e a.txt ] && echo y", "man ls", "help cd", "cd src",
    "cd .", "cd src && ls", "cat {a,b}.txt", "ls src/{x,y}", "diff <(ls src) <(sort a.txt)", "cat <(cat a.txt)", "test $? -eq 0",
    "cd src && cat m.py", "cd /extra && ls", "git status", "git status -sb", "git status --porcelain", "git log --oneline -5",
    "git log -n 3 --stat",
    "git log --pretty=format:'%h %s' -- src", "git log main..HEAD", "git diff", "git diff --cached --name-only",
    "git diff HEAD~1 -- a.txt", "git show HEAD",
    "git show HEAD:a.txt", "git branch", "git branch -a", "git branch --show-current", "git branch --list 'x*'", "git tag",
    "git tag -l 'v*'", "git remote -v",
    "git remote get-url origin", "git rev-parse --abbrev-ref HEAD", "git ls-files", "git blame a.txt", "git stash list",
    "git stash show -p",
    "git config --get user.name", "git config --list", "git grep -n foo", "git describe --tags", "git reflog",
    "git worktree list", "git --no-pager log",
    "git -C . status", "git -C /proj/app log", "git shortlog -sn", "git cat-file -p HEAD", "git ls-tree -r HEAD",
    "docker ps -a", "docker images",
    "docker inspect x", "docker logs -f x", "docker version", "podman ps", "ls | wc -l", "cat a.txt | grep x | head -5",
    "ls && pwd || true", "(ls; pwd)",
    "if true; then ls; fi", "while false; do ls; done", "! ls", "ls 2>&1", "ls 2>/dev/null", "timeout 5 ls", "nice ls",
    "time ls -la", "command ls",
    "ls; # done", "ls \\\n  -la", "echo {a,b}", "cat < a.txt", "cat <<'E'\nx\nE", "sort a.txt | head",
    "ls -la /extra", "cat /dev/null", "cat -", "echo \"$(git rev-parse HEAD)\"", "echo `pwd`", "xargs echo < a.txt", "", "  ",
    "# nothing",
    "sort a.txt | uniq -c | sort -rn", "tr -d '\\r' < a.txt", "nl -ba a.txt", "comm -13 <(sort a.txt) <(sort b.txt)",
    "jq . a.txt",
    "cat a.txt | jq -r '.scripts | keys[]'", "tree -L 2", "df -h", "date", "date -u +%F", "date -d yesterday +%s", "whoami",
    "id -un",
    "uname -a", "ps aux", "ps -ef", "ps aux --sort=-%mem", "ps -eo pid,args", "ps -p 12", "basename a/b.py .py",
    "readlink -f inner",
    "base64 a.txt", "md5sum *.txt", "sleep 1", "seq 1 5", "expr 3 + 4", "type -a python", "command -v git", "node --version",
    "python --version", "strings a.txt", "set -e; ls", "set -euo pipefail; ls | wc -l", "export NODE_ENV=test; ls",
    "for i in 1 2 3; do ls || break; done", "for f in a.txt src/*.py; do echo \"== $f\"; head -5 \"$f\"; done",
    "for f in a b; do git log -1 -- \"$f\"; done", "sed -n 1p a.txt | git log", "awk '/x/ {print $1; exit}' a.txt",
    "grep -rn x --include=*.py src", "lsof -iTCP -sTCP:LISTEN -P -n",
])
def test_reading_needs_no_rule(command: str) -> None:
    for mode in ("default", "acceptEdits", "plan", "dontAsk", "auto"):
        assert PAPER.bash(command, mode=mode) == "allow", mode


@pytest.mark.parametrize("command", [
    # a flag that writes, runs or is not listed
    "sort -o x a.txt", "sort --output=x a.txt", "sort -ox a.txt", "sort --outp=x a.txt", "sort --compress-program=x a.txt",
    "sort -T x a.txt",
    "sed -i s/a/b/ a.txt", "sed -ibak s/a/b/ a.txt", "sed --in-place s/a/b/ a.txt", "sed -n 'w x' a.txt",
    "sed '1e touch m' a.txt", "sed s/a/b/w\\ x a.txt",
    "sed 's/a/b/e' a.txt", "sed -f x a.txt", "sed 'r /etc/passwd' a.txt", "sed -e p -e 'w x' a.txt", "sed $X a.txt",
    "sed 's/[/]/;s/e;p;/Y/p' a.txt",
    "awk '{print > \"x\"}' a.txt", "awk '{system(\"x\")}' a.txt", "awk '{print | \"sh\"}' a.txt", "awk -f x a.txt",
    "awk -v a=b '{print a}' a.txt",
    "awk 'BEGIN{getline x < \"/etc/passwd\"}'", "awk '{print}' x=1 a.txt",
    "find . -exec x ';'", "find . -execdir x ';'", "find . -ok x ';'", "find . -delete", "find . -fprint x", "find . -fls x",
    "find . -files0-from x",
    "find . -odd", "fd -x rm", "fd -X rm", "fd --exec rm", "rg --pre ./x k", "rg -z x", "rg --hostname-bin x y", "rg -L x",
    "rg --follow x",
    "grep -R x .", "grep -P$X y a.txt", "diff -r src sub", "diff -l a.txt b.txt", "tail --odd a.txt", "ls --odd",
    "cat -X a.txt", "file -m x a.txt",
    "file -f a.txt", "file -C a.txt", "file -z a.txt", "du -X a.txt", "du --files0-from=x", "wc --files0-from=x", "ss -K",
    "ss -D x", "lsof +D src",
    "pgrep -F x", "tput -S", "tput reset", "tput init", "man -P x ls", "man ls x", "man $X", "help", "printf -v PATH x",
    "printf \"$X\" y", "printf",
    "test -v x", "[ $X ]", "[ $X = y ]", "[ a -a b ]", "test a -o b", "[ \"$A\" \"$B\" ]", "[[ -n x ]]",
    # git
    "git -c core.pager=x log", "git --git-dir=x log", "git --work-tree=x status", "git --exec-path=x log",
    "git --config-env=a=b log", "git -C sub status",
    "git -C .. status", "git -p log", "git diff --output=x", "git diff --ext-diff", "git log --textconv",
    "git log --show-signature", "git grep -O x",
    "git grep --open-files-in-pager=x y", "git branch -d x", "git branch x", "git branch -m a b",
    "git branch --edit-description", "git tag x", "git tag -d x",
    "git remote add a b", "git remote show origin", "git remote update", "git stash", "git stash pop", "git stash drop",
    "git config user.name x",
    "git config --global user.name x", "git config --unset x", "git config -f x --list", "git reflog expire --all",
    "git reflog delete x", "git worktree add x",
    "git fetch", "git pull", "git push", "git checkout x", "git commit -m x", "git add .", "git", "git log --format='%G?'",
    "git diff --no-index /etc/passwd a.txt",
    "git diff ../x", "git log -- /etc/passwd", "git log *", "git diff *.txt", "git status; cd sub", "cd sub && git status",
    "cd $X && git log", "git $X",
    # docker
    "docker -H tcp://x ps", "docker --host x ps", "docker --context x ps", "podman --url x ps", "podman --connection x ps",
    "docker run x", "docker exec x y",
    "docker ps --odd", "docker",
    # globs, backslashes, braces, variables
    "find . -name *.py", "sort *.txt", "sed p *.txt", "fd *.py", "ls \\-la", "ls -\\la", "ls '-l'\\a", "cat {a,../../x}.txt",
    "cat {-n,/etc/passwd}", "sort {-o,x} y", "cat <(make)", "cat >(cat)", "[ $X = a ]", "ls $X",
    "cat $HOME/x", "cat \"$X\"",
    "cat $(ls)", "cat `ls`", "grep \"$X\" a.txt", "head -n $X a.txt", "ls -l$X", "cat ../*", "cat out/*", "cat out/away/*",
    "echo /etc/*", "cat */../x",
    "cat */away/passwd", "ls -$'l'\\a",
    # paths outside
    "cat /etc/passwd", "cat ../x", "cat link", "cat src/../../x", "ls /", "ls ~", "cat ~/x", "cat ~root/x",
    "grep -f /etc/passwd a.txt", "grep x /etc/passwd",
    "grep --file=/etc/passwd a.txt", "rg x /etc", "rg -f /etc/passwd x", "find / -name x", "find . -newer /etc/passwd",
    "fd x /etc", "diff a.txt /etc/passwd",
    "cat /proj/app-secrets/k", "cat ../app-secrets/k", "head -5 /etc/passwd", "sort /etc/passwd", "awk '{print}' /etc/passwd",
    "sed p /etc/passwd",
    "cat < /etc/passwd", "cd / && ls", "cd .. && ls", "cd && ls", "cd -", "cd $X && ls", "cd ~ && ls", "cd sub; cat ../../x",
    "cd out/away", "cd sub sub",
    "cd out/away && cat passwd", "pushd src", "cd link", "cat a.txt /etc/passwd",
    # names that mean something else here
    "ls() { x; }; ls", "alias ls=x; ls", "/bin/ls", "'l's", "l\\s", "./ls", "LS", "hash -p x ls; ls", "PATH=. ls",
    "export PATH=.; ls", "IFS=x ls",
    "enable -n echo; echo", "unalias ls", "GIT_EXTERNAL_DIFF=x git diff", "ls | xargs cat", "xargs ls", "ls | xargs grep x",
    "set -x; ls",
    # other commands
    "touch x", "rm x", "curl x", "python x", "env", "tee x", "uniq a.txt x", "dd", "xxd a.txt", "sudo ls",
    "env ls", "bash -c ls", "eval ls",
    "npm test", "make", "kill 1", "ls | sh", "echo x > f", "cat <(x)", "echo $(x)", "echo `x`", "echo $((X))", "x",
    "nohup", "watch ls",
    # what the wider set does not hold
    "uniq a.txt b.txt", "uniq -c -- a.txt b.txt", "base64 a.txt b.txt", "base64 -o x a.txt", "jq -f x a.txt", "jq env",
    "jq '$ENV.K' a.txt",
    "jq 'import \"x\" as y; .' a.txt", "jq 'include \"x\"; .'", "jq -L x . a.txt", "jq --slurpfile a /etc/passwd . a.txt",
    "jq . /etc/passwd", "jq \"$X\" a.txt", "jq --rawfile a x .", "tree -o x", "tree -l", "tree ..", "date -s 10:00",
    "date 01010000",
    "date -f x", "date -r /etc/passwd", "hostname x", "hostname -F x", "ps auxe", "ps e", "ps -auxe", "ps -E", "ps -o environ",
    "ps -ue", "ps -te", "ps -e -o bad", "strings @x", "strings *", "md5sum -c a.txt", "hexdump -f a.txt", "od /etc/passwd",
    "readlink ../x", "node -e x", "node --version x", "python --version -c x", "history -c", "alias x=y", "set -- x; ls",
    "set -o posix; ls", "set -eB; ls", "export PATH=x; ls", "export CI; ls", "export NODE_ENV=$X; ls", "command -v $X",
    "for PATH in .; do ls; done", "for path in .; do ls; done", "for f in /etc/passwd; do cat \"$f\"; done",
    "for f in ../x; do cat \"$f\"; done", "for f in *.txt; do cat \"$f\"; done", "for f in -r; do grep \"$f\" a.txt; done",
    "for f in a.txt; do cat $f; done", "for f in a.txt; do cat \"${f:=x}\"; done", "for f in $(ls); do cat \"$f\"; done",
    "for f in a.txt; do cat \"$g\"; done", "cat \"$f\"; for f in a.txt; do ls; done",
    "for f in a; do ls; done; for f in /etc/passwd; do cat \"$f\"; done", "for f in a; do read f; cat \"$f\"; done",
    "for f in a; do f=/etc/passwd; cat \"$f\"; done", "for f in a; do ((f=1)); cat \"$f\"; done",
    "for f in a.txt; do rm \"$f\"; done",
    "for f in a.txt; do sort \"$f\" -o x; done", "for f in a; do cd sub; cat \"$f\"; done", "break 2", "wait -p x",
    "awk '{print $1; exit > \"x\"}' a.txt", "grep -rn x --in*=.py .",
])
def test_anything_else_asks(command: str) -> None:
    assert PAPER.bash(command) == "ask"
    assert PAPER.bash(command, mode="dontAsk") == "deny"


@pytest.mark.parametrize(("command", "expected"), [
    ("cat secrets/k", "deny"), ("ls secrets", "deny"), ("grep -r x secrets", "deny"), ("grep -r x .", "ask"), ("rg x", "ask"),
    ("rg x src", "allow"),
    ("grep -r x src", "allow"), ("cat a.txt", "allow"), ("find . -name x", "allow"), ("grep x a.txt", "allow"),
])
def test_a_deny_rule_about_a_folder_reaches_what_reads_it_whole(command: str, expected: str) -> None:
    view = PaperView(files=["/proj/app/secrets/k", "/proj/app/a.txt"], dirs=["/proj/app/src"])
    assert Paper(deny=["Read(/secrets/**)"], view=view).bash(command) == expected


LIMITED = PaperView(files=["/proj/app/.env", "/proj/app/web/.env", "/proj/app/web/a.ts", "/proj/app/src/m.py",
"/proj/app/src/k/n.py"],
                    links={"/proj/app/src/to": "../web/.env"})


@pytest.mark.parametrize(("command", "expected"), [
    ("grep -rn x src", "allow"), ("rg x src", "allow"), ("rg --files src", "allow"), ("grep -rn x web", "ask"), ("rg x", "ask"),
    ("rg x web", "ask"), ("grep -rn x --include='*.py' .", "allow"), ("grep -rn x --include='*.ts' web", "allow"),
    ("grep -rn x --include='*' web", "ask"), ("grep -rn x --include='*.env' web", "ask"), ("grep -rn x --include='.e*' .", "ask"),
    ("grep -rn x --exclude=y --include='*.py' .", "ask"), ("rg x -t py", "allow"), ("rg x -t sh", "ask"), ("rg x -g '*.ts'",
    "allow"),
    ("rg x -g '*.ts' -g '!y'", "ask"), ("rg x -g '*.ts' --iglob '*.ENV'", "ask"), ("rg x src | tee y", "ask"),
    ("git grep x -- src", "allow"), ("git grep x src", "allow"), ("git grep x", "ask"), ("git grep x web", "ask"),
    ("git grep x main", "ask"), ("for f in .env; do cat \"$f\"; done", "ask"), ("for f in src web; do grep -r x \"$f\"; done",
    "ask"),
    ("for f in src/*.py; do cat \"$f\"; done", "allow"), ("for f in web/*; do cat \"$f\"; done", "allow"),
])
def test_a_search_is_free_where_no_limited_file_lies_below(command: str, expected: str) -> None:
    assert Paper(deny=["Read(./.env)"], view=LIMITED).bash(command) == expected


def test_a_search_below_more_than_can_be_looked_at_asks() -> None:
    many = PaperView(files=[f"/proj/app/src/{n}" for n in range(1_100)])
    assert Paper(deny=["Read(./.env)"], view=many).bash("rg x src") == "ask"
    assert Paper(view=many).bash("rg x src") == "allow"


def test_a_read_rule_opens_a_place_outside_for_reading_commands() -> None:
    assert Paper(allow=["Read(//etc/passwd)"], view=VIEW).bash("cat /etc/passwd") == "allow"
    assert Paper(allow=["Read(//etc/hosts)"], view=VIEW).bash("cat link") == "ask"


def test_ask_rules_stop_reading_commands_too() -> None:
    assert Paper(ask=["Bash"]).bash("ls") == "ask"
    assert Paper(ask=["Bash(ls *)"]).bash("ls") == "ask"
    assert Paper(deny=["Bash(echo secret*)"]).bash("echo $X") == "ask"


@pytest.mark.parametrize("spec", [*TABLE.values(), *GIT.values(), *DOCKER.values()])
def test_no_table_holds_a_flag_twice_or_in_two_kinds(spec: object) -> None:
    names = [t.rstrip(":@?=") for t in spec.flags.split() if t not in ("-#",)]  # type: ignore[attr-defined]
    assert len(names) == len(set(names)), sorted(n for n in names if names.count(n) > 1)


@pytest.mark.parametrize(("script", "expected"), [
    ("p", True), ("1,5p", True), ("/a/,/b/d", True), ("s/a/b/g;s|c|d|", True), ("y/a/b/", True), ("$!N", True), ("10q", True),
    ("/[[:space:]]/d", True),
    ("w x", False), ("r x", False), ("e", False), ("s/a/b/w x", False), ("s/a/b/e", False), ("s/a/b/\ne", False),
    ("{p;w x\n}", False),
    ("a\\\nw x", False), (":a;ta", False), ("s/[/]/;s/e;p;/Y/p", False), ("W x", False), ("s/a/b/;w x", False), ("1~2p", True),
    ("x" * 2_000, False),
    ("/" * 900, False), ("s/" + "a" * 900, False),
])
def test_sed_scripts_that_only_print(script: str, expected: bool) -> None:
    assert sed_only_prints(script) is expected


@pytest.mark.parametrize(("program", "expected"), [
    ("{print}", True), ("{print $1}", True), ("NR>1 && $2 ~ /x/ {print $1, \"a\", $NF}", True), ("/a/", True), ("!/a/", True),
    ("$1==\"x\"", True),
    ("{print > \"f\"}", False), ("{print | \"sh\"}", False), ("{system(\"x\")}", False), ("BEGIN{print 1}", False),
    ("{getline}", False),
    ("{print $1 > $2}", False), ("", False), ("{printf \"x\"}", False), ("{x=1}", False), ("{print " + "1 " * 400 + "}", True),
    ("{print $(NF-1)}", True),
    ("{print " + "1" * 900, False),
])
def test_awk_programs_that_only_print(program: str, expected: bool) -> None:
    assert awk_only_prints(program) is expected


@pytest.mark.parametrize("command", [*sorted(WIDE), "node --version", "jq . a.txt", "uniq a.txt", "date", "ps aux"])
def test_what_the_contract_does_not_name_asks_where_nobody_chose_the_larger_set(command: str) -> None:
    assert Paper(view=VIEW).bash(command) == "ask"
