"""`bridgehead tools show NAME`: one tool, as the bridge's own guidance explains it."""

from __future__ import annotations

import os
from typing import Annotated

import typer

from bridgehead.cli.client import BridgeClient, tool_named
from bridgehead.cli.markdown import print_markdown
from bridgehead.cli.options import GroupOption, JsonOption, StateDirOption, UrlOption
from bridgehead.cli.output import print_json
from bridgehead.cli.results import fail_on_error, text_of
from bridgehead.cli.state import find_bridge, state_dir_or_default


def command(
    *,
    name: Annotated[str, typer.Argument(help="The tool's name as it is listed.", metavar="NAME")],
    group: GroupOption = None,
    url: UrlOption = None,
    state_dir: StateDirOption = None,
    json: JsonOption = False,
) -> None:
    """Print the tool's page, or with `--json` its definition."""
    client = BridgeClient(find_bridge(url, state_dir_or_default(state_dir), os.environ))
    tool = tool_named(client.tools(group), name)
    if json:
        print_json(tool)
        return
    result = client.call("guidance", {"topic": "tool", "tool_name": name}, group)
    fail_on_error(result)
    print_markdown(text_of(result))
