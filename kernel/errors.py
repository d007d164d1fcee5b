"""Every error of the kernel, drawn as a tree.

    KernelError                      reference, message, context, hint
    ├── UsageError                   a wrong flag, option or argument
    ├── SettingsError                a settings source that must be readable and is not
    ├── LockError                    a locked harness that is not what its lock says
    ├── SessionError                 a conversation that cannot be found, opened or kept
    ├── HistoryError                 messages that the model API would refuse
    ├── PluginError                  names its plugin
    │   ├── ManifestError            .claude-plugin/plugin.json
    │   ├── LoadError                the plugin's code
    │   └── DuplicateError           two plugins register one name
    ├── ToolError                    an expected failure of a tool; becomes a tool result
    └── ModelError                   a request to a model that failed
        └── StreamError              ... after the answer had begun

Every error says what happened (``message``), where (``context``: plugin, file, field) and what to do
(``hint``). ``reference`` is a stable kebab-case name for tests and searches.
"""

from __future__ import annotations

from typing import Any


class KernelError(Exception):
    """Base of all errors that are meant for people.

    :param message: what happened, one sentence.
    :param context: where: the plugin, the file, the line or field. May be empty, may not be forgotten.
    :param hint: what to do next; empty where there is nothing to do.
    """

    reference = "kernel-error"

    def __init__(self, message: str, *, context: str = "", hint: str = "") -> None:
        super().__init__(message)
        self.message = message
        self.context = context
        self.hint = hint

    def __str__(self) -> str:
        where = f"{self.context}: " if self.context else ""
        what_to_do = f" ({self.hint})" if self.hint else ""
        return f"{where}{self.message}{what_to_do}"


class UsageError(KernelError):
    """The command line or an option cannot be used as given."""

    reference = "usage"


class SettingsError(KernelError):
    """A settings source that was named explicitly cannot be read."""

    reference = "settings"


class LockError(KernelError):
    """A harness file's lock cannot be used, or a file is not as it was locked."""

    reference = "harness-lock"


class SessionError(KernelError):
    """A conversation cannot be found, opened or kept."""

    reference = "session"


class HistoryError(KernelError):
    """A message that would make the history illegal for the Messages API (loop contract, section 5)."""

    reference = "history"


class PluginError(KernelError):
    """Something is wrong with one plugin, which is named."""

    reference = "plugin"

    def __init__(self, plugin: str, message: str, *, context: str = "", hint: str = "") -> None:
        super().__init__(message, context=f"plugin {plugin}" + (f", {context}" if context else ""), hint=hint)
        self.plugin = plugin


class ManifestError(PluginError):
    """``.claude-plugin/plugin.json`` cannot be used."""

    reference = "plugin-manifest"


class LoadError(PluginError):
    """The plugin's module cannot be imported or does not fit the hookspecs."""

    reference = "plugin-load"


class DuplicateError(PluginError):
    """Two plugins register the same name in one registry."""

    reference = "plugin-duplicate"


class ToolError(KernelError):
    """An expected failure of a tool. It becomes an error result for the model and never ends the loop.

    :param code: lower snake case and stable, for example ``not_found`` (tools contract, section 20).
    :param retryable: the model may try the same call again.
    :param structured: what hooks and clients see instead of the bare text.
    """

    reference = "tool"

    def __init__(self, code: str, message: str, *, retryable: bool = False, structured: Any = None) -> None:
        super().__init__(message)
        self.code = code
        self.retryable = retryable
        self.structured = structured

    def __str__(self) -> str:
        return self.message


class ModelError(KernelError):
    """A model request failed (loop contract, section 8).

    :param kind: the API's error type, for example ``overloaded_error``; ``connection_error`` and
        ``not_a_model_response`` are ours.
    :param status: HTTP status, ``None`` where no answer came.
    :param retry_after: seconds that the server asked to wait.
    :param should_retry: the server's own word on retrying, where it gave one.
    """

    reference = "model"

    def __init__(self, message: str, *, kind: str, status: int | None = None, retry_after: float | None = None,
                 should_retry: bool | None = None, request_id: str = "", context: str = "", hint: str = "") -> None:
        super().__init__(message, context=context, hint=hint)
        self.kind = kind
        self.status = status
        self.retry_after = retry_after
        self.should_retry = should_retry
        self.request_id = request_id


class StreamError(ModelError):
    """The answer had begun and then broke off."""

    reference = "model-stream"
