"""The backend that the bridge itself is: tools that are always there.

Knows the catalog and the guidance, no other backend.
"""

from bridgehead.backends.builtin.backend import BuiltinBackend
from bridgehead.backends.builtin.ports import ResultReader

__all__ = ["BuiltinBackend", "ResultReader"]
