"""`bridgehead secret set NAME`: keep a secret. Its value is never an argument: those are seen by others, and kept by shells."""

from __future__ import annotations

import getpass
import sys
from pathlib import Path
from typing import Annotated, BinaryIO

import typer

from bridgehead.cli.keeping import KEPT_IN, settings_and_store, uses
from bridgehead.cli.options import ConfigOption, JsonOption, StateDirOption
from bridgehead.cli.output import print_json, print_text
from bridgehead.config.ports import LARGEST_VALUE, SecretInvalid, check_name, check_value, too_large


def command(  # noqa: PLR0913  one parameter an option
    *,
    name: Annotated[str, typer.Argument(help="Letters, digits, `_`, `.` and `-`; 64 at most.", metavar="NAME")],
    stdin: Annotated[
        bool, typer.Option("--stdin", help="Read the value from standard input, as is done when that is no terminal.")
    ] = False,
    value_file: Annotated[
        Path | None, typer.Option("--value-file", help="Read the value from this file.", metavar="FILE")
    ] = None,
    config: ConfigOption = None,
    state_dir: StateDirOption = None,
    json: JsonOption = False,
) -> None:
    """Keep the value, instead of any earlier one; on a terminal it is asked for and not shown."""
    if stdin and value_file is not None:
        raise typer.BadParameter(
            "The value is read from one place: --stdin or --value-file.", param_hint="--value-file"
        )
    check_name(name)
    settings, store = settings_and_store(config, state_dir)
    value = _value(name, stdin=stdin, file=value_file)
    check_value(value)
    store.write(name, value)
    used_by = uses(settings).get(name, [])
    if json:
        print_json({"name": name, "kept_in": store.kind, "used_by": used_by})
        return
    print_text(f"{name} is kept in {KEPT_IN[store.kind]}.")
    if used_by:
        print_text(
            f"{', '.join(used_by)} will have it when started next;"
            " a bridge that runs reads it once its configuration file is saved again, or on SIGHUP."
        )
    else:
        print_text(f"No backend uses it yet: write ${{secret:{name}}} where the value belongs in the configuration.")


def _value(name: str, *, stdin: bool, file: Path | None) -> str:
    if file is not None:
        try:
            with file.expanduser().open("rb") as opened:
                return _text(opened)
        except OSError as error:
            raise SecretInvalid(
                f"{file} cannot be read: {error.strerror or error}.", hint="check the path and the rights of the file."
            ) from error
    if stdin or not sys.stdin.isatty():
        return _text(sys.stdin.buffer)
    return getpass.getpass(f"Value of {name} (it is not shown): ")


def _text(source: BinaryIO) -> str:
    """The content without one newline at its end, which editors and `echo` put there."""
    content = source.read(LARGEST_VALUE + len(b"\r\n") + 1)
    content = content.removesuffix(b"\n").removesuffix(b"\r") if content.endswith(b"\n") else content
    if len(content) > LARGEST_VALUE:
        raise too_large()
    try:
        return content.decode()
    except UnicodeDecodeError as error:
        raise SecretInvalid(
            f"The value is not UTF-8, from byte {error.start} on.",
            hint="save it as UTF-8; secrets are text, so write bytes as base64.",
        ) from None
