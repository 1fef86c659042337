"""A tool's arguments against its input schema, before anything leaves the bridge."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from itertools import islice
from typing import Any, cast

import jsonschema_rs as js

from bridgehead.core import Call, Method, Outcome
from bridgehead.core.errors import ArgumentsInvalid
from bridgehead.core.json import nested_deeper_than
from bridgehead.gate.failures import Failures
from bridgehead.gate.mending import arguments_error
from bridgehead.gate.pipeline import Next
from bridgehead.gate.schemas import MAX_DEPTH, Schemas

_MAX_ERRORS = 50
"""Problems that are counted; a thousand wrong items are one mistake."""
_UNDECIDED = (js.ValidationErrorKind.BacktrackLimitExceeded, js.ValidationErrorKind.RegexEngineFailure)
"""A pattern that could not be tried within its bound says nothing about the argument."""


class Validate:
    """Refuses arguments that the tool's own schema refuses, and says how to mend them."""

    def __init__(self, failures: Failures) -> None:
        """Stop callers that send the same wrong arguments again and again, by `failures`."""
        self._failures = failures
        self.schemas = Schemas()

    async def __call__(self, call: Call, proceed: Next) -> Outcome:
        """Pass the call on once its arguments fit."""
        if call.method is not Method.TOOL:
            return await proceed(call)
        if type(call.arguments) is not dict:
            call = replace(call, arguments=_as_dict(call))
        error = self._problem(call)
        if error is None:
            return await proceed(call)
        self._failures.admit(call)
        self._failures.note_error(call, error)
        raise error

    def _problem(self, call: Call) -> ArgumentsInvalid | None:
        arguments = cast("dict[str, Any]", call.arguments)
        if nested_deeper_than(arguments, MAX_DEPTH):
            return ArgumentsInvalid(
                f"The arguments of {call.target} are nested deeper than {MAX_DEPTH}.",
                hint="Send them flatter.",
                details={"path": "/"},
            )
        if call.route is None:
            return None
        validator = self.schemas.validator(call.route.definition)
        if validator is None:
            return None
        try:
            if validator.is_valid(arguments):
                return None
            found = islice(validator.iter_errors(arguments), _MAX_ERRORS)
            errors = [error for error in found if not isinstance(error.kind, _UNDECIDED)]
        except ValueError:
            return ArgumentsInvalid(
                f"The arguments of {call.target} hold something that is not JSON.",
                hint="Send text as valid Unicode and numbers as JSON numbers.",
                details={"path": "/"},
            )
        schema: Mapping[str, Any] = call.route.definition["inputSchema"]
        return arguments_error(call.target, schema, arguments, errors) if errors else None


def _as_dict(call: Call) -> dict[str, Any]:
    """The arguments as an object; left out, they are an empty one."""
    arguments = cast("object", call.arguments)
    if arguments is None:
        return {}
    if isinstance(arguments, Mapping):
        return dict(cast("Mapping[str, Any]", arguments))
    raise ArgumentsInvalid(
        f"The arguments of {call.target} are not an object.",
        hint="Send a JSON object with the tool's properties in it.",
        details={"path": "/"},
    )
