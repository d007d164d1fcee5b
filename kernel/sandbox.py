"""The sandbox protocol: confinement of the processes that tools and hooks start (permissions contract, section 10)."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Literal, Protocol

if TYPE_CHECKING:
    from kernel.session import Session

Purpose = Literal["tool", "hook"]


class Sandbox(Protocol):
    """Confines processes of one session."""

    def confines(self, input: dict[str, Any]) -> bool:
        """Whether a Bash call with that input would run confined. Excluded commands and allowed escapes do not."""

    def wrap(self, argv: list[str], *, cwd: str, purpose: Purpose, input: dict[str, Any] | None = None,
             writable: Sequence[str] = ()) -> list[str]:
        """The command line that runs ``argv`` confined; ``argv`` itself where this process is not to be confined.

        :param input: the Bash call's input; ``None`` for a hook.
        :param writable: existing files and folders of the caller that the process has to write, wherever they lie.
        :raises ToolError: the boundaries cannot be put into force, and the process must not run.
        """

    def close(self) -> None:
        """Release proxies and temporary files."""


class SandboxFactory(Protocol):
    """Registered by ``register_sandboxes`` under ``name``; opened where the setting ``sandbox.enabled`` is true."""

    name: str

    def open(self, session: Session) -> Sandbox:
        """The sandbox of one session.

        :raises UsageError: it cannot work here; the run does not start.
        """
