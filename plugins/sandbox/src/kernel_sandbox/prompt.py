"""What the model is told about the sandbox, once, with the session's surroundings."""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal

if TYPE_CHECKING:
    from kernel import Session


class SandboxPart:
    name = "sandbox"
    layer: Literal["rules", "environment", "instructions"] = "environment"

    async def text(self, session: Session) -> str:
        from kernel_sandbox.confinement import Confinement

        sandbox = session.sandbox
        if not isinstance(sandbox, Confinement):
            return ""
        asked = sandbox.asked()
        hosts = ", ".join(p.host for p in asked.domains.allowed[:50])
        lines = ["# Sandbox", "Bash commands run confined:",
                 f"- They write only in {', '.join([*sandbox.work(), *asked.write])} and in $TMPDIR (not in /tmp).",
                 f"- Network: {f'HTTP and HTTPS to {hosts}' if hosts else 'none'}; a server that a command starts is reached by "
                 "that same command only.",
                 "- Each sees its own processes only and takes them along when it ends: use run_in_background for what must go "
                 "on, and TaskStop to end it."]
        if asked.escape:
            lines.append("- When a result says that the sandbox stopped a command that the task needs, call it again with "
                         "dangerouslyDisableSandbox: true. That is asked for; never do it beforehand.")
        return "\n".join(lines)
