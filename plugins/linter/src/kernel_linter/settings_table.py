"""Keys of settings files with their types (settings contract, section 5), and what a permission rule looks like."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

SETTINGS: dict[str, str] = {
    "model": "string", "fallbackModel": "tools", "availableModels": "strings", "enforceAvailableModels": "boolean",
    "modelOverrides": "object",
    "effortLevel": "string", "alwaysThinkingEnabled": "boolean", "outputStyle": "string", "language": "string",
    "advisorModel": "string",
    "permissions": "object", "permissions.allow": "strings", "permissions.ask": "strings", "permissions.deny": "strings",
    "permissions.additionalDirectories": "strings", "permissions.defaultMode": "mode",
    "permissions.disableBypassPermissionsMode": "disable",
    "permissions.disableAutoMode": "disable", "disableAutoMode": "disable", "allowManagedPermissionRulesOnly": "boolean",
    "autoMode": "object",
    "useAutoModeDuringPlan": "boolean", "sandbox": "object", "sandbox.enabled": "boolean", "sandbox.failIfUnavailable": "boolean",
    "sandbox.autoAllowBashIfSandboxed": "boolean", "sandbox.excludedCommands": "strings",
    "sandbox.allowUnsandboxedCommands": "boolean",
    "sandbox.filesystem": "object", "sandbox.filesystem.allowWrite": "strings", "sandbox.filesystem.denyWrite": "strings",
    "sandbox.filesystem.denyRead": "strings", "sandbox.filesystem.allowRead": "strings", "sandbox.network": "object",
    "sandbox.network.allowedDomains": "strings", "sandbox.network.deniedDomains": "strings", "autoCompactEnabled": "boolean",
    "autoCompactWindow": "integer", "autoMemoryEnabled": "boolean", "autoMemoryDirectory": "string",
    "claudeMdExcludes": "strings",
    "env": "stringMap", "fileCheckpointingEnabled": "boolean", "plansDirectory": "string", "skillListingBudgetFraction": "number",
    "skillListingMaxDescChars": "integer", "respectGitignore": "boolean", "cleanupPeriodDays": "integer", "hooks": "object",
    "disableAllHooks": "boolean", "allowManagedHooksOnly": "boolean", "allowedHttpHookUrls": "strings",
    "httpHookAllowedEnvVars": "strings",
    "enabledPlugins": "boolMap", "extraKnownMarketplaces": "object", "additionalMarketplaces": "object",
    "pluginConfigs": "object",
    "skillOverrides": "stringMap", "disableBundledSkills": "boolean", "disableSkillShellExecution": "boolean",
    "strictKnownMarketplaces": "objects", "blockedMarketplaces": "objects", "strictPluginOnlyCustomization": "stringsOrTrue",
    "disableCommandPluginSources": "boolean", "pluginTrustMessage": "string", "allowedMcpServers": "objects",
    "deniedMcpServers": "objects",
    "allowManagedMcpServersOnly": "boolean", "enableAllProjectMcpServers": "boolean", "enabledMcpjsonServers": "strings",
    "disabledMcpjsonServers": "strings", "agent": "string", "worktree": "object", "worktree.baseRef": "string",
    "worktree.symlinkDirectories": "strings", "apiKeyHelper": "string", "attribution": "object", "attribution.commit": "string",
    "attribution.pr": "string", "includeCoAuthoredBy": "boolean", "includeGitInstructions": "boolean", "defaultShell": "shell",
    "disableSideloadFlags": "boolean", "kernel": "object",
}
OTHERS = ("$schema statusLine subagentStatusLine spinnerTipsEnabled companyAnnouncements fileSuggestion forceLoginMethod "
          "forceLoginOrgUUID "
          "fastMode processWrapper teammateMode otelHeadersHelper awsAuthRefresh awsCredentialExport gcpAuthRefresh "
          "autoUpdatesChannel "
          "minimumVersion claudeMd showThinkingSummaries switchModelsOnFlag syncClaudeAiSkills theme editorMode verbose "
          "spinnerVerbs prefersReducedMotion terminalProgressBarEnabled showTurnDuration allowedMarketplaces "
          "channelsEnabled").split()
TOP_KEYS = frozenset((*(k for k in SETTINGS if "." not in k), *OTHERS))
_RULE = re.compile(r"[A-Za-z_][\w.:*-]*(?:\(.*\))?", re.DOTALL)


def flat(data: dict[str, Any]) -> Iterator[tuple[str, Any]]:
    """Dotted paths of the keys that the table speaks about."""
    for path in SETTINGS:
        value: Any = data
        for step in path.split("."):
            if not isinstance(value, dict) or step not in value:
                break
            value = value[step]
        else:
            yield path, value


def wrong_rule(rule: Any) -> str:
    """What is wrong with a permission rule; empty for a good one."""
    if not isinstance(rule, str):
        return "must be text"
    text = rule.strip()
    if not text:
        return "is empty"
    if text == "*":
        return ""
    if "(" in text and not text.endswith(")"):
        return "has an opening parenthesis without a closing one at its end"
    if text.endswith(")") and "(" not in text:
        return "has a closing parenthesis without an opening one"
    if not _RULE.fullmatch(text):
        return "is not Tool or Tool(specifier)"
    return "has empty parentheses" if text.endswith("()") else ""
