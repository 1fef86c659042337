"""`bridgehead backend add NAME`: put a backend into the configuration."""

from __future__ import annotations

import os
import shlex
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Any

import typer

from bridgehead.cli.options import ConfigOption, JsonOption
from bridgehead.cli.output import print_json, print_text
from bridgehead.config.clients.credentials import Lifting
from bridgehead.config.editing import open_config


def command(  # noqa: PLR0913  one parameter an option
    *,
    name: Annotated[str, typer.Argument(help="What it is to be called; its tools' names begin so.", metavar="NAME")],
    words: Annotated[
        list[str] | None,
        typer.Argument(help="The program to start and its arguments, behind `--`.", metavar="COMMAND"),
    ] = None,
    url: Annotated[str | None, typer.Option("--url", help="The server to reach instead.")] = None,
    header: Annotated[
        list[str] | None, typer.Option("--header", help="A header to send, as Name=value; may be repeated.")
    ] = None,
    env: Annotated[
        list[str] | None, typer.Option("--env", help="A variable it gets, as NAME=value; may be repeated.")
    ] = None,
    cwd: Annotated[Path | None, typer.Option("--cwd", help="Where the program starts.")] = None,
    config: ConfigOption = None,
    json: JsonOption = False,
) -> None:
    """Write it behind everything else; the file is made where there is none, and left alone where the result is unusable."""
    if (url is None) == (not words):
        raise typer.BadParameter("Give either --url, or `--` and the program to start.", param_hint="COMMAND")
    if url is not None and (env or cwd is not None):
        raise typer.BadParameter("--env and --cwd are for programs.", param_hint="--url")
    if url is None and header:
        raise typer.BadParameter("--header is for servers with --url.", param_hint="--header")
    table: dict[str, Any] = {"url": url} if url is not None else {"command": (words or [""])[0]}
    if words and len(words) > 1:
        table["args"] = words[1:]
    if pairs := _pairs(env, "--env"):
        table["env"] = pairs
    if pairs := _pairs(header, "--header"):
        table["headers"] = pairs
    if cwd is not None:
        # As typed here, where a relative path of the file would start at the file.
        table["cwd"] = str(cwd) if str(cwd).startswith(("~", "$")) else str(cwd.absolute())
    file = open_config(config, os.environ)
    is_new = file.is_new
    file.add_backend(name, table)
    file.write()
    if lifted := _plain_credentials(name, table):
        sys.stderr.write(
            f"warning: {file.path} holds what looks like a credential; keep it in the secret store instead "
            f"(bridgehead secret set {lifted}) and write ${{secret:{lifted}}} there.\n"
        )
    if json:
        print_json({"name": name, "file": str(file.path), "made": is_new})
        return
    print_text(f"{name} is in {file.path}{', which is new' if is_new else ''}.")
    at = f" --config {shlex.quote(str(config))}" if config is not None else ""
    print_text(f"Try it: bridgehead backend test {shlex.quote(name)}{at}")


def _plain_credentials(name: str, table: Mapping[str, Any]) -> str | None:
    """What the first credential in the table would be called in the secret store."""
    lifting = Lifting(name, lambda _: None)
    lifting.table(table)
    return next(iter(lifting.secrets), None)


def _pairs(given: list[str] | None, option: str) -> dict[str, str]:
    pairs: dict[str, str] = {}
    for word in given or []:
        key, sign, value = word.partition("=")
        if not sign or not key.strip():
            # Without the word itself, which may hold a secret.
            raise typer.BadParameter("It has to be key=value.", param_hint=option)
        if key in pairs:
            raise typer.BadParameter(f"{key} is given twice.", param_hint=option)
        pairs[key] = value
    return pairs
