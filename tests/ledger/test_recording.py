"""Halo runs in the ledger: which steps they are, that links are those of the data, and that nothing is logged twice."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

import halo_lang
from halo_runtime.ledger import Event, Ledger
from halo_runtime.ledger.recorder import RunRecorder
from halo_runtime.models.scripted import ScriptedModel
from halo_runtime.results import Interrupt, RunResult
from halo_runtime.runtime import Runtime
from halo_runtime.store.files import FileRunStore

BOT = "agent Bot [openai/gpt-4o-mini]\n"


class World:
    """A project with a ledger."""

    def __init__(self, folder: Path, replies: Any = None, **options: Any) -> None:
        self.folder, self.replies, self.options = folder, replies or {}, options
        self.path = folder / "ledger.db"

    def runtime(self, answer: Any = None) -> Runtime:
        recorder = RunRecorder(Ledger.open(self.path), **self.options)
        runtime = Runtime(
            env={}, replies=ScriptedModel(self.replies), store=FileRunStore(self.folder / ".halo"), recorder=recorder
        )

        async def give(interrupt: Interrupt) -> Any:
            return answer

        if answer is not None:
            runtime.on_interrupt(give)
        return runtime

    async def run(self, source: str, answer: Any = None, **inputs: Any) -> RunResult:
        runtime = self.runtime(answer)
        try:
            return await runtime.run(self.program(source), "Main", inputs, keep=True)
        finally:
            await runtime.close()

    def program(self, text: str) -> halo_lang.Program:
        file = self.folder / "main.halo"
        file.write_text(text, "utf-8")
        return halo_lang.parse(halo_lang.decode(file.read_bytes(), str(file)))

    def events(self) -> list[Event]:
        with Ledger.open(self.path) as ledger:
            return list(ledger.events().events)

    def told(self) -> list[tuple[str, str, tuple[int, ...]]]:
        """Kind, what happened, and the numbers of the events that it uses."""
        return [(one.kind, one.summary.partition(" [")[0], one.uses) for one in self.events()]

    def channels(self, agent: str = "Main") -> set[str]:
        with Ledger.open(self.path) as ledger:
            (shown,) = ledger.report(agent).to_json()["agents"]
        return {channel["channel"] for channel in shown["channels"] if channel["observed"]}


async def test_a_draft_rests_on_the_input_that_it_was_made_of(tmp_path: Path) -> None:
    world = World(tmp_path, {"Bot.write": "draft"})
    result = await world.run(f"{BOT}pipeline Main(text: String) -> Result:\n  text |> Bot.write()\n", text="t")
    assert world.told() == [("observe", "input of Main: text", ()), ("act", "Bot.write answered", (1,))]
    act = world.events()[1]
    assert (act.form, act.trigger, act.agent, act.session) == ("preparation", "request", "Main", result.run_id)


async def test_what_reads_nothing_rests_on_nothing(tmp_path: Path) -> None:
    world = World(tmp_path, {"Bot.write": "draft"})
    await world.run(f'{BOT}pipeline Main(text: String) -> Result:\n  "fixed" |> Bot.write()\n', text="t")
    assert world.told()[1] == ("act", "Bot.write answered", ())


async def test_stores_are_memory_and_other_tools_sense_or_act(tmp_path: Path) -> None:
    (tmp_path / "room").mkdir()
    (tmp_path / "room" / "a.txt").write_text("hello")
    text = (
        'store Memory : KV("kv.db")\ntool Desk : Workspace("room", write: true)\n'
        "pipeline Main(text: String) -> Result:\n  text\n"
        '    |> Memory.set("color", text)\n    |> Memory.get("color") as color\n'
        '    |> Desk.read("a.txt") as read\n    |> Desk.write("b.txt", "{{color}} {{read}}")\n'
        '    |> System.Notify("done")\n'
    )
    world = World(tmp_path)
    result = await world.run(text, text="blue")
    assert result.status == "completed"
    assert world.told() == [
        ("observe", "input of Main: text", ()),
        ("remember", "Memory.set", (1,)),
        ("recall", "Memory.get", ()),
        ("observe", "Desk.read", ()),
        ("act", "Desk.write", (3, 4)),
        ("act", "System.Notify", ()),
    ]
    assert [one.form for one in world.events()[4:]] == ["execution", "communication"]
    assert world.channels() == {"S→M", "M→A", "S→A"}


async def test_an_answer_after_an_action_is_its_outcome(tmp_path: Path) -> None:
    world = World(tmp_path, {"Bot.write": "draft", "Bot.mend": "better"})
    text = (
        f"{BOT}pipeline Main(text: String) -> Result:\n"
        '  text |! yield("Start?") as start |> Bot.write(text) as draft |! yield("Is {{draft}} good?") as good\n'
        '    |> Bot.mend("{{draft}}: {{good}}")\n'
    )
    await world.run(text, answer="yes", text="t")
    assert world.told() == [
        ("observe", "input of Main: text", ()),
        ("observe", "answer to: Start?", (1,)),
        ("act", "Bot.write answered", (1,)),
        ("outcome", "answer to: Is draft good?", (3,)),
        ("act", "Bot.mend answered", (3, 4)),
    ]
    assert world.events()[3].about == 3
    assert "A→S" in world.channels()


async def test_a_gate_that_closes_is_silence_and_rests_on_what_it_read(tmp_path: Path) -> None:
    world = World(tmp_path, {"Bot.judge": '{"good": false}'})
    text = (
        f"{BOT}pipeline Main(text: String) -> Result:\n"
        '  text |> Bot.judge("JSON") as verdict |? (context.data.verdict.good == true) |> System.Value("a")\n'
    )
    assert (await world.run(text, text="t")).status == "halted"
    assert world.told()[-1] == ("act", "a gate closed: nothing more was done", (2,))
    assert world.events()[-1].form == "silence"


async def test_what_a_model_asked_its_tools_for_passes_links_on(tmp_path: Path) -> None:
    replies = {"Bot.answer": [{"tool_calls": [{"tool": "Memory_get", "args": {"key": "color"}}]}, "blue"]}
    world = World(tmp_path, replies)
    text = (
        'store Memory : KV("kv.db")\nagent Bot [openai/gpt-4o-mini]\n  equips Memory\n'
        "pipeline Main(text: String) -> Result:\n  text |> Bot.answer(tools: [Memory])\n"
    )
    await world.run(text, text="t")
    assert world.told() == [
        ("observe", "input of Main: text", ()),
        ("recall", "Memory.get", (1,)),
        ("act", "Bot.answer answered", (1, 2)),
    ]


async def test_items_and_nested_pipelines_keep_their_links(tmp_path: Path) -> None:
    world = World(tmp_path, {"Bot.make": '["a", "b"]', "Bot.each": ["A", "B"], "Bot.sum": "AB"})
    text = (
        f"{BOT}pipeline One(x: String) -> Any:\n  x |> Bot.each()\n"
        'pipeline Main(text: String) -> Result:\n  text |> Bot.make("JSON") as xs\n'
        "    |* each(x in context.data.xs, concurrency: 1) => One(x) as made\n    |> Bot.sum()\n"
    )
    await world.run(text, text="t")
    assert [what for _, what, _ in world.told()] == [
        "input of Main: text", "Bot.make answered", "Bot.each answered", "Bot.each answered", "Bot.sum answered",
    ]  # fmt: skip
    assert [uses for _, _, uses in world.told()] == [(), (1,), (2,), (2,), (3, 4)]


async def test_a_run_that_pauses_and_goes_on_is_logged_once(tmp_path: Path) -> None:
    world = World(tmp_path, {"Bot.write": "draft", "Bot.send": "sent"})
    text = (
        f'{BOT}pipeline Main(text: String) -> Result:\n  text |> Bot.write() |! yield("Good?") as ok |> Bot.send(ok)\n'
    )
    paused = await world.run(text, text="t")
    assert (paused.status, len(world.told())) == ("paused", 2)
    runtime = world.runtime()
    again = await runtime.resume(paused.run_id)
    assert (again.status, len(world.told())) == ("paused", 2)
    done = await runtime.signal(paused.run_id, "yes")
    await runtime.close()
    assert done.status == "completed"
    assert [(kind, uses) for kind, _, uses in world.told()] == [
        ("observe", ()), ("act", (1,)), ("outcome", (2,)), ("act", (3,)),
    ]  # fmt: skip
    with Ledger.open(world.path) as ledger:
        assert ledger.verify().valid


async def test_failures_and_shadows_are_no_steps(tmp_path: Path) -> None:
    world = World(tmp_path, {"Bot.write": [{"error": 500}, "draft"], "Other": "shadow"})
    text = (
        "agent Other [openai/gpt-4o-mini]\n@retry(2)\n@shadow(Other)\nagent Bot [openai/gpt-4o-mini]\n"
        "pipeline Main(text: String) -> Result:\n  text |> Bot.write()\n"
    )
    await world.run(text, text="t")
    assert world.told() == [("observe", "input of Main: text", ()), ("act", "Bot.write answered", (1,))]


async def test_it_is_logged_as_whoever_is_named(tmp_path: Path) -> None:
    world = World(tmp_path, {"Bot.write": "draft"}, agent="night shift")
    await world.run(f"{BOT}pipeline Main(text: String) -> Result:\n  text |> Bot.write()\n", text="t")
    assert {one.agent for one in world.events()} == {"night shift"}


async def test_a_question_that_looks_like_a_secret_is_logged_without_its_text(tmp_path: Path) -> None:
    world = World(tmp_path)
    secret = "sk-proj-" + "a1B2c3D4e5F6g7H8" * 3
    await world.run(
        f'pipeline Main(text: String) -> Result:\n  text |! yield("Use {secret}?") as ok\n', "yes", text="t"
    )
    assert world.events()[1].kind == "observe"
    assert all(secret not in one.summary for one in world.events())


@pytest.mark.parametrize("status", ["completed", "failed"])
async def test_a_run_without_arguments_or_effects_leaves_nothing(tmp_path: Path, status: str) -> None:
    world = World(tmp_path)
    body = '"x" |> System.Value("y")' if status == "completed" else '"x" |> System.Fail("no")'
    assert (await world.run(f"pipeline Main() -> Result:\n  {body}\n")).status == status
    assert world.events() == []
