"""Runs that are kept, under policies that redact: nothing of it in the journal, everything there when a run goes on."""

from __future__ import annotations

import itertools
import json
import stat
from pathlib import Path
from typing import Any

import pytest

from halo_runtime.errors import RunRefused, StoreError
from halo_runtime.store.verification import verify_journal
from tests.durability.support import Project
from tests.runtime.support import StubTool

MAIL, OTHER = "ann.lee@example.com", "bob@example.org"
KEY = "ghp_x7Kq2mVn9RtLw4ZpYc8HsBd1JfGa6EuT0oNi"
PROGRAM = """
store Deeds: KV("deeds.db")
policy Guard : Redact(PII, Secrets)
agent Bot [openai/gpt-4o-mini]
  requires Guard
pipeline Main(input: Object) -> Result:
  input
    |> Bot.read()
    |! yield("send to {{input.mail}}?")
    |> Deeds.set(context.input.input.mail, "sent")
"""
INPUT = {"input": {"mail": MAIL, "card": 4111111111111111, "note": f"from {OTHER}"}}
REPLIES = {"Bot.read": "a reply about [EMAIL_1]"}


class Kept(Project):
    """A project whose store writes down what it is called with."""

    def __init__(self, root: Path, replies: dict[str, Any]) -> None:
        super().__init__(root, replies)
        self.deeds = StubTool(lambda method, args: {"done": args["key"]})

    def everything(self) -> str:
        """All that lies in the folder but the vault, as text."""
        files = [path for path in self.root.rglob("*") if path.is_file() and path.parent.name != "vault"]
        return "".join(path.read_bytes().decode("utf-8", "replace") for path in files)

    def vault(self, run_id: str) -> Path:
        return self.root / "vault" / f"{run_id}.json"


@pytest.fixture
def project(tmp_path: Path) -> Kept:
    return Kept(tmp_path / ".halo", REPLIES)


def seen_in(text: str) -> list[str]:
    return [value for value in (MAIL, OTHER, "4111111111111111", KEY) if value in text]


async def test_a_paused_run_leaves_nothing_and_goes_on_with_all_of_it(project: Kept) -> None:
    paused = await project.run(PROGRAM, INPUT)
    assert paused.status == "paused"
    assert seen_in(project.everything()) == []
    assert seen_in(json.dumps(paused.to_json())) == []
    vault = project.vault(paused.run_id)
    assert stat.S_IMODE(vault.stat().st_mode) == 0o600
    assert seen_in(vault.read_text()) == [MAIL, OTHER, "4111111111111111"]
    done = await project.runtime().signal(paused.run_id, "yes")
    assert (done.status, done.error) == ("completed", None)
    assert project.deeds.calls[0][1]["key"] == MAIL
    assert done.context.input == INPUT
    assert not vault.exists()
    assert seen_in(project.everything()) == []


async def test_a_run_that_went_on_comes_to_the_hashes_of_one_that_did_not_pause(project: Kept) -> None:
    paused = await project.run(PROGRAM, INPUT)
    done = await project.runtime().signal(paused.run_id, "yes")
    assert verify_journal(project.store, done.run_id).status == "valid"
    before = [entry["hash"] for entry in paused.context.trace]
    assert [entry["hash"] for entry in done.context.trace][: len(before)] == before


@pytest.mark.parametrize("secret", [KEY, f"password: Tr0ub4dor&3 {KEY}"])
async def test_secrets_are_kept_nowhere_and_a_run_goes_on_without(project: Kept, secret: str) -> None:
    paused = await project.run(PROGRAM, {"input": {"a": secret, "mail": MAIL, "b": f"{KEY}2"}})
    assert KEY not in project.everything()
    assert not project.vault(paused.run_id).exists() or KEY not in project.vault(paused.run_id).read_text()
    done = await project.runtime().signal(paused.run_id, "yes")
    assert (done.status, done.error) == ("completed", None)
    assert KEY not in json.dumps(done.context.input)
    assert "SECRET" in json.dumps(done.context.input)


async def test_answers_are_kept_out_of_the_journal_too(project: Kept) -> None:
    paused = await project.run(PROGRAM, INPUT)
    done = await project.runtime().signal(paused.run_id, f"send it to {OTHER} instead, key {KEY}")
    assert done.status == "completed"
    assert seen_in(project.everything()) == []


async def test_the_program_is_kept_out_as_far_as_policies_redact_it(project: Kept) -> None:
    program = PROGRAM.replace("  requires Guard", f'  system "You work for {OTHER}."\n  requires Guard')
    paused = await project.run(program, {"input": {"mail": MAIL}})
    assert seen_in(project.everything()) == []
    done = await project.runtime().signal(paused.run_id, "yes")
    assert (done.status, done.error) == ("completed", None)


async def test_without_what_was_kept_apart_a_run_is_refused(project: Kept) -> None:
    paused = await project.run(PROGRAM, INPUT)
    project.vault(paused.run_id).unlink()
    with pytest.raises(RunRefused, match="-i input=…"):
        await project.runtime().signal(paused.run_id, "yes")


async def test_a_vault_that_cannot_be_read_is_told(project: Kept) -> None:
    paused = await project.run(PROGRAM, INPUT)
    project.vault(paused.run_id).write_text("{")
    with pytest.raises(StoreError, match="cannot be read"):
        await project.runtime().signal(paused.run_id, "yes")


async def test_an_ended_run_is_continued_with_its_input_given_anew(project: Kept) -> None:
    paused = await project.run(PROGRAM, INPUT)
    await project.runtime().signal(paused.run_id, "yes")
    edited = PROGRAM.replace('"sent"', '"sent again"')
    with pytest.raises(RunRefused, match="-i input=…"):
        await project.fork(edited, paused.run_id)
    again = await project.fork(edited, paused.run_id, inputs=INPUT)
    assert again.status == "completed"
    assert again.context.meta["calls"][0]["reused"] is True
    assert project.deeds.calls[-1][1] == {"key": MAIL, "value": "sent again"}
    assert seen_in(project.everything()) == []


async def test_a_paused_run_is_continued_as_another_with_its_values(project: Kept) -> None:
    paused = await project.run(PROGRAM, INPUT)
    forked = await project.fork(PROGRAM.replace('"sent"', '"sent again"'), paused.run_id)
    assert forked.status == "paused"
    assert forked.context.input == INPUT
    assert forked.context.meta["calls"][0]["reused"] is True
    done = await project.runtime().signal(forked.run_id, "yes")
    assert project.deeds.calls[-1][1]["key"] == MAIL
    assert done.status == "completed"


EACH = """
policy Guard : Redact(Email, restore: true)
agent Bot [openai/gpt-4o-mini]
  requires Guard
pipeline Main(items: Array) -> Result:
  items |* each(item in items, concurrency: 3) => One(item)
pipeline One(item: String) -> Result:
  item |> Bot.first(item) |! yield("go on?") |> Bot.second(item)
"""


@pytest.mark.parametrize("order", list(itertools.permutations(range(3))))
async def test_numbers_stay_when_items_go_on_in_any_order(tmp_path: Path, order: tuple[int, ...]) -> None:
    """Each item asks; the answers come in any order, each in a process of its own."""
    items = [f"user{n}@example.com" for n in range(3)]
    project = Project(tmp_path / ".halo", {"Bot.first": "ok", "Bot.second": "to [EMAIL_1] [EMAIL_2] [EMAIL_3]"})
    result = await project.run(EACH, {"items": items})
    rank = list(order)
    while result.status == "paused":
        questions = sorted(result.interrupts, key=lambda question: question.path)
        question = questions[min(rank.pop(0) if rank else 0, len(questions) - 1)]
        result = await project.runtime().signal(result.run_id, "yes", interrupt=question.id)
    assert (result.status, result.error) == ("completed", None)
    sent = [json.dumps(call["messages"]) for call in result.context.meta["calls"]]
    assert not any(item in text for item in items for text in sent)


async def test_runs_without_such_policies_are_kept_as_they_are(tmp_path: Path) -> None:
    project = Project(tmp_path / ".halo", REPLIES)
    paused = await project.run(PROGRAM.replace("Redact(PII, Secrets)", "MaxCalls(9)"), INPUT)
    assert MAIL in (project.store.folder / f"{paused.run_id}.jsonl").read_text()
    assert not (project.root / "vault").exists()
