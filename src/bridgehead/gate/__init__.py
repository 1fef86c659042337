"""The one path from a call to an outcome. Knows neither who calls it nor what answers.

`build_gate` puts the stages together; everything a call meets on its way is in `stages/`, and their order is in
`order.py`.
"""

from bridgehead.gate.broadcast import Broadcast
from bridgehead.gate.limits import Limits
from bridgehead.gate.order import ORDER, ConfiguredGate, GateParts, build_gate
from bridgehead.gate.pipeline import Gate, Next, Stage
from bridgehead.gate.ports import AuditLog, AuditRecord, Backend, Confirmer, Policy, Shelf
from bridgehead.gate.redact import redact, redact_text
from bridgehead.gate.stages import AllowAll

__all__ = [
    "ORDER",
    "AllowAll",
    "AuditLog",
    "AuditRecord",
    "Backend",
    "Broadcast",
    "ConfiguredGate",
    "Confirmer",
    "Gate",
    "GateParts",
    "Limits",
    "Next",
    "Policy",
    "Shelf",
    "Stage",
    "build_gate",
    "redact",
    "redact_text",
]
