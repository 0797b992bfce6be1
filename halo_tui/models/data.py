"""The values of a run as a tree of rows, made only as far as it is opened."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from itertools import islice

from halo_runtime.json_types import Json, JsonObject, is_list, is_object
from halo_tui.models.lines import Line, Role, one_line, preview
from halo_tui.models.run import RunView

Path = tuple[str, ...]

MAX_CHILDREN = 2_000
"""Children of one value that are listed; a row says how many more there are."""


@dataclass(frozen=True, slots=True)
class DataRow:
    """One value in the tree: `path` from the root, `open` None where it has nothing inside.

    `changed`: the stage that is looked at has written it.
    """

    path: Path
    value: Json
    open: bool | None
    changed: bool = False

    @property
    def line(self) -> Line:
        sign = " " if self.open is None else "▾" if self.open else "▸"
        name = one_line(self.path[-1], 60) if self.path else ""
        role: Role = "title" if len(self.path) == 1 else "accent"
        shown = "" if self.open and self.value else preview(self.value)
        return (
            ("  " * (len(self.path) - 1), "text"),
            (f"{sign} ", "dim"),
            (name, role),
            (" ●" if self.changed else "", "ok"),
            ("  " if shown else "", "text"),
            (shown, "dim" if isinstance(self.value, dict | list) else "text"),
        )


@dataclass(slots=True)
class DataTree:
    """The sections `data`, `input`, `current` and `meta` of a run, and which values are open."""

    sections: JsonObject = field(default_factory=dict[str, Json])
    opened: set[Path] = field(default_factory=lambda: {("data",), ("input",)})
    changed: frozenset[Path] = frozenset()
    """Values that are marked."""

    def show(self, run: RunView, changed: frozenset[Path] = frozenset()) -> None:
        """Take the values of a run as far as they are known; its figures are when it has ended."""
        self.sections, self.changed = {}, changed
        if run.status != "idle":
            self.sections = {"data": run.data, "input": run.input, "current": run.current}
        if run.meta:
            self.sections["meta"] = run.meta

    def rows(self) -> Iterator[DataRow]:
        """All rows that are to be seen, from the top."""
        stack: list[tuple[Path, Json]] = [((name,), value) for name, value in reversed(self.sections.items())]
        while stack:
            path, value = stack.pop()
            opened = path in self.opened if _has_children(value) else None
            yield DataRow(path, value, opened, path in self.changed)
            if opened:
                stack.extend(reversed([((*path, key), child) for key, child in _children(value)]))

    def toggle(self, row: DataRow) -> None:
        """Open or close a value; one with nothing inside stays as it is."""
        if row.open is not None:
            self.opened ^= {row.path}


def _has_children(value: Json) -> bool:
    return (is_object(value) or is_list(value)) and len(value) > 0


def _children(value: Json) -> Iterator[tuple[str, Json]]:
    items = value.items() if is_object(value) else enumerate(value)
    yield from ((str(key), child) for key, child in islice(items, MAX_CHILDREN))
    if len(value) > MAX_CHILDREN:
        yield "…", f"{len(value) - MAX_CHILDREN:,} more"
