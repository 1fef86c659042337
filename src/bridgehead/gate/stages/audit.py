"""Outermost: one record for every call, refused, failed and abandoned ones too."""

from __future__ import annotations

import logging
from collections.abc import Callable, MutableMapping

import structlog

from bridgehead.core import BridgeError, Call, Clock, Kind, Method, Outcome, new_id
from bridgehead.core.errors import InternalFailure, ProtocolFailure
from bridgehead.core.logs import CURRENT_CALL
from bridgehead.gate.concealing import conceal_error
from bridgehead.gate.pipeline import Next
from bridgehead.gate.ports import AuditLog, AuditRecord
from bridgehead.gate.redact import redact, redact_text

_FAILURES = frozenset({Kind.UNAVAILABLE, Kind.TIMEOUT, Kind.INTERNAL})

_log = structlog.stdlib.get_logger(__name__)


class Audit:
    """Writes the record on the way out, whatever the way out is.

    What is not ours to expect becomes an `InternalFailure` here: the stack goes to the log under an incident id, and
    the caller gets the id. This is the gate's outer edge, and the one place in it that catches everything.
    """

    def __init__(
        self,
        log: AuditLog,
        clock: Clock,
        routed: MutableMapping[str, str],
        conceal: Callable[[str], str] = str,
    ) -> None:
        """Write to `log`, and let errors out.

        Args:
            log: Where the records go.
            clock: The time.
            routed: Where `Authorise` notes the backend of a running call, by call id.
            conceal: Gives a text without the values of secrets.
        """
        self._log = log
        self._clock = clock
        self._routed = routed
        self._conceal = conceal
        self.adjust()

    def adjust(self) -> None:
        """Go by the level of the log as it is now."""
        # Asked once: even a line that is not wanted would cost each call more than all else here.
        self._tells = _log.is_enabled_for(logging.DEBUG)

    async def __call__(self, call: Call, proceed: Next) -> Outcome:
        """Run the call and record what came of it."""
        at, began = self._clock.now(), self._clock.monotonic()
        verdict, code = "cancelled", None
        running = CURRENT_CALL.set(call.id)
        try:
            outcome = await proceed(call)
        except BridgeError as error:
            verdict, code = _verdict(error), error.code
            conceal_error(error, self._conceal)
            error.call_id = call.id
            raise
        except Exception as error:
            verdict, code = "failed", InternalFailure.code
            raise _incident(call, error) from error
        else:
            verdict = "tool_error" if outcome.is_error else "input_required" if outcome.needs_input else "ok"
            return outcome
        finally:
            backend = self._routed.pop(call.id, None)
            # The name of a tool that was found is the catalog's own word; all else is the caller's.
            named = backend is not None and call.method is Method.TOOL
            record = AuditRecord(
                call_id=call.id,
                at=at,
                caller=call.caller.id,
                surface=call.surface,
                method=call.method.value,
                target=call.target if named else redact_text(call.target, self._conceal),
                group=call.group,
                backend=backend,
                arguments=redact(call.arguments, self._conceal),
                verdict=verdict,
                code=code,
                duration_s=self._clock.monotonic() - began,
            )
            self._log.append(record)
            if self._tells:
                _log.debug("call", target=record.target, verdict=verdict, code=code, seconds=record.duration_s)
            CURRENT_CALL.reset(running)


def _verdict(error: BridgeError) -> str:
    return "failed" if error.kind in _FAILURES or isinstance(error, ProtocolFailure) else "refused"


def _incident(call: Call, error: Exception) -> InternalFailure:
    incident = new_id("incident")
    _log.error(
        "a call broke the gate",
        incident=incident,
        method=call.method.value,
        target=redact_text(call.target),
        exc_info=error,
    )
    failure = InternalFailure(
        f"Something inside the bridge broke ({incident}).",
        hint="Give this incident id to the owner of the bridge; its log has the cause.",
        details={"incident": incident},
    )
    failure.call_id = call.id
    return failure
