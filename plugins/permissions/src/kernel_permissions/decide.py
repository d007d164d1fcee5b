"""One decision, step by step as the contract numbers them (permissions contract, section 4). Pure: asks the facts only."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Literal

from kernel import PermissionCall, Verdict

from . import powershell, specifiers, suggestions
from .facts import Facts
from .judge import Hit, Judgement, Scene
from .paths import Access, Target, under
from .rules import UNTOUCHABLE, Rule
from .safety import protected
from .shell import Parser
from .syntax import Opaque

Note = Callable[[str], None]
_READERS = ("Read", "Grep", "Glob")


class Decision:
    """The way of one call through the steps.

    :param note: called with a line for every step that had something to say.
    """

    def __init__(self, call: PermissionCall, facts: Facts, parser: Parser, note: Note | None = None) -> None:
        self.call = call
        self.tool = call.tool
        self.facts = facts
        self.parser = parser
        self.note = note
        self.mode = call.mode
        self.names = (call.tool.name, *call.tool.aliases)
        self.firm = False
        """Whether an ``ask`` must reach a person: auto mode does not lift it."""
        self.judgement: Judgement | None = None
        self.pipeline: list[powershell.Call] | None = None
        self.opaque = ""
        self.access: Access = "read"
        self.targets: list[Target] | None = []
        self.rule_name = ""
        self._prepare()

    def _prepare(self) -> None:
        tool, input = self.tool, self.call.input
        if tool.permission == "command":
            self.rule_name = tool.rule_name or ("PowerShell" if tool.name == "PowerShell" else "Bash")
            command = tool.permission_content(input)
            if self.rule_name == "PowerShell":
                try:
                    self.pipeline = powershell.read(command or "")
                except Opaque as error:
                    self.pipeline, self.opaque = [], str(error)
            else:
                self.judgement = Judgement(command if command is not None else "\0", self._scene(), self.parser)
        elif tool.permission == "path":
            reads = (tool.rule_name or tool.name) in _READERS or _is_read_only(tool, input)
            self.access = "read" if reads else "notebook" if tool.name == "NotebookEdit" else "write"
            self.rule_name = "Read" if reads else "Edit"
            self.targets = self._targets(tool.permission_paths(input) or ([self.call.cwd] if reads else []))
        elif tool.rule_name:
            self.rule_name = tool.rule_name

    def _scene(self) -> Scene:
        facts = self.facts
        index = facts.commands(self.mode, self.names, self.rule_name)
        return Scene(facts.rules, index, facts.usable(self.mode), facts.paths, facts.places, self.call.cwd, self.mode, facts.own,
                     facts.places.directories[1:], facts.wide)

    def _targets(self, paths: list[str]) -> list[Target] | None:
        found = [self.facts.places.target(path, self.call.cwd) for path in paths]
        known = [t for t in found if t is not None]
        return known if known and len(known) == len(found) else None

    # -- the steps -----------------------------------------------------------------------------------------------------
    def run(self) -> Verdict:
        for step in (self.denied, self.asked, self.safety, self.by_hook, self.by_mode, self.free, self.allowed):
            verdict = step()
            self.say(step.__name__, verdict)
            if verdict is not None:
                break
        else:
            verdict = self.ask("other", self._nothing(), suggestions=self._suggestions())
            self.say("nothing", verdict)
        return self._prompted(verdict)

    def say(self, step: str, verdict: Verdict | None) -> None:
        if self.note:
            what = "no answer" if verdict is None else f"{verdict.behavior} ({verdict.reason_type}): {verdict.message}"
            self.note(f"{_STEPS[step]}: {what}")

    def denied(self) -> Verdict | None:
        hit = None if self.tool.name == UNTOUCHABLE else self._hit("deny")
        if hit is not None:
            return self.refuse("rule", hit.part, hit.rule)
        if self.pipeline:
            for part in self.pipeline:
                found, outright = powershell.removal(part, self.facts.places, self.call.cwd)
                if outright:
                    return self.deny("safety", f"it would remove {found}")
        return None

    def asked(self) -> Verdict | None:
        confined = self._confined()
        hit = None if self.tool.name == UNTOUCHABLE else self._hit("ask", bare=not confined)
        self.firm = True
        if hit is not None:
            return self.ask("rule", f"{self._named(hit.rule)} asks for {hit.part}", hit.rule)
        if self.tool.permission == "user":
            answered = self.call.hook == "allow" and self.call.hook_rewrote and not self.tool.name.startswith("mcp__")
            if not answered:
                return self.ask("other", f"{self.tool.name} needs the user")
        if self.call.hook == "ask":
            return self.ask("hook", "a hook asks for approval")
        self.firm = False
        judged = self.mode == "plan" or self._every_command
        if confined and not judged and self.judgement is not None and not self.judgement.critical:
            return self.allow("other", "the sandbox confines it")
        return None

    def safety(self) -> Verdict | None:
        if self.judgement is not None and self.judgement.critical:
            return self.ask("safety", f"{self.judgement.critical} is a critical removal")
        if self._open:
            return None
        if self.judgement is not None:
            found = self.judgement.protected()
            return self.ask("safety", f"it writes {found}") if found else None
        if self.access != "read" and self.targets:
            for target in self.targets:
                name = protected(target, self.facts.own)
                if name and not self._session_approves(target, name):
                    if self.mode == "plan" and self.facts.plan_file(target.given):
                        continue
                    return self.ask("safety", f"{target.given} is protected ({name})")
        return None

    def by_hook(self) -> Verdict | None:
        if self.call.hook == "allow" and (self.tool.name != "ExitPlanMode" or self.call.hook_rewrote):
            return self.allow("hook", "a hook allows it")
        return None

    def by_mode(self) -> Verdict | None:
        if self._open:
            return self.allow("mode", f"the mode is {self.mode}")
        if self.access != "read" and self.tool.permission == "path" and self.targets is not None:
            inside = all(self.facts.places.inside(t) for t in self.targets)
            if self.mode in ("acceptEdits", "auto") and inside:
                return self.allow("mode", f"the mode is {self.mode}")
            if self.mode == "plan":
                if all(self.facts.plan_file(t.given) for t in self.targets):
                    return self.allow("mode", "it is the plan file")
                return self.ask("mode", "the mode is plan, which changes nothing")
        if self.mode == "plan" and self.tool.permission == "command" and (self.judgement is None or self.judgement.read_only):
            why = self.judgement.read_only if self.judgement else "it is not known to be read-only"
            return self.ask("mode", f"the mode is plan, which changes nothing: {why}")
        if self._every_command:
            return self.ask("mode", "the mode is auto, which has every shell command judged")
        if self.mode == "auto" and self.tool.name == "WebFetch":
            return self.allow("mode", "the mode is auto")
        return None

    def free(self) -> Verdict | None:
        tool = self.tool
        if tool.permission == "free":
            return self.allow("other", f"{tool.name} needs no permission")
        if tool.permission == "path" and self.access == "read" and self.targets is not None and \
                all(self.facts.places.inside(t) for t in self.targets):
            return self.allow("workingDir", "it reads inside the working directories")
        if self.judgement is not None and not self.judgement.read_only and not self.judgement.may_become():
            return self.allow("other", "it only reads")
        opinion = self.facts.opinion(tool, self.call.input)
        if opinion == "deny":
            return self.deny("other", f"{tool.name} itself refuses this call")
        if opinion is not None:
            return self.allow("other", f"{tool.name} itself says so") if opinion == "allow" else \
                self.ask("other", f"{tool.name} itself asks")
        return None

    def allowed(self) -> Verdict | None:
        if self.judgement is not None:
            return self._command_allowed(self.judgement)
        if self.pipeline is not None:
            return self._pipeline_allowed(self.pipeline)
        usable = self.facts.usable(self.mode)
        for rule in self.facts.rules.of("allow", self.names, self.rule_name):
            if usable is not None and rule not in usable:
                continue
            if rule.bare or (self.tool.permission != "path" and specifiers.covers(rule, self.tool, self.call.input)):
                return self.allow("rule", f"{self._named(rule)} allows it", rule)
        if self.tool.permission == "path" and self.targets:
            rules: list[Rule] = []
            for target in self.targets:
                inside = self.facts.places.within(target) if self.access == "read" else [False] * len(target.all)
                covering = self.facts.paths.allowed(self.access, target, inside, usable)
                if covering is None and not (self.access == "read" and all(inside)):
                    return None
                rules += [covering] if covering else []
            return self.allow("rule", f"{self._named(rules[0])} allows it", rules[0])
        return None

    # -- commands ------------------------------------------------------------------------------------------------------
    def _command_allowed(self, judgement: Judgement) -> Verdict | None:
        if judgement.opaque:
            return self.ask("other", f"the command is not understood: {judgement.opaque}")
        used, missing = judgement.approval
        if missing:
            return None
        if judgement.unknown and self.facts.rules.scopes("Bash"):
            return self.ask("other", f"rules for Bash cannot be checked: {judgement.unknown}")
        if judgement.relinked:
            return self.ask("other", judgement.relinked)
        if possible := judgement.may_become():
            return self.ask("rule", f"{self._named(possible.rule)} may cover what {possible.part!r} becomes", possible.rule)
        if not used:
            return self.allow("mode", f"the mode is {self.mode}")
        rule = used[0].rule
        return self.allow("rule" if len(judgement.subs) == 1 else "subcommands", f"{self._named(rule)} allows it", rule)

    def _pipeline_allowed(self, calls: list[powershell.Call]) -> Verdict | None:
        if self.opaque or not calls:
            return self.ask("other", f"the command is not understood: {self.opaque or 'it is empty'}")
        if self._removal_asks:
            return self.ask("safety", f"it would remove {self._removal_asks}")
        usable = self.facts.usable(self.mode)
        rules = [r for r in self.facts.rules.of("allow", self.names, self.rule_name) if usable is None or r in usable]
        found = [next((r for r in rules if r.bare or powershell.covers(r, c)), None) for c in calls]
        if any(r is None for r in found) or found[0] is None:
            return None
        return self.allow("rule", f"{self._named(found[0])} allows it", found[0])

    @property
    def _removal_asks(self) -> str:
        removals = (powershell.removal(c, self.facts.places, self.call.cwd)[0] for c in self.pipeline or ())
        return next((found for found in removals if found), "")

    # -- rules ---------------------------------------------------------------------------------------------------------
    def _hit(self, behavior: Literal["deny", "ask"], bare: bool = True) -> Hit | None:
        for rule in self.facts.rules.of(behavior, self.names, self.rule_name):
            if rule.bare:
                if bare:
                    return Hit(rule, self.tool.name)
            elif self._covers(rule):
                return Hit(rule, self._part())
        if self.judgement is not None:
            return self.judgement.scoped(behavior)
        if self.pipeline is not None:
            return self._pipeline_hit(behavior)
        check = self.facts.paths.denied if behavior == "deny" else self.facts.paths.asked
        for target in self.targets or ():
            found = check(self.access, target, self.call.cwd)
            if found:
                return Hit(found, target.given)
        return None

    def _covers(self, rule: Rule) -> bool:
        """Parameter rules of every tool, and specifiers of tools without an engine of their own."""
        if self.tool.permission in ("path", "command") and rule.parameter_of(self.tool.input_schema, self.tool.name) is None:
            return False
        return specifiers.covers(rule, self.tool, self.call.input)

    def _pipeline_hit(self, behavior: str) -> Hit | None:
        for rule in self.facts.rules.scoped(behavior, "PowerShell"):
            if self.opaque:
                if rule.command.found_in(str(self.tool.permission_content(self.call.input))):
                    return Hit(rule, self._part())
            elif hit := next((c for c in self.pipeline or () if powershell.covers(rule, c)), None):
                return Hit(rule, hit.text)
        return None

    def _session_approves(self, target: Target, name: str) -> bool:
        """An approval of this session for ``.claude`` counts; settings do not (section 8). So does a folder of its own."""
        if any(all(under(path, home) for path in target.all) for home in self.facts.homes()):
            return True
        if name != ".claude":
            return False
        rule = self.facts.paths.allowed("write", target, [False] * len(target.all),
                                        [r for r in self.facts.rules.lists["allow"] if r.source == "session"])
        return rule is not None

    def _confined(self) -> bool:
        if self.judgement is None or self.facts.sandboxed is None or self.mode == "plan":
            return False
        return self.facts.sandboxed(self.call.input)

    @property
    def _every_command(self) -> bool:
        return self.mode == "auto" and self.facts.classify_shell and self.tool.permission == "command"

    @property
    def _open(self) -> bool:
        return self.mode == "bypassPermissions" or (self.mode == "plan" and self.facts.bypass_available)

    # -- verdicts ------------------------------------------------------------------------------------------------------
    def allow(self, reason: str, message: str, rule: Rule | None = None) -> Verdict:
        return Verdict(behavior="allow", reason_type=reason, message=message, **_by(rule))

    def ask(self, reason: str, message: str, rule: Rule | None = None, *,
            suggestions: list[dict[str, Any]] | None = None) -> Verdict:
        return Verdict(behavior="ask", reason_type=reason, message=message, suggestions=suggestions or [], **_by(rule))

    def deny(self, reason: str, why: str, rule: Rule | None = None) -> Verdict:
        return Verdict(behavior="deny", reason_type=reason, **_by(rule), message=(
            f"Permission to use {self.tool.name} is denied: {why}. Do not try the same by other means; choose another way, or "
            "say what you would need."))

    def refuse(self, reason: str, part: str, rule: Rule) -> Verdict:
        return self.deny(reason, f"{self._named(rule)} covers {part[:200]}", rule)

    def _named(self, rule: Rule) -> str:
        return "a rule of the managed settings" if rule.source == "managed" else f"the rule {rule.text} ({rule.source})"

    def _prompted(self, verdict: Verdict) -> Verdict:
        """What an ``ask`` becomes before anybody is asked."""
        if verdict.behavior != "ask":
            return verdict
        if self.mode == "dontAsk":
            return self.deny("mode", f"the mode is dontAsk, and {verdict.message}")
        if self.mode == "auto" and not self.firm and self.facts.classifier is not None:
            answer = self.facts.classifier(self.call, verdict.message)
            if answer == "allow":
                return self.allow("classifier", "the classifier allows it")
            if answer == "deny":
                return self.deny("classifier", f"the classifier refuses it ({verdict.message})")
            refused = self.deny("classifier", f"the classifier gave no verdict ({verdict.message})")
            return Verdict(behavior="deny", reason_type="classifier", message=refused.message, undecided=True)
        return verdict

    def _part(self) -> str:
        content = self.tool.permission_content(self.call.input)
        return self.tool.name if content is None else f"{self.tool.name} {content[:120]}"

    def _nothing(self) -> str:
        """Why it is asked when no step decided."""
        if self.judgement is not None:
            _, missing = self.judgement.approval
            sub, why = missing[0]
            return f"no rule allows {sub.simple.text[:120]!r}: {why}" if sub.simple.words else why
        if self.tool.permission == "path":
            if self.targets is None:
                return "where its path leads is not known"
            where = "lies outside the working directories" if not all(self.facts.places.inside(t) for t in self.targets) else \
                "would be changed"
            return f"{self.targets[0].given} {where}"
        return f"no rule allows {self._part()}"

    def _suggestions(self) -> list[dict[str, Any]]:
        if self.judgement is not None:
            return suggestions.for_commands(self.judgement.approval[1])
        if self.tool.permission == "path":
            return suggestions.for_path(self.access, self.targets[0].given) if self.targets else []
        if self.tool.name == "WebFetch":
            host = specifiers.host_of(self.call.input.get("url"))
            return suggestions.add_rules("WebFetch", [f"domain:{host}"]) if host else []
        if self.tool.name == "Skill" and isinstance(self.call.input.get("skill"), str):
            return suggestions.add_rules("Skill", [self.call.input["skill"]])
        return [] if self.tool.permission == "user" else suggestions.add_rules(self.tool.name, [None])


_STEPS = {
    "denied": "2 deny rules", "asked": "3 ask rules and tools that need the user", "safety": "4 critical and protected paths",
    "by_hook": "5 a hook's allow", "by_mode": "6 permission mode", "free": "7 no permission needed", "allowed": "8 allow rules",
    "nothing": "9 nothing matched",
}


def _by(rule: Rule | None) -> dict[str, Any]:
    return {} if rule is None else {"rule": None if rule.source == "managed" else rule.text, "source": rule.source}


def _is_read_only(tool: Any, input: dict[str, Any]) -> bool:
    try:
        return bool(tool.is_read_only(input))
    except Exception:
        return False
