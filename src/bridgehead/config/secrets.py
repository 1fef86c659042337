"""A value that is never shown: printing, formatting, dumping and pickling give `***` or fail."""

from __future__ import annotations

import hmac
from typing import Any, NoReturn, Self

from pydantic import GetCoreSchemaHandler, GetJsonSchemaHandler
from pydantic.json_schema import JsonSchemaValue
from pydantic_core import CoreSchema, core_schema

MASK = "***"


class Secret:
    """Text that only `reveal` gives out. Immutable; equal to another secret with the same text."""

    __slots__ = ("__text",)

    def __init__(self, text: str) -> None:
        self.__text = text

    def reveal(self) -> str:
        """The text itself, for handing to a child process or an HTTP request and nothing else."""
        return self.__text

    def __repr__(self) -> str:
        return MASK

    def __str__(self) -> str:
        return MASK

    def __format__(self, spec: str) -> str:
        return MASK

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Secret):
            return NotImplemented
        # surrogatepass: environment values may hold bytes that are no UTF-8, as lone surrogates.
        mine, theirs = (text.encode("utf-8", "surrogatepass") for text in (self.__text, other.reveal()))
        return hmac.compare_digest(mine, theirs)

    def __hash__(self) -> int:
        return hash((Secret, self.__text))

    def __copy__(self) -> Self:
        return self

    def __deepcopy__(self, memo: dict[int, Any]) -> Self:
        return self

    def __reduce_ex__(self, protocol: object) -> NoReturn:
        raise TypeError("a secret cannot be pickled")

    @classmethod
    def __get_pydantic_core_schema__(cls, source: type[Any], handler: GetCoreSchemaHandler) -> CoreSchema:
        return core_schema.no_info_plain_validator_function(
            _parse,
            serialization=core_schema.plain_serializer_function_ser_schema(_mask, when_used="json"),
        )

    @classmethod
    def __get_pydantic_json_schema__(cls, schema: CoreSchema, handler: GetJsonSchemaHandler) -> JsonSchemaValue:
        return {"type": "string", "writeOnly": True}


def _parse(value: object) -> Secret:
    """Take text, and numbers and switches as they are written, since people write `DEBUG = true` and `PORT = 3000`."""
    match value:
        case Secret():
            return value
        case str():
            return Secret(value)
        case bool():
            return Secret("true" if value else "false")
        case int() | float():
            return Secret(str(value))
        case _:
            raise ValueError("must be text")


def _mask(_: Secret) -> str:
    return MASK
