"""`bridgehead tools call NAME [JSON | key=value …]`: call a tool and print its result."""

from __future__ import annotations

import os
import sys
from typing import Annotated, Any, cast

import orjson
import typer

from bridgehead.cli.client import BridgeClient
from bridgehead.cli.errors import EXIT_FAILURE
from bridgehead.cli.options import GroupOption, JsonOption, StateDirOption, UrlOption
from bridgehead.cli.output import print_json, print_text
from bridgehead.cli.results import fail_on_error, text_of
from bridgehead.cli.shapes import mapping
from bridgehead.cli.state import find_bridge, state_dir_or_default


def command(  # noqa: PLR0913  one parameter an option
    *,
    name: Annotated[str, typer.Argument(help="The tool's name as it is listed.", metavar="NAME")],
    arguments: Annotated[
        list[str] | None,
        typer.Argument(
            help="A JSON object, - to read one from standard input, or key=value pairs.", metavar="ARGUMENTS"
        ),
    ] = None,
    group: GroupOption = None,
    timeout: Annotated[
        float, typer.Option("--timeout", min=1, help="Seconds of silence after which to give up.")
    ] = 600,
    url: UrlOption = None,
    state_dir: StateDirOption = None,
    json: JsonOption = False,
) -> None:
    """Print the result: its text, or with `--json` all of it."""
    client = BridgeClient(find_bridge(url, state_dir_or_default(state_dir), os.environ), timeout_s=timeout)
    result = client.call(name, _arguments(arguments or [], client, name, group), group)
    if json:
        print_json(result)
        if result.get("isError") is True:
            raise typer.Exit(EXIT_FAILURE)
        return
    fail_on_error(result)
    print_text(text_of(result))


def _arguments(words: list[str], client: BridgeClient, name: str, group: str | None) -> dict[str, Any]:
    if not words:
        return {}
    if len(words) == 1 and (words[0] == "-" or words[0].lstrip().startswith("{")):
        return _object(sys.stdin.read() if words[0] == "-" else words[0])
    pairs: dict[str, str] = {}
    for word in words:
        key, equals, value = word.partition("=")
        if not equals or not key:
            raise typer.BadParameter(f"{key!r} is neither key=value nor a JSON object.", param_hint="ARGUMENTS")
        if key in pairs:
            raise typer.BadParameter(f"{key!r} is given twice; give a list as JSON.", param_hint="ARGUMENTS")
        pairs[key] = value
    types = _declared_types(client, name, group)
    return {key: _value(value, types.get(key)) for key, value in pairs.items()}


def _object(text: str) -> dict[str, Any]:
    try:
        value: Any = orjson.loads(text)
    except orjson.JSONDecodeError as error:
        raise typer.BadParameter(f"This is not JSON: {error}.", param_hint="ARGUMENTS") from error
    if not isinstance(value, dict):
        raise typer.BadParameter("The arguments have to be a JSON object.", param_hint="ARGUMENTS")
    return cast("dict[str, Any]", value)


def _declared_types(client: BridgeClient, name: str, group: str | None) -> dict[str, Any]:
    """The type of each parameter by the tool's schema; none for a tool that is not listed: the bridge refuses it."""
    for tool in client.tools(group):
        if tool.get("name") == name:
            properties = mapping(mapping(tool.get("inputSchema")).get("properties"))
            return {key: mapping(schema).get("type") for key, schema in properties.items()}
    return {}


def _value(text: str, declared: Any) -> Any:
    """`text` as the parameter's type wants it: a string stays as it is, anything else is read as JSON where it is."""
    kinds = cast("list[Any]", declared) if isinstance(declared, list) else [declared]
    if "string" in kinds and kinds[0] == "string":
        return text
    try:
        return orjson.loads(text)
    except orjson.JSONDecodeError:
        return text
