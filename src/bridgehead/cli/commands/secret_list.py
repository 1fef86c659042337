"""`bridgehead secret list`: which secrets there are, and which are missing; never a value."""

from __future__ import annotations

from bridgehead.cli.keeping import KEPT_IN, settings_and_store, uses
from bridgehead.cli.options import ConfigOption, JsonOption, StateDirOption
from bridgehead.cli.output import print_json, print_table


def command(*, config: ConfigOption = None, state_dir: StateDirOption = None, json: JsonOption = False) -> None:
    """Print one line a secret, those that a backend names and nobody has set included."""
    settings, store = settings_and_store(config, state_dir)
    kept, used = store.names(), uses(settings)
    names = [*kept, *sorted(used.keys() - set(kept))]
    if json:
        print_json(
            [
                {"name": name, "kept_in": store.kind if name in kept else None, "used_by": used.get(name, [])}
                for name in names
            ]
        )
        return
    rows = [
        (name, KEPT_IN[store.kind] if name in kept else "(not set)", ", ".join(used.get(name, []))) for name in names
    ]
    print_table(("SECRET", "KEPT IN", "USED BY"), rows, empty="No secret is kept, and no backend names one.")
