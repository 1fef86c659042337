"""The root of the command line: the application, and the one place where errors become sentences and exit codes."""

from __future__ import annotations

import os
import sys
import traceback
from typing import Annotated

import typer
from typer.main import get_command

from bridgehead import __version__
from bridgehead.cli.completing import COMPLETE_VARIABLE, completions
from bridgehead.cli.errors import EXIT_FAILURE, EXIT_USAGE, exit_code, print_error
from bridgehead.cli.lazy import lazy_app
from bridgehead.core.errors import BridgeError

app = lazy_app("One secure crossing from any AI agent to every tool its owner has.")


def _print_version(*, wanted: bool) -> None:
    if wanted:
        typer.echo(f"bridgehead {__version__}")
        raise typer.Exit


@app.callback(invoke_without_command=True)
def _root(  # pyright: ignore[reportUnusedFunction]  registered by the decorator
    context: typer.Context,
    *,
    _version: Annotated[
        bool, typer.Option("--version", help="Print the version.", callback=_print_version, is_eager=True)
    ] = False,
) -> None:
    if context.invoked_subcommand is None:
        typer.echo(context.get_help())


def run(arguments: list[str]) -> int:
    """Run one command line and return its exit code; everything that goes wrong is told on standard error."""
    try:
        code = get_command(app).main(args=arguments, prog_name="bridgehead", standalone_mode=False)
    except typer.Abort:
        return EXIT_FAILURE
    except typer.TyperException as error:
        path = getattr(getattr(error, "ctx", None), "command_path", "bridgehead")
        print_error(error.format_message(), f"{path} --help")
        return error.exit_code
    except BridgeError as error:
        print_error(error.message, error.hint, error.call_id)
        return exit_code(error.kind)
    except KeyboardInterrupt:
        return 130
    except Exception as error:  # noqa: BLE001  the outer edge of this surface
        if os.environ.get("BRIDGEHEAD_DEBUG"):
            traceback.print_exc()
        print_error(
            f"Unexpected {type(error).__name__}; this is a mistake in bridgehead.", "BRIDGEHEAD_DEBUG=1 shows where."
        )
        return EXIT_FAILURE
    return code if isinstance(code, int) else 0


def main() -> None:
    """The entry point of the `bridgehead` script, which is also what the shells ask what could come next."""
    try:
        if os.environ.get(COMPLETE_VARIABLE):
            sys.stdout.write(completions(sys.argv[1:]))
            code = 0
        else:
            code = run(sys.argv[1:])
        sys.stdout.flush()
    except BrokenPipeError:
        # The reader (`| head`) has gone; Python flushes again at exit and would complain there.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        code = EXIT_FAILURE
    sys.exit(code)


__all__ = ["EXIT_USAGE", "app", "main", "run"]
