"""Everything that can be called, as one immutable snapshot. Knows neither who is calling nor how calls are run."""

from bridgehead.catalog.catalog import Catalog, Part
from bridgehead.catalog.discreet import DiscreetCatalog, discreet
from bridgehead.catalog.groups import BUILTIN, unmatched_choices
from bridgehead.catalog.merge import Rules, merge
from bridgehead.catalog.model import BackendStatus, Definition, Entry, Group, Listing, Snapshot, State, View
from bridgehead.catalog.ports import ListingStore, Provider

__all__ = [
    "BUILTIN",
    "BackendStatus",
    "Catalog",
    "Definition",
    "DiscreetCatalog",
    "Entry",
    "Group",
    "Listing",
    "ListingStore",
    "Part",
    "Provider",
    "Rules",
    "Snapshot",
    "State",
    "View",
    "discreet",
    "merge",
    "unmatched_choices",
]
