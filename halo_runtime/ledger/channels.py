"""The six channels between the modules of the loop, and which of them links realise (spec 7.3). Pure."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final, TypeAlias

from halo_runtime.ledger.events import MODULES, Kind, Module

Channel: TypeAlias = tuple[Module, Module]

CHANNELS: Final[tuple[Channel, ...]] = (("S", "M"), ("S", "A"), ("M", "S"), ("M", "A"), ("A", "S"), ("A", "M"))
"""In the order of all replies and reports."""


def channel_name(channel: Channel) -> str:
    """`S→A`."""
    return "→".join(channel)


def realised(kind: Kind, used: Iterable[Kind]) -> tuple[Channel, ...]:
    """The channels of an event's links to events of these kinds; what an outcome is about counts as used."""
    module = MODULES[kind]
    links = {(MODULES[one], module) for one in used}
    return tuple(channel for channel in CHANNELS if channel in links)
