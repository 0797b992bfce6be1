"""The loop ledger: agents log the steps of their loop, and what the links between them show is reported.

It needs no Halo program. `Ledger` is all that servers, recorders and commands use.
"""

from halo_runtime.ledger.events import Event
from halo_runtime.ledger.exchange import Imported
from halo_runtime.ledger.guide import guide
from halo_runtime.ledger.reading import Page, Query, UnknownEvent
from halo_runtime.ledger.report import Report
from halo_runtime.ledger.rules import EventRefused
from halo_runtime.ledger.store import Ledger
from halo_runtime.ledger.verification import Verdict
from halo_runtime.ledger.writing import Logged

__all__ = [
    "Event",
    "EventRefused",
    "Imported",
    "Ledger",
    "Logged",
    "Page",
    "Query",
    "Report",
    "UnknownEvent",
    "Verdict",
    "guide",
]
