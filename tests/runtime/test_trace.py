"""The hash chain: every change to a trace is found, and the chain is what the standard says it is."""

from __future__ import annotations

import hashlib
from typing import Any

import pytest
import rfc8785
from hypothesis import given
from hypothesis import strategies as st

from halo_runtime import verify_trace
from tests.runtime.support import run

PROGRAM = """
pipeline Inner(text: String) -> Result: text |> System.Value("é {{text}}") |> System.Value(1.5)
pipeline Main(text: String) -> Result: text |> Inner(text) |* { System.Value("a") as a, Inner("b") } |> System.Value(2)
"""
TRACE = run(PROGRAM, {"text": "t"}).context.trace


def test_a_chain_is_sha256_over_the_hash_before_and_the_canonical_json_of_the_rest() -> None:
    previous = bytes(32)
    for entry in TRACE:
        rest = {key: value for key, value in entry.items() if key not in ("prev", "hash")}
        assert entry["prev"] == previous.hex()
        assert entry["hash"] == hashlib.sha256(previous + rfc8785.dumps(rest)).hexdigest()
        previous = bytes.fromhex(entry["hash"])


def test_entries_stand_in_structural_order_between_a_start_and_an_end() -> None:
    assert [(entry["kind"], entry["path"]) for entry in TRACE] == [
        ("start", "Main"),
        ("pipe", "Main/0/Inner/0"),
        ("pipe", "Main/0/Inner/1"),
        ("pipe", "Main/0"),
        ("item", "Main/1/arm0"),
        ("pipe", "Main/1/arm1/Inner/0"),
        ("pipe", "Main/1/arm1/Inner/1"),
        ("item", "Main/1/arm1"),
        ("fanout", "Main/1"),
        ("pipe", "Main/2"),
        ("end", "Main"),
    ]


def test_values_are_hashed_as_canonical_json() -> None:
    assert TRACE[2]["output_sha256"] == hashlib.sha256(b"1.5").hexdigest()
    assert TRACE[1]["output_sha256"] == hashlib.sha256('"é t"'.encode()).hexdigest()
    assert TRACE[0]["input_sha256"] == hashlib.sha256(b'{"text":"t"}').hexdigest()


def test_the_same_program_and_input_give_the_same_chain_and_others_another() -> None:
    assert run(PROGRAM, {"text": "t"}).context.trace == TRACE
    assert run(PROGRAM, {"text": "u"}).head != TRACE[-1]["hash"]
    assert run(PROGRAM + " ", {"text": "t"}).head != TRACE[-1]["hash"]


def test_a_whole_trace_is_valid_and_one_without_its_end_is_open() -> None:
    assert str(verify_trace(TRACE)) == "valid"
    assert verify_trace(TRACE)
    assert str(verify_trace(TRACE[:-1])) == "open"
    assert not verify_trace(TRACE[:-1])


@pytest.mark.parametrize("count", range(1, len(TRACE) + 1))
def test_a_cut_tail_is_found_with_the_head_hash(count: int) -> None:
    verdict = verify_trace(TRACE[: len(TRACE) - count], head=TRACE[-1]["hash"])
    assert (verdict.status, verdict.at) == ("cut", len(TRACE) - count)


@pytest.mark.parametrize("number", range(len(TRACE) - 1))
def test_two_swapped_entries_are_found_at_the_first(number: int) -> None:
    swapped = [*TRACE[:number], TRACE[number + 1], TRACE[number], *TRACE[number + 2 :]]
    assert str(verify_trace(swapped)) == f"broken at {number}"


@given(st.data())
def test_any_changed_byte_of_any_entry_is_found_there(data: st.DataObject) -> None:
    number = data.draw(st.integers(0, len(TRACE) - 1))
    key = data.draw(st.sampled_from(sorted(TRACE[number])))
    verdict = verify_trace([*TRACE[:number], _changed(data, TRACE[number], key), *TRACE[number + 1 :]])
    assert (verdict.status, verdict.at) == ("broken", number)


@given(st.lists(st.dictionaries(st.text(), st.none() | st.text() | st.floats() | st.integers())) | st.lists(st.text()))
def test_anything_else_is_no_trace_and_raises_nothing(trace: list[Any]) -> None:
    assert not verify_trace(trace)


def test_entries_behind_the_end_and_a_second_start_are_found() -> None:
    assert str(verify_trace([*TRACE, TRACE[-1]])) == f"broken at {len(TRACE)}"
    assert str(verify_trace([TRACE[0], *TRACE])) == "broken at 1"


def _changed(data: st.DataObject, entry: dict[str, Any], key: str) -> dict[str, Any]:
    value = entry[key]
    if isinstance(value, int):
        return {**entry, key: value + data.draw(st.integers(1, 3))}
    place = data.draw(st.integers(0, len(value) - 1))
    other = data.draw(st.characters(codec="utf-8").filter(lambda character: character != value[place]))
    return {**entry, key: value[:place] + other + value[place + 1 :]}
