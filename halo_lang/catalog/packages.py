"""Entries that installed packages bring along, found by their entry points (spec 5 and 6).

An entry point bears the name that programs write and leads to an object whose `spec` is the catalogue's entry. What is
not asked for is not imported: a name that the catalogue has itself costs nothing, any other is looked for among the
names of the entry points first. A package that cannot be loaded, or whose name is taken, is reported and left out.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from threading import RLock
from typing import TYPE_CHECKING, Final, Generic, TypeVar

from halo_lang.catalog.registry import Named, Registry
from halo_lang.records import record

if TYPE_CHECKING:
    from importlib.metadata import EntryPoint

TOOL_PROVIDERS: Final = "halo.tool_providers"
POLICY_RULES: Final = "halo.policy_rules"

Entry = TypeVar("Entry", bound=Named)


@record
class BrokenPackage:
    """An entry of a package that is left out, with the reason for people."""

    name: str
    package: str
    reason: str


def installed(group: str) -> Iterable[EntryPoint]:
    """The entry points of a group in all installed packages."""
    # It brings the reading of mails along, which a program that needs no package should not pay for.
    from importlib.metadata import entry_points

    return entry_points(group=group)


class Packages(Generic[Entry]):
    """A registry and what the entry points of one group add to it.

    `kind` is the type of its entries. `find` gives the entry points; it is called once, when the first name is looked
    up that the registry has not.
    """

    def __init__(
        self,
        group: str,
        kind: type[Entry],
        registry: Registry[Entry],
        find: Callable[[str], Iterable[EntryPoint]] = installed,
    ) -> None:
        self._group = group
        self._kind = kind
        self._registry = registry
        self._find = find
        self._waiting: list[EntryPoint] | None = None
        self._lock = RLock()
        self._objects: dict[str, object] = {}
        self._broken: list[BrokenPackage] = []

    def get(self, name: str) -> Entry | None:
        """The entry of that name, a package's too."""
        found = self._registry.get(name)
        if found is None:
            self._load(name)
            found = self._registry.get(name)
        return found

    def all(self) -> Registry[Entry]:
        """All entries; every package of the group is loaded."""
        self._load(None)
        return self._registry

    def register(self, entry: Entry) -> None:
        """Add an entry that no package brings; ValueError when its name is taken."""
        self._registry.register(entry)

    def object(self, name: str) -> object | None:
        """What the entry point of that name leads to; None where no package brings the name."""
        self._load(name)
        return self._objects.get(name)

    @property
    def broken(self) -> tuple[BrokenPackage, ...]:
        """The entries left out among those that were loaded so far."""
        return tuple(self._broken)

    def why_missing(self, name: str) -> str | None:
        """Why a package's entry of that name was left out; None where there is none."""
        return next((f"{one.package}: {one.reason}" for one in self._broken if one.name == name), None)

    def _load(self, name: str | None) -> None:
        """Load the entry points of that name, or all."""
        with self._lock:
            if self._waiting is None:
                self._waiting = sorted(self._find(self._group), key=lambda point: (point.name, point.value))
            chosen = [point for point in self._waiting if name in (None, point.name)]
            if chosen:
                self._waiting = [point for point in self._waiting if point not in chosen]
            for point in chosen:
                self._add(point)

    def _add(self, point: EntryPoint) -> None:
        try:
            loaded: object = point.load()
            spec: object = getattr(loaded, "spec", None)
            if not isinstance(spec, self._kind):
                raise TypeError(f"`{point.value}` has no `spec` that is a {self._kind.__name__}")
            if spec.name != point.name:
                raise ValueError(f"its entry point is called {point.name} and its `spec` {spec.name}")
            self._registry.register(spec)
        except Exception as problem:  # whatever a package's own code raises
            reason = f"{type(problem).__name__}: {problem}"
            self._broken.append(BrokenPackage(point.name, _package(point), reason))
        else:
            self._objects[point.name] = loaded


def _package(point: EntryPoint) -> str:
    return point.dist.name if point.dist is not None else point.module
