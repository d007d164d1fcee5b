"""``kernel completion SHELL``: a script that completes commands and flags. It asks ``kernel --help``, which knows all plugins."""

from __future__ import annotations

from kernel import UsageError

BASH = """\
_kernel() {
    local word=${COMP_WORDS[COMP_CWORD]} words=""
    if [[ $word == -* ]]; then
        words=$(kernel --help 2>/dev/null | awk '/^flags:/ {on=1} on {for (i = 1; i <= NF; i++) if ($i ~ /^--?[a-zA-Z]/) {
            sub(/,$/, "", $i); print $i; if ($(i + 1) !~ /^-/) next}}')
    elif ((COMP_CWORD == 1)); then
        words=$(kernel --help 2>/dev/null | awk '/^commands/ {on=1; next} /^flags:/ {exit} on && /^  [a-z]/ {print $1}')
    elif ((COMP_CWORD == 2)); then
        words=$(kernel --help 2>/dev/null | grep -q "^  ${COMP_WORDS[1]} " &&
            kernel "${COMP_WORDS[1]}" --help 2>/dev/null | awk '/^  [a-z]/ {print $1}')
    fi
    mapfile -t COMPREPLY < <(compgen -W "$words" -- "$word")
    ((${#COMPREPLY[@]})) || mapfile -t COMPREPLY < <(compgen -f -- "$word")
}
complete -F _kernel kernel
"""
ZSH = f"""\
autoload -U +X bashcompinit && bashcompinit
{BASH.replace("mapfile -t COMPREPLY < <(compgen", "COMPREPLY=($(compgen").replace('-- "$word")', '-- "$word"))')}"""
FISH = """\
complete -c kernel -n __fish_use_subcommand \\
    -a "(kernel --help | awk '/^commands/ {on=1; next} /^flags:/ {exit} on && /^  [a-z]/ {print \\$1}')"
complete -c kernel -n "string match -q -- '-*' (commandline -ct)" -a "(kernel --help | string match -ar -- '--[a-zA-Z-]+')"
"""
USAGE = """\
usage: kernel completion bash|zsh|fish

bash   eval "$(kernel completion bash)"          in ~/.bashrc
zsh    eval "$(kernel completion zsh)"           in ~/.zshrc
fish   kernel completion fish | source           in ~/.config/fish/config.fish"""
SCRIPTS = {"bash": BASH, "zsh": ZSH, "fish": FISH}


class Completion:
    name = "completion"
    summary = "a script that completes kernel's commands and flags: completion bash, zsh or fish"

    def run(self, args: list[str]) -> int:
        if args in ([], ["-h"], ["--help"]):
            print(USAGE)
            return 0 if args else 2
        if args[0] not in SCRIPTS or len(args) > 1:
            raise UsageError(f"no completion for {args[0]!r}", hint=f"one of {', '.join(SCRIPTS)}")
        print(SCRIPTS[args[0]], end="")
        return 0
