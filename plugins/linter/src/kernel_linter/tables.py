"""The fields of every file kind with their types. Rules and published schemas both come from here."""

from __future__ import annotations

MANIFEST: dict[str, str] = {
    "$schema": "string", "name": "string", "displayName": "string", "version": "string", "description": "string",
    "author": "author",
    "homepage": "url", "repository": "string", "license": "string", "keywords": "strings", "metadata": "any",
    "defaultEnabled": "boolean",
    "skills": "paths", "commands": "commands", "agents": "paths", "workflows": "paths", "outputStyles": "paths",
    "hooks": "component",
    "mcpServers": "component", "lspServers": "component", "experimental": "any", "themes": "paths", "monitors": "monitors",
    "settings": "object", "userConfig": "userConfig", "channels": "channels", "dependencies": "dependencies",
}
"""Field -> type word (see ``types.py``). ``metadata`` and ``experimental`` of a wrong type are ignored by the host."""

PATH_FIELDS = ("skills", "commands", "agents", "workflows", "outputStyles", "hooks", "mcpServers", "lspServers", "themes",
               "monitors")
DEFAULT_PLACES = {"skills": "skills", "commands": "commands", "agents": "agents", "workflows": "workflows",
                  "outputStyles": "output-styles",
                  "hooks": "hooks/hooks.json", "mcpServers": ".mcp.json", "lspServers": ".lsp.json", "themes": "themes",
                  "monitors": "monitors/monitors.json"}
REPLACING = ("commands", "agents", "workflows", "outputStyles")
ENTRY_ONLY: dict[str, str] = {"source": "source", "category": "string", "tags": "strings", "strict": "boolean",
                              "relevance": "any",
                              "headersHelper": "string"}
ENTRY = {**MANIFEST, **ENTRY_ONLY}
EXPERIMENTAL = {"themes": "paths", "monitors": "monitors"}
MARKETPLACE: dict[str, str] = {
    "$schema": "string", "name": "string", "owner": "author", "plugins": "entries", "description": "string", "version": "string",
    "metadata": "catalogueMetadata", "allowCrossMarketplaceDependenciesOn": "strings", "renames": "renames",
    "forceRemoveDeletedPlugins": "boolean",
}
MARKETPLACE_METADATA = {"description": "string", "version": "string", "pluginRoot": "string"}
SOURCES: dict[str, tuple[tuple[str, ...], tuple[str, ...]]] = {
    "github": (("repo",), ("ref", "sha", "skipLfs")), "url": (("url",), ("ref", "sha", "skipLfs")),
    "git-subdir": (("url", "path"), ("ref", "sha", "skipLfs")), "npm": (("package",), ("version", "registry")),
    "archive": (("url",), ("sha256", "headers")), "command": (("command",), ("timeout", "mode")),
}
"""Kind of source -> required and optional keys."""
RESERVED_MARKETPLACES = frozenset("""
    claude-code-marketplace claude-code-plugins claude-plugins-official claude-plugins-community claude-community
    anthropic-marketplace anthropic-plugins agent-skills anthropic-agent-skills knowledge-work-plugins life-sciences
    claude-for-legal claude-for-financial-services financial-services-plugins first-party-plugins healthcare
""".split())
BUILT_IN_SOURCES = frozenset(("inline", "builtin", "skills-dir", "synced"))

USER_CONFIG_TYPES = ("string", "number", "boolean", "directory", "file")
USER_CONFIG = {"type": "string", "title": "string", "description": "string", "sensitive": "boolean", "required": "boolean",
               "default": "any", "multiple": "boolean", "min": "number", "max": "number"}
CHANNEL = {"server": "string", "displayName": "string", "userConfig": "object"}
SETTINGS_OF_PLUGIN = ("agent", "subagentStatusLine")

SKILL: dict[str, str] = {
    "name": "text", "description": "text", "when_to_use": "text", "argument-hint": "text", "arguments": "words",
    "disable-model-invocation": "flag", "user-invocable": "flag", "allowed-tools": "tools", "disallowed-tools": "tools",
    "model": "text",
    "effort": "effort", "context": "context", "agent": "text", "background": "flag", "hooks": "object", "paths": "words",
    "shell": "shell", "metadata": "any", "license": "text", "compatibility": "text", "display-name": "text",
    "default-enabled": "flag",
    "fallback": "any",
}
SPEC_FIELDS = ("name", "description", "license", "compatibility", "metadata", "allowed-tools")
AGENT: dict[str, str] = {
    "name": "text", "description": "text", "tools": "tools", "disallowedTools": "tools", "model": "text",
    "permissionMode": "mode",
    "maxTurns": "positive", "skills": "words", "mcpServers": "any", "hooks": "object", "memory": "memory", "background": "flag",
    "effort": "effort", "isolation": "isolation", "color": "color", "initialPrompt": "text",
}
STYLE: dict[str, str] = {"name": "text", "description": "text", "keep-coding-instructions": "flag", "force-for-plugin": "flag"}

TRUE_WORDS = ("true", "yes", "on", "1")
FLAG_WORDS = (*TRUE_WORDS, "false", "no", "off", "0")
EFFORTS = ("low", "medium", "high", "xhigh", "max")
COLORS = ("red", "blue", "green", "yellow", "purple", "orange", "pink", "cyan")
MEMORIES = ("user", "project", "local")
MODES = ("default", "acceptEdits", "bypassPermissions", "plan", "dontAsk", "auto", "delegate", "manual")
MODEL_ALIASES = ("sonnet", "opus", "haiku", "fable", "inherit", "default", "best", "opusplan", "sonnet[1m]", "opus[1m]",
                 "haiku[1m]")
SHELLS = ("bash", "powershell")

_ALL = ("command", "http", "mcp_tool", "prompt", "agent")
_SOME = ("command", "http", "mcp_tool")
_TWO = ("command", "mcp_tool")
TOOL_EVENTS = ("PreToolUse", "PostToolUse", "PostToolUseFailure", "PermissionRequest", "PermissionDenied")
EVENTS: dict[str, tuple[str, tuple[str, ...]]] = {
    "SessionStart": ("source", _TWO), "Setup": ("trigger", _TWO), "UserPromptSubmit": ("", _ALL),
    "UserPromptExpansion": ("command_name", _ALL),
    "PreToolUse": ("tool_name", _ALL), "PermissionRequest": ("tool_name", _ALL), "PermissionDenied": ("tool_name", _ALL),
    "PostToolUse": ("tool_name", _ALL), "PostToolUseFailure": ("tool_name", _ALL), "PostToolBatch": ("", _ALL),
    "Notification": ("notification_type", _SOME), "MessageDisplay": ("", _SOME), "SubagentStart": ("agent_type", _SOME),
    "SubagentStop": ("agent_type", _ALL), "TaskCreated": ("", _ALL), "TaskCompleted": ("", _ALL), "Stop": ("", _ALL),
    "StopFailure": ("error", _SOME), "TeammateIdle": ("", _ALL), "InstructionsLoaded": ("load_reason", _SOME),
    "ConfigChange": ("source", _SOME),
    "CwdChanged": ("", _SOME), "DirectoryAdded": ("source", _SOME), "FileChanged": ("file name", _SOME), "WorktreeCreate": ("",
        _SOME),
    "WorktreeRemove": ("", _SOME), "PreCompact": ("trigger", _SOME), "PostCompact": ("trigger", _SOME),
    "Elicitation": ("mcp_server_name", _SOME),
    "ElicitationResult": ("mcp_server_name", _SOME), "SessionEnd": ("reason", _SOME),
}
"""Event -> what its matcher is compared with (empty: nothing) and the handler types it takes (hooks contract, 18)."""
MATCH_VALUES: dict[str, tuple[str, ...]] = {
    "SessionStart": ("startup", "resume", "fork", "clear", "compact"), "Setup": ("init", "maintenance"), "PreCompact": ("manual",
                                                                                                                        "auto"),
    "PostCompact": ("manual", "auto"), "SessionEnd": ("clear", "resume", "logout", "prompt_input_exit", "other",
                                                      "bypass_permissions_disabled"),
    "InstructionsLoaded": ("session_start", "nested_traversal", "path_glob_match", "include", "compact"),
    "StopFailure": ("rate_limit", "overloaded", "authentication_failed", "oauth_org_not_allowed", "billing_error",
                    "invalid_request",
                    "model_not_found", "server_error", "max_output_tokens", "unknown"),
    "Notification": ("permission_prompt", "idle_prompt", "auth_success", "elicitation_dialog", "elicitation_url_dialog",
                     "elicitation_complete", "elicitation_response", "agent_needs_input", "agent_completed"),
    "ConfigChange": ("user_settings", "project_settings", "local_settings", "policy_settings", "skills"),
    "DirectoryAdded": ("slash_command", "register_repo_root"),
}
HANDLER_COMMON = {"type": "string", "if": "string", "timeout": "number", "statusMessage": "string", "once": "boolean"}
HANDLER_TYPES: dict[str, tuple[dict[str, str], dict[str, str]]] = {
    "command": ({"command": "string"}, {"args": "strings", "async": "boolean", "asyncRewake": "boolean", "shell": "shell"}),
    "http": ({"url": "string"}, {"headers": "stringMap", "allowedEnvVars": "strings"}),
    "mcp_tool": ({"server": "string", "tool": "string"}, {"input": "object"}),
    "prompt": ({"prompt": "string"}, {"model": "string", "continueOnBlock": "boolean"}),
    "agent": ({"prompt": "string"}, {"model": "string"}),
}
"""Type -> required and optional fields."""

MCP_TYPES = ("stdio", "http", "streamable-http", "sse", "ws")
MCP: dict[str, str] = {"type": "string", "command": "string", "args": "strings", "env": "stringMap", "url": "string",
                       "headers": "stringMap",
                       "headersHelper": "string", "oauth": "object", "timeout": "number", "alwaysLoad": "boolean"}
RESERVED_SERVERS = frozenset(("workspace", "claude-in-chrome", "computer-use", "Claude Preview", "Claude Browser"))
LSP: dict[str, str] = {
    "command": "string", "extensionToLanguage": "stringMap", "args": "strings", "env": "stringMap",
    "initializationOptions": "any",
    "settings": "any", "workspaceFolder": "string", "startupTimeout": "number", "maxRestarts": "number", "diagnostics": "boolean",
    "transport": "transport", "shutdownTimeout": "number", "restartOnCrash": "boolean",
}
MONITOR = {"name": "string", "command": "string", "description": "string", "when": "string"}
THEME_BASES = ("dark", "light", "dark-daltonized", "light-daltonized", "dark-ansi", "light-ansi")

BUILT_IN_COMMANDS = frozenset("""
    add-dir agents bug clear compact config context cost doctor exit export feedback fork help hooks ide init
    install-github-app login logout mcp memory model output-style permissions plan plugin pr-comments privacy-settings
    release-notes resume review rewind security-review skills stats status statusline tasks terminal-setup theme todos upgrade
    usage vim simplify batch debug loop
""".split())
