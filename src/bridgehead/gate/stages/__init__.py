"""The gate's stages, one a module. Which comes before which is `gate/order.py`'s."""

from bridgehead.gate.stages.audit import Audit
from bridgehead.gate.stages.authorise import Authorise
from bridgehead.gate.stages.confirm import AllowAll, Confirm
from bridgehead.gate.stages.dispatch import Dispatch
from bridgehead.gate.stages.limit import Limit, Rate
from bridgehead.gate.stages.validate import Validate

__all__ = ["AllowAll", "Audit", "Authorise", "Confirm", "Dispatch", "Limit", "Rate", "Validate"]
