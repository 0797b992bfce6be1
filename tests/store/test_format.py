"""The lines of a journal file: what is written is read, and no change to any byte goes unseen."""

from __future__ import annotations

import json
from collections.abc import Callable
from hashlib import sha256
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from halo_runtime.errors import StoreError
from halo_runtime.store import format as journal_format
from halo_runtime.store.format import FORMAT, Sealer, read_lines

TEXT = st.text(st.characters(codec=None), max_size=8)
JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | TEXT,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(TEXT, inner, max_size=3),
    max_leaves=8,
)
DOCUMENTS = st.lists(st.dictionaries(TEXT, JSON, max_size=4), max_size=5)


def written(documents: list[dict[str, Any]]) -> bytes:
    sealer = Sealer()
    return b"".join(sealer.line(document) for document in documents)


def journal(count: int = 4) -> tuple[list[dict[str, Any]], bytes]:
    documents = [{"t": "run", "format": FORMAT}, *({"t": "effect", "n": n, "text": "é\n🚀"} for n in range(count))]
    return documents, written(documents)


@given(DOCUMENTS)
def test_whatever_is_written_is_read_back(documents: list[dict[str, Any]]) -> None:
    documents = [{"format": FORMAT}, *documents]
    data = written(documents)
    reading = read_lines(data)
    assert list(reading.documents) == documents
    assert (reading.good, reading.torn, reading.broken_line) == (len(data), False, None)


def test_a_file_cut_at_any_byte_is_its_whole_lines_and_says_so() -> None:
    documents, data = journal()
    for length in range(len(data) + 1):
        whole = data[:length].count(b"\n")
        reading = read_lines(data[:length])
        assert list(reading.documents) == documents[:whole]
        assert reading.torn == (length != reading.good)
        assert reading.broken_line is None


@pytest.mark.parametrize("bit", range(8))
def test_a_flipped_bit_anywhere_is_found_and_its_line_is_named(bit: int) -> None:
    documents, data = journal()
    for place in range(len(data)):
        changed = bytearray(data)
        changed[place] ^= 1 << bit
        line = data[:place].count(b"\n") + 1
        try:
            reading = read_lines(bytes(changed))
        except StoreError:
            raise AssertionError(f"byte {place} of line {line} made the file unreadable") from None
        found = reading.broken_line or (line if reading.torn else None)
        assert found == line, f"byte {place}"
        assert list(reading.documents) == documents[: line - 1]
        assert reading.torn or reading.reason


@pytest.mark.parametrize(
    ("change", "line"),
    [
        (lambda lines: lines[:1] + lines[2:], 2),
        (lambda lines: lines[1:], 1),
        (lambda lines: [lines[0], lines[2], lines[1], *lines[3:]], 2),
        (lambda lines: [*lines[:3], lines[2], *lines[3:]], 4),
        (lambda lines: [*lines[:2], b"{}\n", *lines[2:]], 3),
        (lambda lines: [*lines[:2], b"\n", *lines[2:]], 3),
        (lambda lines: [*lines, lines[0]], 6),
        (lambda lines: [*lines, b"no JSON\n"], 6),
    ],
    ids=["removed", "first removed", "swapped", "doubled", "put in", "empty line", "joined with another", "appended"],
)
def test_lines_that_are_moved_are_found(change: Callable[[list[bytes]], list[bytes]], line: int) -> None:
    _, data = journal()
    reading = read_lines(b"".join(change(data.splitlines(keepends=True))))
    assert reading.broken_line == line
    assert len(reading.documents) == line - 1


def test_a_line_of_another_journal_does_not_fit() -> None:
    _, data = journal()
    other = written([{"t": "run", "format": FORMAT, "runId": "other"}, {"t": "effect", "n": 0, "text": "é\n🚀"}])
    mixed = data.splitlines(keepends=True)[:1] + other.splitlines(keepends=True)[1:]
    assert read_lines(b"".join(mixed)).broken_line == 2


def test_a_sealed_line_that_is_no_json_is_named() -> None:
    sealer = Sealer()
    line = sealer.line({"format": FORMAT})
    total = sha256(sealer.previous.encode() + b"[1}").hexdigest()[:16]
    assert read_lines(line + b'[1,"sum":"%b"}\n' % total.encode()).reason == "it is no JSON"


def test_a_journal_of_a_newer_format_is_refused_with_what_to_do() -> None:
    with pytest.raises(StoreError, match=rf"format {FORMAT + 1}.*knows formats up to {FORMAT}; continue it with"):
        read_lines(written([{"t": "run", "format": FORMAT + 1}]))


def test_a_newer_format_that_seals_its_lines_otherwise_is_refused_as_newer_too() -> None:
    with pytest.raises(StoreError, match=f"format {FORMAT + 1}"):
        read_lines(json.dumps({"t": "run", "format": FORMAT + 1, "seal": "new"}).encode() + b"\n")


@pytest.mark.parametrize("version", [None, "1", 0, -1, 1.5, True])
def test_a_format_that_is_none_is_no_journal(version: Any) -> None:
    with pytest.raises(StoreError, match="not that of a journal"):
        read_lines(written([{"t": "run", "format": version}]))


def test_an_older_format_is_brought_up_to_date_step_by_step(monkeypatch: pytest.MonkeyPatch) -> None:
    steps = {
        1: lambda documents: [{**one, "steps": [1]} for one in documents],
        2: lambda documents: [{**one, "steps": [*one["steps"], 2]} for one in documents],
    }
    monkeypatch.setattr(journal_format, "FORMAT", 3)
    monkeypatch.setattr(journal_format, "MIGRATIONS", steps)
    reading = read_lines(written([{"t": "run", "format": 1}, {"t": "effect"}]))
    assert [document["steps"] for document in reading.documents] == [[1, 2], [1, 2]]


def test_there_is_a_way_from_every_older_format() -> None:
    assert set(journal_format.MIGRATIONS) == set(range(1, FORMAT))
