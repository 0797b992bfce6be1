"""Runs that pause and go on in new processes come to what an undisturbed run comes to, whoever is answered first."""

from __future__ import annotations

import asyncio
import tempfile
from dataclasses import replace
from pathlib import Path
from typing import Any

from hypothesis import assume, given, settings
from hypothesis import strategies as st

import halo_lang
from halo_runtime import Interrupt, RunResult, Runtime, ScriptedModel
from halo_runtime.errors import ModelError, RunError
from halo_runtime.models.base import ModelReply, ModelRequest, OnDelta
from tests.durability.support import Project, figures
from tests.runtime.runnable import Runnable, runnables


def answers_of(program: Runnable) -> Any:
    return lambda question: program.answers[len(question.path) % len(program.answers)]


def handle(runtime: Runtime, program: Runnable) -> None:
    """Let a Runtime answer all questions at once."""

    async def answer(question: Interrupt) -> Any:
        return answers_of(program)(question)

    runtime.on_interrupt(answer)
    runtime.on_listen(answer)


async def undisturbed(program: Runnable, root: Path) -> RunResult:
    """The run with somebody there who answers at once."""
    runtime = Project(root, program.replies).runtime()
    handle(runtime, program)
    return await runtime.run(halo_lang.parse(program.text), "Main", program.inputs, keep=True)


def same(one: RunResult, other: RunResult) -> None:
    """What must be equal. An arm that fails or halts ends a run, so how it ends hangs on who is asked first."""
    if other.status == "completed":
        assert figures(one) == figures(other)
    else:
        assert one.status in ("halted", "failed")


@settings(max_examples=25)
@given(runnables(), st.data())
def test_answers_in_any_order_each_in_a_new_process_give_the_same_run(program: Runnable, data: st.DataObject) -> None:
    def pick(count: int) -> int:
        return data.draw(st.integers(0, count - 1)) if count > 1 else 0

    async def both() -> tuple[RunResult, RunResult]:
        with tempfile.TemporaryDirectory() as folder:
            project = Project(Path(folder) / "a", program.replies)
            first = await project.run(program.text, program.inputs, keep=False)
            paused = await project.answer_all(first, answers_of(program), pick)
            return paused, await undisturbed(program, Path(folder) / "b")

    same(*asyncio.run(both()))


@settings(max_examples=25)
@given(runnables())
def test_a_fork_with_the_unchanged_program_does_nothing_anew(program: Runnable) -> None:
    async def both() -> tuple[RunResult, RunResult]:
        with tempfile.TemporaryDirectory() as folder:
            first = await undisturbed(program, Path(folder))
            project = Project(Path(folder), {"*": {"error": 400}})
            return await project.fork(program.text, first.run_id, reuse_answers=True), first

    forked, first = asyncio.run(both())
    if first.status == "completed":
        assert forked.run_id == first.run_id
        assert figures(forked) == figures(first)
    elif first.status == "halted":
        assert (forked.status, forked.output) == ("halted", first.output)
        assert forked.context.trace == first.context.trace
        assert all(call["reused"] for call in forked.context.meta["calls"])
        assert forked.context.meta["cost"] == 0


@settings(max_examples=25)
@given(runnables(), st.data())
def test_a_run_killed_after_any_line_goes_on_to_the_same_end(program: Runnable, data: st.DataObject) -> None:
    async def both() -> tuple[RunResult, RunResult]:
        with tempfile.TemporaryDirectory() as folder:
            whole = await undisturbed(program, Path(folder))
            project = Project(Path(folder), program.replies)
            path = project.store.folder / f"{whole.run_id}.jsonl"
            lines = path.read_bytes().splitlines(keepends=True)
            left = data.draw(st.integers(1, len(lines) - 1))
            torn = lines[left][: len(lines[left]) * data.draw(st.integers(0, 99)) // 100]
            path.write_bytes(b"".join(lines[:left]) + torn)
            resumed = await project.runtime().resume(whole.run_id)
            return await project.answer_all(resumed, answers_of(program), lambda count: count - 1), whole

    same(*asyncio.run(both()))


@settings(max_examples=25)
@given(runnables(), st.data())
def test_a_fork_of_a_run_cut_anywhere_comes_to_the_same_end(program: Runnable, data: st.DataObject) -> None:
    async def both() -> tuple[RunResult, RunResult]:
        with tempfile.TemporaryDirectory() as folder:
            whole = await undisturbed(program, Path(folder))
            project = Project(Path(folder), program.replies)
            path = project.store.folder / f"{whole.run_id}.jsonl"
            lines = path.read_bytes().splitlines(keepends=True)
            path.write_bytes(b"".join(lines[: data.draw(st.integers(1, len(lines) - 1))]))
            forked = await project.fork(program.text, whole.run_id)
            return await project.answer_all(forked, answers_of(program), lambda count: 0), whole

    forked, whole = asyncio.run(both())
    if whole.status != "completed":
        same(forked, whole)
    else:
        assert (forked.status, forked.output) == (whole.status, whole.output)
        assert forked.context.data == whole.context.data
        assert forked.context.trace == whole.context.trace


class FailingModel(ScriptedModel):
    """A scripted model whose call number `fails` is refused by its service."""

    def __init__(self, replies: dict[str, Any], fails: int) -> None:
        super().__init__(replies)
        self._calls_left = fails

    async def complete(self, request: ModelRequest, on_delta: OnDelta | None = None) -> ModelReply:
        self._calls_left -= 1
        if self._calls_left == 0:
            raise ModelError("refused", status=400)
        return await super().complete(request, on_delta)


@settings(max_examples=25)
@given(runnables(), st.integers(1, 12))
def test_a_fork_of_a_run_that_failed_at_any_call_comes_to_the_undisturbed_end(program: Runnable, fails: int) -> None:
    program = constant(program)
    replies = program.replies

    async def both() -> tuple[RunResult, RunResult, RunResult]:
        with tempfile.TemporaryDirectory() as folder:
            whole = await undisturbed(program, Path(folder) / "a")
            project = Project(Path(folder) / "b", replies)
            runtime = Runtime(env={}, replies=FailingModel(replies, fails), clock=project.clock, store=project.store)
            handle(runtime, program)
            failed = await runtime.run(halo_lang.parse(program.text), "Main", program.inputs, keep=True)
            again = project.runtime()
            handle(again, program)
            return whole, failed, await again.fork(halo_lang.parse(program.text), failed.run_id)

    whole, failed, forked = asyncio.run(both())
    if failed.status == "failed" and not isinstance(whole.error, RunError):
        assert (forked.status, forked.output) == (whole.status, whole.output)
        assert forked.context.data == whole.context.data
        assert forked.context.trace == whole.context.trace


def constant(program: Runnable) -> Runnable:
    """The program with one reply for all calls of a method, so that no call hangs on how many came before it."""
    good = {key: [reply for reply in one["replies"] if not _is_failure(reply)] for key, one in program.replies.items()}
    return replace(
        program, replies={key: {"replies": kept[:1] or ["yes"], "repeat": True} for key, kept in good.items()}
    )


def _is_failure(reply: Any) -> bool:
    return isinstance(reply, dict) and "error" in reply


EDITS = [
    ("A.go()", 'A.go("Anew")'),
    ("A.go()", "B.go(context)"),
    ('A.say("{{current}}?")', 'A.say("{{current}}!")'),
    ("B.go(context)", "System.Value(context)"),
    ("go == 'yes'", "go != 'yes'"),
    ("context != 'zz'", "context == 'zz'"),
    ("max: 2", "max: 1"),
    ("in [1, 2, 3]", "in [1, 3]"),
    ('onError: "keep"', 'onError: "drop"'),
    ("Go on with", "Really go on with"),
    ("  text\n", '  "{{text}}"\n'),
    ("Sub(context)", "Sub(context.data.go)"),
    (" as one", " as other"),
    ("\n    |> A.go()", "\n    |> System.Value(1)\n    |> A.go()"),
]


@settings(max_examples=25)
@given(runnables(), st.data())
def test_a_fork_with_an_edited_program_is_what_a_new_run_of_it_is(program: Runnable, data: st.DataObject) -> None:
    program = constant(program)
    old, new = data.draw(st.sampled_from([edit for edit in EDITS if edit[0] in program.text]))
    pieces = program.text.split(old)
    place = data.draw(st.integers(1, len(pieces) - 1))
    edited = replace(program, text=old.join(pieces[:place]) + new + old.join(pieces[place:]))
    assume(not halo_lang.check(halo_lang.parse(edited.text)).errors)

    async def both() -> tuple[RunResult, RunResult]:
        with tempfile.TemporaryDirectory() as folder:
            first = await undisturbed(program, Path(folder))
            runtime = Project(Path(folder), program.replies).runtime()
            handle(runtime, edited)
            forked = await runtime.fork(halo_lang.parse(edited.text), first.run_id)
            return forked, await undisturbed(edited, Path(folder))

    forked, fresh = asyncio.run(both())
    assert (forked.status, forked.output) == (fresh.status, fresh.output)
    assert str(forked.error) == str(fresh.error)
    if fresh.status != "failed":  # how far siblings of a failed arm came hangs on when it failed
        assert forked.context.data == fresh.context.data
        if forked.context.trace[0] == fresh.context.trace[0]:  # an edit that means the same gives back the old run
            assert forked.context.trace == fresh.context.trace
