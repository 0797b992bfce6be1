"""Following links from one event: what it rests on, and what rests on it. Pure.

A link leads from an event to an earlier one, so ancestors have falling and descendants rising numbers. Both walks give
events in that order, each once, and ask for no more neighbours than are read: one event may have very many.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from heapq import heappop, heappush
from itertools import count

Neighbours = Callable[[int], Iterable[int]]


def ancestors(start: int, used: Neighbours) -> Iterator[int]:
    """All that an event rests on, directly or not, the latest first. `used`: event → the events that it links to."""
    return (-number for number in _walk(-start, lambda negative: sorted(-one for one in used(-negative))))


def descendants(start: int, users: Neighbours) -> Iterator[int]:
    """All that rests on an event, directly or not, the earliest first.

    `users`: event → the events that link to it, in rising order.
    """
    return _walk(start, users)


def _walk(start: int, neighbours: Neighbours) -> Iterator[int]:
    """All that is reached, in rising order. Neighbours come in that order, too, and are greater than whose they are.

    So of every event that was reached only its next neighbour waits, and the least of all waiting is the next event.
    """
    order = count()  # decides between equals, as iterators cannot be compared
    waiting: list[tuple[int, int, Iterator[int]]] = []

    def wait(rest: Iterator[int]) -> None:
        number = next(rest, None)
        if number is not None:
            heappush(waiting, (number, next(order), rest))

    wait(iter(neighbours(start)))
    last = start
    while waiting:
        number, _, rest = heappop(waiting)
        wait(rest)
        if number != last:
            last = number
            yield number
            wait(iter(neighbours(number)))
