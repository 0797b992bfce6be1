"""Large values stand beside a journal and come back where they were."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from halo_runtime.errors import StoreError
from halo_runtime.store.blobs import LARGEST_INLINE, Blobs

LARGE = "x" * (LARGEST_INLINE + 1)


def line(**fields: Any) -> dict[str, Any]:
    return {"t": "effect", **fields}


@pytest.mark.parametrize(
    "document",
    [
        line(result={"value": LARGE, "warnings": []}),
        line(current=[LARGE, 1]),
        line(input={"a": 1, "text": LARGE, "z": 2}),
        line(arguments={"v": LARGE}),
        line(program=LARGE),
        line(output=LARGE, current=LARGE),
        line(news={"calls": [{"messages": [LARGE], "reply": LARGE}]}),
        line(interrupts=[{"message": LARGE}]),
        line(shadow=[{"output": LARGE}]),
        line(value=LARGE),
        line(stored={"a": 1, "Bot.answer": LARGE, "b": LARGE + "y", "z": 0}),
        line(stored={str(n): "x" * 1000 for n in range(400)} | {"large": LARGE, "last": 1}),
        line(stored={"Server.a tool of spaces": LARGE}),
    ],
    ids=lambda document: "-".join(document),
)
def test_a_large_value_comes_back_in_its_place_wherever_it_stood(document: dict[str, Any], tmp_path: Path) -> None:
    kept = Blobs(tmp_path).put_large(document)
    assert len(json.dumps(kept)) < LARGEST_INLINE
    restored = Blobs(tmp_path).restore(json.loads(json.dumps(kept)))
    assert json.dumps(restored) == json.dumps(document)


@settings(max_examples=30)
@given(st.dictionaries(st.sampled_from(["a", "blobs", "a b", "x.y"]), st.sampled_from([LARGE, 1, None, {"blobs": {}}])))
def test_the_order_and_the_names_of_results_stay(tmp_path_factory: pytest.TempPathFactory, stored: Any) -> None:
    folder = tmp_path_factory.mktemp("blobs")
    restored = Blobs(folder).restore(dict(Blobs(folder).put_large(line(stored=stored, input=stored))))
    assert list(restored["stored"].items()) == list(stored.items())
    assert restored["input"] == stored


def test_a_small_line_stays_as_it_is_and_leaves_no_file(tmp_path: Path) -> None:
    document = line(result="x" * LARGEST_INLINE)
    assert Blobs(tmp_path).put_large(document) == document
    assert list(tmp_path.iterdir()) == []


def test_what_looks_like_a_reference_is_a_value(tmp_path: Path) -> None:
    fake = {"blobs": {"result": "0" * 64}, "result": None}
    document = line(result=fake, current=LARGE)
    assert Blobs(tmp_path).restore(Blobs(tmp_path).put_large(document)) == document


def test_a_value_that_comes_again_is_kept_once(tmp_path: Path) -> None:
    blobs = Blobs(tmp_path)
    for _ in range(3):
        blobs.put_large(line(result=LARGE, stored={"a": LARGE}))
    assert len(list(tmp_path.rglob("*.json"))) == 1


def test_a_value_that_is_missing_or_was_changed_is_named(tmp_path: Path) -> None:
    blobs = Blobs(tmp_path)
    kept = blobs.put_large(line(result=LARGE))
    [path] = tmp_path.rglob("*.json")
    path.write_text('"other"')
    with pytest.raises(StoreError, match=f"{path.name} was changed"):
        blobs.restore(dict(kept))
    path.unlink()
    with pytest.raises(StoreError, match=f"{path.name} cannot be read: No such file"):
        blobs.restore(dict(kept))


def test_a_name_never_leads_out_of_the_folder(tmp_path: Path) -> None:
    (tmp_path / "secret.json").write_text('"s"')
    with pytest.raises(StoreError, match="no name of one"):
        Blobs(tmp_path / "blobs").restore(line(result=None, blobs={"result": "../secret"}))
