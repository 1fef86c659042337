"""The settings: read once from a file and the environment, unknown keys refused, every value knowing its origin.

Knows nothing of HTTP, MCP or SQL, and starts nothing. `load` gives `Settings`, `resolve` makes one backend launchable,
`check` and `show` are for people.
"""

from bridgehead.config.concealment import Concealment
from bridgehead.config.environment import group_variable
from bridgehead.config.load import load, search_order
from bridgehead.config.placeholders import (
    HttpLaunch,
    LaunchInvalid,
    MissingPlaceholder,
    ResolvedBackend,
    StdioLaunch,
    resolve,
    secrets_of,
)
from bridgehead.config.ports import NoSecrets, SecretInvalid, SecretNotFound, SecretReader, Secrets, SecretsUnusable
from bridgehead.config.problems import Problem
from bridgehead.config.render import GroupStatus, Missing, MissingSecret, Report, check, show
from bridgehead.config.secrets import Secret
from bridgehead.config.settings import (
    BUILTIN,
    BackendSettings,
    GroupMember,
    GroupSettings,
    LimitSettings,
    ServerSettings,
    Settings,
)

__all__ = [
    "BUILTIN",
    "BackendSettings",
    "Concealment",
    "GroupMember",
    "GroupSettings",
    "GroupStatus",
    "HttpLaunch",
    "LaunchInvalid",
    "LimitSettings",
    "Missing",
    "MissingPlaceholder",
    "MissingSecret",
    "NoSecrets",
    "Problem",
    "Report",
    "ResolvedBackend",
    "Secret",
    "SecretInvalid",
    "SecretNotFound",
    "SecretReader",
    "Secrets",
    "SecretsUnusable",
    "ServerSettings",
    "Settings",
    "StdioLaunch",
    "check",
    "group_variable",
    "load",
    "resolve",
    "search_order",
    "secrets_of",
    "show",
]
