"""One error for everything that stops a change. ``type`` is stable and goes into the JSON answer."""

from __future__ import annotations

from kernel import KernelError


class ManagerError(KernelError):
    """A change that was refused or did not succeed; nothing was switched.

    :param type: kebab-case and stable: ``bad-spec``, ``unsafe-archive``, ``name-clash``, ``range-conflict`` ...
    """

    reference = "plugin-manager"

    def __init__(self, type: str, message: str, *, context: str = "", hint: str = "") -> None:
        super().__init__(message, context=context, hint=hint)
        self.type = type
