"""Read-only commands and the flags that keep them so (permissions contract, 5.7). Data only.

A flag that is not here makes the command ask. Notation of ``flags``, separated by blanks: ``l`` a letter without a value,
``n:`` with a value, ``f@`` with a value that is a file to be read, ``--all`` a long flag without a value, ``--width=``
with one, ``--color?`` with one that only ``=`` can give, ``--file@`` with a file, ``-#`` digits.

``operands``: ``paths`` files to be read; ``pattern`` a pattern, then files; ``any`` literal words that are no files; ``text``
words that may hold variables; ``none``; or a number: that many files at most (a second one would be written, by ``uniq``).
``globs``: unquoted globs are fine, because no flag of the command writes or runs anything. ``bare``: what the command
reads without operands: the working directory (``.``) or nothing.

Not here are flags that follow every link below a folder (``grep -R``, ``rg -L``, ``diff -r``): they lead outside.
"""

from __future__ import annotations

from typing import NamedTuple


class Spec(NamedTuple):
    flags: str
    operands: str = "paths"
    globs: bool = True
    deep: str = ""
    """Flags that make it read the contents of whole folders; ``*``: it always does."""
    bare: str = ""


TABLE: dict[str, Spec] = {
    "ls": Spec("a A b B c C d F g G h H i k l L m n N o p q Q r R s S t u U v w: x X 1 --all --almost-all --color? --directory "
               "--classify? --full-time --group-directories-first --human-readable --inode --no-group --numeric-uid-gid "
               "--recursive --reverse --size --sort= --time= --time-style= --width= --format= --hide= --ignore= I: --si "
               "--file-type --indicator-style= --quote-name --literal --dereference", bare="."),
    "cat": Spec("A b e E n s t T u v --number --number-nonblank --show-all --show-ends --show-nonprinting --show-tabs "
                "--squeeze-blank"),
    "head": Spec("-# c: n: q v z --bytes= --lines= --quiet --silent --verbose --zero-terminated"),
    "tail": Spec("-# c: n: f F q s: v z r --bytes= --lines= --follow? --pid= --quiet --silent --retry --sleep-interval= "
                 "--verbose --zero-terminated"),
    "wc": Spec("c l L m w --bytes --chars --lines --words --max-line-length --total="),
    "stat": Spec("c: f L t --format= --printf= --file-system --dereference --terse"),
    "du": Spec("0 a b c d: D h H k l L m P s S t: x B: --all --apparent-size --block-size= --bytes --total --dereference "
               "--max-depth= --human-readable --count-links --si --summarize --separate-dirs --one-file-system "
               "--threshold= --time? --time-style= --inodes --exclude=", bare="."),
    "file": Spec("b i L h k --brief --mime --mime-type --mime-encoding --dereference --no-dereference --keep-going"),
    "diff": Spec("a b B c C: d e E i I: n N p q s t T u U: w x: y W: --brief --color? --context? --exclude= "
                 "--ignore-all-space --ignore-blank-lines --ignore-case --ignore-space-change --minimal --new-file "
                 "--no-dereference --report-identical-files --side-by-side --suppress-common-lines --text "
                 "--unified? --width= --strip-trailing-cr --label= --normal"),
    "cut": Spec("b: c: d: f: n s z --bytes= --characters= --complement --delimiter= --fields= --only-delimited "
                "--output-delimiter= --zero-terminated"),
    "paste": Spec("d: s z --delimiters= --serial --zero-terminated"),
    "column": Spec("c: d e J l: L n: N: o: O: r: R: s: t T: W: x --fillrows --json --output-separator= --separator= --table "
                   "--table-columns= --table-right= --table-name="),
    "sort": Spec("b d f g h i M n R r V c C k: m s S: t: u z --ignore-leading-blanks --dictionary-order --ignore-case "
                 "--general-numeric-sort --human-numeric-sort --ignore-nonprinting --month-sort --numeric-sort --random-sort "
                 "--reverse --version-sort --sort= --check? --key= --merge --stable --field-separator= --unique "
                 "--zero-terminated", globs=False),
    "grep": Spec("-# a A: b B: c C: e: E f@ F G h H i I l L m: n o P q r s T v w x y z Z --after-context= --before-context= "
                 "--basic-regexp --binary-files= --byte-offset --color? --colour? --context= --count "
                 "--exclude= --exclude-dir= --extended-regexp --file@ --files-with-matches --files-without-match "
                 "--fixed-strings --ignore-case --include= --initial-tab --invert-match --label= --line-buffered "
                 "--line-number --line-regexp --max-count= --no-filename --no-ignore-case --no-messages --null --null-data "
                 "--only-matching --perl-regexp --quiet --recursive --regexp= --silent --text --with-filename --word-regexp",
                 "pattern", deep="r --recursive", bare="."),
    "rg": Spec("-# . 0 a A: B: c C: e: F f@ g: h H i I l m: M: n N o p P q r: s S t: T: u U v w x --after-context= "
               "--before-context= --case-sensitive --color= --column --context= --count --count-matches --crlf --debug "
               "--encoding= --engine= --file@ --files --files-with-matches --files-without-match --fixed-strings "
               "--glob= --heading --hidden --iglob= --ignore-case --invert-match --json --line-buffered --line-number "
               "--line-regexp --max-columns= --max-count= --max-depth= --max-filesize= --multiline --multiline-dotall "
               "--no-config --no-filename --no-heading --no-ignore --no-ignore-vcs --no-line-number --no-messages --null "
               "--only-matching --passthru --pcre2 --pretty --quiet --regexp= --replace= --smart-case --sort= --sortr= "
               "--stats --text --trim --type= --type-list --type-not= --unrestricted --vimgrep --with-filename "
               "--word-regexp", "pattern", deep="*", bare="."),
    "fd": Spec("-# 0 1 a c: d: e: E: F g H i I l n: p q s S: t: u --absolute-path --case-sensitive --changed-before= "
               "--changed-within= --color= --exclude= --extension= --fixed-strings --full-path --glob --hidden "
               "--ignore-case --list-details --max-depth= --max-results= --min-depth= --no-ignore --no-ignore-vcs --print0 "
               "--quiet --regex --size= --type= --unrestricted", "pattern", globs=False, bare="."),
    "pwd": Spec("L P --logical --physical", "none"),
    "which": Spec("a --all", "any"),
    "lsof": Spec("b d: i: l n N p: P R s? t u: U w c: a", "any"),
    "pgrep": Spec("a c d: f i l n o P: t: u: U: v w x g: G: s: --count --delimiter= --euid= --exact --full --group= "
                  "--ignore-case --inverse --lightweight --list-full --list-name --newest --oldest --parent= --pgroup= "
                  "--session= --terminal= --uid=", "any"),
    "tput": Spec("", "any"),
    "ss": Spec("0 4 6 a b d e f: H i l m n O o p Q r s S t u w x Z z --all --extended --family= --info --ipv4 --ipv6 "
               "--listening --memory --no-header --numeric --oneline --options --processes --raw --resolve --summary --tcp "
               "--udp --unix", "any"),
    "echo": Spec("", "text"),
    "printf": Spec("", "text"),
    "true": Spec("", "text"),
    "false": Spec("", "text"),
    ":": Spec("", "text"),
    "uniq": Spec("c d D f: i s: u w: z --count --repeated --all-repeated? --skip-fields= --ignore-case --skip-chars= --unique "
                 "--check-chars= --zero-terminated --group?", "1", globs=False),
    "tr": Spec("c C d s t --complement --delete --squeeze-repeats --truncate-set1", "any"),
    "nl": Spec("b: d: f: h: i: l: n: p s: v: w: --body-numbering= --number-format= --number-width= --number-separator= "
               "--starting-line-number= --line-increment="),
    "tac": Spec("b r s: --before --regex --separator="),
    "rev": Spec(""),
    "fold": Spec("b c s w: --bytes --spaces --width="),
    "expand": Spec("i t: --initial --tabs="),
    "unexpand": Spec("a t: --all --first-only --tabs="),
    "fmt": Spec("c g: p: s t u w: --goal= --prefix= --split-only --uniform-spacing --width="),
    "pr": Spec("-# a d e f F h: i J l: m n N: o: r s? S? t T v w: W: --columns= --header= --length= --width= --omit-header"),
    "comm": Spec("1 2 3 z --check-order --nocheck-order --output-delimiter= --total --zero-terminated"),
    "cmp": Spec("b i: l n: s --print-bytes --ignore-initial= --verbose --bytes= --silent --quiet"),
    "tsort": Spec(""),
    "od": Spec("a A: b c d f i j: l N: o s S? t: v w? x --address-radix= --skip-bytes= --read-bytes= --format= "
               "--output-duplicates --width?"),
    "hexdump": Spec("b c C d n: o s: v x --canonical --length= --skip= --no-squeezing"),
    "base64": Spec("d D i w: b: --decode --ignore-garbage --wrap= --break=", "1"),
    "md5sum": Spec("b t z --binary --text --tag --zero"),
    "readlink": Spec("e f m n q s v z --canonicalize --canonicalize-existing --canonicalize-missing --no-newline --quiet "
                     "--silent --verbose --zero"),
    "realpath": Spec("e m L P q s z --canonicalize-existing --canonicalize-missing --logical --physical --quiet --strip "
                     "--no-symlinks --zero"),
    "tree": Spec("a d f i n p s h u g D t r c C L: I: P: Q N J X F --dirsfirst --du --prune --noreport --nolinks --si --inodes "
                 "--device --ignore-case --matchdirs --gitignore", globs=False, bare="."),
    "df": Spec("a B: h H i k l P t: T x: --all --block-size= --human-readable --inodes --local --output? --portability --si "
               "--print-type --total --type= --exclude-type="),
    "basename": Spec("a s: z --multiple --suffix= --zero", "any"),
    "dirname": Spec("z --zero", "any"),
    "seq": Spec("f: s: w --format= --separator= --equal-width", "any"),
    "numfmt": Spec("d: z --delimiter= --field= --format= --from= --from-unit= --grouping --header? --invalid= --padding= "
                   "--round= --suffix= --to= --to-unit= --zero-terminated", "any"),
    "expr": Spec("", "any"),
    "getconf": Spec("a", "any"),
    "sleep": Spec("", "any"),
    "type": Spec("a f p P t", "any"),
    "break": Spec("", "none"),
    "continue": Spec("", "none"),
    "wait": Spec("", "none"),
    "whoami": Spec("", "none"),
    "arch": Spec("", "none"),
    "nproc": Spec("--all --ignore=", "none"),
    "uname": Spec("a i m n o p r s v --all --kernel-name --nodename --kernel-release --kernel-version --machine --processor "
                  "--operating-system", "none"),
    "uptime": Spec("p s --pretty --since", "none"),
    "free": Spec("b k m g h l t w c: s: --bytes --kilo --mega --giga --human --lohi --total --wide --count= --seconds=", "none"),
    "hostname": Spec("f s i I d A --fqdn --long --short --ip-address --all-ip-addresses --domain --all-fqdns", "none"),
    "id": Spec("a g G n r u z Z --context --group --groups --name --real --user --zero", "any"),
    "groups": Spec("", "any"),
    "locale": Spec("a m --all-locales --charmaps", "none"),
    "netstat": Spec("a c e g i l n N o p r s t u v w W x 4 6 --all --continuous --extend --interfaces --listening --numeric "
                    "--programs --raw --route --statistics --tcp --timers --udp --unix --verbose --wide", "none"),
    "jq": Spec("r c e S n s R j a C M --raw-output --compact-output --exit-status --sort-keys --null-input --slurp --raw-input "
               "--join-output --ascii-output --color-output --monochrome-output --tab --indent= --stream --seq", "pattern"),
    "man": Spec("", "word"),
    "help": Spec("", "word"),
}
TABLE["fdfind"] = TABLE["fd"]
TABLE["sha1sum"] = TABLE["sha256sum"] = TABLE["sha512sum"] = TABLE["md5sum"]

EXACT = frozenset(("node -v", "node --version", "python --version", "python3 --version", "history", "alias"))
"""Whole commands that only print."""

FIND_TESTS = {
    "": "-a -and -o -or -not ! ( ) , -daystart -depth -d -mount -noleaf -xdev -empty -executable -false -nogroup -nouser "
        "-readable -true -writable -print -print0 -prune -quit -ls -ignore_readdir_race -noignore_readdir_race",
    "value": "-maxdepth -mindepth -regextype -amin -atime -cmin -ctime -mmin -mtime -fstype -gid -group -ilname -iname -inum "
             "-ipath -iregex -iwholename -links -lname -name -path -perm -regex -size -type -uid -used -user -wholename "
             "-xtype -printf -newermt -newerat -newerct",
    "file": "-anewer -cnewer -newer -samefile",
}
FIND_OPTIONS = frozenset(("-H", "-L", "-P"))

DOCKER = {
    "ps": Spec("a f: l n: q s --all --filter= --format= --last= --latest --no-trunc --quiet --size", "none"),
    "images": Spec("a f: q --all --digests --filter= --format= --no-trunc --quiet", "any"),
    "version": Spec("f: --format=", "none"),
    "info": Spec("f: --format=", "none"),
    "inspect": Spec("f: s --format= --size --type=", "any"),
    "logs": Spec("f n: t --details --follow --since= --tail= --timestamps --until=", "any"),
    "top": Spec("", "any"),
    "port": Spec("", "any"),
    "history": Spec("H q --format= --human --no-trunc --quiet", "any"),
}
"""Read-only forms of ``docker`` and ``podman``, by subcommand; no flag may stand before it."""

_LOG = ("-# a b c g i L: m M n: p q r s S: t u U: w z G: C --abbrev? --abbrev-commit --after= --all --author= --before= "
        "--branches? --cc --cherry --cherry-mark --cherry-pick --color? --committer= --compact-summary --cumulative --date= "
        "--date-order --decorate? --decorate-refs= --diff-algorithm= --diff-filter= --dirstat? --find-copies? "
        "--find-renames? --first-parent --follow --format= --full-history --full-index --graph --grep= "
        "--ignore-all-space --ignore-space-change --invert-grep --left-right --max-count= --max-parents= --merge --merges "
        "--min-parents= --minimal --name-only --name-status --no-abbrev-commit --no-color --no-decorate --no-ext-diff "
        "--no-merges --no-notes --no-patch --no-renames --no-textconv --not --notes? --numstat --oneline --patch "
        "--patch-with-stat --patience --pickaxe-all --pickaxe-regex --pretty? --raw --regexp-ignore-case "
        "--relative-date --remotes? --reverse --shortstat --simplify-by-decoration --since= --skip= "
        "--source --stat? --summary --tags? --text --topo-order --unified= --until= --walk-reflogs --word-diff? "
        "--word-diff-regex= --color-words? --inter-hunk-context= --ignore-blank-lines --no-prefix --submodule?")
GIT: dict[str, Spec] = {
    "status": Spec("b s u? z v --ahead-behind --branch --column? --find-renames? --ignore-submodules? --ignored? --long "
                   "--no-ahead-behind --no-column --no-renames --porcelain? --renames --short --show-stash "
                   "--untracked-files? --verbose"),
    "log": Spec(_LOG, "revs"),
    "show": Spec(_LOG, "revs"),
    "diff": Spec(_LOG + " R B? D --cached --staged --exit-code --quiet --merge-base --check --ours --theirs "
                 "--base --irreversible-delete --function-context W", "revs"),
    "shortlog": Spec("e n s c w? --all --committer --email --format= --group= --no-merges --numbered --since= --summary "
                     "--until=", "revs"),
    "reflog": Spec("-# n: --all --date= --format= --max-count= --no-decorate --oneline --pretty?", "reflog"),
    "blame": Spec("b c e f l L: M? C? n p s t w --abbrev= --color-by-age --color-lines --date= --incremental --line-porcelain "
                  "--porcelain --root --show-email --show-name --show-number --show-stats", "revs"),
    "describe": Spec("--abbrev= --all --always --candidates= --contains --dirty? --exact-match --exclude= --first-parent "
                     "--long --match= --tags", "revs"),
    "rev-parse": Spec("--abbrev-ref? --all --branches? --git-common-dir --git-dir --is-bare-repository --is-inside-git-dir "
                      "--is-inside-work-tree --quiet --remotes? --short? --show-cdup --show-prefix "
                      "--show-superproject-working-tree --show-toplevel "
                      "--symbolic --symbolic-full-name --tags? --verify q --absolute-git-dir", "revs"),
    "rev-list": Spec("-# n: --abbrev-commit --all --author= --before= --branches? --count --first-parent --format= --left-right "
                     "--max-count= --merges --no-merges --oneline --parents --pretty? --remotes? --reverse --since= --skip= "
                     "--tags? --until= --objects", "revs"),
    "ls-files": Spec("c d m o i k s u t v z x: --abbrev? --cached --deduplicate --deleted --directory --eol --error-unmatch "
                     "--exclude= --exclude-standard --full-name --ignored --killed --modified --others --stage --unmerged"),
    "ls-tree": Spec("d l r t z --abbrev? --format= --full-name --full-tree --long --name-only --name-status --object-only",
                    "revs"),
    "cat-file": Spec("e p s t --batch-all-objects", "revs"),
    "merge-base": Spec("a --all --fork-point --independent --is-ancestor --octopus", "revs"),
    "name-rev": Spec("--all --always --name-only --refs= --tags", "revs"),
    "for-each-ref": Spec("--contains? --count= --format= --merged? --no-contains? --no-merged? --points-at= --sort=", "any"),
    "count-objects": Spec("v H --human-readable --verbose", "none"),
    "grep": Spec("-# a A: B: C: c e: E F G h H i I l L m: n o P p q v w W z --after-context= --all-match --and --before-context= "
                 "--break --cached --color? --column --context= --count --exclude-standard --extended-regexp "
                 "--files-with-matches --files-without-match --fixed-strings --full-name --function-context --heading "
                 "--ignore-case --invert-match --line-number --max-count= --max-depth= --name-only --no-color --not --null "
                 "--only-matching --or --perl-regexp --quiet --show-function --text --untracked --word-regexp", "pattern"),
    "branch": Spec("a i l r v --abbrev= --all --color? --column? --contains? --format= --ignore-case --list --merged? --no-color "
                   "--no-column --no-contains? --no-merged? --points-at= --remotes --show-current --sort= --verbose", "list"),
    "tag": Spec("l i n? --color? --column? --contains? --format= --ignore-case --list --merged? --no-column --no-contains? "
                "--no-merged? --points-at= --sort=", "list"),
    "remote": Spec("v --verbose", "remote"),
    "stash": Spec("p u --include-untracked --name-only --oneline --patch --stat?", "stash"),
    "worktree": Spec("v z --porcelain --verbose", "worktree"),
    "config": Spec("l z --get --get-all --get-regexp --global --list --local --name-only --null --show-origin --show-scope "
                   "--system --type= --default=", "config"),
}
"""Read-only git, by subcommand. Only ``--no-pager``, ``-P`` and ``-C`` to the same directory may stand before it."""

WIDE = frozenset((
    "arch base64 basename break cmp comm command continue date df dirname expand expr fmt fold free getconf groups hexdump "
    "hostname id jq locale md5sum netstat nl nproc numfmt od pr ps readlink realpath rev seq set sha1sum sha256sum sha512sum "
    "sleep strings tac tr tree tsort type uname unexpand uniq uptime wait whoami").split())
"""Commands that only read as well, by their manuals, but are not among those that the contract names: they belong to the set
where the setting ``kernel.permissions.readOnly`` is ``wide``. The plain set is never larger than the documented one (5.7)."""
