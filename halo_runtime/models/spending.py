"""What an answer used that turned out to be of no use: the service gave it, and is paid for it."""

from __future__ import annotations

from collections.abc import Generator
from contextlib import contextmanager

from halo_runtime.errors import ModelError
from halo_runtime.models.base import Usage


@contextmanager
def used(usage: Usage) -> Generator[None]:
    """Around the reading of an answer: a ModelError about it says what the request used."""
    try:
        yield
    except ModelError as error:
        error.usage = usage
        raise
