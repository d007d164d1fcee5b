"""One shell command, judged: what rules, paths and modes say about each of its parts (permissions contract, 5.5).

Nothing is decided here. ``policy.py`` takes the findings in the order of section 4.
"""

from __future__ import annotations

import posixpath
from typing import NamedTuple

from . import filecmds, readonly
from .forms import Sub, rough
from .paths import PathRules, Places, Target, under
from .rules import CommandIndex, Rule, RuleSet
from .safety import REMOVERS, Removals, protected
from .shell import Parser
from .shellpaths import ShellPaths, is_no_file
from .syntax import Opaque, Redirect, Script, Simple, Word, lazy, literal_word


class Hit(NamedTuple):
    """A rule and the part of the command that it covers."""

    rule: Rule
    part: str


class Scene(NamedTuple):
    """What a command is judged against."""

    rules: RuleSet
    approving: CommandIndex
    """The allow rules for Bash that count in this mode, bare ones included."""
    all_allow: list[Rule] | None
    """All allow rules that count in this mode; ``None``: every one."""
    paths: PathRules
    places: Places
    cwd: str
    mode: str
    own: tuple[str, ...]
    added: tuple[str, ...]
    wide: bool = False
    """Whether the larger read-only set counts."""


class Judgement:
    """The findings about one command. Each is worked out when it is first asked for.

    ``opaque``: why the command is not understood; empty when it is.
    """

    def __init__(self, command: str, scene: Scene, parser: Parser) -> None:
        self.command = command
        self.scene = scene
        self.opaque = ""
        self.subs: list[Sub] = []
        self._whys: dict[int, str] = {}
        try:
            script = parser.parse(command)
            self.subs = parser.analysed(command, script)
        except (Opaque, RecursionError) as error:
            self.opaque = str(error) or "it is not understood"
            script = Script([])
        self.unsure = script.unsure
        self.shell = ShellPaths(script, self.subs, scene.places, scene.paths, scene.cwd, scene.wide)

    # -- deny and ask rules --------------------------------------------------------------------------------------------
    def scoped(self, behavior: str) -> Hit | None:
        """The first rule with a specifier in that list which covers any part in any form."""
        if self.opaque:
            found = next((r for r in self.scene.rules.scoped(behavior, "Bash") if self._rough(r)), None)
            return Hit(found, self.command[:80]) if found else self._path_hit(behavior)
        index = self.scene.rules.commands(behavior)
        for sub in self.subs:
            for text in sub.strict:
                found = next((r for r in index.of(text) if r.command.matches(text)), None)
                if found:
                    return Hit(found, sub.simple.text)
        return self._path_hit(behavior)

    def _rough(self, rule: Rule) -> bool:
        return rule.command.found_in(self.command) or any(
            rule.command.matches(" ".join(w.value for w in words)) or rule.command.found_in(" ".join(w.value for w in words))
            for words in self._rough_words)

    @lazy
    def _rough_words(self) -> list[list[Word]]:
        return rough(self.command)

    @lazy
    def layers(self) -> list[list[Word]]:
        """Every command that would run, with resolved words."""
        if self.opaque:
            return self._rough_words
        return [layer for sub in self.subs for layer in sub.layers]

    def _path_hit(self, behavior: str) -> Hit | None:
        """Path rules on files of file commands and on targets of redirections."""
        paths, now = self.scene.paths, self.scene.cwd
        check = paths.denied if behavior == "deny" else paths.asked
        for use in self.files:
            for target in self._places(use):
                rule = check("write" if use.write else "read", target, now)
                if rule:
                    return Hit(rule, use.word.text)
        return None

    def _places(self, use: filecmds.Use) -> list[Target]:
        """The files that a word of a file command may mean."""
        if use.folder is not None and use.folder.value.rstrip("/").rpartition("/")[2] not in ("", ".", ".."):
            if not any(self.scene.places.view.is_dir(t.given) for t in self.shell.guesses(use.folder)):
                return []
        return self.shell.guesses(use.word)

    @lazy
    def files(self) -> list[filecmds.Use]:
        """Files of file commands and of redirections."""
        return [*(use for layer in self.layers for use in filecmds.uses(layer)), *self._redirected]

    @lazy
    def _redirected(self) -> list[filecmds.Use]:
        return [filecmds.Use(r.target, writes(r)) for s in self.subs for r in (*s.simple.redirects, *s.redirects)
                if r.target is not None and r.op != "<<<" and not is_no_file(r.op, r.target)]

    # -- what no rule opens --------------------------------------------------------------------------------------------
    @lazy
    def critical(self) -> str | None:
        """A removal of a critical path, in words."""
        if not any(layer[0].value in REMOVERS for layer in self.layers):
            return None
        directories = [self.scene.cwd] if self.opaque else self.shell.directories
        removals = Removals(self.scene.places, directories, self.scene.added)
        return next((f"{layer[0].value} {found}" for layer in self.layers if (found := removals.critical(layer))), None)

    def protected(self) -> str | None:
        """A protected path that the command would write, in words."""
        for use in self.files:
            for target in self._places(use) if use.write else ():
                name = protected(target, self.scene.own)
                if name:
                    return f"{use.word.text} ({name} is protected)"
        return None

    @lazy
    def unknown(self) -> str:
        """Why some part may run anything; counts where scoped deny or ask rules exist (5.2)."""
        return self.unsure or next((s.unknown for s in self.subs if s.unknown), "")

    def may_become(self) -> Hit | None:
        """A scoped deny or ask rule that a part would meet if its unknown words were the right ones: ``git $X``, and
        ``xargs git``, where ``git push *`` is denied."""
        starts = dict.fromkeys(start for sub in self.subs for start in sub.open_ended)
        for rule in (*self.scene.rules.scoped("deny", "Bash"), *self.scene.rules.scoped("ask", "Bash")):
            for start in starts:
                if rule.command.may_begin(start):
                    return Hit(rule, start)
        return None

    @lazy
    def relinked(self) -> str:
        """A file that lies behind a link which the command itself makes: no rule about files can be applied to it."""
        made = [place for layer in self.layers if layer[0].value == "ln" for place in self._links_of(layer)]
        if not made:
            return ""
        others = [use.word for layer in self.layers if layer[0].value != "ln" for use in filecmds.uses(layer)]
        others += [use.word for use in self._redirected]
        return next((f"{word.text[:60]!r} may lie behind a link that the command makes" for word in others
                     for target in self.shell.guesses(word) if any(under(target.given, place) for place in made)), "")

    def _links_of(self, layer: list[Word]) -> list[str]:
        operands = [w for w in layer[1:] if not w.value.startswith("-")]
        if not operands:
            return []
        names = [posixpath.basename(w.value.rstrip("/")) for w in operands]
        if len(operands) == 1:
            return [posixpath.join(d, names[0]) for d in self.shell.likely]
        folders = [t.given for w in operands for t in self.shell.guesses(w)]
        return [*(t.given for t in self.shell.guesses(operands[-1])), *(posixpath.join(f, n) for f in folders for n in names)]

    # -- what needs no question ----------------------------------------------------------------------------------------
    @lazy
    def read_only(self) -> str:
        """``""`` where the whole command only reads, else the first reason why not."""
        if self.opaque or self.unsure:
            return self.opaque or self.unsure
        return next((why for s in self.subs if (why := self._sub_read_only(s))), "") or \
            next((why for s in self.subs for r in s.simple.redirects if (why := self._reads_only(r))), "")

    def _sub_read_only(self, sub: Sub) -> str:
        """Worked out once for each part: a search through a folder may look at many files for it."""
        if id(sub) not in self._whys:
            self._whys[id(sub)] = self._why_not(sub)
        return self._whys[id(sub)]

    def _why_not(self, sub: Sub) -> str:
        if sub.simple.kind == "redirect" or (sub.simple.kind == "command" and not sub.simple.words and not sub.assigns):
            return ""
        if sub.simple.kind == "assign" and not sub.simple.words and not sub.assigns:
            return ""  # safe variables only
        return readonly.why_not(sub, self.shell)

    def _reads_only(self, redirect: Redirect) -> str:
        if redirect.target is None or redirect.op == "<<<" or is_no_file(redirect.op, redirect.target):
            return ""
        if writes(redirect):
            return f"it writes to {redirect.target.text}"
        return self.shell.not_readable(redirect.target)

    @lazy
    def approval(self) -> tuple[list[Hit], list[tuple[Sub, str]]]:
        """Which rules approve the parts, and the parts without approval with the reason; the compound rule of 5.5."""
        used: list[Hit] = []
        missing: list[tuple[Sub, str]] = []
        for sub in self.subs:
            rule = self._approving(sub)
            if rule is not None:
                used.append(Hit(rule, sub.simple.text))
            else:
                why = self._sub_read_only(sub)
                if why and not (self.scene.mode == "acceptEdits" and not self.not_edits(sub)):
                    missing.append((sub, why))
            for redirect in sub.simple.redirects:
                if why := self.redirect_fault(redirect):
                    missing.append((sub, why))
            missing += [(sub, why) for redirect in sub.redirects if (why := self._leads_anywhere(redirect))]
        if self.unsure and self.scene.approving.bare is None:
            missing.append((Sub(Simple([])), self.unsure))
        return used, missing

    def _approving(self, sub: Sub) -> Rule | None:
        if sub.simple.kind == "redirect":
            return None
        index = self.scene.approving
        if index.bare is not None:
            return index.bare
        for text in [sub.simple.text] if sub.exact_only else sub.texts:
            for rule in index.of(text):
                if rule.command.matches(text) and not (sub.exact_only and rule.command.wild):
                    return rule
        return None

    def redirect_fault(self, redirect: Redirect) -> str:
        """``""`` where a redirection needs no question: its file may be read or written."""
        target = redirect.target
        if target is None or redirect.op == "<<<" or is_no_file(redirect.op, target):
            return ""
        bare = self.scene.approving.bare is not None
        if not writes(redirect):
            return "" if bare else self.shell.not_readable(target)
        if why := self._leads_anywhere(redirect):
            return why
        if bare:
            return ""
        targets = self.shell.targets(target)
        if not targets:
            return f"where the redirection to {target.text} leads is not known"
        if self.shell.links.uncertain(target):
            return f"the command itself may change where the redirection to {target.text} leads"
        return "" if all(self._may_write(t) for t in targets) else f"writing {target.text} needs approval"

    def _leads_anywhere(self, redirect: Redirect) -> str:
        """Why nobody can say which file a redirection writes."""
        target = redirect.target
        if target is None or not writes(redirect) or is_no_file(redirect.op, target):
            return ""
        if target.dynamic or target.glob or target.tilde or target.brace:
            return f"where the redirection to {target.text} leads is not known"
        if self.shell.moves and self.shell.really_moves and not target.value.startswith("/"):
            return f"the redirection to {target.text} stands beside a change of directory"
        return ""

    def _may_write(self, target: Target) -> bool:
        places = self.scene.places
        if self.scene.mode in ("acceptEdits", "auto") and places.inside(target):
            return True
        nowhere = [False] * len(target.all)
        return self.scene.paths.allowed("write", target, nowhere, self.scene.all_allow) is not None

    # -- acceptEdits ---------------------------------------------------------------------------------------------------
    def not_edits(self, sub: Sub) -> str:
        """``""`` where the part is one of the seven file commands on files inside the working directories."""
        plain = sub.simple.kind == "command" and sub.words and not sub.assigns and not sub.via_xargs
        if not plain or self.shell.redefined(sub.words[0].text):
            return "it is no plain file command"
        edit = filecmds.edits(readonly.settled(sub.words))
        if isinstance(edit, str):
            return edit
        for word in edit.reads:
            if why := self.shell.not_readable(word):
                return why
        for word in edit.writes:
            if self.shell.links.uncertain(word):
                return f"the command itself may change where {word.text[:60]!r} leads"
            if why := self._not_writable(word):
                return why
        for source in edit.sources:
            if why := self._not_inside_target(source, edit.writes[-1], edit.whole):
                return why
        return ""

    def _not_writable(self, word: Word) -> str:
        targets = None if word.dynamic or word.brace else self.shell.targets(word)
        if targets is None:
            return f"where {word.text[:60]!r} leads is not known"
        for target in targets:
            if not self.scene.places.inside(target):
                return f"{word.text[:60]!r} lies outside the working directories"
            if name := protected(target, self.scene.own):
                return f"{word.text[:60]!r} is protected ({name})"
        return ""

    def _not_inside_target(self, source: Word, target: Word, whole: bool) -> str:
        """A file that is put into a folder keeps its name, which may be a protected one. A folder that is copied onto
        one that exists may write through links there."""
        view = self.scene.places.view
        for found in self.shell.targets(source) or ():
            name = posixpath.basename(found.given)
            for folder in self.shell.targets(target) or ():
                place = posixpath.join(folder.given, name) if view.is_dir(folder.given) else folder.given
                if self.shell.links.uncertain_place(place):
                    return f"the command itself may change where {target.text[:60]!r} leads"
                if why := self._not_writable(literal_word(place, quoted=True)):
                    return why
                if whole and view.is_dir(found.given) and (view.exists(place) or source.value.endswith((".", "/"))):
                    return f"what is already in {target.text[:60]!r} may lead elsewhere"
        return ""


def writes(redirect: Redirect) -> bool:
    return redirect.op.startswith((">", "&>"))
