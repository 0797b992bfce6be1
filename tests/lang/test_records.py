"""Records are to everyone what frozen dataclasses with slots are."""

from __future__ import annotations

import copy
import dataclasses
import pickle
from dataclasses import field
from typing import ClassVar

import pytest

from halo_lang.records import record


@record
class Base:
    kind: ClassVar[str] = "base"
    name: str


@record
class Entry(Base):
    """A record with everything that a record can have."""

    kind: ClassVar[str] = "entry"
    count: int = 3
    items: list[int] = field(default_factory=list)
    note: str = field(default="", compare=False)
    label: str = field(init=False, repr=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "label", f"{self.name}:{self.count}")

    @property
    def double(self) -> int:
        return self.count * 2


@dataclasses.dataclass(frozen=True, slots=True)
class Twin:
    name: str
    count: int = 3


def test_fields_defaults_and_methods_are_those_of_the_class() -> None:
    entry = Entry("a")
    assert (entry.name, entry.count, entry.items, entry.label, entry.double) == ("a", 3, [], "a:3", 6)
    assert (Entry.kind, Base.kind) == ("entry", "base")
    assert Entry("a").items is not Entry("b").items


def test_equality_and_hash_go_by_class_and_compared_fields() -> None:
    assert Entry("a", 1, note="x") == Entry("a", 1, note="y")
    assert Entry("a", 1) != Entry("a", 2)
    assert Base("a") != Twin("a")
    assert hash(Base("a")) == hash(Base("a"))


def test_the_text_is_that_of_a_dataclass() -> None:
    assert repr(Entry("a", 1, [2], "n")) == "Entry(name='a', count=1, items=[2], note='n')"


def test_nothing_can_be_assigned_deleted_or_added() -> None:
    entry = Entry("a")
    for change in (lambda: setattr(entry, "name", "b"), lambda: delattr(entry, "name"), lambda: setattr(entry, "x", 1)):
        with pytest.raises(dataclasses.FrozenInstanceError):
            change()
    assert not hasattr(entry, "__dict__")


def test_wrong_arguments_are_told_as_python_tells_them() -> None:
    with pytest.raises(TypeError, match="missing 1 required positional argument: 'name'"):
        Entry()  # pyright: ignore[reportCallIssue]
    with pytest.raises(TypeError, match="unexpected keyword argument 'other'"):
        Entry("a", other=1)  # pyright: ignore[reportCallIssue]


def test_the_functions_of_dataclasses_take_records() -> None:
    entry = Entry("a", 1)
    assert dataclasses.is_dataclass(entry)
    assert [item.name for item in dataclasses.fields(entry)] == ["name", "count", "items", "note", "label"]
    assert dataclasses.replace(entry, count=2) == Entry("a", 2)
    assert dataclasses.asdict(Base("a")) == {"name": "a"}


def test_match_takes_the_fields_by_position() -> None:
    match Entry("a", 1):
        case Entry(name, count):
            assert (name, count) == ("a", 1)


def test_copies_and_pickles_are_equal() -> None:
    entry = Entry("a", 1, [2])
    assert copy.copy(entry) == copy.deepcopy(entry) == pickle.loads(pickle.dumps(entry)) == entry
