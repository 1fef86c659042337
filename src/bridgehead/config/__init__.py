"""The settings: read once from a file and the environment, unknown keys refused, every value knowing its origin.

Knows nothing of HTTP, MCP or SQL, and starts nothing. `load` gives `Settings`, `resolve` makes one backend launchable,
`check` and `show` are for people.
"""

from bridgehead.config.environment import group_variable
from bridgehead.config.load import load, search_order
from bridgehead.config.placeholders import (
    HttpLaunch,
    LaunchInvalid,
    MissingPlaceholder,
    ResolvedBackend,
    StdioLaunch,
    resolve,
)
from bridgehead.config.problems import Problem
from bridgehead.config.render import GroupStatus, Missing, Report, check, show
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
from bridgehead.config.status import ConfigStatus

__all__ = [
    "BUILTIN",
    "BackendSettings",
    "ConfigStatus",
    "GroupMember",
    "GroupSettings",
    "GroupStatus",
    "HttpLaunch",
    "LaunchInvalid",
    "LimitSettings",
    "Missing",
    "MissingPlaceholder",
    "Problem",
    "Report",
    "ResolvedBackend",
    "Secret",
    "ServerSettings",
    "Settings",
    "StdioLaunch",
    "check",
    "group_variable",
    "load",
    "resolve",
    "search_order",
    "show",
]
