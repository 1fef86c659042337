"""The database for reading alone: of a bridge that runs or has run. It is neither made, nor migrated, nor locked."""

from __future__ import annotations

from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path

from sqlalchemy import Engine, create_engine
from sqlalchemy.exc import SQLAlchemyError

from bridgehead.core.errors import ConfigInvalid


@contextmanager
def reading(path: Path) -> Generator[Engine]:
    """An engine over the SQLite file that can only read.

    Raises:
        ConfigInvalid: There is no such file, or what is asked of it cannot be read.
    """
    if not path.is_file():
        raise ConfigInvalid(
            f"There is no database {path}, so no bridge has run with this state directory.",
            hint="name the state directory of the bridge with --state-dir.",
        )
    engine = create_engine(f"sqlite:///{path.absolute().as_uri()}?mode=ro&uri=true", hide_parameters=True)
    try:
        yield engine
    except SQLAlchemyError as error:
        cause = getattr(error, "orig", None) or error
        raise ConfigInvalid(
            f"The database {path} cannot be read: {cause}.",
            hint="check that it is the database of a bridgehead of this version, and yours.",
        ) from error
    finally:
        engine.dispose()
