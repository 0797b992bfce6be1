"""Following links from one event: what it rests on, and what rests on it. Pure.

A link leads from an event to an earlier one, so ancestors have falling and descendants rising numbers. Both walks give
events nearest in number first, each once, and look no further than they are read.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from heapq import heappop, heappush

Neighbours = Callable[[int], Iterable[int]]


def ancestors(start: int, used: Neighbours) -> Iterator[int]:
    """All that an event rests on, directly or not, the latest first. `used`: event → the events that it links to."""
    return (-number for number in _walk(-start, lambda negative: [-one for one in used(-negative)]))


def descendants(start: int, users: Neighbours) -> Iterator[int]:
    """All that rests on an event, directly or not, the earliest first. `users`: event → the events that link to it."""
    return _walk(start, users)


def _walk(start: int, neighbours: Neighbours) -> Iterator[int]:
    """All that is reached, in rising order; every neighbour is greater than what it is a neighbour of."""
    seen, waiting = {start}, [start]
    while waiting:
        number = heappop(waiting)
        if number != start:
            yield number
        for one in neighbours(number):
            if one not in seen:
                seen.add(one)
                heappush(waiting, one)
