"""How often Python looks for garbage while runs last: seldom, and afterwards as often as before."""

from __future__ import annotations

import asyncio
import gc
from collections.abc import Generator

import pytest

import halo_lang
from halo_lang.collector import SELDOM, seldom
from halo_runtime import Runtime
from halo_runtime.engine.events import StageStarted

PROGRAM = halo_lang.parse('pipeline Main(text: String) -> Any: text |> System.Notify("ready")')


@pytest.fixture(autouse=True)
def _as_python_has_it() -> Generator[None]:
    before = gc.get_threshold()
    gc.set_threshold(700, 10, 10)
    yield
    gc.set_threshold(*before)


def test_runs_side_by_side_leave_it_as_it_was() -> None:
    with seldom:
        with seldom:
            assert gc.get_threshold() == (SELDOM, 10, 10)
        assert gc.get_threshold() == (SELDOM, 10, 10)
    assert gc.get_threshold() == (700, 10, 10)


@pytest.mark.parametrize("own", [(0, 10, 10), (SELDOM + 1, 5, 5)], ids=["off", "more seldom"])
def test_a_program_that_has_said_more_is_obeyed(own: tuple[int, int, int]) -> None:
    gc.set_threshold(*own)
    with seldom:
        assert gc.get_threshold() == own
    assert gc.get_threshold() == own


def test_what_is_set_meanwhile_stays() -> None:
    with seldom:
        gc.set_threshold(100, 10, 10)
    assert gc.get_threshold() == (100, 10, 10)


async def test_a_run_lets_it_look_seldom() -> None:
    runtime, seen = Runtime(env={}), list[int]()
    runtime.on_system_event(lambda event: seen.append(gc.get_threshold()[0]))
    await runtime.run(PROGRAM, "Main", {"text": "hi"})
    assert seen == [SELDOM]
    assert gc.get_threshold() == (700, 10, 10)


ENDS = {
    "fails": 'pipeline Main(text: String) -> Any: text |> System.Fail("no")',
    "pauses": 'pipeline Main(text: String) -> Any: text |! yield("Really?")',
    "is stopped": "pipeline Main(text: String) -> Any: text |> System.Sleep(1h)",
    "is cancelled": "pipeline Main(text: String) -> Any: text |> System.Sleep(1h)",
}


@pytest.mark.parametrize("end", ENDS)
async def test_however_a_run_ends_beside_another_it_looks_as_often_as_before(end: str) -> None:
    runtime, begun = Runtime(env={}), asyncio.Event()
    runtime.subscribe(lambda event: begun.set() if isinstance(event, StageStarted) else None)
    runs = [
        asyncio.ensure_future(runtime.run(halo_lang.parse(ENDS[end]), "Main", {"text": "hi"}, run_id=name))
        for name in ("a", "b")
    ]
    await begun.wait()
    for run, name in zip(runs, ("a", "b"), strict=True):
        if end == "is stopped":
            runtime.stop(name)
        elif end == "is cancelled":
            run.cancel()
    await asyncio.gather(*runs, return_exceptions=True)
    assert gc.get_threshold() == (700, 10, 10)
