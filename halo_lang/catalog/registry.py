"""Entries by name: the one shape of every list in the catalogue."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Generic, Protocol, TypeVar


class Named(Protocol):
    """What a registry holds: anything with a name and, maybe, further ones."""

    @property
    def name(self) -> str: ...
    @property
    def aliases(self) -> tuple[str, ...]: ...


Entry = TypeVar("Entry", bound=Named)


class Registry(Generic[Entry]):
    """Entries in order of registration; a name is taken once (ValueError), whoever comes second is refused."""

    def __init__(self, what: str, entries: Iterable[Entry] = ()) -> None:
        self._what = what
        self._entries: list[Entry] = []
        self._by_name: dict[str, Entry] = {}
        for entry in entries:
            self.register(entry)

    def register(self, entry: Entry) -> None:
        """Add an entry under its name and aliases."""
        names = (entry.name, *entry.aliases)
        taken = next((name for name in names if name in self._by_name), None)
        if taken is not None:
            raise ValueError(f"the {self._what} {taken} exists already; give yours another name")
        self._entries.append(entry)
        self._by_name.update(dict.fromkeys(names, entry))

    def get(self, name: str) -> Entry | None:
        """The entry of that name or alias."""
        return self._by_name.get(name)

    @property
    def names(self) -> tuple[str, ...]:
        """All names and aliases, in order."""
        return tuple(self._by_name)

    def __iter__(self) -> Iterator[Entry]:
        return iter(self._entries)

    def __len__(self) -> int:
        return len(self._entries)
