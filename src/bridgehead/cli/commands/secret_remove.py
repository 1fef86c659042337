"""`bridgehead secret remove NAME`: forget a secret."""

from __future__ import annotations

from typing import Annotated

import typer

from bridgehead.cli.keeping import KEPT_IN, settings_and_store, uses
from bridgehead.cli.options import ConfigOption, JsonOption, StateDirOption
from bridgehead.cli.output import print_json, print_text
from bridgehead.config import SecretNotFound
from bridgehead.config.ports import check_name


def command(
    *,
    name: Annotated[str, typer.Argument(help="The secret's name.", metavar="NAME")],
    config: ConfigOption = None,
    state_dir: StateDirOption = None,
    json: JsonOption = False,
) -> None:
    """Remove the value from the store, and say which backends will miss it.

    Raises:
        SecretNotFound: There is none of that name.
    """
    check_name(name)
    settings, store = settings_and_store(config, state_dir)
    if not store.remove(name):
        raise SecretNotFound(
            f"There is no secret {name} in {KEPT_IN[store.kind]}.",
            hint="`bridgehead secret list` shows which there are.",
        )
    used_by = uses(settings).get(name, [])
    if json:
        print_json({"name": name, "removed": True, "used_by": used_by})
        return
    print_text(f"{name} is removed from {KEPT_IN[store.kind]}.")
    if used_by:
        print_text(f"{', '.join(used_by)} will not start without it, unless there is a default.")
